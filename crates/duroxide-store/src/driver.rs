//! [`StoreDriver`]: carries out the steps that the machine decides.

mod change_notifications;
mod early_turns;
mod lease_allowance;
mod nodes;
mod stranded_fetches;
mod transaction;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, mpsc},
    thread::sleep,
    time::Duration,
};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::store::{FailureClass, Readies, StoreEngine, StoreFailure, TellOfWrite, caught};

use self::{change_notifications::ChangeNotifications, lease_allowance::LeaseAllowance, nodes::Nodes};
use crate::{
    log,
    machine::{Machine, Step},
    nodes::NodeLocks,
    provider::Watchers,
    submit::{Request, Submitter},
};

/// The longest sleep towards a wall-clock time. A clock that is set forward is noticed this late.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// How often the inbox is checked while the store gathers requests.
const NAP: Duration = Duration::from_micros(100);

/// Where the random part of lock tokens comes from.
pub(crate) type Nonces = Box<dyn FnMut() -> u128 + Send>;
/// A clock that cannot be set: how long it has run.
pub(crate) type SteadyClock = Box<dyn Fn() -> Duration + Send>;

/// Runs a store: takes requests, carries out the steps of the machine, and returns when it wants to be called again.
///
/// A thread runs it in production. A simulator calls [`Self::run`] whenever its virtual time has reached the
/// moment that the last call named, or when callers may have handed something in.
pub struct StoreDriver {
    engine: Box<dyn StoreEngine>,
    machine: Machine,
    inbox: mpsc::Receiver<Request>,
    /// Requests that were received and not accepted by the machine yet.
    received: VecDeque<Request>,
    /// Whether [`Self::run`] may wait for other threads, so that turns may run early.
    may_wait: bool,
    submitter: Arc<Submitter>,
    clock: Arc<dyn Clock>,
    steady_clock: SteadyClock,
    nonces: Nonces,
    watchers: Arc<Watchers>,
    change_notifications: ChangeNotifications,
    /// Called by the engine when another connection begins to write.
    tell: TellOfWrite,
    name: Arc<str>,
    nodes: Nodes,
    lease_allowance: LeaseAllowance,
    /// How long the last transaction waited for early turns.
    waited_for_turns: Duration,
}

/// How long a store has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Until this time at most: requests are coming in, and it is cheaper to take many of them at once.
    Gathering(Timestamp),
    /// Until this time, or a request.
    Until(Timestamp),
    /// Until a request.
    UntilRequest,
    /// For ever: its provider was dropped.
    Closed,
}

/// The parts of a driver besides its engine.
pub(crate) struct DriverParts {
    pub(crate) machine: Machine,
    pub(crate) inbox: mpsc::Receiver<Request>,
    pub(crate) submitter: Arc<Submitter>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) steady_clock: SteadyClock,
    pub(crate) nonces: Nonces,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) name: Arc<str>,
    pub(crate) node_locks: Option<Arc<dyn NodeLocks>>,
}

impl StoreDriver {
    pub(crate) fn new(engine: Box<dyn StoreEngine>, parts: DriverParts) -> Self {
        let submitter = Arc::clone(&parts.submitter);
        Self {
            engine,
            machine: parts.machine,
            inbox: parts.inbox,
            received: VecDeque::new(),
            may_wait: false,
            submitter: parts.submitter,
            clock: parts.clock,
            steady_clock: parts.steady_clock,
            nonces: parts.nonces,
            watchers: parts.watchers,
            change_notifications: ChangeNotifications::default(),
            tell: Arc::new(move || submitter.send(Request::WriteNoticed)),
            name: parts.name,
            nodes: Nodes::new(parts.node_locks),
            lease_allowance: LeaseAllowance::default(),
            waited_for_turns: Duration::ZERO,
        }
    }

    /// Runs the store until its provider is dropped.
    pub(crate) fn serve(mut self) {
        self.may_wait = true;
        loop {
            let received = match self.run() {
                Idle::Closed => return,
                Idle::Gathering(until) => {
                    // A sleep costs the submitting threads no wake-up, and leaves this core to them.
                    sleep(until.saturating_since(self.clock.now()).min(NAP));
                    None
                }
                Idle::UntilRequest => self.inbox.recv().ok(),
                Idle::Until(time) => {
                    let wait = time.saturating_since(self.clock.now()).min(SLEEP_MAX);
                    self.inbox.recv_timeout(wait).ok()
                }
            };
            self.received.extend(received);
        }
    }

    /// Does everything that can be done now.
    pub fn run(&mut self) -> Idle {
        loop {
            while let Some(request) = self.received.pop_front().or_else(|| self.inbox.try_recv().ok()) {
                if let Request::NodeGone(gone) = request {
                    self.end_node(gone.name, gone.lock, None, self.clock.now());
                } else {
                    self.machine.accept(request);
                }
            }
            let now = self.clock.now();
            if let Some(step) = self.machine.observe(now, (self.steady_clock)(), self.watchers.any()) {
                log::clock_was_set(&self.name, step);
            }
            match self.machine.next_step(now) {
                Step::Reopen => self.reopen(now),
                Step::Refuse => self.machine.refuse(),
                Step::AskNextWake => self.ask_next_wake(now),
                Step::PollForChanges => self.poll_for_changes(now),
                Step::TendNodes => self.tend_nodes(now),
                Step::Expire => self.machine.expire(now),
                Step::Read => {
                    for read in self.machine.take_reads() {
                        read.run(&mut *self.engine);
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

    fn poll_for_changes(&mut self, now: Timestamp) {
        // Before the poll: the engine notifies of writes after this call.
        let notifies = self.machine.polling.is_quiet(now) && self.notifies_of_writes();
        match self.call("changed_elsewhere", |engine| engine.changed_elsewhere()) {
            Ok(changed) => {
                self.machine.polled_for_changes(changed, notifies, now);
                if changed {
                    self.notice_change();
                }
                if self.change_notifications.are_due(now, self.watchers.count()) {
                    self.watchers.tell_all();
                }
            }
            Err(failure) => {
                log::upkeep_failed(&self.name, "changed_elsewhere", &failure);
                self.machine.polling.failed(now);
            }
        }
    }

    /// Asks the engine to notify this store of the next write. Returns whether the engine can do so; an engine that panics
    /// cannot.
    fn notifies_of_writes(&mut self) -> bool {
        let tell = Arc::clone(&self.tell);
        self.call("tell_of_writes", |engine| Ok(engine.tell_of_writes(&tell))).unwrap_or(false)
    }

    /// Another process changed the store. One read decides whether a claim is worth a transaction.
    fn notice_change(&mut self) {
        let readies = self.call("may_be_ready", |engine| engine.may_be_ready()).unwrap_or_else(|failure| {
            log::upkeep_failed(&self.name, "may_be_ready", &failure);
            Readies { instances: true, activities: true }
        });
        self.machine.made_ready(readies);
        self.watchers.forget_begun();
        self.change_notifications.note_change();
    }

    fn reopen(&mut self, now: Timestamp) {
        match self.call("reopen", |engine| engine.reopen()) {
            Ok(()) => {
                let failed_attempts = self.machine.reopened(now);
                log::reopened(&self.name, failed_attempts);
                // The lost transaction may have been committed without a notification.
                self.watchers.tell_all();
            }
            Err(failure) => {
                let attempt = self.machine.reopen_failed(now);
                log::reopen_failed(&self.name, attempt, &failure);
            }
        }
    }

    fn ask_next_wake(&mut self, now: Timestamp) {
        match self.call("next_wake", |engine| engine.next_wake(now)) {
            Ok(wake) => self.machine.learned_next_wake(wake),
            Err(failure) => {
                log::upkeep_failed(&self.name, "next_wake", &failure);
                self.machine.next_wake_failed(now);
            }
        }
    }

    fn maintain(&mut self) {
        if let Err(failure) = self.call("maintain", |engine| engine.maintain()) {
            log::upkeep_failed(&self.name, "maintain", &failure);
        }
    }

    /// Makes a call of the engine outside of a transaction. A panic is logged and becomes a retryable failure; the engine is
    /// used again afterwards.
    fn call<T>(
        &mut self,
        name: &'static str,
        run: impl FnOnce(&mut dyn StoreEngine) -> Result<T, StoreFailure>,
    ) -> Result<T, StoreFailure> {
        let engine = &mut *self.engine;
        caught(name, FailureClass::Retryable, || run(engine))
            .inspect_err(|failure| log::panic_in(&self.name, failure))
    }
}

impl fmt::Debug for StoreDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreDriver").field("name", &self.name).finish_non_exhaustive()
    }
}
