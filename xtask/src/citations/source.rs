//! Where a file cites.
//!
//! - In Rust: in line comments, and at the start of a message (`"I05: {instance}"`).
//! - In SQL: in comments.
//! - In Markdown: outside of code. Rule numbers count in the defining documents and in HTML comments only; elsewhere a
//!   number with a dot is a figure or a version.

use super::{
    DOCUMENTS,
    id::{ids, is_id, is_rule},
};

/// One citation of an id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Citation {
    pub id: String,
    pub path: String,
    pub line: usize,
    pub by_test: bool,
}

/// The citations of a file.
pub(super) fn citations(path: &str, text: &str) -> Vec<Citation> {
    let kind = path.rsplit_once('.').map_or("", |(_, kind)| kind);
    let mut part = Part::of_file(path);
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        part = part.after(line);
        fenced ^= kind == "md" && line.trim_start().starts_with("```");
        let cited = match kind {
            "rs" => in_rust(line),
            "sql" => comment(line, "--").map(ids).unwrap_or_default(),
            "md" if fenced => Vec::new(),
            _ => in_markdown(line, DOCUMENTS.contains(&path)),
        };
        found.extend(cited.into_iter().map(|id| Citation {
            id: id.to_owned(),
            path: path.to_owned(),
            line: index + 1,
            by_test: part.is_test(),
        }));
    }
    found
}

fn in_rust(line: &str) -> Vec<&str> {
    let comment = comment(line, "//");
    let code = &line[..line.len() - comment.map_or(0, str::len)];
    let messages = code.split('"').skip(1).flat_map(at_start_of_message);
    messages.chain(comment.map(ids).unwrap_or_default()).collect()
}

/// The ids in front of a message's colon, if there is no other text.
fn at_start_of_message(message: &str) -> Vec<&str> {
    let Some((front, _)) = message.split_once(": ") else { return Vec::new() };
    let words: Vec<&str> = front.split(", ").collect();
    if words.iter().all(|word| is_id(word)) { words } else { Vec::new() }
}

/// The comment of a line, with its mark. A mark inside of a text does not begin one.
fn comment<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let begins = |start: usize| {
        let before = &line[..start];
        (before.is_empty() || before.ends_with(' ')) && before.matches('"').count().is_multiple_of(2)
    };
    line.match_indices(mark).map(|(start, _)| start).find(|start| begins(*start)).map(|start| &line[start..])
}

fn in_markdown(line: &str, defines: bool) -> Vec<&str> {
    let marked = line.split("<!--").skip(1).flat_map(|rest| ids(rest.split("-->").next().unwrap_or(rest)));
    let marked: Vec<&str> = marked.collect();
    ids(line).into_iter().filter(|id| defines || !is_rule(id) || marked.contains(id)).collect()
}

/// Which part of a file a line is in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// A file that is all tests.
    TestFile,
    Product,
    /// Behind `#[cfg(test)]`, before the module.
    TestAttribute,
    /// A module of tests, which ends with this line.
    TestModule {
        last_line: String,
    },
}

impl Part {
    /// Tests are files below a folder `tests` or `testing` (the storage stories too), `tests.rs`, and the
    /// validations of providers.
    fn of_file(path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let in_test_folder = folder.split('/').any(|part| matches!(part, "tests" | "testing"));
        let is_test = in_test_folder
            || name == "tests.rs"
            || format!("{folder}/").starts_with("crates/duroxide-conformance/src/topic/");
        if is_test && name.ends_with(".rs") { Self::TestFile } else { Self::Product }
    }

    /// The part that this line belongs to, if the line before belonged to `self`.
    fn after(self, line: &str) -> Self {
        let indent = line.len() - line.trim_start().len();
        match self {
            Self::TestFile => Self::TestFile,
            Self::TestModule { last_line } if last_line == line => Self::Product,
            Self::TestModule { last_line } => Self::TestModule { last_line },
            Self::TestAttribute if line.trim_start().starts_with("#[") => Self::TestAttribute,
            Self::TestAttribute if line.trim_start().starts_with("mod ") && line.ends_with('{') => {
                Self::TestModule { last_line: format!("{}}}", " ".repeat(indent)) }
            }
            Self::Product | Self::TestAttribute if line.trim() == "#[cfg(test)]" => Self::TestAttribute,
            Self::Product | Self::TestAttribute => Self::Product,
        }
    }

    fn is_test(&self) -> bool {
        matches!(self, Self::TestFile | Self::TestModule { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(path: &str, text: &str) -> Vec<(String, usize, bool)> {
        citations(path, text)
            .into_iter()
            .map(|citation| (citation.id, citation.line, citation.by_test))
            .collect()
    }

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(
            cited(path, text).into_iter().map(|(id, _, _)| id).collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn rust_cites_in_comments_and_messages() {
        check("a.rs", "//! S4: rounds (16.1)", &["16.1"]);
        check("a.rs", "    let x = 2.5; // 16.2", &["16.2"]);
        check("a.rs", "assert!(ok, \"I05, 3.3: {x}\"); // B1", &["I05", "3.3", "B1"]);
        check("a.rs", "let x = (2.5, \"B1\", \"C4 says: no\", \"see // 16.2\");", &[]);
    }

    #[test]
    fn sql_cites_in_comments() {
        check("a.sql", "SELECT 1.5; -- 16.10", &["16.10"]);
    }

    #[test]
    fn prose_cites_by_letter_and_in_html_comments() {
        check("README.md", "B7 took 1.5 or 2.5 <!-- 16.2 -->", &["B7", "16.2"]);
        check("docs/semantics.md", "- **2.5** See 16.2.", &["2.5", "16.2"]);
        check("README.md", "```text\nB7\n```\nB8", &["B8"]);
    }

    #[test]
    fn tests_are_recognised_by_their_path() {
        for (path, is_test) in [
            ("crates/duroxide/tests/rounds.rs", true),
            ("crates/duroxide-runtime/src/client/tests/wait.rs", true),
            ("crates/duroxide-runtime/src/cache/tests.rs", true),
            ("crates/duroxide-provider/src/testing/stories/locks.rs", true),
            ("crates/duroxide-conformance/src/topic/status.rs", true),
            ("testing/fault-vfs/tests/store/failures.rs", true),
            ("crates/duroxide-conformance/src/suite/list.rs", false),
            ("crates/duroxide-provider/src/provider.rs", false),
            ("crates/duroxide/tests/README.md", false),
        ] {
            assert_eq!(cited(path, "// B1"), [("B1".to_owned(), 1, is_test)], "{path}");
        }
    }

    #[test]
    fn a_module_of_tests_ends_where_it_ends() {
        let text = "// B1\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    // B2\n}\n// B3\n#[cfg(test)]\nmod tests;\n// B4\n";
        let tested: Vec<bool> =
            citations("src/lib.rs", text).iter().map(|citation| citation.by_test).collect();
        assert_eq!(tested, [false, true, false, false]);
    }
}
