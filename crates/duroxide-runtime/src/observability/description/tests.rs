//! The list of metrics against the code that records them and the guide that explains them.

mod dashboard;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::fixture::Recorder;

const GUIDE: &str = include_str!("../../../../../docs/operating.md");
/// Every file that records metrics.
const RECORDING: [&str; 5] = [
    include_str!("../metrics_provider/activity.rs"),
    include_str!("../metrics_provider/dispatch.rs"),
    include_str!("../metrics_provider/orchestration.rs"),
    include_str!("../metrics_provider/store.rs"),
    include_str!("../../../../duroxide-store/src/log.rs"),
];

fn described() -> BTreeMap<String, &'static str> {
    Recorder::observe(describe_metrics).described()
}

#[test]
fn every_metric_that_the_code_names_is_described() {
    let literals = RECORDING.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let named: BTreeSet<_> =
        literals.filter(|text| text.starts_with("duroxide_")).map(str::to_owned).collect();
    assert_eq!(named, described().into_keys().collect());
}

/// The rows of the guide's table: `` | `name`, `name` | kind | labels | ``, as name, kind and labels.
fn documented() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let rows = GUIDE.lines().filter(|line| line.starts_with("| `duroxide_"));
    rows.flat_map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (names, kind, labels) = (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap());
        names.split(", ").map(move |name| (name.trim_matches('`'), kind, labels))
    })
}

#[test]
fn the_guide_lists_exactly_the_described_metrics() {
    let documented: BTreeMap<_, _> = documented().map(|(name, kind, _)| (name.to_owned(), kind)).collect();
    assert_eq!(documented, described());
}
