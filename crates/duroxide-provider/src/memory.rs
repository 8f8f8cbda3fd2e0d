//! A store engine of ordered maps: the executable specification of the storage contract.
//!
//! It keeps the same tables and indexes a database would: a claim looks only at the first row of each route or lane
//! that passes its filter, a promotion only at rows that are due, and every other operation finds its row by key.
//!
//! Nothing here can fail in the middle, so there is nothing to roll back: an operation is refused before its first
//! change or carried out. Who wants to go back to an earlier state, such as a test that cuts a commit off, keeps a
//! clone of the engine.

mod activities;
mod admin;
mod claim_activities;
mod claim_instances;
mod dead_letters;
mod history;
mod instance;
mod instances;
mod key_values;
mod lock;
mod mailbox;
mod nodes;
mod queue;
mod reads;
pub mod record;
mod restore;
mod round;
mod route;
mod sessions;
mod snapshot;
mod touched;

use std::time::Duration;

use duroxide_core::Timestamp;

use self::{activities::Activities, dead_letters::DeadLetters, instances::Instances, nodes::Nodes};
use crate::{
    DeleteInstanceResult, OrchestrationClaim, WorkClaim,
    store::{
        ActivityOrder, Answer, ApplyError, Claimed, DeadLetterNote, InstanceOrder, Op, Refusal, StoreEngine,
        StoreFailure,
        bounds::{MAX_ATTEMPTS_DEFAULT, ORPHAN_MESSAGE_TTL_DEFAULT},
    },
};

/// A store in memory. It is lost with its process.
#[derive(Debug, Clone)]
pub struct MemoryEngine {
    now: Timestamp,
    max_attempts: u32,
    instances: Instances,
    activities: Activities,
    dead_letters: DeadLetters,
    nodes: Nodes,
}

/// Options of a [`MemoryEngine`].
#[derive(Debug, Clone, Copy)]
pub struct MemoryOptions {
    /// How long a message waits for an instance that was never started, before it becomes a dead letter.
    pub orphan_message_ttl: Duration,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { orphan_message_ttl: ORPHAN_MESSAGE_TTL_DEFAULT }
    }
}

impl MemoryEngine {
    /// An empty store.
    pub fn new(options: MemoryOptions) -> Self {
        Self {
            now: Timestamp::ZERO,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            instances: Instances::new(options.orphan_message_ttl),
            activities: Activities::default(),
            dead_letters: DeadLetters::default(),
            nodes: Nodes::default(),
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
            Op::EnqueueMessage(row) => self.enqueue_message(row),
            Op::StartIfNew(row) => self.start_if_new(row),
            Op::EnqueueActivity(row) => self.enqueue_activity(row),
            Op::Append { instance, execution_id, events, changes } => {
                self.append(instance, *execution_id, events, changes)
            }
            Op::RenewSessions { owners, extend_for, idle_timeout } => {
                self.renew_sessions(owners, *extend_for, *idle_timeout, handed_in)
            }
            Op::CleanupSessions { .. } => Ok(Answer::Count(self.activities.clean_up_sessions(self.now))),
            Op::SetMaxAttempts(max_attempts) => {
                self.max_attempts = *max_attempts;
                Ok(Answer::Done)
            }
            Op::DeleteInstances { ids, force } => self.delete_instances(ids, *force),
            Op::DeleteTree { instance, force } => self.delete_tree(instance, *force),
            Op::DeleteBulk(filter) => self.delete_bulk(filter),
            Op::Prune { instance, options } => self.prune(instance, options),
            Op::PruneBulk { filter, options } => self.prune_bulk(filter, options),
            // A delete leaves nothing behind here.
            Op::RemoveRows { .. } => Ok(Answer::Deleted(DeleteInstanceResult::default())),
            Op::RetryDeadLetter { id } => self.retry_dead_letter(id),
            Op::DiscardDeadLetter { id } => self.discard_dead_letter(id),
            Op::JoinNode(row) => Ok(self.join_node(row)),
            Op::RenewNodes { names } => Ok(self.renew_nodes(names)),
            Op::EndNode { name, blamed } => Ok(self.end_node(name, blamed.as_ref())),
        }
    }
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::new(MemoryOptions::default())
    }
}

impl StoreEngine for MemoryEngine {
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.now = now;
        Ok(())
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        self.carry_out(op, handed_in).map_err(ApplyError::Refused)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        self.activities.promote(self.now);
        Ok(self.promote_instances())
    }

    fn clamp_leases(&mut self) -> Result<(), StoreFailure> {
        self.instances.clamp_leases(self.now);
        self.activities.clamp_leases(self.now);
        Ok(())
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.instances.move_leases(self.now, by);
        self.activities.move_leases(self.now, by);
        self.nodes.move_seen(self.now, by);
        Ok(())
    }

    fn claim_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        Ok(self.take_instances(order, nonce))
    }

    fn claim_activities(
        &mut self,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        Ok(self.take_activities(order, nonce))
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        // Nobody keeps them elsewhere.
        self.forget_changes();
        Ok(())
    }

    /// Only ever called with nothing applied: no operation of this engine breaks, and its commit does not fail.
    fn rollback(&mut self) {}

    fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure> {
        let instances = self.instances.next_wake();
        Ok(instances.into_iter().chain(self.activities.next_wake()).min())
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        Ok(false)
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
