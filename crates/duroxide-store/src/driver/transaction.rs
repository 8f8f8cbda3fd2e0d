//! One transaction: builds a batch of the waiting operations and fetches, runs it, and answers the callers.

use std::{slice, sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    ActivityFetch, Answer, ApplyError, Batch, BatchPart, DeadLetterNote, Done, FailureClass, Fault, HeldBack,
    InstanceFetch, NextWake, Op, Refusal, StoreFailure, Submitted, caught,
};

use super::{
    StoreDriver,
    early_turns::{EarlyRounds, OpenTransaction},
    stranded_fetches::Endable,
};
use crate::{
    job::Job,
    log,
    machine::{Asked, FetchNumbers, Served, Wait},
    submit::Delivery,
};

/// How often a batch that lost a race is tried again at once (24.4).
const LOST_RACES_MAX: u32 = 16;

/// Up to this many operations are answered before the claims of their transaction are handed over: answered later, each of their
/// callers would wake the executor once more. More answers would delay the work of the claims.
const ANSWERED_FIRST_MAX: usize = 16;

/// The result of a committed transaction, before its callers are answered.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One answer for each operation.
    pub(super) answers: Vec<Result<Answer, Refusal>>,
    pub(super) instances: Served<InstanceFetch>,
    pub(super) activities: Served<ActivityFetch>,
    /// Whether due rows were promoted.
    pub(super) promoted: bool,
    /// Whether leases were changed because the clock was set.
    pub(super) changed_leases: bool,
    pub(super) dead_letters: Vec<DeadLetterNote>,
    /// How many ready items the claims skipped for lack of a capability.
    pub(super) held_back: HeldBack,
    pub(super) next_wake: NextWake,
}

/// When the turns of a transaction's claims run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// Before its commit, where that may be.
    MayRunEarly,
    /// After its commit.
    RunLater,
}

/// Why a transaction had no effect, or why that is unknown.
#[derive(Debug)]
pub(super) enum Failed {
    /// One part was removed. The rest is tried again at once.
    WithoutPart,
    /// An operation failed.
    Operation(StoreFailure),
    /// Another transaction was in the way.
    LostRace(StoreFailure),
    /// The store does not serve.
    Unavailable(StoreFailure),
    /// The transaction may have been committed. `releases` release the claims that it made.
    Unknown { failure: StoreFailure, releases: Vec<Op> },
}

impl StoreDriver {
    /// Runs one batch. If one part fails, the batch is tried again without it, so each retry has less that can fail.
    pub(super) fn transact(&mut self, now: Timestamp) {
        let mut jobs = self.machine.take_batch();
        let began = (self.steady_clock)();
        let (mut tries, mut lost_races) = (0, 0);
        loop {
            jobs = self.refuse_messages(jobs, now);
            let turns = if tries == 0 { Turns::MayRunEarly } else { Turns::RunLater };
            tries += 1;
            let (result, joined) = self.run_batch(&jobs, Some(turns), now);
            // If the transaction had no effect, these rounds have no lock, and the next transaction refuses them.
            jobs.extend(joined);
            let took = (self.steady_clock)().saturating_sub(began);
            if let Ok(outcome) = &result {
                self.renew_late_leases(&jobs, outcome, took, now);
            }
            self.note_duration(took);
            match result {
                Ok(outcome) => {
                    self.finish_transaction(jobs, outcome, took, now);
                    return self.maintain();
                }
                Err(Failed::WithoutPart) => {}
                Err(Failed::LostRace(_)) if lost_races < LOST_RACES_MAX => lost_races += 1,
                Err(Failed::Operation(failure)) if jobs.is_empty() => return self.fail(jobs, &failure, now),
                Err(Failed::Operation(_)) => return self.run_one_by_one(jobs, now),
                Err(Failed::LostRace(failure) | Failed::Unavailable(failure)) => {
                    return self.fail(jobs, &failure, now);
                }
                Err(Failed::Unknown { failure, releases }) => return self.lose(jobs, failure, releases, now),
            }
        }
    }

    /// Refuses the messages of clients while no instance of a damaged store can be claimed, because no turn would ever
    /// get them. Returns the other jobs.
    fn refuse_messages(&mut self, jobs: Vec<Job>, now: Timestamp) -> Vec<Job> {
        let Some(damage) = self.machine.instances.damage(now) else { return jobs };
        let message = format!("the store takes no messages, because it cannot hand out instances: {damage}");
        let failure = StoreFailure::new(FailureClass::Permanent, message);
        let (refused, kept): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_message);
        for job in refused {
            self.answer(job, Err(failure.clone().into()));
        }
        kept
    }

    /// Runs each operation in a transaction of its own, after one of them failed, so that it fails alone. The next transaction
    /// serves the fetches.
    fn run_one_by_one(&mut self, jobs: Vec<Job>, now: Timestamp) {
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            let began = (self.steady_clock)();
            let mut lost_races = 0;
            let result = loop {
                match self.run_batch(slice::from_ref(&job), None, now).0 {
                    // Again, without the change of leases.
                    Err(Failed::WithoutPart) => {}
                    Err(Failed::LostRace(_)) if lost_races < LOST_RACES_MAX => lost_races += 1,
                    result => break result,
                }
            };
            let took = (self.steady_clock)().saturating_sub(began);
            if let Ok(outcome) = &result {
                self.renew_late_leases(slice::from_ref(&job), outcome, took, now);
            }
            self.note_duration(took);
            match result {
                Ok(outcome) => self.finish_transaction(vec![job], outcome, took, now),
                Err(Failed::Unknown { failure, .. }) => {
                    return self.lose(std::iter::once(job).chain(jobs).collect(), failure, Vec::new(), now);
                }
                // The cause is the store, not the operation: the other operations would fail, too.
                Err(Failed::Unavailable(failure) | Failed::LostRace(failure)) => {
                    return self.fail(std::iter::once(job).chain(jobs).collect(), &failure, now);
                }
                Err(Failed::WithoutPart) => {}
                Err(Failed::Operation(failure)) => {
                    log::transaction_failed(&self.name, 1, &failure);
                    if failure.class == FailureClass::Retryable && job.is_tried_again() {
                        self.machine.try_again(vec![job], now);
                    } else {
                        self.answer(job, Err(failure.into()));
                    }
                }
            }
        }
        self.maintain();
    }

    /// Reports a commit to the machine, and answers all callers of its transaction.
    fn finish_transaction(&mut self, jobs: Vec<Job>, outcome: Outcome, took: Duration, now: Timestamp) {
        self.machine.committed(outcome.promoted.then_some(now), outcome.changed_leases, outcome.next_wake);
        self.machine.early_turns.note_commit(took.saturating_sub(self.waited_for_turns));
        let (operations, claims) =
            (outcome.answers.len(), outcome.instances.len() + outcome.activities.len());
        self.machine.gathering.expect_results(operations, claims, took, self.clock.now());
        let answers = outcome.answers.into_iter().map(|answer| answer.map_err(ApplyError::Refused));
        let mut answers = jobs.into_iter().zip(answers);
        if operations <= ANSWERED_FIRST_MAX {
            answers.by_ref().for_each(|(job, answer)| self.answer(job, answer));
        }
        let submitter = &self.submitter;
        self.machine
            .instances
            .deliver(outcome.instances, |claims| Delivery::new(claims, Arc::clone(submitter)));
        self.machine
            .activities
            .deliver(outcome.activities, |claims| Delivery::new(claims, Arc::clone(submitter)));
        answers.for_each(|(job, answer)| self.answer(job, answer));
        outcome.dead_letters.iter().for_each(|note| log::dead_letter(&self.name, note));
        log::held_back(outcome.held_back);
    }

    fn answer(&mut self, job: Job, answer: Result<Answer, ApplyError>) {
        self.note_node(job.op(), &answer);
        if let Ok(answer) = &answer {
            // Watchers are notified only after the commit.
            self.watchers.tell_of(job.op(), answer);
        }
        job.answer(answer);
    }

    /// Handles a batch that had no effect.
    fn fail(&mut self, jobs: Vec<Job>, failure: &StoreFailure, now: Timestamp) {
        log::transaction_failed(&self.name, jobs.len(), failure);
        self.machine.postpone_promotion(now);
        self.machine.retry_lease_change(now);
        self.machine.fail_fetches(failure);
        let (again, failed): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_tried_again);
        for job in failed {
            self.answer(job, Err(failure.clone().into()));
        }
        self.machine.try_again(again, now);
    }

    /// Handles a batch with unknown outcome. A caller that tries again still has its lock, or its token is invalid.
    fn lose(&mut self, jobs: Vec<Job>, failure: StoreFailure, releases: Vec<Op>, now: Timestamp) {
        log::outcome_unknown(&self.name, jobs.len(), &failure);
        let (again, failed): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_tried_again);
        for job in failed {
            self.answer(job, Err(failure.clone().into()));
        }
        let later = again.into_iter().map(Job::into_op).chain(releases).collect();
        self.machine.lost(failure, later, now);
    }

    /// Carries out operations in one commit. With `serves`, also promotes due rows and serves the waiting fetches, whose
    /// turns may run early. Returns the result, and the rounds of early turns; the answers of these are the last ones of the
    /// result.
    fn run_batch(
        &mut self,
        jobs: &[Job],
        serves: Option<Turns>,
        now: Timestamp,
    ) -> (Result<Outcome, Failed>, Vec<Job>) {
        let endable = if serves.is_some() { self.look_for_endable(jobs, now) } else { Endable::NotAsked };
        self.machine.ask_demands();
        let allowance = self.lease_allowance;
        let longer_by = |lease| allowance.beside(lease);
        let (mut fetches, mut activity_fetches) = Default::default();
        let (mut instances, mut activities) = (FetchNumbers::default(), FetchNumbers::default());
        if serves.is_some() {
            (fetches, instances) =
                self.machine.instances.requests(longer_by, |fetch| endable.prospect(fetch));
            (activity_fetches, activities) =
                self.machine.activities.requests(longer_by, |fetch| endable.prospect(fetch));
        }
        let mut batch = Batch {
            now,
            nonce: (self.nonces)(),
            clock_set_forward: self.machine.lease_change_due(now).map(|change| change.forward),
            operations: jobs.iter().map(|job| self.submitted(job, now)).collect(),
            promote: serves.is_some() && self.machine.promotion_is_due(now),
            instance_fetches: Asked::waiting(&fetches),
            activity_fetches: Asked::waiting(&activity_fetches),
            nodes: endable.into_nodes(),
            turns: None,
        };
        let (promoted, changed_leases) = (batch.promote, batch.clock_set_forward.is_some());
        let wait = self.wait_for_turns(serves, &batch);
        let open = wait.map(|wait| {
            OpenTransaction::new(wait, &instances, &mut self.machine, &self.inbox, &self.submitter)
        });
        batch.turns = open.as_ref().map(|open| open as _);
        // The engine reports panics inside the transaction; after a panic outside of it the outcome is unknown.
        let done = caught("transact", FailureClass::OutcomeUnknown, || Ok(self.engine.transact(&batch)))
            .unwrap_or_else(|failure| Err(Fault::OutcomeUnknown { failure, done: None }));
        let early = open.map(OpenTransaction::finish).unwrap_or_default();
        let (joined, answers) = self.note_early(early);
        let result = match done {
            Ok(mut done) => {
                done.answers.extend(answers);
                Ok(Outcome { promoted, changed_leases, ..Outcome::new(done, instances, activities) })
            }
            Err(fault) => Err(self.handle_fault(fault, instances, activities, now)),
        };
        (result, joined)
    }

    /// How long the transaction waits for early turns, which are turns of instances that its operations make ready.
    fn wait_for_turns(&mut self, serves: Option<Turns>, batch: &Batch<'_>) -> Option<Wait> {
        let leads_to_turns = |op: &Op| matches!(op, Op::AckActivity { .. });
        let may_run = self.may_wait
            && serves == Some(Turns::MayRunEarly)
            && !batch.instance_fetches.is_empty()
            && batch.operations.iter().any(|submitted| leads_to_turns(&submitted.op));
        may_run.then(|| self.machine.early_turns_wait()).flatten()
    }

    /// Notes the results of early turns. Returns the rounds that joined the transaction, and their answers.
    fn note_early(&mut self, early: EarlyRounds) -> (Vec<Job>, Vec<Result<Answer, Refusal>>) {
        self.machine.early_turns.waited_for(early.handed_over, early.joined.len());
        self.waited_for_turns = early.waited;
        self.received.extend(early.others);
        let (jobs, answers): (Vec<_>, Vec<_>) = early.joined.into_iter().unzip();
        (jobs, answers.into_iter().flatten().collect())
    }

    fn submitted<'a>(&self, job: &'a Job, now: Timestamp) -> Submitted<'a> {
        // A clock that was set back meanwhile must not end a lease that its holder has.
        let waited = now.saturating_since(job.handed_in());
        Submitted { op: self.lease_allowance.applied_to(job.op()), waited }
    }

    /// Handles a fault. Removes a part that failed alone from the next batch, so that each retry has less that can fail.
    fn handle_fault(
        &mut self,
        fault: Fault,
        instances: FetchNumbers,
        activities: FetchNumbers,
        now: Timestamp,
    ) -> Failed {
        log::panic_in(&self.name, fault.failure());
        let (part, failure) = match fault {
            Fault::Broken { part, failure } => (part, failure),
            Fault::LostRace(failure) => return Failed::LostRace(failure),
            Fault::Unavailable(failure) => return Failed::Unavailable(failure),
            Fault::OutcomeUnknown { failure, done } => {
                let outcome = done.map(|done| Outcome::new(*done, instances, activities));
                let releases = outcome.map(|outcome| outcome.releases()).unwrap_or_default();
                return Failed::Unknown { failure, releases };
            }
        };
        match part {
            BatchPart::Operation(_) | BatchPart::SomeOperation => return Failed::Operation(failure),
            BatchPart::Leases => {
                log::upkeep_failed(&self.name, "change_leases", &failure);
                self.machine.postpone_lease_change(now);
            }
            BatchPart::Promotion => {
                log::upkeep_failed(&self.name, "promote", &failure);
                self.machine.postpone_promotion(now);
            }
            BatchPart::InstanceFetch(index) => {
                instances.at(index).into_iter().for_each(|number| {
                    self.machine.instances.fail(number, failure.clone(), now);
                });
            }
            BatchPart::ActivityFetch(index) => {
                activities.at(index).into_iter().for_each(|number| {
                    self.machine.activities.fail(number, failure.clone(), now);
                });
            }
        }
        Failed::WithoutPart
    }
}

impl Outcome {
    fn new(done: Done, instances: FetchNumbers, activities: FetchNumbers) -> Self {
        let mut outcome = Self {
            answers: done.answers,
            instances: instances.served(done.instances, done.readies.instances),
            activities: activities.served(done.activities, done.readies.activities),
            promoted: false,
            changed_leases: false,
            dead_letters: done.dead_letters,
            held_back: HeldBack::default(),
            next_wake: done.next_wake,
        };
        outcome.instances.take_notes(&mut outcome.dead_letters, &mut outcome.held_back);
        outcome.activities.take_notes(&mut outcome.dead_letters, &mut outcome.held_back);
        outcome
    }

    fn releases(&self) -> Vec<Op> {
        self.instances.releases().chain(self.activities.releases()).collect()
    }
}
