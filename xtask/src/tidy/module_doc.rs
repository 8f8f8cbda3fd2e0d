//! The first line of every file is its `//!` documentation.

use super::{
    finding::{Finding, Rule},
    source::SourceFile,
};

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let undocumented = files.iter().filter(|file| !file.text.starts_with("//! "));
    undocumented
        .map(|file| Finding::new(Rule::ModuleDoc, &file.path, "does not begin with a `//!` line"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&[SourceFile { path: "a.rs".to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn a_file_that_begins_with_code_is_found() {
        assert_eq!(findings("//! What it is for.\n\nuse std::fmt;\n"), 0);
        assert_eq!(findings("use std::fmt;\n"), 1);
        assert_eq!(findings("/// What the first type is for.\nstruct A;\n"), 1);
        assert_eq!(findings(""), 1);
    }
}
