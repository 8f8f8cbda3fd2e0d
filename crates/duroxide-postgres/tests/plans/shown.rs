//! Writes the plans that were checked into a file, for people to read.

use std::{collections::BTreeMap, fmt::Write as _};

/// Names the file.
const FILE: &str = "DUROXIDE_TEST_PLANS";
/// Statements are longer; their first lines identify them.
const STATEMENT_MAX: usize = 300;

/// Writes the plan of each statement in the server's log, once, if a file is named for them.
pub(crate) fn write(log: &str) {
    let Ok(file) = std::env::var(FILE) else { return };
    let mut page = "# Plans\n\nOf the statements of a node, beside a million finished instances, as the server ran them. \
        `DUROXIDE_TEST_PLANS=<file> cargo test -p duroxide-postgres --test plans a_million` writes this page.\n"
        .to_owned();
    for (statement, plan) in plans(log) {
        writeln!(page, "\n```text\n{statement}\n\n{plan}```").unwrap();
    }
    std::fs::write(file, page).unwrap();
}

/// The plan of each statement, by the beginning of its text.
fn plans(log: &str) -> BTreeMap<String, String> {
    let entries = log.split(" plan:\n").skip(1);
    entries.filter_map(|entry| plan(entry.lines().take_while(|line| line.starts_with('\t')))).collect()
}

fn plan<'a>(lines: impl Iterator<Item = &'a str>) -> Option<(String, String)> {
    let lines: Vec<&str> = lines.collect();
    // A step of a plan has its cost; the statement, which may have several lines, comes before.
    let first = lines.iter().position(|line| line.contains("  (cost="))?;
    let statement = lines[..first].join(" ").replace("Query Text:", "");
    let statement: Vec<&str> = statement.split_whitespace().map(without_schema).collect();
    let text = statement.join(" ").chars().take(STATEMENT_MAX).collect();
    let steps = lines[first..].iter().map(|line| line.trim_start_matches('\t').to_owned() + "\n");
    Some((text, steps.collect()))
}

fn without_schema(word: &str) -> &str {
    if word.starts_with("test_") { word.split_once('.').map_or(word, |(_, name)| name) } else { word }
}
