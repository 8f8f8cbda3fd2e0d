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
    exception(Rule::ProductFileLength, "crates/duroxide-conformance/src/topic/queues/sessions.rs", 415),
    exception(Rule::ProductFileLength, "crates/duroxide-core/src/engine/execution.rs", 407),
    exception(Rule::ProductFileLength, "crates/duroxide-runtime/src/env/turn_threads.rs", 402),
    exception(Rule::FolderSize, "bench/workloads", 25),
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

    /// What of it nothing needs any more.
    fn unneeded(&self, findings: &[Finding]) -> Option<String> {
        let Self { rule, place, at_most } = self;
        let measures =
            findings.iter().filter(|finding| self.is_about(finding)).map(|finding| finding.measure);
        match measures.max() {
            None => Some(format!("{place} is an exception from {rule:?} that nothing needs")),
            Some(most) if most < *at_most => {
                Some(format!("{place} is an exception from {rule:?} up to {at_most}, and {most} is enough"))
            }
            Some(_) => None,
        }
    }
}

/// The findings that no exception covers, and the exceptions that are about no finding.
pub(crate) fn judge(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<String> {
    let unneeded = exceptions.iter().filter_map(|exception| exception.unneeded(&findings));
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
        let too_large = "a.rs is an exception from ProductFileLength up to 450, and 449 is enough";
        assert_eq!(judge(vec![long("a.rs", 449)], &exceptions), [too_large]);
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
