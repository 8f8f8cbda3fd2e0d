//! Failed instances whose errors are alike.

use std::collections::{BTreeSet, HashMap};

use duroxide::InstanceInfo;

use crate::{
    PayloadKind,
    format::{self, Moment},
    links,
    redact::Redact,
};

/// Maximum number of instances listed per group.
const LISTED_MAX: usize = 50;
/// Maximum number of groups shown: the largest ones.
const GROUPS_MAX: usize = 200;
/// Bytes of an error that are compared to group instances.
const ERROR_BYTES: usize = 300;

/// Groups failed instances, one after the other, newest first. Memory per group is bounded, also for large groups.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    /// Groups by orchestration and pattern of the error.
    groups: HashMap<(String, String), Group>,
    looked_at: u64,
}

/// Failed instances, grouped.
#[derive(Debug)]
pub(crate) struct Grouped {
    /// The largest group first.
    pub(super) groups: Vec<Group>,
    /// The number of groups left out because there are too many.
    pub(super) left_out: usize,
    /// The number of instances grouped.
    pub(super) looked_at: u64,
    /// Whether there are more failed instances than were grouped.
    pub(super) has_more: bool,
    /// The time of the read.
    pub(super) at_ms: u64,
}

/// Failed instances of one orchestration whose errors are alike.
#[derive(Debug, Clone)]
pub(super) struct Group {
    name: String,
    versions: BTreeSet<String>,
    /// The newest error.
    error: String,
    pub(super) is_poison: bool,
    count: u64,
    last_ms: u64,
    /// The newest instances of the group.
    listed: Vec<Listed>,
}

#[derive(Debug, Clone)]
struct Listed {
    id: String,
    version: String,
    updated_ms: u64,
}

/// A group as it is shown.
#[derive(Debug)]
pub(super) struct GroupView {
    pub(super) name: String,
    pub(super) versions: String,
    pub(super) error: String,
    pub(super) count: String,
    pub(super) last: Moment,
    pub(super) listed: Vec<Row>,
    pub(super) is_cut: bool,
}

/// An instance of a group as it is shown.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) link: String,
    pub(super) version: String,
    pub(super) updated: Moment,
}

impl Grouping {
    pub(super) fn add(&mut self, info: &InstanceInfo, redact: &Redact) {
        let text = info.output.as_deref().unwrap_or("no reason was recorded");
        let shown = redact.shown(&info.instance_id, PayloadKind::Error, &info.orchestration_name, text);
        let key = (info.orchestration_name.clone(), pattern(&shown, &info.instance_id));
        let group = self.groups.entry(key).or_insert_with(|| Group::new(&info.orchestration_name));
        // The store lists only the text of an error; the text of poison begins like this.
        group.add(info, &shown, text.starts_with("poison:"));
        self.looked_at += 1;
    }

    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at
    }

    pub(super) fn finish(self, has_more: bool, at_ms: u64) -> Grouped {
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_by(|(one_key, one), (other_key, other)| {
            other.count.cmp(&one.count).then_with(|| one_key.cmp(other_key))
        });
        let left_out = groups.len().saturating_sub(GROUPS_MAX);
        let groups = groups.into_iter().take(GROUPS_MAX).map(|(_, group)| group).collect();
        Grouped { groups, left_out, looked_at: self.looked_at, has_more, at_ms }
    }
}

impl Group {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            versions: BTreeSet::new(),
            error: String::new(),
            is_poison: false,
            count: 0,
            last_ms: 0,
            listed: Vec::new(),
        }
    }

    fn add(&mut self, info: &InstanceInfo, error: &str, is_poison: bool) {
        if self.count == 0 || info.updated_at > self.last_ms {
            self.last_ms = info.updated_at;
            self.error = format::one_line(error, ERROR_BYTES);
            self.is_poison = is_poison;
        }
        self.count += 1;
        if !self.versions.contains(&info.orchestration_version) {
            self.versions.insert(info.orchestration_version.clone());
        }
        if self.listed.len() < LISTED_MAX {
            self.listed.push(Listed {
                id: info.instance_id.clone(),
                version: info.orchestration_version.clone(),
                updated_ms: info.updated_at,
            });
        }
    }

    pub(super) fn view(&self, now_ms: u64) -> GroupView {
        let row = |listed: &Listed| Row {
            link: links::instance(&listed.id),
            id: listed.id.clone(),
            version: listed.version.clone(),
            updated: Moment::new(listed.updated_ms, now_ms),
        };
        GroupView {
            name: self.name.clone(),
            versions: self.versions.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
            error: self.error.clone(),
            count: format::number(self.count),
            last: Moment::new(self.last_ms, now_ms),
            listed: self.listed.iter().map(row).collect(),
            is_cut: self.count > self.listed.len() as u64,
        }
    }
}

/// An error without the parts that differ between instances: the instance id, numbers, and long hexadecimal texts.
fn pattern(error: &str, instance: &str) -> String {
    let error = error.replace(instance, "<id>");
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

    fn grouped(all: &[InstanceInfo], redact: &Redact) -> Grouped {
        let mut grouping = Grouping::default();
        all.iter().for_each(|info| grouping.add(info, redact));
        grouping.finish(false, 0)
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
        let groups = grouped(&all, &Redact::default()).groups;
        let told: Vec<_> =
            groups.iter().map(|group| (group.name.as_str(), group.count, group.is_poison)).collect();
        assert_eq!(
            told,
            [("Order", 2, false), ("Order", 1, false), ("Payment", 1, false), ("Payment", 1, true)]
        );
        assert_eq!(groups[0].error, "order-2: card 4712 refused", "the newest one is shown");
    }

    #[test]
    fn the_hook_sees_errors_before_they_are_grouped() {
        let redact = Redact::with(std::sync::Arc::new(|_| Some("hidden".to_owned())));
        let all = [failed("a", "Order", "one secret", 1), failed("b", "Order", "another secret", 1)];
        let groups = grouped(&all, &redact).groups;
        assert_eq!(groups.len(), 1);
        assert!(!format!("{groups:?}").contains("secret"), "{groups:?}");
    }

    #[test]
    fn groups_and_their_instances_are_bounded() {
        let alike = (0..1_000).map(|n| failed(&format!("a-{n}"), "Order", "no stock", n));
        let different = (0..1_000_u64).map(|n| failed(&format!("b-{n}"), &format!("Order{n}"), "no", n));
        let grouped = grouped(&alike.chain(different).collect::<Vec<_>>(), &Redact::default());
        assert_eq!((grouped.looked_at, grouped.groups.len(), grouped.left_out), (2_000, GROUPS_MAX, 801));
        let first = grouped.groups[0].view(1_000);
        assert_eq!((first.count.as_str(), first.listed.len(), first.is_cut), ("1,000", LISTED_MAX, true));
    }
}
