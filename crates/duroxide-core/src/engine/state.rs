//! [`State`]: the state that orchestration code and the engine share.
//!
//! Code accesses the state through its context and its futures, the engine through the execution. They run one after
//! the other on the turn's thread, so the lock is never contended. It is needed because user code may move futures
//! between threads. No user code runs while the lock is held: no waker, no closure, no destructor.

mod access;
mod shared;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::Location,
    task::{Poll, Waker},
};

pub(crate) use access::Access;
pub(crate) use shared::{Caller, Identity, Shared};
pub(crate) use steps::Steps;
pub use steps::{StepResult, StepToRun, StepWork};

use super::{
    awaitable::{Awaitable, Dropped, Recorded, Value, keep_waker},
    queue::Queues,
};
use crate::{Action, CallKind, KvEntry, RunOptions};

/// The name under which the questions whether the instance is to be cancelled wait, among the external waits.
pub(crate) const CANCELLATION: &str = "duroxide::cancellation";

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether the current poll repeats a poll of an earlier turn.
    pub(crate) replaying: bool,
    pub(crate) access: Access,
    pub(crate) queues: Queues,
    pub(crate) steps: Steps,
    pub(crate) kv: KvState,
    pub(crate) custom_status: Option<String>,
    /// The reason of the request to cancel that the code has received.
    pub(crate) told_to_cancel: Option<String>,
    /// Whether the code asked to end as cancelled after a request to cancel.
    pub(crate) ends_cancelled: bool,
    /// Bytes of the values that calls returned and that the code may still hold.
    value_bytes: usize,
    /// The call whose value the code got last, except for queue reads.
    last_resolved: Option<Resolved>,
    next_token: u64,
    emitted: VecDeque<Emission>,
    emissions_in_turn: usize,
    /// How many emissions of this turn became events, or repeated a recorded event.
    emissions_taken: usize,
    emissions_max: Option<usize>,
    /// Emissions that repeat a recorded event and do not count against `emissions_max`; 0 in a live turn.
    replayed_emissions_max: usize,
    calls: BTreeMap<u64, Call>,
    /// Open calls by event id.
    open: BTreeMap<u64, u64>,
    /// Open external waits without a value, oldest first.
    waits: BTreeMap<String, VecDeque<u64>>,
    /// Calls whose futures were dropped in a live poll of this turn.
    drops: BTreeSet<(CallKind, u64)>,
    /// Activities that a live poll of this turn asked to stop.
    stops: BTreeSet<u64>,
    /// Calls whose futures were dropped in a replayed poll.
    replayed_drops: BTreeSet<(CallKind, u64)>,
}

/// An action with the call that waits for it.
#[derive(Debug)]
pub(crate) struct Emission {
    token: Option<u64>,
    pub(crate) action: Action,
    /// How a worker runs the activity. Part of the work item only, not of the recorded event.
    pub(crate) options: RunOptions,
    pub(crate) location: Caller,
}

/// An awaited call and, for waits and queue reads, the name it listens on.
#[derive(Debug)]
struct Call {
    name: Box<str>,
    life: Life,
}
/// A node of `State::calls` has eleven calls. A larger one would exceed the allocator's per-thread cache (1 KiB).
const _: () = assert!(size_of::<Call>() <= 80);

#[derive(Debug)]
enum Life {
    Awaited(Awaitable),
    /// A queue read. From its record on, [`Queues`] has its state.
    Read {
        event_id: Option<u64>,
        waker: Option<Waker>,
        dropped: Option<bool>,
    },
}

/// A call that has resolved.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) kind: CallKind,
    pub(crate) name: String,
    /// The schedule.
    pub(crate) event_id: u64,
}

/// Key-value state as code sees it.
#[derive(Debug, Default)]
pub(crate) struct KvState {
    pub(crate) entries: BTreeMap<String, KvEntry>,
    /// Times of recorded sets that have not been repeated yet: the n-th set takes the n-th recorded time (11.3).
    pub(crate) recorded_times: VecDeque<u64>,
}

impl State {
    pub(crate) fn new(kv: KvState, custom_status: Option<String>, emissions_max: Option<usize>) -> Self {
        Self { kv, custom_status, emissions_max, access: Access::Nobody, ..Self::default() }
    }

    // ---- called by orchestration code -----------------------------------------------------------------------

    /// Emits an action that the code does not wait for.
    #[track_caller]
    pub(crate) fn emit(&mut self, action: Action) {
        self.push_emission(None, action, Location::caller());
    }

    /// Emits an action that the code waits for. Returns the token of the call.
    pub(crate) fn call(&mut self, kind: CallKind, name: &str, action: Action, location: Caller) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        let life = match kind {
            CallKind::Queue => Life::Read { event_id: None, waker: None, dropped: None },
            CallKind::Activity | CallKind::Child | CallKind::Wait | CallKind::Timer => {
                Life::Awaited(Awaitable::new(kind))
            }
        };
        self.calls.insert(token, Call { name: name.into(), life });
        self.push_emission(Some(token), action, location);
        token
    }

    fn push_emission(&mut self, token: Option<u64>, action: Action, location: Caller) {
        self.emissions_in_turn += 1;
        // Over the limit the turn fails in any case. Keeping the actions would let an endless loop use up the memory.
        let kept_max = self.emissions_max.map(|max| max.saturating_add(self.replayed_emissions_max));
        if kept_max.is_none_or(|max| self.emissions_in_turn <= max) {
            self.emitted.push_back(Emission { token, action, options: RunOptions::default(), location });
        }
    }

    /// Changes an action that is not recorded yet. `None` if it is recorded.
    pub(crate) fn emitted_action(&mut self, token: u64) -> Option<&mut Action> {
        self.emission(token).map(|emission| &mut emission.action)
    }

    /// Sets the options of an activity that was just called.
    pub(crate) fn set_run_options(&mut self, token: u64, options: RunOptions) {
        if let Some(emission) = self.emission(token) {
            emission.options = options;
        }
    }

    fn emission(&mut self, token: u64) -> Option<&mut Emission> {
        self.emitted.iter_mut().rev().find(|emission| emission.token == Some(token))
    }

    /// Polls a call. Returns its value once.
    pub(crate) fn poll_call(&mut self, token: u64, waker: &Waker) -> Poll<Value> {
        let Some(call) = self.calls.get_mut(&token) else { return Poll::Pending };
        let polled = match &mut call.life {
            Life::Awaited(awaitable) => awaitable.on_polled(waker),
            Life::Read { event_id: Some(event_id), .. } => {
                self.queues.poll(&call.name, *event_id, waker).map(Value::Data)
            }
            Life::Read { waker: kept, .. } => {
                keep_waker(kept, waker);
                Poll::Pending
            }
        };
        if let Poll::Ready(value) = &polled {
            match self.calls.remove(&token) {
                Some(Call { name, life: Life::Awaited(Awaitable { kind, event_id, .. }) }) => {
                    self.last_resolved = Some(Resolved { kind, name: name.into(), event_id });
                }
                Some(Call { life: Life::Read { .. }, .. }) => self.value_bytes += value.byte_len(),
                None => {}
            }
        }
        polled
    }

    /// The call that returned its value last.
    pub(crate) fn last_resolved(&self) -> Option<&Resolved> {
        self.last_resolved.as_ref()
    }

    /// Whether an event can still resolve a call that the code holds.
    pub(crate) fn has_open_calls(&self) -> bool {
        let reads = |call: &Call| matches!(call.life, Life::Read { .. });
        !self.open.is_empty() || self.calls.values().any(reads) || self.steps.any_open()
    }

    /// Drops a call that has not resolved. Returns the waker to call.
    pub(crate) fn drop_call(&mut self, token: u64) -> Option<Waker> {
        if !self.access.is_allowed() {
            // A drop on another task or thread happens at another moment in every run, so it must not be recorded.
            return None;
        }
        let live = !self.replaying;
        let call = self.calls.get_mut(&token)?;
        let given_up = match &mut call.life {
            Life::Awaited(awaitable) => match awaitable.on_dropped(live) {
                Dropped::Unrecorded => return None,
                Dropped::AlreadyCompleted { bytes } => {
                    self.value_bytes -= bytes;
                    None
                }
                Dropped::Scheduled { event_id } => Some((awaitable.kind, event_id)),
            },
            Life::Read { event_id: None, dropped, .. } => {
                *dropped = Some(live);
                return None;
            }
            Life::Read { event_id: Some(event_id), .. } => Some((CallKind::Queue, *event_id)),
        };
        let name = self.calls.remove(&token).map(|call| call.name).unwrap_or_default();
        let (kind, event_id) = given_up?;
        self.note_drop(kind, event_id, live);
        self.forget_listener(kind, &name, event_id)
    }

    /// Asks an activity to stop, while the code goes on waiting for its outcome.
    pub(crate) fn request_stop(&mut self, token: u64) {
        let live = !self.replaying;
        let Some(Call { life: Life::Awaited(awaitable), .. }) = self.calls.get_mut(&token) else { return };
        if let Some(event_id) = awaitable.on_stop_asked(live).filter(|_| live) {
            self.stops.insert(event_id);
        }
    }

    fn forget_listener(&mut self, kind: CallKind, name: &str, event_id: u64) -> Option<Waker> {
        self.open.remove(&event_id);
        match kind {
            CallKind::Queue => self.queues.close(name, event_id),
            CallKind::Wait => {
                if let Some(waits) = self.waits.get_mut(name)
                    && let Ok(position) = waits.binary_search(&event_id)
                {
                    waits.remove(position);
                }
                None
            }
            CallKind::Activity | CallKind::Child | CallKind::Timer => None,
        }
    }

    fn note_drop(&mut self, kind: CallKind, event_id: u64, live: bool) {
        let drops = if live { &mut self.drops } else { &mut self.replayed_drops };
        drops.insert((kind, event_id));
    }

    // ---- called by the engine -------------------------------------------------------------------------------

    /// The oldest action that has no event yet.
    pub(crate) fn next_emission(&mut self) -> Option<Emission> {
        let oldest = self.emitted.pop_front()?;
        self.emissions_taken += 1;
        Some(oldest)
    }

    /// Actions that have no event yet, oldest first.
    pub(crate) fn emissions(&self) -> impl Iterator<Item = &Emission> {
        self.emitted.iter()
    }

    /// Records that an emission became an event. Returns the waker to call if a message was waiting for a queue read.
    pub(crate) fn record(&mut self, emission: &Emission, event_id: u64) -> Option<Waker> {
        let token = emission.token?;
        let call = self.calls.get_mut(&token)?;
        match &mut call.life {
            Life::Awaited(awaitable) => match awaitable.on_recorded(event_id) {
                Recorded::Open => {
                    self.open.insert(event_id, token);
                    if awaitable.take_stop_asked() {
                        self.stops.insert(event_id);
                    }
                    if awaitable.kind == CallKind::Wait {
                        self.waits.entry(call.name.to_string()).or_default().push_back(event_id);
                    }
                    None
                }
                Recorded::GivenUp { live } => {
                    let kind = awaitable.kind;
                    self.calls.remove(&token);
                    self.note_drop(kind, event_id, live);
                    None
                }
            },
            Life::Read { dropped: Some(live), .. } => {
                let live = *live;
                self.calls.remove(&token);
                self.note_drop(CallKind::Queue, event_id, live);
                None
            }
            Life::Read { event_id: recorded, waker, .. } => {
                *recorded = Some(event_id);
                self.queues.open(&call.name, event_id, waker.take())
            }
        }
    }

    /// Completes a call. Returns the waker to call; `None` if the code does not wait for the call any more.
    pub(crate) fn complete(&mut self, event_id: u64, value: Value) -> Option<Option<Waker>> {
        let token = self.open.remove(&event_id)?;
        match &mut self.calls.get_mut(&token)?.life {
            Life::Awaited(awaitable) => {
                self.value_bytes += value.byte_len();
                Some(awaitable.on_completed(value))
            }
            Life::Read { .. } => None,
        }
    }

    /// Delivers an external event to the oldest open wait for its name (9.1).
    pub(crate) fn raise(&mut self, name: &str, data: String) -> Option<Option<Waker>> {
        let event_id = self.waits.get_mut(name)?.pop_front()?;
        self.complete(event_id, Value::Data(data))
    }

    /// Ids of external waits that are open and have no value, ascending.
    pub(crate) fn open_waits(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.waits.values().flatten().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Resolves all open questions whether the instance is to be cancelled. Returns a waker for each.
    pub(crate) fn tell_of_cancellation(&mut self, reason: &str) -> Vec<Option<Waker>> {
        let told: Vec<_> = std::iter::from_fn(|| self.raise(CANCELLATION, reason.to_owned())).collect();
        if !told.is_empty() {
            self.told_to_cancel = Some(reason.to_owned());
        }
        told
    }

    /// The names of events that the code waits for, in order.
    pub(crate) fn awaited_events(&self) -> Vec<String> {
        self.waits.iter().filter(|(_, waits)| !waits.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    /// Allows for the actions of all earlier turns, which the code is about to repeat: at most one for each recorded event.
    /// The limit of one turn does not apply to their sum.
    pub(crate) fn begin_replay(&mut self, recorded_events: usize) {
        self.replayed_emissions_max = recorded_events;
    }

    /// Counts the actions that replay left without an event for this turn, because they become its events. Actions over
    /// the limit, which were not kept, count too.
    pub(crate) fn begin_turn(&mut self) {
        self.replayed_emissions_max = 0;
        self.emissions_in_turn = self.emissions_in_turn.saturating_sub(self.emissions_taken);
        self.emissions_taken = 0;
        self.drops.clear();
        self.stops.clear();
    }

    /// Estimates the memory of this state and of the values that the code received. It is not known whether code has
    /// dropped a value, so all values count as held.
    pub(crate) fn held_bytes(&self) -> usize {
        /// The size of an open call: its entries in the maps here, and the future that waits for it.
        const CALL_BYTES: usize = 512;
        let key_values = self.kv.entries.iter().map(|(key, entry)| key.len() + entry.value.len());
        self.value_bytes
            + self.queues.unread_bytes()
            + key_values.sum::<usize>()
            + self.custom_status.as_ref().map_or(0, String::len)
            + self.calls.len() * CALL_BYTES
    }

    pub(crate) fn emissions_in_turn(&self) -> usize {
        self.emissions_in_turn
    }

    /// The calls that live polls of this turn dropped, by kind and then by id.
    pub(crate) fn drops(&self) -> &BTreeSet<(CallKind, u64)> {
        &self.drops
    }

    /// Activities that this turn's live polls asked to stop.
    pub(crate) fn stops(&self) -> &BTreeSet<u64> {
        &self.stops
    }

    /// Takes the calls that replay dropped. Called once, after replay.
    pub(crate) fn take_replayed_drops(&mut self) -> BTreeSet<(CallKind, u64)> {
        std::mem::take(&mut self.replayed_drops)
    }
}
