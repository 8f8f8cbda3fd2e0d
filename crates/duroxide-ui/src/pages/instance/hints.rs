//! Links from an explanation to pages that help.

use duroxide::{ActivityState, Explanation, Finding};

use crate::links;

/// Maximum number of children linked.
const CHILDREN_MAX: usize = 3;

/// A link below an explanation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) text: String,
    pub(super) link: String,
}

/// The links for an explanation.
pub(super) fn hints(explanation: &Explanation) -> Vec<Hint> {
    let findings = &explanation.findings;
    let fixed = |text: &str, link: &str| Hint { text: text.to_owned(), link: link.to_owned() };
    let mut hints = Vec::new();
    if findings.iter().any(|finding| matches!(finding, Finding::DeadLetter { .. })) {
        hints.push(fixed("Retry or discard dead letters", "failures"));
    }
    if findings.iter().any(needs_a_node) {
        hints.push(fixed("What each node can do", "nodes"));
    }
    let children = findings.iter().filter_map(|finding| {
        let Finding::Child { instance, .. } = finding else { return None };
        Some(instance)
    });
    hints.extend(
        children
            .take(CHILDREN_MAX)
            .map(|child| Hint { text: format!("Child {child}"), link: links::instance(child) }),
    );
    hints
}

fn needs_a_node(finding: &Finding) -> bool {
    matches!(
        finding,
        Finding::NoNode { .. }
            | Finding::Hidden { .. }
            | Finding::Activity { state: ActivityState::NoNode { .. } | ActivityState::Hidden { .. }, .. }
    )
}
