//! [`Group`]: failed instances whose errors are alike.

use std::collections::HashMap;

use duroxide::InstanceInfo;

use crate::{
    PayloadKind,
    format::{self, Moment},
    pages::instances::Row,
    redact::Redact,
};

/// How many instances of a group are listed.
const LISTED_MAX: usize = 50;
/// How much of an error tells one group from another.
const ERROR_BYTES: usize = 300;

/// Failed instances of one orchestration whose errors are alike.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) versions: String,
    /// The newest error.
    pub(super) error: String,
    pub(super) is_poison: bool,
    pub(super) count: String,
    pub(super) last: Moment,
    /// The newest ones.
    pub(super) listed: Vec<Row>,
    pub(super) left_out: usize,
}

/// Groups failed instances, the largest group first.
pub(super) fn groups(failed: &[InstanceInfo], redact: &Redact, now_ms: u64) -> Vec<Group> {
    let mut found: HashMap<(&str, String), Vec<&InstanceInfo>> = HashMap::new();
    for info in failed {
        let pattern = pattern(&shown_error(info, redact), info);
        found.entry((&info.orchestration_name, pattern)).or_default().push(info);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|((name, error), one), ((other_name, other_error), other)| {
        other.len().cmp(&one.len()).then_with(|| (name, error).cmp(&(other_name, other_error)))
    });
    found.into_iter().filter_map(|((name, _), members)| group(name, &members, redact, now_ms)).collect()
}

fn group(name: &str, members: &[&InstanceInfo], redact: &Redact, now_ms: u64) -> Option<Group> {
    let newest = members.iter().max_by_key(|info| info.updated_at)?;
    let mut versions: Vec<&str> = members.iter().map(|info| info.orchestration_version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    Some(Group {
        name: name.to_owned(),
        versions: versions.join(", "),
        error: format::one_line(&shown_error(newest, redact), ERROR_BYTES),
        // The texts of errors are what the store lists; poison begins like this.
        is_poison: newest.output.as_deref().unwrap_or_default().starts_with("poison:"),
        count: format::number(members.len() as u64),
        last: Moment::new(newest.updated_at, now_ms),
        listed: members.iter().take(LISTED_MAX).map(|info| Row::new(info, redact, now_ms)).collect(),
        left_out: members.len().saturating_sub(LISTED_MAX),
    })
}

fn shown_error(info: &InstanceInfo, redact: &Redact) -> String {
    let text = info.output.as_deref().unwrap_or("no reason was recorded");
    redact.shown(&info.instance_id, PayloadKind::Error, &info.orchestration_name, text).into_owned()
}

/// An error without what differs from instance to instance: its own id, numbers, and long hexadecimal texts.
fn pattern(error: &str, info: &InstanceInfo) -> String {
    let error = error.replace(&info.instance_id, "<id>");
    let words = error.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '-'));
    let pattern: String =
        words.map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word }).collect();
    format::beginning(&pattern, ERROR_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(id: &str, name: &str, error: &str, at: u64) -> InstanceInfo {
        InstanceInfo {
            instance_id: id.to_owned(),
            orchestration_name: name.to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            current_execution_id: 1,
            status: "Failed".to_owned(),
            output: Some(error.to_owned()),
            created_at: 0,
            updated_at: at,
            parent_instance_id: None,
        }
    }

    #[test]
    fn errors_that_differ_in_ids_and_numbers_are_alike() {
        let all = [
            failed("order-1", "Order", "order-1: card 4711 refused", 1),
            failed("order-2", "Order", "order-2: card 4712 refused", 5),
            failed("order-3", "Order", "no stock", 2),
            failed("pay-1", "Payment", "no stock", 2),
            failed("pay-2", "Payment", "poison: activity Charge#2 exceeded 11 attempts (max 10)", 2),
        ];
        let groups = groups(&all, &Redact::default(), 10);
        let told: Vec<_> =
            groups.iter().map(|group| (group.name.as_str(), group.count.as_str(), group.is_poison)).collect();
        assert_eq!(
            told,
            [("Order", "2", false), ("Order", "1", false), ("Payment", "1", false), ("Payment", "1", true)]
        );
        assert_eq!(groups[0].error, "order-2: card 4712 refused", "the newest one is shown");
    }

    #[test]
    fn the_hook_sees_errors_before_they_are_grouped() {
        let redact = Redact::with(std::sync::Arc::new(|_| Some("hidden".to_owned())));
        let all = [failed("a", "Order", "one secret", 1), failed("b", "Order", "another secret", 1)];
        let groups = groups(&all, &redact, 10);
        assert_eq!(groups.len(), 1);
        assert!(!format!("{groups:?}").contains("secret"), "{groups:?}");
    }
}
