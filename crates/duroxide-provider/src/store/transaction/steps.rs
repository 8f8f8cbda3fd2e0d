//! A transaction in steps, for engines that carry out one part of a batch after the other.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::{
    panics::caught,
    serving::{NodesSeen, serve_queue},
};
use crate::store::{
    ActivityFetch, Answer, ApplyError, Batch, BatchPart, Claimed, DeadLetterNote, Done, FailureClass, Fault,
    InstanceFetch, Op, Readies, Refusal, StoreFailure, StoredNode,
};
use crate::{OrchestrationClaim, WorkClaim};

/// The steps of a transaction: `begin`, any of the others, then `commit` or `rollback`.
///
/// The provided methods make a transaction of them; [`StoreEngine::transact`](crate::store::StoreEngine::transact) of an engine
/// in steps is [`Self::transact_in_steps`].
pub trait TransactionSteps {
    /// Opens a write transaction. `now` is the time of everything in it.
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure>;

    /// Carries out one operation. A lease is checked as of `handed_in`, so that a busy store does not end healthy leases;
    /// the token is checked now.
    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError>;

    /// Makes everything visible that has become due: timers, hidden rows, ended leases. Moves messages that waited too
    /// long for an unknown instance to the dead letters.
    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure>;

    /// Shortens every lease that would end later than its length from now: the clock was set back, and what is
    /// locked must not stay so until the clock has caught up. Leases that have ended stay so.
    fn clamp_leases(&mut self) -> Result<(), StoreFailure>;

    /// Lets every lease that was live before the clock was set forward by this much end that much later, at most one
    /// lease from now: for their holders no time has passed. What can already be claimed stays so. Sessions move too,
    /// and the times at which nodes were last seen; timers and delays do not.
    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure>;

    /// All nodes that have joined.
    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure>;

    /// Locks ready instances with their messages, those that have been ready longest first.
    fn claim_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure>;

    /// Locks ready activities, lowest first.
    fn claim_activities(
        &mut self,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure>;

    /// Ends the transaction; everything in it becomes durable and visible.
    fn commit(&mut self) -> Result<(), StoreFailure>;

    /// Ends the transaction without effect. Also called after a failed `begin` or `commit`.
    fn rollback(&mut self);

    /// The earliest time at which [`Self::promote`] will have something to do.
    fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure>;

    /// Carries out a batch as one transaction. A part that panics has broken: its transaction is rolled back.
    ///
    /// # Errors
    /// See [`Fault`].
    fn transact_in_steps(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let begun = caught("begin", FailureClass::OutcomeUnknown, || self.begin(batch.now));
        let filled = begun.map_err(Fault::Unavailable).and_then(|()| self.carry_out(batch, batch.now));
        let committed =
            filled.and_then(|done| match caught("commit", FailureClass::OutcomeUnknown, || self.commit()) {
                Ok(()) => Ok(done),
                Err(failure) => Err(Fault::of_commit(failure, done)),
            });
        let mut done = committed.map_err(|fault| self.roll_back_after(fault))?;
        done.next_wake = caught("next_wake", FailureClass::Retryable, || self.next_wake());
        Ok(done)
    }

    /// Carries out the parts of a batch in the open transaction, whose time is `now`.
    ///
    /// # Errors
    /// The part that broke. A refused operation is an answer and no error.
    fn carry_out(&mut self, batch: &Batch<'_>, now: Timestamp) -> Result<Done, Fault> {
        let broken = |part| move |failure| Fault::Broken { part, failure };
        if let Some(forward) = batch.clock_set_forward {
            change_leases(self, forward).map_err(broken(BatchPart::Leases))?;
        }
        let mut done = Done::at(now);
        done.answers.reserve_exact(batch.operations.len());
        for (index, submitted) in batch.operations.iter().enumerate() {
            let handed_in = now.saturating_sub(submitted.waited);
            let answer =
                answer(self, &submitted.op, handed_in).map_err(broken(BatchPart::Operation(index)))?;
            if answer.is_ok() {
                done.readies = done.readies.or(submitted.op.readies());
            }
            done.answers.push(answer);
        }
        if batch.promote {
            done.dead_letters = caught("promote", FailureClass::Permanent, || self.promote())
                .map_err(broken(BatchPart::Promotion))?;
            done.readies = Readies { instances: true, activities: true };
        }
        serve(self, batch, &mut done)?;
        Ok(done)
    }

    /// Rolls the transaction back. Wherever an unknown outcome shows, it concerns the whole store.
    fn roll_back_after(&mut self, fault: Fault) -> Fault {
        let rolled_back = caught("rollback", FailureClass::OutcomeUnknown, || {
            self.rollback();
            Ok(())
        });
        let is_known = rolled_back.is_ok() && fault.failure().class != FailureClass::OutcomeUnknown;
        match fault {
            fault if is_known => fault,
            Fault::OutcomeUnknown { failure, done } => Fault::OutcomeUnknown { failure, done },
            fault => {
                let failure = StoreFailure { class: FailureClass::OutcomeUnknown, ..fault.into_failure() };
                Fault::OutcomeUnknown { failure, done: None }
            }
        }
    }
}

/// Serves the fetches of a batch.
fn serve<S: TransactionSteps + ?Sized>(
    steps: &mut S,
    batch: &Batch<'_>,
    done: &mut Done,
) -> Result<(), Fault> {
    // Nodes join in transactions too: one that can take such an item has either joined, and is seen here, or finds
    // the item locked.
    let mut nodes = NodesSeen::new(batch.nodes.as_deref());
    done.instances = serve_queue(&batch.instance_fetches, done.readies.instances, |fetch| {
        if fetch.only.is_some() && !nodes.are_still_there(|| steps.nodes())? {
            return Ok(Claimed::default());
        }
        caught("claim", FailureClass::Permanent, || steps.claim_instances(fetch, batch.nonce))
    })
    .map_err(|(index, failure)| Fault::Broken { part: BatchPart::InstanceFetch(index), failure })?;
    done.activities = serve_queue(&batch.activity_fetches, done.readies.activities, |fetch| {
        if fetch.only.is_some() && !nodes.are_still_there(|| steps.nodes())? {
            return Ok(Claimed::default());
        }
        caught("claim", FailureClass::Permanent, || steps.claim_activities(fetch, batch.nonce))
    })
    .map_err(|(index, failure)| Fault::Broken { part: BatchPart::ActivityFetch(index), failure })?;
    Ok(())
}

/// Carries out one operation. Outside is a failure of the store, inside what the rules say.
fn answer<S: TransactionSteps + ?Sized>(
    steps: &mut S,
    op: &Op,
    handed_in: Timestamp,
) -> Result<Result<Answer, Refusal>, StoreFailure> {
    caught("apply", FailureClass::Permanent, || match steps.apply(op, handed_in) {
        Ok(answer) => Ok(Ok(answer)),
        Err(ApplyError::Refused(refusal)) => Ok(Err(refusal)),
        Err(ApplyError::Broken(failure)) => Err(failure),
    })
}

/// Leases are changed before anything else happens: operations check them, promotions end them.
fn change_leases<S: TransactionSteps + ?Sized>(steps: &mut S, forward: Duration) -> Result<(), StoreFailure> {
    if !forward.is_zero() {
        caught("move_leases", FailureClass::Permanent, || steps.move_leases(forward))?;
    }
    caught("clamp_leases", FailureClass::Permanent, || steps.clamp_leases())
}
