//! `cargo xtask citations`: every cited id exists, and a test cites every id.
//!
//! Comments cite rules, requirements, pitfalls and guarantees by id (`16.11`, `S3.T14`, `B7`, `I05`). The ids are defined in
//! [`DOCUMENTS`], as list items that begin with the id in bold. `id.rs` parses ids, `source.rs` finds where in a
//! file one counts as a citation and which files are tests.

mod document;
mod files;
mod id;
mod source;

use std::{collections::BTreeSet, fs, path::Path};

use crate::step::announce;
use document::Definitions;
use source::{Citation, citations};

/// Where ids are defined.
const DOCUMENTS: [&str; 2] = ["docs/semantics.md", "docs/requirements.md"];

/// Checks all sources and documents below the current folder.
pub(crate) fn check_repository() -> Result<(), String> {
    announce("Citations");
    let (definitions, cited) = read_repository(Path::new("."))?;
    let violations = violations(&definitions, &cited);
    if violations.is_empty() {
        println!("    ok, {} ids, {} citations", definitions.len(), cited.len());
        return Ok(());
    }
    Err(format!("citations (see CONTRIBUTING.md)\n        {}", violations.join("\n        ")))
}

/// The definitions and the citations below this folder.
fn read_repository(root: &Path) -> Result<(Definitions, Vec<Citation>), String> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"))
    };
    let mut definitions = Definitions::default();
    for path in DOCUMENTS {
        definitions.add(path, &read(path)?);
    }
    let mut cited = Vec::new();
    for path in files::below(root)? {
        cited.extend(citations(&path, &read(&path)?));
    }
    Ok((definitions, cited))
}

fn violations(definitions: &Definitions, cited: &[Citation]) -> Vec<String> {
    let unknown = cited.iter().filter(|citation| definitions.lacks(&citation.id)).map(|citation| {
        format!("{}:{} cites {}, which no document defines", citation.path, citation.line, citation.id)
    });
    let shown: BTreeSet<&str> =
        cited.iter().filter(|citation| citation.by_test).map(|citation| citation.id.as_str()).collect();
    let untested = definitions
        .to_be_shown()
        .filter(|(id, _)| !shown.contains(id))
        .map(|(id, path)| format!("{path} defines {id}, which no test cites"));
    definitions.repeated().chain(unknown).chain(untested).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings if the document, a product file and a test file have these texts.
    fn check(document: &str, product: &str, test: &str) -> Vec<String> {
        let mut definitions = Definitions::default();
        definitions.add("rules.md", document);
        let mut cited = citations("src/lib.rs", product);
        cited.extend(citations("tests/all.rs", test));
        violations(&definitions, &cited)
    }

    #[test]
    fn this_repository_cites_defined_ids_and_tests_all_of_them() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (definitions, cited) = read_repository(&root).unwrap();
        assert_eq!(violations(&definitions, &cited), Vec::<String>::new());
    }

    #[test]
    fn ids_that_exist_and_are_tested_pass() {
        assert!(check("- **2.1** A rule.\n- **B7** A pitfall.", "// As 2.1 says.", "/// 2.1, B7").is_empty());
    }

    #[test]
    fn a_cited_id_without_a_definition_is_found() {
        let found = check("- **2.1** A rule.", "//! First.\n//! (S0.9)", "/// 2.1 and 2.2");
        assert_eq!(
            found,
            [
                "src/lib.rs:2 cites S0.9, which no document defines",
                "tests/all.rs:1 cites 2.2, which no document defines"
            ]
        );
    }

    #[test]
    fn an_id_that_only_product_code_cites_is_found() {
        let found = check("- **2.1** A rule.\n- **2.2** Another.", "// 2.1, 2.2", "/// 2.2");
        assert_eq!(found, ["rules.md defines 2.1, which no test cites"]);
    }

    #[test]
    fn an_id_that_is_shown_elsewhere_needs_no_test() {
        assert!(check("- **S1.1** Fast (shown by `cargo xtask bench`).", "", "").is_empty());
    }

    #[test]
    fn an_id_is_defined_once() {
        let found = check("- **B1** One.\n- **B1** Two.", "", "/// B1");
        assert_eq!(found, ["rules.md defines B1 a second time"]);
    }

    #[test]
    fn versions_are_no_citations_unless_a_rule_has_items() {
        let document = "- **2.4** A rule:\n  - **2.4.1** Its item.";
        let found = check(document, "/// From 1.0.0 and 2.5.1 to 2.4.7.", "/// 2.4, 2.4.1");
        assert_eq!(found, ["src/lib.rs:1 cites 2.4.7, which no document defines"]);
    }
}
