//! The ids that the documents define.

use std::collections::BTreeMap;

use super::id::{is_id, parent};

/// The mark in the text of an item that a benchmark or a document shows instead of a test.
const SHOWN_ELSEWHERE: &str = "(shown by ";

/// All defined ids. An id is defined by a list item that begins with the id in bold.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    ids: BTreeMap<String, Definition>,
    repeated: Vec<(String, String)>,
}

#[derive(Debug)]
struct Definition {
    path: String,
    needs_test: bool,
}

impl Definitions {
    /// Adds the definitions of a document.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        for item in items(text) {
            let Some(id) = defined_id(&item) else { continue };
            let needs_test = !item.contains(SHOWN_ELSEWHERE);
            let definition = Definition { path: path.to_owned(), needs_test };
            if self.ids.insert(id.to_owned(), definition).is_some() {
                self.repeated.push((path.to_owned(), id.to_owned()));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether a citation of this id leads nowhere. A number of three parts is a version unless its first two are a rule
    /// that has items.
    pub(super) fn lacks(&self, id: &str) -> bool {
        !self.ids.contains_key(id) && parent(id).is_none_or(|rule| self.has_items(rule))
    }

    fn has_items(&self, rule: &str) -> bool {
        self.ids.keys().any(|id| parent(id) == Some(rule))
    }

    /// The ids that a test must cite, with their documents.
    pub(super) fn to_be_shown(&self) -> impl Iterator<Item = (&str, &str)> {
        let needed = self.ids.iter().filter(|(_, definition)| definition.needs_test);
        needed.map(|(id, definition)| (id.as_str(), definition.path.as_str()))
    }

    /// The errors in the documents themselves.
    pub(super) fn repeated(&self) -> impl Iterator<Item = String> {
        self.repeated.iter().map(|(path, id)| format!("{path} defines {id} a second time"))
    }
}

/// The list items of a Markdown document, each with its wrapped lines joined.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("- ") {
            items.push(line.to_owned());
            open = true;
        } else if line.is_empty() || line.starts_with('#') {
            open = false;
        } else if let Some(item) = items.last_mut().filter(|_| open) {
            item.push(' ');
            item.push_str(line);
        }
    }
    items
}

fn defined_id(item: &str) -> Option<&str> {
    let (id, _) = item.strip_prefix("- **")?.split_once("**")?;
    is_id(id).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_defined_by_list_items_alone() {
        let mut definitions = Definitions::default();
        let text = "# 3.1\n\nSee **3.2**.\n\n- **3.3** A rule\n  of two lines.\n- **Note** about 3.4\n  - **3.5** An item.";
        definitions.add("rules.md", text);
        assert_eq!(definitions.to_be_shown().map(|(id, _)| id).collect::<Vec<_>>(), ["3.3", "3.5"]);
    }

    #[test]
    fn the_mark_may_stand_on_a_wrapped_line() {
        let mut definitions = Definitions::default();
        definitions.add("rules.md", "- **3.1** Fast\n  (shown by `cargo xtask bench`).\n- **3.2** Correct.");
        assert_eq!(definitions.to_be_shown().collect::<Vec<_>>(), [("3.2", "rules.md")]);
    }
}
