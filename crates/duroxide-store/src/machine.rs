//! Decides what the store does next.
//!
//! The machine holds everything that waits for the store (operations, waiting fetches, reads), the store's health, and the
//! times at which something becomes due. It does nothing by itself: requests go in, [`Machine::next_step`] returns the next
//! step, and the driver carries the step out and reports its result.

mod backlog;
mod change_polling;
mod clock_check;
mod early_turns;
mod gathering;
mod health;
mod queues;
mod refusals;
#[cfg(test)]
mod tests;
mod waiting_fetches;

use std::{collections::VecDeque, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::{ActivityFetch, InstanceFetch, NextWake};

use self::{
    backlog::Backlog, change_polling::ChangePolling, clock_check::ClockCheck, early_turns::EarlyTurnsPolicy,
    gathering::Gathering, health::Health, waiting_fetches::WaitingFetches,
};
pub(crate) use self::{
    clock_check::{ClockStep, LeaseChange},
    early_turns::Wait,
    waiting_fetches::{Asked, FetchNumbers, Prospect, Served},
};
use crate::{
    StoreOptions,
    job::{Job, JobClass},
    readers::Read,
    submit::{Request, closed},
};

/// Rows that are due again right after their promotion wait this long, so that a faulty engine does not make the store spin.
const PROMOTE_PAUSE: Duration = Duration::from_millis(1);
/// The pause after a poll, a promotion or a lease change that failed.
const UPKEEP_PAUSE: Duration = Duration::from_secs(1);
/// Reads that run between two transactions on the store thread.
const READS_MAX: usize = 64;

/// The next step of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Reopen the store after a commit with unknown outcome.
    Reopen,
    /// Answer all waiting callers with an error: the store is not open.
    Refuse,
    /// Ask when the store has something due next.
    AskNextWake,
    /// Ask whether another process changed the store.
    PollForChanges,
    /// End dead nodes, and renew the rows of our own.
    TendNodes,
    /// Answer the fetches whose deadline has passed.
    Expire,
    /// Run some reads.
    Read,
    /// Run a transaction: operations, promotion, claims.
    Transact,
    /// Let operations come in until this time, at most.
    Gather(Timestamp),
    /// Nothing to do before this time, or before the next request.
    Sleep(Option<Timestamp>),
    /// The last handle was dropped and all work is done.
    Stop,
}

/// Everything that waits for the store.
#[derive(Debug)]
pub(crate) struct Machine {
    options: StoreOptions,
    backlog: Backlog,
    /// Operations without a caller whose transactions had no effect, and when to try them again.
    tried_again: Vec<Job>,
    try_again_at: Timestamp,
    reads: VecDeque<Read>,
    /// Reads and transactions take turns.
    reads_ran_last: bool,
    pub(crate) instances: WaitingFetches<InstanceFetch>,
    pub(crate) activities: WaitingFetches<ActivityFetch>,
    pub(crate) gathering: Gathering,
    pub(crate) early_turns: EarlyTurnsPolicy,
    /// Whether something came in since the time was last noted.
    has_arrivals: bool,
    wake: NextWake,
    /// Until when due rows are left alone, because they were just promoted or could not be.
    promote_not_before: Timestamp,
    pub(crate) polling: ChangePolling,
    watched: bool,
    /// When to tend to nodes next, while some have joined through this store.
    tend_nodes_at: Option<Timestamp>,
    health: Health,
    closing: bool,
    /// The latest time seen, to notice a clock that is set back.
    seen: Timestamp,
    clock_check: ClockCheck,
    /// The pending change of leases, if the clock was set.
    lease_change: Option<LeaseChange>,
}

impl Machine {
    pub(crate) fn new(options: StoreOptions) -> Self {
        Self {
            options,
            backlog: Backlog::default(),
            tried_again: Vec::new(),
            try_again_at: Timestamp::ZERO,
            reads: VecDeque::new(),
            reads_ran_last: false,
            instances: WaitingFetches::default(),
            activities: WaitingFetches::default(),
            gathering: Gathering::default(),
            early_turns: EarlyTurnsPolicy::default(),
            has_arrivals: false,
            wake: NextWake::Unknown,
            promote_not_before: Timestamp::ZERO,
            polling: ChangePolling::default(),
            watched: false,
            tend_nodes_at: None,
            health: Health::Sound,
            closing: false,
            seen: Timestamp::ZERO,
            clock_check: ClockCheck::default(),
            lease_change: None,
        }
    }

    // ---- requests and time --------------------------------------------------------------------------------------

    /// Accepts a request.
    pub(crate) fn accept(&mut self, request: Request) {
        let behind_ops = !self.backlog.is_empty();
        self.has_arrivals = true;
        match request {
            Request::Job(job) => {
                // Renewals also come in while the store is idle.
                if job.class() != JobClass::Renewal {
                    self.polling.note_request(self.seen);
                }
                self.backlog.push(job);
            }
            Request::Read(read) => self.reads.push_back(*read),
            Request::FetchInstances(fetch) => {
                self.instances.push(*fetch, behind_ops);
                self.polling.poll_soon();
            }
            Request::FetchActivities(fetch) => {
                self.activities.push(*fetch, behind_ops);
                self.polling.poll_soon();
            }
            Request::DemandRose => self.ask_demands(),
            Request::Watched => self.polling.poll_soon(),
            Request::WriteNoticed => self.polling.note_write(self.seen, &self.options),
            // The driver handles it, because the driver holds the locks of nodes.
            Request::NodeGone(_) => {}
            Request::Close => self.close(),
        }
    }

    /// Notes the time, on the wall clock and on a clock that cannot be set, and whether clients watch. Returns how the wall
    /// clock was set.
    pub(crate) fn observe(&mut self, now: Timestamp, steady: Duration, watched: bool) -> Option<ClockStep> {
        self.watched = watched;
        let step = self.clock_check.step(now, steady);
        if let Some(step) = step {
            self.lease_change = Some(LeaseChange::after(self.lease_change, step, now));
        }
        if self.seen == Timestamp::ZERO {
            self.polling.note_request(now);
        }
        if std::mem::take(&mut self.has_arrivals) {
            self.gathering.note_arrival(now);
        }
        if now < self.seen {
            self.gathering.end();
            let back = self.seen.saturating_since(now);
            self.instances.shift_back(back);
            self.activities.shift_back(back);
            self.polling.set_back(now, &self.options);
            self.promote_not_before = Timestamp::ZERO;
            self.try_again_at = Timestamp::ZERO;
            self.tend_nodes_at = self.tend_nodes_at.map(|_| now);
            self.wake = NextWake::Unknown;
            if let Health::Lost { retry_at, .. } = &mut self.health {
                *retry_at = (*retry_at).min(now.saturating_add(self.options.reopen_backoff_max));
            }
        }
        self.seen = now;
        step
    }

    /// Closes the store to callers. Operations without a waiting caller, such as releases of claims, are still done.
    fn close(&mut self) {
        self.closing = true;
        let failure = closed();
        self.instances.fail_all(&failure);
        self.activities.fail_all(&failure);
        self.reads.clear();
        for job in self.backlog.take_all() {
            if job.is_unattended() {
                self.backlog.push(job);
            } else {
                job.answer(Err(failure.clone().into()));
            }
        }
    }

    // ---- the next step -----------------------------------------------------------------------------------------

    /// Decides the next step.
    pub(crate) fn next_step(&self, now: Timestamp) -> Step {
        if let Health::Lost { retry_at, .. } = self.health {
            return self.next_step_while_lost(retry_at, now);
        }
        if self.closing {
            return if self.backlog.is_empty() { Step::Stop } else { Step::Transact };
        }
        if self.wake == NextWake::Unknown {
            return Step::AskNextWake;
        }
        if self.polls_for_changes() && self.polling.next() <= now {
            return Step::PollForChanges;
        }
        if self.tend_nodes_at.is_some_and(|at| at <= now) {
            return Step::TendNodes;
        }
        // Promotion comes before expiry: a fetch that does not wait may get a row that has just become due.
        let has_expired = self.instances.has_expired(now) || self.activities.has_expired(now);
        if has_expired && !self.promotion_is_due(now) {
            return Step::Expire;
        }
        match (self.reads.is_empty(), self.wants_transaction(now)) {
            (false, true) if self.reads_ran_last => Step::Transact,
            (false, _) => Step::Read,
            (true, true) => {
                let lacks_fetch = self.instances.awaits_next_fetch || self.activities.awaits_next_fetch;
                match self.gathering.goes_on_until(self.backlog.len(), lacks_fetch, now) {
                    Some(until) => Step::Gather(until),
                    None => Step::Transact,
                }
            }
            (true, false) => Step::Sleep(self.next_due()),
        }
    }

    fn wants_transaction(&self, now: Timestamp) -> bool {
        !self.backlog.is_empty()
            || self.promotion_is_due(now)
            || self.lease_change.is_some_and(|change| change.at <= now)
            || (!self.tried_again.is_empty() && self.try_again_at <= now)
            || self.instances.wants_claim()
            || self.activities.wants_claim()
    }

    /// Whether rows have become due since the store was last asked.
    pub(crate) fn promotion_is_due(&self, now: Timestamp) -> bool {
        matches!(self.wake, NextWake::Known(Some(at)) if at <= now)
    }

    /// The change of leases that the next transaction makes, because the clock was set.
    pub(crate) fn lease_change_due(&self, now: Timestamp) -> Option<LeaseChange> {
        self.lease_change.filter(|change| change.not_before <= now)
    }

    /// Whether to poll for changes by other processes: only while a fetch or a client waits for them.
    fn polls_for_changes(&self) -> bool {
        self.options.shared && (self.watched || !self.instances.is_empty() || !self.activities.is_empty())
    }

    fn next_due(&self) -> Option<Timestamp> {
        let wake = match self.wake {
            NextWake::Known(at) => at,
            NextWake::Unknown => None,
        };
        let poll = self.polls_for_changes().then_some(self.polling.next());
        let deadlines = [self.instances.next_deadline(), self.activities.next_deadline()];
        let lease_change = self.lease_change.map(|change| change.at);
        let try_again = (!self.tried_again.is_empty()).then_some(self.try_again_at);
        let upkeep = [wake, poll, self.tend_nodes_at, lease_change, try_again];
        upkeep.into_iter().chain(deadlines).flatten().min()
    }

    /// How long the next transaction waits for turns that run early. `None`: none may.
    pub(crate) fn early_turns_wait(&mut self) -> Option<Wait> {
        self.options.early_turns.then(|| self.early_turns.wait()).flatten()
    }

    // ---- carrying a step out ------------------------------------------------------------------------------------

    /// Takes the operations of the next transaction.
    pub(crate) fn take_batch(&mut self) -> Vec<Job> {
        self.reads_ran_last = false;
        self.instances.awaits_next_fetch = false;
        self.activities.awaits_next_fetch = false;
        self.tried_again.drain(..).for_each(|job| self.backlog.push(job));
        self.backlog.take_batch(&self.options)
    }

    /// Takes the reads to run now.
    pub(crate) fn take_reads(&mut self) -> Vec<Read> {
        self.reads_ran_last = true;
        let count = self.reads.len().min(READS_MAX);
        self.reads.drain(..count).collect()
    }

    // ---- results of steps ------------------------------------------------------------------------------------

    /// The engine has answered when something is due next.
    pub(crate) fn learned_next_wake(&mut self, wake: Option<Timestamp>) {
        self.wake = NextWake::Known(wake.map(|at| at.max(self.promote_not_before)));
    }

    /// The engine could not answer when something is due next.
    pub(crate) fn next_wake_failed(&mut self, now: Timestamp) {
        self.wake = NextWake::Known(Some(now.saturating_add(UPKEEP_PAUSE)));
    }

    /// A transaction was committed. `promoted_at` is its time, if it promoted due rows. `changed_leases`: it
    /// adjusted leases to the clock.
    pub(crate) fn committed(
        &mut self,
        promoted_at: Option<Timestamp>,
        changed_leases: bool,
        next_wake: NextWake,
    ) {
        if let Some(at) = promoted_at {
            self.promote_not_before = at.saturating_add(PROMOTE_PAUSE);
        }
        if changed_leases {
            self.lease_change = None;
        }
        match next_wake {
            NextWake::Known(wake) => self.learned_next_wake(wake),
            NextWake::Unknown => self.wake = NextWake::Unknown,
        }
    }

    /// Due rows could not be promoted. The promotion is tried again later, so that it does not delay other work.
    pub(crate) fn postpone_promotion(&mut self, now: Timestamp) {
        if self.promotion_is_due(now) {
            self.promote_not_before = now.saturating_add(UPKEEP_PAUSE);
            self.wake = NextWake::Known(Some(self.promote_not_before));
        }
    }

    /// Leases could not be changed. The change is tried again later, so that it does not delay other work.
    pub(crate) fn postpone_lease_change(&mut self, now: Timestamp) {
        if let Some(change) = &mut self.lease_change {
            change.at = now.saturating_add(UPKEEP_PAUSE);
            change.not_before = change.at;
        }
    }

    /// A transaction had no effect for another reason. The next one still has to change leases, before it ends any.
    pub(crate) fn retry_lease_change(&mut self, now: Timestamp) {
        if let Some(change) = &mut self.lease_change {
            change.at = now.saturating_add(UPKEEP_PAUSE);
        }
    }

    /// These operations had no effect and are tried again, with the next transaction or in a moment.
    pub(crate) fn try_again(&mut self, jobs: Vec<Job>, now: Timestamp) {
        self.tried_again.extend(jobs);
        self.try_again_at = now.saturating_add(UPKEEP_PAUSE);
    }

    /// The store was polled for changes by other processes. Items that became ready are reported separately. With `told` the
    /// engine notifies this store of writes.
    pub(crate) fn polled_for_changes(&mut self, changed: bool, told: bool, now: Timestamp) {
        if changed {
            self.wake = NextWake::Unknown;
        }
        self.polling.polled(changed, told, now, &self.options);
    }

    /// Notes whether nodes have joined through this store. The first one causes a check for dead nodes at once, so that their
    /// claims are released.
    pub(crate) fn has_nodes(&mut self, any: bool) {
        self.tend_nodes_at = any.then_some(self.tend_nodes_at.unwrap_or(Timestamp::ZERO));
    }

    /// Nodes were tended; `next` is the next time.
    pub(crate) fn tended_nodes(&mut self, next: Timestamp) {
        self.tend_nodes_at = self.tend_nodes_at.map(|_| next);
    }
}
