//! A model of storage: the oracle that other engines are compared with.
//!
//! The model is written from the promises at the top of [`rules`](crate::rules), never from the rules' code, so a rule that is
//! wrong differs from the model instead of being wrong everywhere. It is plain and slow: it has no indexes, reads every row, and
//! cannot roll back.
//!
//! Comparing does not find mistakes in the code that the model shares with the stores. It shares:
//!
//! * the order of the steps of a transaction ([`TransactionSteps`]) and the facts of an operation ([`Op::profile`]), among them
//!   whether watchers are notified of a round;
//! * the filters of fetches and queries (`holds_back`, `matches`);
//! * rows as callers prepare them, and how the texts in them are read: `calling_parent`, `pending_info`, `recorded_at_ms`;
//! * the form of a lock token, the limits in `store/bounds.rs`, and the types of requests and answers.

mod activities;
mod admin;
mod claims;
mod dead_letters;
mod inspection;
mod instance;
mod leases;
mod mailbox;
mod nodes;
mod reads;
mod rounds;
mod sessions;

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::Timestamp;

use self::{activities::Activity, dead_letters::Letter, instance::Instance, nodes::Node, sessions::Session};
use crate::{
    DeleteInstanceResult, NodeId, OrchestrationClaim, WorkClaim,
    store::{
        ActivityFetch, Answer, ApplyError, Batch, Claimed, DeadLetterNote, Done, Fault, InstanceFetch,
        MessageRow, Op, Refusal, StoreEngine, StoreFailure, StoreReader, StoredNode, TransactionSteps,
        Visibility,
        bounds::{MAX_ATTEMPTS_DEFAULT, ORPHAN_MESSAGE_TTL_DEFAULT},
    },
};

/// A store that finds rows by reading all of them.
#[derive(Debug, Clone)]
pub struct ModelEngine {
    now: Timestamp,
    max_attempts: u32,
    /// Instances and mailboxes, in the order in which they were made.
    instances: BTreeMap<u64, Instance>,
    activities: BTreeMap<u64, Activity>,
    sessions: BTreeMap<String, Session>,
    dead_letters: BTreeMap<u64, Letter>,
    nodes: BTreeMap<NodeId, Node>,
    /// Rows, messages and places among the ready instances are numbered by one sequence.
    last_number: u64,
    last_dead_letter: u64,
    last_node: u64,
    /// Whether the sender of messages is the first attempt of an activity.
    is_first_attempt: bool,
    /// The numbers of messages that such senders have sent in this transaction.
    early_messages: Vec<u64>,
    /// The instances of the rounds of this transaction.
    rounds_of: Vec<u64>,
}

impl Default for ModelEngine {
    fn default() -> Self {
        Self {
            now: Timestamp::ZERO,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            instances: BTreeMap::new(),
            activities: BTreeMap::new(),
            sessions: BTreeMap::new(),
            dead_letters: BTreeMap::new(),
            nodes: BTreeMap::new(),
            last_number: 0,
            last_dead_letter: 0,
            last_node: 0,
            is_first_attempt: false,
            early_messages: Vec::new(),
            rounds_of: Vec::new(),
        }
    }
}

impl ModelEngine {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn find(&self, id: &str) -> Option<u64> {
        self.instances.iter().find(|(_, instance)| instance.id == id).map(|(key, _)| *key)
    }

    fn known(&self, id: &str) -> Option<&Instance> {
        self.instances.values().find(|instance| instance.id == id && instance.is_known())
    }

    /// The row of this id, or of a new mailbox.
    fn open(&mut self, id: &str) -> u64 {
        if let Some(key) = self.find(id) {
            return key;
        }
        let key = self.next_number();
        self.instances.insert(key, Instance::mailbox(id, self.now));
        key
    }

    /// Changes an instance, if it exists, and settles it.
    fn change<T>(&mut self, key: u64, change: impl FnOnce(&mut Instance) -> T) -> Option<T> {
        let changed = change(self.instances.get_mut(&key)?);
        self.settle(key);
        Some(changed)
    }

    /// Decides whether an instance is ready, stray or empty, and when to decide again.
    fn settle(&mut self, key: u64) {
        let now = self.now;
        let has_activities = self.activities.values().any(|activity| activity.instance == key);
        let Some(instance) = self.instances.get_mut(&key) else { return };
        if !instance.is_known() && instance.messages.is_empty() && !has_activities {
            self.instances.remove(&key);
            return;
        }
        let is_ready = !instance.is_locked(now) && instance.has_work(now);
        let place = instance.ready.as_ref().map(|(place, _)| *place);
        instance.ready = is_ready.then(|| {
            let place = place.unwrap_or_else(|| {
                self.last_number += 1;
                self.last_number
            });
            (place, instance.route(now))
        });
        instance.is_stray = instance.is_orphaned() && instance.holds_only_queue_messages();
        instance.look_at = instance.look_at(now, ORPHAN_MESSAGE_TTL_DEFAULT);
    }

    /// Queues a message. Returns whether it began an instance that was not there.
    fn enqueue(&mut self, row: &MessageRow) -> Answer {
        let holds = self.find(&row.instance).map(|key| self.instances[&key].sent_by_clients() as u64);
        if row.mailbox_max.is_some_and(|max| holds.is_some_and(|holds| holds >= max)) {
            return Answer::MailboxFull;
        }
        let begins =
            row.start.is_some() && row.visible == Visibility::Now && self.find(&row.instance).is_none();
        let (key, number, now) = (self.open(&row.instance), self.next_number(), self.now);
        self.early_messages.extend(self.is_first_attempt.then_some(number));
        self.change(key, |instance| instance.insert(row, number, now));
        if begins { Answer::Begun } else { Answer::Done }
    }

    fn start_if_new(&mut self, row: &MessageRow) -> Answer {
        let found = self.find(&row.instance).and_then(|key| self.instances[&key].stored_start());
        found.map_or_else(|| self.enqueue(row), Answer::Found)
    }

    /// Until when an abandon with this delay hides its rows.
    fn hidden_until(&self, delay: Option<Duration>) -> Timestamp {
        match delay {
            Some(delay) if !delay.is_zero() => self.now.saturating_add(delay),
            _ => Timestamp::ZERO,
        }
    }

    fn carry_out(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, Refusal> {
        match op {
            Op::CommitRound(round) => self.commit_round(round, handed_in),
            Op::AbandonInstance { token, delay, ignore_attempt } => {
                self.abandon_instance(token, *delay, *ignore_attempt)
            }
            Op::RenewInstance { token, extend_for } => self.renew_instance(token, *extend_for, handed_in),
            Op::AckActivity { token, completion } => self.ack_activity(token, completion.as_ref(), handed_in),
            Op::AbandonActivity { token, delay, ignore_attempt } => {
                self.abandon_activity(token, *delay, *ignore_attempt)
            }
            Op::RenewActivity { token, extend_for } => self.renew_activity(token, *extend_for, handed_in),
            Op::DeadLetterActivity { token, reason } => self.dead_letter_activity(token, reason, handed_in),
            Op::EnqueueMessage(row) => Ok(self.enqueue(row)),
            Op::StartIfNew(row) => Ok(self.start_if_new(row)),
            Op::EnqueueActivity(row) => Ok(self.enqueue_activity(row)),
            Op::Append { instance, execution_id, events, changes } => {
                self.append(instance, *execution_id, events, changes)
            }
            Op::RenewSessions { owners, extend_for, idle_timeout } => {
                Ok(self.renew_sessions(owners, *extend_for, *idle_timeout, handed_in))
            }
            Op::CleanupSessions => Ok(self.clean_up_sessions()),
            Op::SetMaxAttempts(max_attempts) => {
                self.max_attempts = *max_attempts;
                Ok(Answer::Done)
            }
            Op::DeleteInstances { ids, force } => self.delete_instances(ids, *force),
            Op::DeleteTree { instance, force } => self.delete_tree(instance, *force),
            Op::DeleteBulk(filter) => Ok(self.delete_bulk(filter)),
            Op::Prune { instance, options } => self.prune(instance, options),
            Op::PruneBulk { filter, options } => Ok(self.prune_bulk(filter, options)),
            // A delete leaves nothing behind here.
            Op::RemoveRows { .. } => Ok(Answer::Deleted(DeleteInstanceResult::default())),
            Op::RetryDeadLetter { id } => self.retry_dead_letter(id),
            Op::DiscardDeadLetter { id } => self.take_dead_letter(id).map(|_| Answer::Done),
            Op::JoinNode(row) => Ok(self.join_node(row)),
            Op::RenewNodes { nodes } => Ok(self.renew_nodes(nodes)),
            Op::EndNode { name, blamed } => Ok(self.end_node(name, blamed.as_ref())),
        }
    }
}

impl TransactionSteps for ModelEngine {
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.now = now;
        self.early_messages.clear();
        self.rounds_of.clear();
        Ok(())
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        self.is_first_attempt = false;
        self.carry_out(op, handed_in).map_err(ApplyError::Refused)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        Ok(self.promote_all())
    }

    fn shorten_leases(&mut self) -> Result<(), StoreFailure> {
        self.shorten_all();
        Ok(())
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.move_all(by);
        Ok(())
    }

    fn claim_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        Ok(self.take_instances(fetch, nonce))
    }

    fn claim_activities(
        &mut self,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        Ok(self.take_activities(fetch, nonce))
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }

    /// Only ever called with nothing applied: no operation of the model breaks, and its commit does not fail.
    fn rollback(&mut self) {}

    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        StoreReader::nodes(self)
    }
}

impl StoreEngine for ModelEngine {
    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.transact_in_steps(batch)
    }

    fn next_wake(&mut self, _now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        let instances = self.instances.values().filter_map(|instance| instance.look_at);
        let activities = self.activities.values().filter_map(|activity| activity.waits_until);
        let sessions = self.sessions.values().map(|session| session.until).filter(|until| *until > self.now);
        Ok(instances.chain(activities).chain(sessions).min())
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        Ok(false)
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ModelEngine;

    crate::engine_stories!(ModelEngine::default());
}
