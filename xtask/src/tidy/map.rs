//! ARCHITECTURE.md names every source file of our packages, and nothing that is not there.
//!
//! The code map has a section for each package, headed by its folder: ``### `crates/duroxide-core` ``. In it, text in backticks
//! that ends in `.rs` names files below the package's `src`, and text that ends in `/` a folder there. `folder/{a,b}.rs` stands
//! for several. The package's `lib.rs` and its tests need no name.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    finding::{Finding, Rule},
    source::{SourceFile, is_mapped},
};

const MAP: &str = "ARCHITECTURE.md";

pub(crate) fn check(files: &[SourceFile], architecture: &str) -> Vec<Finding> {
    let named = named_paths(architecture);
    let mut findings = Vec::new();
    for (package, path) in files.iter().filter_map(SourceFile::mapped_place) {
        let is_named = named.get(package).is_some_and(|paths| paths.contains(path));
        if !is_named && path != "lib.rs" {
            let detail = format!("is not named in {MAP}");
            findings.push(Finding::new(Rule::Map, format!("{package}/src/{path}"), detail));
        }
    }
    let there = there(files);
    for (package, paths) in &named {
        for path in paths {
            let full = format!("{package}/src/{path}");
            if !there.contains(full.as_str()) {
                findings.push(Finding::new(Rule::Map, full, format!("is named in {MAP} and does not exist")));
            }
        }
    }
    findings
}

/// Every file, and every folder with a `/` at its end.
fn there(files: &[SourceFile]) -> BTreeSet<&str> {
    let paths = files.iter().map(|file| file.path.as_str());
    paths
        .flat_map(|path| {
            let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
            folders.chain([path])
        })
        .collect()
}

/// The paths that each package's section names.
fn named_paths(architecture: &str) -> BTreeMap<&str, BTreeSet<String>> {
    let mut named: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut section = None;
    for line in architecture.lines() {
        if line.starts_with('#') {
            let package = line.strip_prefix("### `").and_then(|rest| rest.split('`').next());
            section = package.filter(|package| is_mapped(package));
        } else if let Some(name) = section {
            // Every second part is between two backticks.
            let quoted = line.split('`').skip(1).step_by(2);
            let paths = quoted.filter(|text| text.ends_with(".rs") || text.ends_with('/'));
            named.entry(name).or_default().extend(paths.flat_map(expand));
        }
    }
    named
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expand(path: &str) -> Vec<String> {
    let alternatives = path.split_once('{').and_then(|(before, rest)| {
        let (inner, after) = rest.split_once('}')?;
        Some(inner.split(',').map(|name| format!("{before}{}{after}", name.trim())).collect())
    });
    alternatives.unwrap_or_else(|| vec![path.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHITECTURE: &str = "\
# Architecture

`elsewhere.rs` is not in a section.

### `crates/duroxide-a`: the a

| Where | What |
|---|---|
| `one.rs`, `two/{three, four}.rs` | things that use `Code` |
| `two/` | a folder |

### `xtask`

`main.rs`

### `docs`

`not_ours.rs`
";

    fn findings(paths: &[&str]) -> Vec<String> {
        let file =
            |path: &&str| SourceFile { path: format!("crates/duroxide-a/src/{path}"), text: String::new() };
        let mut files: Vec<SourceFile> = paths.iter().map(file).collect();
        files.push(SourceFile { path: "xtask/src/main.rs".to_owned(), text: String::new() });
        check(&files, ARCHITECTURE).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_complete_map_passes() {
        let files = ["lib.rs", "one.rs", "two/three.rs", "two/four.rs", "two/tests.rs"];
        assert_eq!(findings(&files), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_a_name_is_found() {
        let found = findings(&["lib.rs", "one.rs", "two/three.rs", "two/four.rs", "two/five.rs"]);
        assert_eq!(found, ["crates/duroxide-a/src/two/five.rs is not named in ARCHITECTURE.md"]);
    }

    #[test]
    fn a_name_without_a_file_is_found() {
        let found = findings(&["one.rs"]);
        let gone =
            |path| format!("crates/duroxide-a/src/{path} is named in ARCHITECTURE.md and does not exist");
        assert_eq!(found, [gone("two/"), gone("two/four.rs"), gone("two/three.rs")]);
    }

    #[test]
    fn a_crate_without_a_section_is_found() {
        let file = SourceFile { path: "crates/duroxide-b/src/c.rs".to_owned(), text: String::new() };
        assert_eq!(check(&[file], "").len(), 1);
    }
}
