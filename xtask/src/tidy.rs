//! `cargo xtask tidy`: the code map, the walk, module docs, lengths and wildcard arms.
//!
//! Every check reads source text only, so the command needs no build and takes a moment. The exceptions are in
//! [`exceptions`]; that list can only shrink.

mod exceptions;
mod finding;
mod length;
mod map;
mod module_doc;
mod source;
mod walk;
mod wildcard;

use std::{fs, path::Path};

use self::{exceptions::EXCEPTIONS, finding::Finding, source::SourceFile};
use crate::step::announce;

/// Checks the workspace in the current folder.
pub(crate) fn check_workspace() -> Result<(), String> {
    announce("Tidy");
    let files = source::files_below(Path::new("."))?;
    let architecture = fs::read_to_string("ARCHITECTURE.md")
        .map_err(|error| format!("cannot read ARCHITECTURE.md: {error}"))?;
    let problems = exceptions::judge(findings(&files, &architecture), EXCEPTIONS);
    if problems.is_empty() {
        println!("    ok, {} files, {} exceptions", files.len(), EXCEPTIONS.len());
        return Ok(());
    }
    Err(format!("tidy (see CONTRIBUTING.md)\n        {}", problems.join("\n        ")))
}

fn findings(files: &[SourceFile], architecture: &str) -> Vec<Finding> {
    let mut findings = map::check(files, architecture);
    findings.extend(walk::check(files, architecture));
    findings.extend(module_doc::check(files));
    findings.extend(length::check(files));
    findings.extend(wildcard::check(files));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let files = source::files_below(root).unwrap();
        let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        assert_eq!(exceptions::judge(findings(&files, &architecture), EXCEPTIONS), Vec::<String>::new());
    }
}
