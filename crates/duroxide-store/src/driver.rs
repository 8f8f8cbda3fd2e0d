//! Carries out what the machine decides.

mod engine;
mod lease_start;
mod news;
mod nodes;
mod transaction;

use std::{
    fmt,
    sync::{Arc, mpsc},
    time::Duration,
};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::store::{
    Answer, ApplyError, FailureClass, Op, Readies, StoreEngine, StoreFailure, TellOfWrite,
};

use self::{
    engine::GuardedEngine,
    lease_start::LeaseAllowance,
    news::News,
    nodes::Nodes,
    transaction::{Failed, Outcome},
};
use crate::{
    job::Job,
    log,
    machine::{Machine, Step},
    nodes::NodeLocks,
    submit::{Delivery, Request, Submitter},
    watchers::Watchers,
};

/// How often a batch that lost a race is tried again at once.
const LOST_RACES_MAX: u32 = 16;

/// Where the random part of lock tokens comes from.
pub(crate) type Nonces = Box<dyn FnMut() -> u128 + Send>;
/// A clock that nobody sets: how long it has run.
pub(crate) type SteadyClock = Box<dyn Fn() -> Duration + Send>;

/// Runs a store: takes requests, carries out what is to be done, and says when it wants to be called again.
///
/// A thread runs it in production. A simulator calls [`Self::run`] whenever its virtual time has reached the
/// moment that the last call named, or when callers may have handed something in.
pub struct StoreDriver {
    engine: GuardedEngine,
    machine: Machine,
    inbox: mpsc::Receiver<Request>,
    submitter: Submitter,
    clock: Arc<dyn Clock>,
    steady_clock: SteadyClock,
    nonces: Nonces,
    watchers: Arc<Watchers>,
    news: News,
    /// Called by the engine when another connection has begun to write.
    tell: TellOfWrite,
    name: Arc<str>,
    nodes: Nodes,
    lease_allowance: LeaseAllowance,
}

/// Until when a store has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// This time, at most: requests are coming in, and it is cheaper to take many of them at once.
    Gathering(Timestamp),
    /// This time, or a request.
    Until(Timestamp),
    /// A request.
    UntilRequest,
    /// Nothing: its provider was dropped.
    Closed,
}

/// The parts of a driver beside its engine.
pub(crate) struct DriverParts {
    pub(crate) machine: Machine,
    pub(crate) inbox: mpsc::Receiver<Request>,
    pub(crate) submitter: Submitter,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) steady_clock: SteadyClock,
    pub(crate) nonces: Nonces,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) name: Arc<str>,
    pub(crate) node_locks: Option<Arc<dyn NodeLocks>>,
}

impl StoreDriver {
    pub(crate) fn new(engine: Box<dyn StoreEngine>, parts: DriverParts) -> Self {
        let submitter = parts.submitter.clone();
        Self {
            engine: GuardedEngine::new(engine, Arc::clone(&parts.name)),
            machine: parts.machine,
            inbox: parts.inbox,
            submitter: parts.submitter,
            clock: parts.clock,
            steady_clock: parts.steady_clock,
            nonces: parts.nonces,
            watchers: parts.watchers,
            news: News::default(),
            tell: Arc::new(move || submitter.send(Request::WriteNoticed)),
            name: parts.name,
            nodes: Nodes::new(parts.node_locks),
            lease_allowance: LeaseAllowance::default(),
        }
    }

    /// Does everything that can be done now.
    pub fn run(&mut self) -> Idle {
        loop {
            while let Ok(request) = self.inbox.try_recv() {
                self.accept(request);
            }
            let now = self.clock.now();
            if let Some(step) = self.machine.observe(now, (self.steady_clock)(), self.watchers.any()) {
                log::clock_was_set(&self.name, step);
            }
            match self.machine.next_step(now) {
                Step::Reopen => self.reopen(now),
                Step::Refuse => self.machine.refuse(),
                Step::AskNextWake => {
                    let wake = self.engine.next_wake(now);
                    self.note_wake(&wake, now);
                }
                Step::PollForChanges => self.poll_for_changes(now),
                Step::TendNodes => self.tend_nodes(now),
                Step::Expire => self.machine.expire(now),
                Step::Read => {
                    for read in self.machine.take_reads() {
                        read.run(self.engine.reader());
                    }
                }
                Step::Transact => self.transact(now),
                Step::Gather(until) => return Idle::Gathering(until),
                Step::Sleep(None) => return Idle::UntilRequest,
                Step::Sleep(Some(until)) => return Idle::Until(until),
                Step::Stop => return Idle::Closed,
            }
        }
    }

    /// Blocks until a request comes in, at most this long.
    pub(crate) fn wait(&mut self, at_most: Option<Duration>) {
        let request = match at_most {
            Some(at_most) => self.inbox.recv_timeout(at_most).ok(),
            None => self.inbox.recv().ok(),
        };
        request.into_iter().for_each(|request| self.accept(request));
    }

    fn accept(&mut self, request: Request) {
        match request {
            Request::NodeGone(gone) => self.end_node(gone.name, gone.lock, None, self.clock.now()),
            request => self.machine.accept(request),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn poll_for_changes(&mut self, now: Timestamp) {
        // Before the poll: the engine notifies of what is written after this call.
        let told = self.machine.is_quiet(now) && self.engine.tell_of_writes(&self.tell);
        match self.engine.changed_elsewhere() {
            Ok(changed) => {
                self.machine.polled_for_changes(changed, told, now);
                if changed {
                    self.notice_change();
                }
                if self.news.are_told(now, self.watchers.count()) {
                    self.watchers.tell_all();
                }
            }
            Err(failure) => {
                log::upkeep_failed(&self.name, "changed_elsewhere", &failure);
                self.machine.poll_failed(now);
            }
        }
    }

    /// Another process changed the store: one read decides whether a claim is worth a transaction.
    fn notice_change(&mut self) {
        let readies = self.engine.may_be_ready().unwrap_or_else(|failure| {
            log::upkeep_failed(&self.name, "may_be_ready", &failure);
            Readies { instances: true, activities: true }
        });
        self.machine.made_ready(readies);
        self.watchers.forget_begun();
        self.news.came();
    }

    fn reopen(&mut self, now: Timestamp) {
        match self.engine.reopen() {
            Ok(()) => {
                let failed_attempts = self.machine.reopened(now);
                log::reopened(&self.name, failed_attempts);
                // The lost transaction may have happened, and then nobody was told.
                self.watchers.tell_all();
            }
            Err(failure) => {
                let attempt = self.machine.reopen_failed(now);
                log::reopen_failed(&self.name, attempt, &failure);
            }
        }
    }

    // ---- transactions ---------------------------------------------------------------------------------------

    /// Runs one batch. A part that fails alone is put aside and the rest is tried again, so each time round there is less
    /// that can fail.
    fn transact(&mut self, now: Timestamp) {
        let mut jobs = self.machine.take_batch();
        let began = (self.steady_clock)();
        let mut lost_races = 0;
        loop {
            jobs = self.refuse_messages(jobs, now);
            let result = self.run_batch(&jobs, now);
            let took = (self.steady_clock)().saturating_sub(began);
            if let Ok(outcome) = &result {
                self.renew_late_leases(&jobs, outcome, took, now);
            }
            self.note_duration(took);
            match result {
                Ok(outcome) => return self.settle(jobs, outcome, took, now),
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

    /// A client must not be told that its message was taken while a damaged store hands out no instance: no turn would ever
    /// see the message. Returns the other jobs.
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

    /// One operation of the batch broke: each runs in a transaction of its own, so that it fails alone. Fetches
    /// are served by the next transaction.
    fn run_one_by_one(&mut self, jobs: Vec<Job>, now: Timestamp) {
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            let began = (self.steady_clock)();
            let result = self.run_alone_until_settled(&job, now);
            let took = (self.steady_clock)().saturating_sub(began);
            if result.is_ok() {
                self.renew_late_lease(&job, took, now);
            }
            self.note_duration(took);
            match result {
                Ok(outcome) => self.settle_alone(job, outcome),
                Err(Failed::Unknown { failure, .. }) => {
                    return self.lose(std::iter::once(job).chain(jobs).collect(), failure, Vec::new(), now);
                }
                // The store is to blame, not the operation: the others would only wait for the same.
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

    /// Runs an operation alone, again if it lost a race or leases could not be changed.
    fn run_alone_until_settled(&mut self, job: &Job, now: Timestamp) -> Result<Outcome, Failed> {
        let mut lost_races = 0;
        loop {
            match self.run_alone(job, now) {
                Err(Failed::WithoutPart) => {}
                Err(Failed::LostRace(_)) if lost_races < LOST_RACES_MAX => lost_races += 1,
                result => return result,
            }
        }
    }

    fn settle_alone(&mut self, job: Job, outcome: Outcome) {
        self.note_commit(&outcome, self.clock.now());
        let Some(answer) = outcome.answers.into_iter().next() else { return };
        if answer.is_ok() {
            self.machine.made_ready(job.op().readies());
        }
        self.answer(job, answer.map_err(ApplyError::Refused));
    }

    /// Reports a commit to the machine.
    fn note_commit(&mut self, outcome: &Outcome, now: Timestamp) {
        self.machine.committed(outcome.promoted.then_some(now));
        if outcome.changed_leases {
            self.machine.changed_leases();
        }
        self.note_wake(&outcome.next_wake, now);
    }

    fn note_wake(&mut self, wake: &Result<Option<Timestamp>, StoreFailure>, now: Timestamp) {
        match wake {
            Ok(wake) => self.machine.learned_next_wake(*wake),
            Err(failure) => {
                log::upkeep_failed(&self.name, "next_wake", failure);
                self.machine.next_wake_failed(now);
            }
        }
    }

    /// Answers all callers of a committed transaction.
    fn settle(&mut self, jobs: Vec<Job>, outcome: Outcome, took: Duration, now: Timestamp) {
        self.note_commit(&outcome, now);
        let (operations, claims) =
            (outcome.answers.len(), outcome.instances.len() + outcome.activities.len());
        self.machine.handed_out(operations, claims, took, self.clock.now());
        for (job, answer) in jobs.into_iter().zip(outcome.answers) {
            self.answer(job, answer.map_err(ApplyError::Refused));
        }
        let submitter = &self.submitter;
        self.machine.instances.settle(outcome.instances, |claims| Delivery::new(claims, submitter.clone()));
        self.machine.activities.settle(outcome.activities, |claims| Delivery::new(claims, submitter.clone()));
        outcome.dead_letters.iter().for_each(|note| log::dead_letter(&self.name, note));
        log::held_back(outcome.held_back);
        self.maintain();
    }

    fn answer(&mut self, job: Job, answer: Result<Answer, ApplyError>) {
        self.note_node(job.op(), &answer);
        if let Ok(answer) = &answer {
            // Watchers are told only after the commit.
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
        let (again, told): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_tried_again);
        for job in told {
            self.answer(job, Err(failure.clone().into()));
        }
        self.machine.try_again(again, now);
    }

    /// The outcome of the batch is unknown. A caller that tries again finds its lock, or an invalid token.
    fn lose(&mut self, jobs: Vec<Job>, failure: StoreFailure, releases: Vec<Op>, now: Timestamp) {
        log::outcome_unknown(&self.name, jobs.len(), &failure);
        let (again, told): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_tried_again);
        for job in told {
            self.answer(job, Err(failure.clone().into()));
        }
        let later = again.into_iter().map(Job::into_op).chain(releases).collect();
        self.machine.lost(failure, later, now);
    }

    fn maintain(&mut self) {
        if let Err(failure) = self.engine.maintain() {
            log::upkeep_failed(&self.name, "maintain", &failure);
        }
    }
}

impl fmt::Debug for StoreDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreDriver").field("name", &self.name).finish_non_exhaustive()
    }
}
