//! The accepted findings.
//!
//! The list can only shrink: an exception that nothing needs is a problem, and each number is a limit of its own. Do not add to
//! it, and do not raise a number; split the file, the function or the folder.

use super::finding::{Finding, Rule};

/// A place that a rule does not hold for yet.
#[derive(Debug)]
pub(crate) struct Exception {
    rule: Rule,
    /// As in a finding. With a `/` at its end: everything below that folder.
    place: &'static str,
    /// The largest measure that is accepted.
    at_most: usize,
}

const fn exception(rule: Rule, place: &'static str, at_most: usize) -> Exception {
    Exception { rule, place, at_most }
}

pub(crate) const EXCEPTIONS: &[Exception] = &[
    exception(Rule::ProductFileLength, "crates/duroxide-conformance/src/topic/queues/sessions.rs", 416),
    exception(Rule::ProductFileLength, "crates/duroxide-core/src/engine/execution.rs", 447),
    exception(Rule::ProductFileLength, "crates/duroxide-runtime/src/env/turn_threads.rs", 407),
    exception(Rule::FolderSize, "bench/workloads", 25),
    exception(Rule::FolderSize, "crates/duroxide-provider/src", 19),
    exception(Rule::FolderSize, "crates/duroxide/examples", 18),
    // Conformance checks one outcome and fails on any other.
    exception(Rule::Wildcard, "crates/duroxide-conformance/src/lib.rs", 1),
];

impl Exception {
    fn is_about(&self, finding: &Finding) -> bool {
        let is_place = if self.place.ends_with('/') {
            finding.place.starts_with(self.place)
        } else {
            finding.place == self.place
        };
        self.rule == finding.rule && is_place
    }

    fn covers(&self, finding: &Finding) -> bool {
        self.is_about(finding) && finding.measure <= self.at_most
    }
}

/// The findings that no exception covers, and the exceptions that are about no finding.
pub(crate) fn judge(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<String> {
    let unneeded = exceptions
        .iter()
        .filter(|exception| !findings.iter().any(|finding| exception.is_about(finding)))
        .map(|exception| {
            format!("{} is an exception from {:?} that nothing needs", exception.place, exception.rule)
        });
    let uncovered = findings
        .iter()
        .filter(|finding| !exceptions.iter().any(|exception| exception.covers(finding)))
        .map(Finding::to_string);
    uncovered.chain(unneeded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(place: &str, lines: usize) -> Finding {
        Finding::above_limit(Rule::ProductFileLength, place, lines, "lines").unwrap()
    }

    #[test]
    fn an_exception_accepts_todays_measure_and_nothing_more() {
        let exceptions = [exception(Rule::ProductFileLength, "a.rs", 450)];
        assert_eq!(judge(vec![long("a.rs", 450)], &exceptions), Vec::<String>::new());
        assert_eq!(judge(vec![long("a.rs", 451)], &exceptions), ["a.rs has 451 lines, more than 400"]);
    }

    #[test]
    fn an_exception_that_nothing_needs_is_a_problem() {
        let exceptions = [exception(Rule::ProductFileLength, "a.rs", 450)];
        let problem = "a.rs is an exception from ProductFileLength that nothing needs";
        assert_eq!(judge(Vec::new(), &exceptions), [problem]);
        let other_rule = Finding::new(Rule::ModuleDoc, "a.rs", "has no doc");
        assert_eq!(judge(vec![other_rule], &exceptions), ["a.rs has no doc", problem]);
    }

    #[test]
    fn a_folder_includes_all_files_below_it() {
        let exceptions = [exception(Rule::ModuleDoc, "a/", 1)];
        let undocumented = |place| Finding::new(Rule::ModuleDoc, place, "has no doc");
        assert_eq!(
            judge(vec![undocumented("a/b.rs"), undocumented("a/b/c.rs")], &exceptions),
            Vec::<String>::new()
        );
        assert_eq!(
            judge(vec![undocumented("a/b.rs"), undocumented("ab.rs")], &exceptions),
            ["ab.rs has no doc"]
        );
    }
}
