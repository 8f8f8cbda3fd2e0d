//! The walk through the code in ARCHITECTURE.md names functions that are there.
//!
//! It is a table with the columns `Step` and `Functions`. A cell names files, without `duroxide-` and `src`, and after a colon
//! functions in them: `` `store/job.rs`: `answer`, `Job::new` ``. The text below the table says how many they are.

use std::collections::BTreeSet;

use super::{
    finding::{Finding, Rule},
    source::SourceFile,
};

const HEAD: &str = "| Step | Functions |";

pub(crate) fn check(files: &[SourceFile], architecture: &str) -> Vec<Finding> {
    let rows = architecture.lines().skip_while(|line| *line != HEAD).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let mut findings = Vec::new();
    let (mut functions, mut named) = (0, BTreeSet::new());
    for row in rows {
        let mut file: Option<&SourceFile> = None;
        for name in row.split('`').skip(1).step_by(2) {
            if name.ends_with(".rs") {
                named.insert(name);
                let path = path_of(name);
                file = files.iter().find(|file| Some(&file.path) == path.as_ref());
                if file.is_none() {
                    findings.push(missing(name, "is no file"));
                }
                continue;
            }
            functions += 1;
            if let Some(file) = file.filter(|file| !has_function(file, name)) {
                findings.push(missing(&file.path, &format!("has no function {name}")));
            }
        }
    }
    let count = format!("These are {functions} functions in {} files.", named.len());
    if !architecture.contains(&count) {
        findings.push(Finding::new(
            Rule::Map,
            "ARCHITECTURE.md",
            format!("does not say below its walk: {count}"),
        ));
    }
    findings
}

/// `store/job.rs` as `crates/duroxide-store/src/job.rs`.
fn path_of(name: &str) -> Option<String> {
    let (folder, inner) = name.split_once('/')?;
    Some(format!("crates/duroxide-{folder}/src/{inner}"))
}

fn has_function(file: &SourceFile, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    let after = |rest: &str| rest.starts_with(['(', '<']);
    file.text.match_indices("fn ").any(|(at, _)| {
        let rest = file.text.get(at + "fn ".len()..).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(after)
    })
}

fn missing(place: &str, what: &str) -> Finding {
    Finding::new(Rule::Map, place, format!("{what}, but the walk in ARCHITECTURE.md names it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: &str = "These are 2 functions in 1 files.";

    fn findings(cell: &str) -> Vec<String> {
        let text = "impl Job { fn answer_all() {} fn answer<T>(self) {} }".to_owned();
        let file = SourceFile { path: "crates/duroxide-store/src/job.rs".to_owned(), text };
        let table =
            format!("before\n\n{HEAD}\n|---|---|\n| 1 | {cell} |\n\n{COUNT} `nobody.rs`: `nothing`\n");
        check(&[file], &table).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_wrong_count_is_found() {
        let found = findings("`store/job.rs`: `answer`");
        assert_eq!(found, ["ARCHITECTURE.md does not say below its walk: These are 1 functions in 1 files."]);
    }

    #[test]
    fn existing_functions_pass() {
        assert_eq!(findings("`store/job.rs`: `answer`, `Job::answer_all`"), Vec::<String>::new());
    }

    #[test]
    fn missing_functions_and_files_are_found() {
        let found = findings("`store/gone.rs`: `answer`; `store/job.rs`: `answ`");
        assert_eq!(
            found,
            [
                "store/gone.rs is no file, but the walk in ARCHITECTURE.md names it",
                "crates/duroxide-store/src/job.rs has no function answ, but the walk in ARCHITECTURE.md names it",
                "ARCHITECTURE.md does not say below its walk: These are 2 functions in 2 files.",
            ]
        );
    }
}
