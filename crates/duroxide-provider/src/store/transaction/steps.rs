//! A transaction in steps, for engines that carry out one part of a batch after the other.

mod early;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use duroxide_core::Timestamp;

use crate::store::{
    ActivityFetch, Answer, ApplyError, Batch, BatchPart, Claimed, DeadLetterNote, Done, FailureClass, Fault,
    FetchRequest, InstanceFetch, Op, Readies, Refusal, StoreFailure, StoredNode, Submitted, WaitingFetch,
    bounds,
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

    /// Shortens every lease that would end later than its length from now: the clock was set back, and locks must not
    /// last until the clock has caught up. Ended leases stay ended.
    fn shorten_leases(&mut self) -> Result<(), StoreFailure>;

    /// Lets every lease that was live before the clock was set forward by this much end that much later, at most one
    /// lease from now: for their holders no time has passed. Items that can already be claimed stay ready. Sessions
    /// move too, and the times at which nodes were last seen; timers and delays do not.
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
        committed.map_err(|fault| self.roll_back_after(fault))
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
            let answer =
                apply_one(self, submitted, &mut done).map_err(broken(BatchPart::Operation(index)))?;
            done.answers.push(answer);
        }
        if batch.promote {
            done.dead_letters = caught("promote", FailureClass::Permanent, || self.promote())
                .map_err(broken(BatchPart::Promotion))?;
            done.readies = Readies { instances: true, activities: true };
        }
        // Nodes join in transactions too: a node that can take an item that is fetched by its id has either joined, and is
        // seen here, or finds the item locked.
        let mut nodes = NodesSeen::new(batch.nodes.as_deref());
        let fetches = &batch.instance_fetches;
        done.instances = serve_queue(fetches, done.readies.instances, BatchPart::InstanceFetch, |fetch| {
            if fetch.only.is_some() && !nodes.are_still_there(|| self.nodes())? {
                return Ok(Claimed::default());
            }
            caught("claim", FailureClass::Permanent, || self.claim_instances(fetch, batch.nonce))
        })?;
        if let Some(turns) = batch.turns {
            early::run(self, turns, batch, &mut done)?;
        }
        let fetches = &batch.activity_fetches;
        done.activities = serve_queue(fetches, done.readies.activities, BatchPart::ActivityFetch, |fetch| {
            if fetch.only.is_some() && !nodes.are_still_there(|| self.nodes())? {
                return Ok(Claimed::default());
            }
            caught("claim", FailureClass::Permanent, || self.claim_activities(fetch, batch.nonce))
        })?;
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
            Fault::Broken { failure, .. } | Fault::LostRace(failure) | Fault::Unavailable(failure) => {
                let failure = StoreFailure { class: FailureClass::OutcomeUnknown, ..failure };
                Fault::OutcomeUnknown { failure, done: None }
            }
        }
    }
}

/// Carries out one operation of a transaction. A failure of the store is outside, a refusal by the rules inside.
fn apply_one<S: TransactionSteps + ?Sized>(
    steps: &mut S,
    submitted: &Submitted<'_>,
    done: &mut Done,
) -> Result<Result<Answer, Refusal>, StoreFailure> {
    let handed_in = done.now.saturating_sub(submitted.waited);
    let answer = caught("apply", FailureClass::Permanent, || match steps.apply(&submitted.op, handed_in) {
        Ok(answer) => Ok(Ok(answer)),
        Err(ApplyError::Refused(refusal)) => Ok(Err(refusal)),
        Err(ApplyError::Broken(failure)) => Err(failure),
    })?;
    if answer.is_ok() {
        done.readies = done.readies.or(submitted.op.readies());
        done.is_watched |= submitted.op.is_watched();
    }
    Ok(answer)
}

/// Leases are changed before anything else happens: operations check them, promotions end them.
fn change_leases<S: TransactionSteps + ?Sized>(steps: &mut S, forward: Duration) -> Result<(), StoreFailure> {
    if !forward.is_zero() {
        caught("move_leases", FailureClass::Permanent, || steps.move_leases(forward))?;
    }
    caught("shorten_leases", FailureClass::Permanent, || steps.shorten_leases())
}

/// Serves the fetches of a queue, oldest first. A fetch gets nothing if the store was asked for it before and the batch made
/// nothing ready (`readied`), or if an older fetch with the same filter has left nothing.
///
/// # Errors
/// The fetch whose claim failed, as a `part` of the batch.
fn serve_queue<F: FetchRequest, C>(
    fetches: &[WaitingFetch<'_, F>],
    readied: bool,
    part: fn(usize) -> BatchPart,
    mut claim: impl FnMut(&F) -> Result<Claimed<C>, StoreFailure>,
) -> Result<Vec<Option<Claimed<C>>>, Fault> {
    let mut exhausted: Vec<&F> = Vec::new();
    let mut served = Vec::with_capacity(fetches.len());
    for (index, fetch) in fetches.iter().enumerate() {
        let request = &*fetch.request;
        if fetch.was_tried && !readied {
            served.push(None);
        } else if exhausted.iter().any(|other| other.passes_the_same_as(request)) {
            served.push(Some(Claimed { took_all: true, ..Claimed::default() }));
        } else {
            let mut claimed =
                claim(request).map_err(|failure| Fault::Broken { part: part(index), failure })?;
            claimed.took_all |= has_emptied_queue(request, claimed.items.len());
            if claimed.took_all && exhausted.len() < bounds::EXHAUSTED_FILTERS_MAX {
                exhausted.push(request);
            }
            served.push(Some(claimed));
        }
    }
    Ok(served)
}

/// A fetch that got less than it asked for has emptied its queue, unless its free slots may have held it up: rows that
/// were attempted before are left to fetches with more of them.
fn has_emptied_queue<F: FetchRequest>(fetch: &F, taken: usize) -> bool {
    taken < fetch.wanted().max && taken < fetch.wanted().free_slots
}

/// The nodes that had joined when a caller decided to fetch an item by its id.
struct NodesSeen<'a> {
    seen: Option<&'a [StoredNode]>,
    are_still_there: Option<bool>,
}

impl<'a> NodesSeen<'a> {
    fn new(seen: Option<&'a [StoredNode]>) -> Self {
        Self { seen, are_still_there: None }
    }

    /// Whether exactly the same nodes are joined now. A node that joined again under its name is another one.
    fn are_still_there(
        &mut self,
        nodes: impl FnOnce() -> Result<Vec<StoredNode>, StoreFailure>,
    ) -> Result<bool, StoreFailure> {
        let Some(seen) = self.seen else { return Ok(true) };
        if let Some(known) = self.are_still_there {
            return Ok(known);
        }
        let now = nodes()?;
        let incarnation = |node: &StoredNode| (node.id, node.started_at);
        let same = seen.iter().map(incarnation).eq(now.iter().map(incarnation));
        self.are_still_there = Some(same);
        Ok(same)
    }
}

/// Runs one step of an engine. A panic becomes a failure of the given class: an operation that panics is rolled back and
/// will not succeed later; after a panic around the transaction itself the outcome is unknown.
///
/// # Errors
/// The failure of the step, or its panic.
pub fn caught<T>(
    step: &'static str,
    on_panic: FailureClass,
    run: impl FnOnce() -> Result<T, StoreFailure>,
) -> Result<T, StoreFailure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("store engine panicked in {step}: {}", text.unwrap_or("no message"));
        Err(StoreFailure { panicked_in: Some(step), ..StoreFailure::new(on_panic, message) })
    })
}
