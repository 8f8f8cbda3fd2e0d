//! The guide in `docs/` states required facts, and its links lead somewhere. Its snippets are doctests of the library.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The documents that readers go through, by path.
fn documents() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let files = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let guide = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "PERFORMANCE.md"]
        .map(|name| root.join(name));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, without_code(&text))
    };
    guide.chain(others).map(read).collect()
}

/// Code blocks have brackets and hashes of their own.
fn without_code(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The anchors that a document's headings make.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The targets of a document's links, except those into the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.starts_with("http"))
}

/// The guide's page of this name.
fn page(name: &str) -> String {
    let documents = documents();
    let (_, text) = documents.iter().find(|(path, _)| path.ends_with(name)).expect(name);
    // Lines are wrapped anywhere.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_says(page_name: &str, texts: &[&str]) {
    let page = page(page_name);
    for text in texts {
        assert!(page.contains(text), "{page_name} does not say `{text}`");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    for (path, text) in &documents {
        for link in links(text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let target = target.canonicalize().unwrap_or_else(|_| panic!("{}: {link}", path.display()));
            let found = heading.is_empty() || anchors(&documents[&target]).contains(heading);
            assert!(found, "{}: there is no heading for {link}", path.display());
        }
    }
}

/// S0.47, S0.48: an unregistered handler no longer fails at once, and how to find it sooner.
#[test]
fn the_guide_says_how_unregistered_handlers_end() {
    assert_says(
        "versioning.md",
        &[
            "A work item without a handler does not fail at once.",
            "Earlier releases failed it immediately.",
            "Watch the logs.",
            "duroxide_unregistered_orchestration_backoff_total",
            "duroxide_unregistered_activity_backoff_total",
            "Use a smaller `max_attempts`",
        ],
    );
}

/// S3.29, S3.43: how executions are drained that no node takes. S2.11, S2.12: the definition of a breaking engine change.
#[test]
fn the_guide_says_how_to_drain_and_names_breaking_changes() {
    assert_says(
        "versioning.md",
        &[
            "Widen the range of one node.",
            "An execution whose history cannot be decoded is given back each second, too, and ends after `max_attempts` as poison",
            "A range that ends above the node's own version is logged as a WARN at start.",
            "how timers, selects, joins or events are matched",
            "Deploy node by node.",
        ],
    );
}

/// S3.5: the limits of filtering.
#[test]
fn the_guide_names_the_limits_of_filtering() {
    assert_says(
        "versioning.md",
        &[
            "no history is rewritten for another version",
            "a provider may lack the filter",
            "no node knows for sure which others are alive",
        ],
    );
}

/// S2.16, S3.44: executions keep the rules of their version, and those of later versions are not failed.
#[test]
fn the_guide_says_which_rules_an_execution_keeps() {
    assert_says(
        "versioning.md",
        &[
            "Executions that an older version started retry such an error as they always did",
            "may follow rules that the node does not know",
            "the versions are stored with the executions, so no history is read",
        ],
    );
}

/// Dropping a future waits for nothing, and a logger is the program's choice.
#[test]
fn the_guide_says_how_to_undo_work_and_who_installs_a_logger() {
    assert_says(
        "writing-orchestrations.md",
        &[
            "A compensation that is started at once then runs at the same time as the work that it undoes",
            "cancel_and_wait",
        ],
    );
    assert_says("operating.md", &["leaves the choice of a subscriber to the program"]);
}

/// S3.39: the page for authors of providers has both requirements of filtering, with their tests.
#[test]
fn the_provider_page_says_filter_first_and_surface_decode_errors() {
    assert_says(
        "writing-a-provider.md",
        &[
            "before the lock is taken and before any event is decoded",
            "Never skip an event that you cannot decode.",
            "Failed to deserialize event at position",
            "needed by the validations of [decode errors]",
        ],
    );
}
