//! Isolates code that kills its process, without slowing down everything else that a crash has hit.
//!
//! A crash loses every claim of its node, and whoever takes over claims the same items again. A killer among them would
//! take the others along until all are poison. So an item whose claims were lost repeatedly is a *suspect*:
//!
//! * Suspects start one after the other: the next one starts when the code of the one before has returned from its first
//!   poll, or its turn is over. Meanwhile the node's lock file names the one that is starting. A process that dies then
//!   leaves the name, and the store *blames* that claim: it rests until its lease ends and nobody else is charged an attempt.
//! * A suspect that was blamed, or is on its last attempt, runs while no other suspect does.
//! * For code that kills later: with each further loss only half as many suspects run at once. Those that have lost less
//!   go first, because more of them may run.
//!
//! What may not run yet is given back, its attempt taken back. Nothing of this concerns items that were only abandoned,
//! such as those without a handler here.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use duroxide_provider::{ClaimToken, Losses, NodeMembership};
use tokio::sync::Notify;

use super::locks::LockKind;
use crate::env::{Env, Moment, lock};

/// From this many losses on an item is a suspect. After one or two crashes of a busy node everything it claimed has been lost
/// that often, and most of it is innocent.
const SUSPICIOUS_LOSSES: u32 = 2;
/// Up to this many losses any number of suspects may run at once. The last crash may have been the first one that a note
/// tells about.
const LOSSES_BEFORE_HALVING: u32 = 3;
/// A suspect whose first poll takes longer than this lets the next one start.
const FIRST_POLL_MAX: Duration = Duration::from_millis(20);
/// A suspect that has not been polled by then, because all threads are busy, lets the next one start.
const UNPOLLED_MAX: Duration = Duration::from_millis(200);
/// A suspect that has run this long keeps no other from running.
const TRUSTED_AFTER: Duration = Duration::from_secs(60);
/// Both queues may bring suspects out of one transaction, one a moment after the other.
const OTHER_QUEUE_WAIT: Duration = Duration::from_millis(20);
/// How long a suspect that runs alone waits for the others to be given back.
const ALONE_WAIT_MAX: Duration = Duration::from_secs(1);
/// For how long a suspect rests that may not run yet.
pub(crate) const SUSPECT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// What is known of a claim before its code runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimRecord {
    pub kind: LockKind,
    pub attempt_count: u32,
    pub max_attempts: u32,
    /// `None` if the store cannot tell a lost claim from an abandoned one. Then all are taken for lost.
    pub losses: Option<Losses>,
    /// The slots of its queue.
    pub slots: usize,
}

/// How many other suspects may run beside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    /// None, of either queue.
    Alone,
    /// As many of its own queue as make this group.
    Group(usize),
}

impl ClaimRecord {
    /// `None` if it is no suspect. One beyond `max_attempts` is none: its code does not run any more.
    fn concurrency(&self) -> Option<Concurrency> {
        let lost = self.losses.map_or(self.attempt_count.saturating_sub(1), |losses| losses.lost);
        let attempts_left = self.max_attempts.checked_sub(self.attempt_count)?;
        if lost < SUSPICIOUS_LOSSES && (lost == 0 || attempts_left > 0) {
            return None;
        }
        if attempts_left == 0 || self.losses.is_some_and(|losses| losses.blamed > 0) {
            return Some(Concurrency::Alone);
        }
        let halvings = lost.saturating_sub(LOSSES_BEFORE_HALVING);
        let by_losses = self.slots.checked_shr(halvings).unwrap_or(0);
        // The last attempt is made alone, the one before by two, and so on.
        let by_attempts = 1_usize.checked_shl(attempts_left).unwrap_or(usize::MAX);
        Some(Concurrency::Group(by_losses.min(by_attempts).max(1)))
    }
}

/// The suspects that a node holds and runs.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    state: Mutex<State>,
    changed: Notify,
    /// Where the node notes which claim is starting. It is claimed elsewhere, and gone when the node has left.
    note: OnceLock<Weak<dyn NodeMembership>>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    claimed: usize,
    running: BTreeMap<u64, Running>,
    starting: Option<Start>,
}

#[derive(Debug)]
struct Running {
    kind: LockKind,
    since: Moment,
    concurrency: Concurrency,
}

/// The suspect whose code is being polled for the first time.
#[derive(Debug)]
struct Start {
    number: u64,
    /// Then another may start.
    until: Moment,
}

impl State {
    /// The number under which it runs; `None` if others keep it from running.
    fn try_run(&mut self, kind: LockKind, concurrency: Concurrency, now: Moment) -> Option<u64> {
        let mut others = self.running.values().filter(|other| now.since(other.since) < TRUSTED_AFTER);
        let must_wait = match concurrency {
            Concurrency::Alone => others.next().is_some(),
            Concurrency::Group(size) => {
                let mut beside = 0;
                others.any(|other| {
                    beside += usize::from(other.kind == kind);
                    other.concurrency == Concurrency::Alone || beside >= size
                })
            }
        };
        if must_wait {
            return None;
        }
        self.last += 1;
        self.running.insert(self.last, Running { kind, since: now, concurrency });
        Some(self.last)
    }

    /// When to ask again, if another suspect is starting.
    fn start(&mut self, number: u64, now: Moment) -> Result<(), Moment> {
        if let Some(other) = self.starting.as_ref().filter(|other| now < other.until) {
            return Err(other.until);
        }
        self.starting = Some(Start { number, until: now.after(UNPOLLED_MAX) });
        Ok(())
    }

    fn is_starting(&self, number: u64) -> bool {
        self.starting.as_ref().is_some_and(|start| start.number == number)
    }
}

impl Quarantine {
    /// Sets where the node notes which claim is starting.
    pub(crate) fn note_in(&self, membership: Weak<dyn NodeMembership>) {
        let _ = self.note.set(membership);
    }

    /// Takes note of a claimed item; `None` if it is no suspect.
    pub(crate) fn register(self: &Arc<Self>, token: &str, record: ClaimRecord) -> Option<Suspect> {
        let concurrency = record.concurrency()?;
        lock(&self.state).claimed += 1;
        let token = match record.kind {
            LockKind::Instance => ClaimToken::Instance(token.to_owned()),
            LockKind::Activity => ClaimToken::Activity(token.to_owned()),
        };
        Some(Suspect { quarantine: Arc::clone(self), token, kind: record.kind, concurrency })
    }

    async fn wait_until_alone(&self) {
        loop {
            let changed = self.changed.notified();
            if lock(&self.state).claimed <= 1 {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no other suspect is starting.
    async fn start(&self, number: u64, env: &Arc<dyn Env>) {
        loop {
            let changed = self.changed.notified();
            let Err(until) = lock(&self.state).start(number, env.moment()) else { return };
            tokio::select! {
                () = changed => {}
                () = env.sleep_until(until) => {}
            }
        }
    }

    fn write_note(&self, claim: Option<&ClaimToken>) {
        if let Some(membership) = self.note.get().and_then(Weak::upgrade) {
            membership.note_starting(claim);
        }
    }
}

/// A suspect that this node holds.
#[derive(Debug)]
pub(crate) struct Suspect {
    quarantine: Arc<Quarantine>,
    token: ClaimToken,
    kind: LockKind,
    concurrency: Concurrency,
}

impl Suspect {
    /// Waits until the suspect may run. `None` if others keep it from running: then it has to be given back.
    pub(crate) async fn run_permit(&self, env: &Arc<dyn Env>) -> Option<RunPermit> {
        let quarantine = &self.quarantine;
        let number = lock(&quarantine.state).try_run(self.kind, self.concurrency, env.moment())?;
        let mut permit = RunPermit { quarantine: Arc::clone(quarantine), number, starting: None };
        if self.concurrency == Concurrency::Alone {
            env.sleep(OTHER_QUEUE_WAIT).await;
            tokio::select! {
                () = quarantine.wait_until_alone() => {}
                () = env.sleep(ALONE_WAIT_MAX) => {}
            }
        }
        // Made first, so that it is dropped if the wait is.
        permit.starting = Some(StartGuard {
            quarantine: Arc::clone(quarantine),
            number,
            token: self.token.clone(),
            env: Arc::clone(env),
        });
        quarantine.start(number, env).await;
        Some(permit)
    }
}

impl Drop for Suspect {
    fn drop(&mut self) {
        lock(&self.quarantine.state).claimed -= 1;
        self.quarantine.changed.notify_waiters();
    }
}

/// The right of a suspect to run, until its result is in the store.
#[derive(Debug)]
pub(crate) struct RunPermit {
    quarantine: Arc<Quarantine>,
    number: u64,
    starting: Option<StartGuard>,
}

impl RunPermit {
    /// What its code starts with. It is there once.
    pub(crate) fn starting(&mut self) -> Option<StartGuard> {
        self.starting.take()
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        lock(&self.quarantine.state).running.remove(&self.number);
    }
}

/// A suspect that starts. Dropping it lets the next one start.
#[derive(Debug)]
pub(crate) struct StartGuard {
    quarantine: Arc<Quarantine>,
    number: u64,
    token: ClaimToken,
    env: Arc<dyn Env>,
}

impl StartGuard {
    /// Its code begins now: if the process dies, this was it.
    pub(crate) fn begin(&self) {
        let now = self.env.moment();
        let mut state = lock(&self.quarantine.state);
        if let Some(running) = state.running.get_mut(&self.number) {
            running.since = now;
        }
        if let Some(start) = state.starting.as_mut().filter(|start| start.number == self.number) {
            start.until = now.after(FIRST_POLL_MAX);
            // Under the lock, so that notes are written in the order of starts.
            self.quarantine.write_note(Some(&self.token));
        }
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        let mut state = lock(&self.quarantine.state);
        if state.is_starting(self.number) {
            state.starting = None;
            self.quarantine.write_note(None);
        }
        drop(state);
        self.quarantine.changed.notify_waiters();
    }
}

/// Runs code; what it starts with ends with its first poll.
pub(crate) async fn started<T>(starting: Option<StartGuard>, code: impl Future<Output = T>) -> T {
    let (mut starting, mut code) = (starting, pin!(code));
    poll_fn(|cx| {
        if let Some(starting) = &starting {
            starting.begin();
        }
        let polled = code.as_mut().poll(cx);
        starting = None;
        polled
    })
    .await
}
