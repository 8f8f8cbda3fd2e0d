//! One transaction as one call: a batch in, everything out.

use std::{borrow::Cow, time::Duration};

use duroxide_core::Timestamp;

use super::{Rules, Tables};
use crate::{
    OrchestrationClaim, WorkClaim,
    store::{
        ActivityOrder, Answer, ApplyError, Claimed, DeadLetterNote, InstanceOrder, Op, Readies, Refusal,
        StoreFailure,
    },
};

/// Everything that one transaction does, in this order: it changes leases, carries out operations, promotes, and serves
/// fetches.
#[derive(Debug, Clone, Default)]
pub struct Batch<'a> {
    /// If the clock was set: by how much it was set forward, which may be zero.
    pub clock_set_forward: Option<Duration>,
    /// Operations.
    pub operations: Vec<Submitted<'a>>,
    /// Whether to make visible what has become due.
    pub promote: bool,
    /// Fetches of instances that wait, oldest first.
    pub instance_fetches: Vec<WaitingFetch<'a, InstanceOrder>>,
    /// Fetches of activities that wait, oldest first.
    pub activity_fetches: Vec<WaitingFetch<'a, ActivityOrder>>,
}

/// An operation that a caller has handed in.
#[derive(Debug, Clone)]
pub struct Submitted<'a> {
    /// The operation.
    pub op: Cow<'a, Op>,
    /// When it was handed in: leases are checked at this time.
    pub handed_in: Timestamp,
}

/// A fetch that waits for something to become ready.
#[derive(Debug, Clone)]
pub struct WaitingFetch<'a, O: Clone> {
    /// What it asks for.
    pub order: Cow<'a, O>,
    /// The random part of its lock tokens.
    pub nonce: u128,
    /// Whether the store was asked before and nothing can have become ready since, unless this batch makes it ready.
    pub was_tried: bool,
}

/// What a transaction did.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// The answer to each operation.
    pub answers: Vec<Result<Answer, Refusal>>,
    /// Rows that became dead letters by the promotion.
    pub dead_letters: Vec<DeadLetterNote>,
    /// What each fetch of instances got; `None` if it was not served.
    pub instances: Vec<Option<Claimed<OrchestrationClaim>>>,
    /// What each fetch of activities got; `None` if it was not served.
    pub activities: Vec<Option<Claimed<WorkClaim>>>,
    /// What the operations and the promotion may have made ready.
    pub readies: Readies,
}

/// Which part of a batch broke. The transaction has to be rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The part.
    pub part: BatchPart,
    /// Why.
    pub failure: StoreFailure,
}

/// A part of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchPart {
    /// The change of leases after the clock was set.
    Leases,
    /// An operation, by its index.
    Operation(usize),
    /// The promotion.
    Promotion,
    /// A fetch of instances, by its index.
    InstanceFetch(usize),
    /// A fetch of activities, by its index.
    ActivityFetch(usize),
}

impl<T: Tables> Rules<T> {
    /// Carries out a batch in the open transaction.
    ///
    /// # Errors
    /// If rows could not be read or written. A refused operation is an answer and no error.
    pub fn run(&mut self, batch: &Batch<'_>) -> Result<Done, Broken> {
        let broken = |part| move |failure| Broken { part, failure };
        if let Some(forward) = batch.clock_set_forward {
            self.change_leases(forward).map_err(broken(BatchPart::Leases))?;
        }
        let mut done = Done::default();
        for (index, submitted) in batch.operations.iter().enumerate() {
            let answer = match self.apply(&submitted.op, submitted.handed_in) {
                Ok(answer) => Ok(answer),
                Err(ApplyError::Refused(refusal)) => Err(refusal),
                Err(ApplyError::Broken(failure)) => {
                    return Err(broken(BatchPart::Operation(index))(failure));
                }
            };
            if answer.is_ok() {
                done.readies = done.readies.or(submitted.op.readies());
            }
            done.answers.push(answer);
        }
        if batch.promote {
            done.dead_letters = self.promote().map_err(broken(BatchPart::Promotion))?;
            done.readies = Readies { instances: true, activities: true };
        }
        for (index, fetch) in batch.instance_fetches.iter().enumerate() {
            let wanted = !fetch.was_tried || done.readies.instances;
            let claimed = wanted.then(|| self.claim_instances(&fetch.order, fetch.nonce)).transpose();
            done.instances.push(claimed.map_err(broken(BatchPart::InstanceFetch(index)))?);
        }
        for (index, fetch) in batch.activity_fetches.iter().enumerate() {
            let wanted = !fetch.was_tried || done.readies.activities;
            let claimed = wanted.then(|| self.claim_activities(&fetch.order, fetch.nonce)).transpose();
            done.activities.push(claimed.map_err(broken(BatchPart::ActivityFetch(index)))?);
        }
        Ok(done)
    }

    fn change_leases(&mut self, forward: Duration) -> Result<(), StoreFailure> {
        if !forward.is_zero() {
            self.move_leases(forward)?;
        }
        self.clamp_leases()
    }
}
