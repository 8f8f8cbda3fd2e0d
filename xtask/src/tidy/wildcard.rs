//! Every product crate asks clippy to refuse wildcard arms over enums, so that a new kind of event, action or work item
//! cannot be overlooked. Only the compiler knows the type of a matched value; this check only requires the lint.

use super::{
    finding::{Finding, Rule},
    source::SourceFile,
};

const LINT: &str = "#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]";

/// Crates without events, actions or work items. They match the syntax of Rust, which cannot be listed in full.
const WITHOUT_KINDS: &[&str] = &["crates/duroxide-macros/src/lib.rs"];

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let roots = files.iter().filter(|file| file.product_place().is_some_and(|(_, path)| path == "lib.rs"));
    roots
        .filter(|root| !WITHOUT_KINDS.contains(&root.path.as_str()))
        .filter(|root| !root.text.lines().any(|line| line == LINT))
        .map(|root| Finding::new(Rule::Wildcard, &root.path, format!("lacks `{LINT}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&[SourceFile { path: path.to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn a_crate_that_does_not_ask_is_found() {
        assert_eq!(findings("crates/a/src/lib.rs", "//! A.\n"), 1);
        assert_eq!(findings("crates/a/src/lib.rs", &format!("//! A.\n\n{LINT}\n")), 0);
        assert_eq!(findings("crates/a/src/b.rs", "//! B.\n"), 0);
        assert_eq!(findings("crates/duroxide-macros/src/lib.rs", "//! Macros.\n"), 0);
        assert_eq!(findings("crates/a/tests/lib.rs", "//! Tests.\n"), 0);
    }
}
