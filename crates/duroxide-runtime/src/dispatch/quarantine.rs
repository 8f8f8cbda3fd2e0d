//! Quarantine: isolates code that crashes its process, without slowing down the other work that the crash has hit.
//!
//! A crash loses every claim of its node, and other nodes claim the same items again. An item that crashes the process
//! would make all of them lose further claims until they are poison. So an item whose claims were lost repeatedly is a
//! *suspect*:
//!
//! * Suspects start one after the other: the next one starts when the code of the previous one has returned from its
//!   first poll, or its turn is over. Meanwhile the node's lock file names the claim that is starting. If the process
//!   dies then, the store finds the name and *blames* that claim: it stays locked until its lease ends, and no other
//!   claim is charged an attempt.
//! * A suspect that was blamed, or is on its last attempt, runs while no other suspect does.
//! * For code that crashes later: with each further loss only half as many suspects run at once. Suspects with fewer
//!   losses go first, because more of them may run.
//!
//! A suspect that may not run yet is abandoned without charging an attempt. Items that were only abandoned before, such
//! as those without a handler, are not suspects.

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

/// An item with this many losses is a suspect. One or two crashes of a busy node lose every claim of the node, and most
/// of these items are innocent.
const SUSPICIOUS_LOSSES: u32 = 2;
/// Up to this many losses any number of suspects may run at once, because the last crash may have been the first one
/// with a name in the lock file.
const LOSSES_BEFORE_HALVING: u32 = 3;
/// If the first poll of a suspect takes longer than this, the next one starts.
const FIRST_POLL_MAX: Duration = Duration::from_millis(20);
/// If a suspect was not polled by then, because all threads are busy, the next one starts.
const UNPOLLED_MAX: Duration = Duration::from_millis(200);
/// After this time a running suspect no longer restricts other suspects.
const TRUSTED_AFTER: Duration = Duration::from_secs(60);
/// How long a suspect that runs alone waits for suspects that the other queue fetched from the same transaction.
const OTHER_QUEUE_WAIT: Duration = Duration::from_millis(20);
/// How long a suspect that runs alone waits until the other suspects are abandoned.
const ALONE_WAIT_MAX: Duration = Duration::from_secs(1);
/// The delay of an abandoned suspect that may not run yet.
pub(crate) const SUSPECT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The claim history of an item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimRecord {
    pub kind: LockKind,
    pub attempt_count: u32,
    pub max_attempts: u32,
    /// `None` if the store cannot distinguish lost claims from abandoned ones. Then every earlier claim counts as lost.
    pub losses: Option<Losses>,
    pub slots: usize,
}

/// How many suspects may run together with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    /// No other suspect, of either queue.
    Alone,
    /// At most this many suspects of its own queue, itself included.
    Group(usize),
}

impl ClaimRecord {
    /// `None` if the item is not a suspect. An item beyond `max_attempts` is not, because its code does not run any
    /// more.
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
        // The last attempt runs alone, the one before in a group of two, and so on.
        let by_attempts = 1_usize.checked_shl(attempts_left).unwrap_or(usize::MAX);
        Some(Concurrency::Group(by_losses.min(by_attempts).max(1)))
    }
}

/// The suspects that a node has claimed and runs.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    state: Mutex<State>,
    changed: Notify,
    /// Writes the name of the starting claim to the node's lock file. Gone when the node has left the store.
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

/// The suspect whose code is polled for the first time.
#[derive(Debug)]
struct Start {
    number: u64,
    /// After this time another suspect may start.
    until: Moment,
}

impl State {
    /// Registers a running suspect and returns its number. `None` if other suspects prevent it.
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

    /// Fails with the time to try again if another suspect is starting.
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
    /// Sets the membership whose lock file names the starting claim.
    pub(crate) fn note_in(&self, membership: Weak<dyn NodeMembership>) {
        let _ = self.note.set(membership);
    }

    /// Registers a claimed item. `None` if it is not a suspect.
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
                biased;
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

/// A suspect that this node has claimed.
#[derive(Debug)]
pub(crate) struct Suspect {
    quarantine: Arc<Quarantine>,
    token: ClaimToken,
    kind: LockKind,
    concurrency: Concurrency,
}

impl Suspect {
    /// Waits until the suspect may run. `None` if other suspects prevent it, and the claim has to be abandoned.
    pub(crate) async fn run_permit(&self, env: &Arc<dyn Env>) -> Option<RunPermit> {
        let quarantine = &self.quarantine;
        let number = lock(&quarantine.state).try_run(self.kind, self.concurrency, env.moment())?;
        let mut permit = RunPermit { quarantine: Arc::clone(quarantine), number, starting: None };
        if self.concurrency == Concurrency::Alone {
            env.sleep(OTHER_QUEUE_WAIT).await;
            tokio::select! {
                biased;
                () = quarantine.wait_until_alone() => {}
                () = env.sleep(ALONE_WAIT_MAX) => {}
            }
        }
        // Created before the wait, so that a cancelled wait drops it.
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

/// The permission of a suspect to run, held until its result is in the store.
#[derive(Debug)]
pub(crate) struct RunPermit {
    quarantine: Arc<Quarantine>,
    number: u64,
    starting: Option<StartGuard>,
}

impl RunPermit {
    /// The guard for the first poll. Returns it once.
    pub(crate) fn starting(&mut self) -> Option<StartGuard> {
        self.starting.take()
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        lock(&self.quarantine.state).running.remove(&self.number);
    }
}

/// A suspect that is starting. Dropping the guard lets the next one start.
#[derive(Debug)]
pub(crate) struct StartGuard {
    quarantine: Arc<Quarantine>,
    number: u64,
    token: ClaimToken,
    env: Arc<dyn Env>,
}

impl StartGuard {
    /// Names the claim in the lock file, because its code begins now.
    pub(crate) fn begin(&self) {
        let now = self.env.moment();
        let mut state = lock(&self.quarantine.state);
        if let Some(running) = state.running.get_mut(&self.number) {
            running.since = now;
        }
        if let Some(start) = state.starting.as_mut().filter(|start| start.number == self.number) {
            start.until = now.after(FIRST_POLL_MAX);
            // Under the lock, so that the names are written in the order of the starts.
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

/// Runs `code` and drops the guard after the first poll.
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
