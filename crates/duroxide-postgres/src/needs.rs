//! Which rows a batch needs: the rows that its operations name.
//!
//! This is a forecast. A missing row costs a round trip, a superfluous one an index lookup.

use std::collections::BTreeSet;

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{Lane, Route},
    store::{
        ActivityFetch, ActivityRow, Batch, InstanceFetch, MessageRow, Op, PreparedExecution, PreparedRound,
        Readies, StateChange, token_row,
    },
};

use crate::tables::NamedInstances;

/// How many numbers a turn draws that runs early, about.
const NUMBERS_OF_TURN: usize = 4;

/// Rows to lock and load with the first round trip of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Needs<'a> {
    /// The time of the transaction; `None` to use the database's clock.
    pub(crate) now: Option<Timestamp>,
    pub(crate) instances: NamedInstances,
    pub(crate) activities: BTreeSet<u64>,
    /// Activities, by instance, execution and id.
    pub(crate) activity_keys: BTreeSet<(u64, u64, u64)>,
    /// The keys of activities that the batch inserts. They exist already only if an operation is repeated.
    pub(crate) new_activity_keys: BTreeSet<(u64, u64, u64)>,
    /// Instances that the batch starts. They exist already only if a start is repeated.
    pub(crate) starts: BTreeSet<String>,
    /// Instances whose changed keys are merged.
    pub(crate) key_value_changes: BTreeSet<u64>,
    /// Instances that remove keys.
    pub(crate) key_value_keys: BTreeSet<u64>,
    pub(crate) custom_status: BTreeSet<u64>,
    /// Instances whose first event is read, for the start that it records.
    pub(crate) first_events: BTreeSet<String>,
    pub(crate) ending_nodes: BTreeSet<String>,
    /// Instances that are deleted, and the roots of deleted trees.
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) deleted_trees: BTreeSet<String>,
    /// Instances whose executions are pruned, with the number of newest ones to keep.
    pub(crate) pruned: BTreeSet<(String, u32)>,
    pub(crate) letters: BTreeSet<u64>,
    /// Dead letters that go back into their queues.
    pub(crate) retried_letters: BTreeSet<u64>,
    pub(crate) routes: BTreeSet<Route>,
    pub(crate) lanes: BTreeSet<Lane>,
    /// How many numbers the batch draws, about.
    pub(crate) numbers: usize,
    pub(crate) promotes: bool,
    pub(crate) instance_fetches: Vec<&'a InstanceFetch>,
    pub(crate) activity_fetches: Vec<&'a ActivityFetch>,
}

impl<'a> Needs<'a> {
    /// The needs of a batch at a time that the caller sets, or else at the time of the database's clock.
    pub(crate) fn of(batch: &'a Batch<'_>, now: Option<Timestamp>) -> Self {
        // The transaction's revision is a number, too.
        let mut needs = Self { now, promotes: batch.promote, numbers: 1, ..Self::default() };
        let mut readies = Readies { instances: batch.promote, activities: batch.promote };
        for submitted in &batch.operations {
            needs.add(&submitted.op);
            readies = readies.or(submitted.op.readies());
        }
        if batch.turns.is_some() {
            // Turns that run early usually schedule activities.
            readies.activities |= readies.instances;
            needs.numbers += NUMBERS_OF_TURN * batch.operations.len();
        }
        let instances = batch.instance_fetches.iter();
        let wanted = instances.filter(|fetch| !fetch.was_tried || readies.instances);
        needs.instance_fetches = wanted.map(|fetch| &*fetch.request).collect();
        let activities = batch.activity_fetches.iter();
        let wanted = activities.filter(|fetch| !fetch.was_tried || readies.activities);
        needs.activity_fetches = wanted.map(|fetch| &*fetch.request).collect();
        needs.add_fetches();
        needs
    }

    /// Whether operations of operators need rows that the row cache does not keep.
    pub(crate) fn reads_more(&self) -> bool {
        !(self.deleted.is_empty() && self.pruned.is_empty() && self.letters.is_empty())
    }

    fn add(&mut self, op: &Op) {
        match op {
            Op::CommitRound(round) => self.add_round(round),
            Op::AbandonInstance { token, .. } | Op::RenewInstance { token, .. } => {
                self.instances.numbers.extend(token_row(token));
                self.numbers += 1;
            }
            Op::AckActivity { token, completion } => {
                let activity = token_row(token);
                self.activities.extend(activity);
                self.instances.activities.extend(activity);
                // The rules draw a number for a short cut that these tables do not take.
                self.numbers += 1;
                completion.iter().for_each(|message| self.add_message(message));
            }
            Op::AbandonActivity { token, .. } | Op::RenewActivity { token, .. } => {
                self.activities.extend(token_row(token));
            }
            Op::DeadLetterActivity { token, .. } => {
                self.activities.extend(token_row(token));
                self.instances.activities.extend(token_row(token));
            }
            Op::EnqueueMessage(message) => self.add_message(message),
            Op::StartIfNew(message) => {
                self.add_message(message);
                self.first_events.insert(message.instance.clone());
            }
            Op::EnqueueActivity(activity) => self.add_activity(activity),
            Op::Append { instance, .. } => {
                self.instances.ids.insert(instance.clone());
                self.numbers += 2;
            }
            Op::DeleteInstances { ids, .. } => {
                self.instances.ids.extend(ids.iter().cloned());
                self.deleted.extend(ids.iter().cloned());
            }
            Op::DeleteTree { instance, .. } => {
                self.instances.ids.insert(instance.clone());
                self.deleted.insert(instance.clone());
                self.deleted_trees.insert(instance.clone());
            }
            Op::Prune { instance, options } => {
                self.instances.ids.insert(instance.clone());
                self.pruned.insert((instance.clone(), options.keep_last.unwrap_or(1).max(1)));
            }
            Op::RetryDeadLetter { id } => {
                let letter = id.parse::<u64>().ok();
                self.letters.extend(letter);
                self.retried_letters.extend(letter);
                self.numbers += 5;
            }
            Op::DiscardDeadLetter { id } => self.letters.extend(id.parse::<u64>().ok()),
            // These find their rows themselves.
            Op::RenewSessions { .. }
            | Op::CleanupSessions
            | Op::SetMaxAttempts(_)
            | Op::DeleteBulk(_)
            | Op::PruneBulk { .. }
            | Op::RemoveRows { .. }
            | Op::JoinNode(_)
            | Op::RenewNodes { .. } => {}
            Op::EndNode { name, .. } => drop(self.ending_nodes.insert(name.clone())),
        }
    }

    fn add_round(&mut self, round: &PreparedRound) {
        let Some(number) = token_row(&round.token) else { return };
        self.instances.numbers.insert(number);
        self.numbers += 2;
        for part in std::iter::once(&round.execution).chain(&round.next) {
            self.add_part(number, part);
        }
        if round.next.is_some() {
            self.key_value_changes.insert(number);
        }
        if round.end().is_some() {
            // The notification of an end carries the custom status; otherwise each waiting client would read it.
            self.custom_status.insert(number);
        }
        for cancelled in &round.cancelled_activities {
            self.instances.ids.insert(cancelled.instance.clone());
            self.activity_keys.insert((number, cancelled.execution_id, cancelled.activity_id));
        }
        self.instances.ids.extend(round.cancelled_timers.iter().map(|timer| timer.instance.clone()));
    }

    fn add_part(&mut self, number: u64, part: &PreparedExecution) {
        for activity in &part.activities {
            self.add_activity(activity);
            self.new_activity_keys.insert((number, activity.execution_id, activity.activity_id));
        }
        part.messages.iter().for_each(|message| self.add_message(message));
        for stop in &part.stops {
            self.activity_keys.insert((number, part.execution_id, stop.activity_id));
            self.numbers += 2;
        }
        let clears_all = |change: &StateChange| matches!(change, StateChange::KvClearAll);
        if part.metadata.status.is_some() || part.changes.iter().any(clears_all) {
            self.key_value_changes.insert(number);
        }
        let clears_one = |change: &StateChange| matches!(change, StateChange::KvClear { .. });
        if part.changes.iter().any(|change| clears_all(change) || clears_one(change)) {
            self.key_value_keys.insert(number);
        }
        let sets_status = |change: &StateChange| matches!(change, StateChange::CustomStatus(_));
        if part.metadata.status.is_some() || part.changes.iter().any(sets_status) {
            self.custom_status.insert(number);
        }
        let metadata = &part.metadata;
        if metadata.orchestration_name.is_some() {
            self.routes.insert(Route {
                name: metadata.orchestration_name.clone(),
                version: metadata.orchestration_version.clone(),
                pinned: metadata.pinned_duroxide_version.as_ref().map(Into::into),
            });
        }
    }

    fn add_message(&mut self, message: &MessageRow) {
        self.instances.ids.insert(message.instance.clone());
        // A number for the instance's row, a ready number, a number for the message; the first two twice, because a
        // start draws them before it reads.
        self.numbers += 5;
        if let Some(start) = &message.start {
            self.starts.insert(message.instance.clone());
            let (name, version) = (Some(start.name.clone()), start.version.clone());
            self.routes.insert(Route { name, version, pinned: None });
        }
    }

    fn add_activity(&mut self, activity: &ActivityRow) {
        self.instances.ids.insert(activity.instance.clone());
        self.lanes.insert(Lane { tag: activity.tag.clone(), name: activity.name.clone() });
        self.numbers += 2;
    }

    /// Fetches of one instance or activity name it.
    fn add_fetches(&mut self) {
        for fetch in &self.instance_fetches {
            self.instances.ids.extend(fetch.only.clone());
            self.numbers += fetch.max.min(1_000);
        }
        for fetch in &self.activity_fetches {
            self.instances.ids.extend(fetch.only.as_ref().map(|only| only.instance.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, time::Duration};

    use duroxide_provider::{
        PruneOptions,
        store::{Submitted, lock_token},
        testing::{Turn, items},
    };

    use super::*;

    fn needs_of(ops: Vec<Op>, check: impl Fn(&Needs<'_>)) {
        let submitted = |op| Submitted { op: Cow::Owned(op), waited: Duration::ZERO };
        let batch = Batch { operations: ops.into_iter().map(submitted).collect(), ..Batch::default() };
        check(&Needs::of(&batch, None));
    }

    #[test]
    fn a_round_names_its_instance_and_all_that_it_sends_to() {
        let turn = Turn::first("a").activity().child("b");
        let round = PreparedRound::new(&lock_token(7, 1), &turn.round()).unwrap();
        needs_of(vec![Op::CommitRound(Box::new(round))], |needs| {
            assert_eq!(needs.instances.numbers, BTreeSet::from([7]));
            assert!(needs.instances.ids.iter().any(|id| id.contains('b')), "{:?}", needs.instances);
            assert_eq!(needs.new_activity_keys.iter().map(|key| key.0).collect::<Vec<_>>(), [7]);
            assert!(!needs.lanes.is_empty() && !needs.routes.is_empty());
        });
    }

    #[test]
    fn an_ack_names_its_activity_and_through_it_its_instance() {
        let token = lock_token(9, 1);
        needs_of(vec![Op::AckActivity { token, completion: None }], |needs| {
            assert_eq!(needs.activities, BTreeSet::from([9]));
            assert_eq!(needs.instances.activities, BTreeSet::from([9]));
        });
    }

    #[test]
    fn operators_name_what_they_delete_prune_and_put_back() {
        let prune = Op::Prune { instance: "c".to_owned(), options: PruneOptions::default() };
        let ops = vec![
            Op::DeleteInstances { ids: vec!["a".to_owned()], force: false },
            Op::DeleteTree { instance: "b".to_owned(), force: false },
            prune,
            Op::RetryDeadLetter { id: "1".to_owned() },
            Op::DiscardDeadLetter { id: "2".to_owned() },
            Op::DiscardDeadLetter { id: "no number".to_owned() },
        ];
        needs_of(ops, |needs| {
            assert_eq!(needs.deleted, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
            assert_eq!(needs.deleted_trees, BTreeSet::from(["b".to_owned()]));
            assert_eq!(needs.pruned, BTreeSet::from([("c".to_owned(), 1)]));
            assert_eq!(needs.instances.ids.len(), 3);
            assert_eq!(needs.letters, BTreeSet::from([1, 2]));
            assert_eq!(needs.retried_letters, BTreeSet::from([1]));
            assert!(needs.reads_more());
        });
    }

    #[test]
    fn a_start_names_its_instance_and_its_route() {
        let start = MessageRow::start(items::start("a")).unwrap();
        needs_of(vec![Op::StartIfNew(start)], |needs| {
            assert_eq!(needs.instances.ids, BTreeSet::from(["a".to_owned()]));
            assert_eq!(needs.first_events, BTreeSet::from(["a".to_owned()]));
            assert_eq!(needs.starts, BTreeSet::from(["a".to_owned()]));
            assert_eq!(needs.routes.len(), 1);
        });
    }
}
