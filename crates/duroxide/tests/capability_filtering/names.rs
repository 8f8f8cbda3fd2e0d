//! The names under which parts of this suite can be run.

use std::{env, process::Command};

/// The tests that a name filter selects.
fn selected_by(filter: &str) -> Vec<String> {
    let listing = Command::new(env::current_exe().unwrap()).args([filter, "--list"]).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    listing.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// S2.24, S2.25: each part can be run alone, and nothing else runs with it.
#[test]
fn each_part_can_be_run_alone_by_its_name() {
    let parts = [
        "bypassed::",
        "fleet::",
        "generations::",
        "golden::",
        "logs::",
        "names::",
        "pins::",
        "ranges::",
        "stale_completion::",
        "stamps::",
        "sweeper::",
        "undecodable::",
        "upgrade::",
    ];
    let mut all = Vec::new();
    for part in parts {
        let selected = selected_by(part);
        assert!(!selected.is_empty() && selected.iter().all(|test| test.starts_with(part)), "{selected:?}");
        all.extend(selected);
    }
    all.sort();
    let mut whole = selected_by("");
    whole.sort();
    assert_eq!(all, whole, "every test is in one of the parts");
}
