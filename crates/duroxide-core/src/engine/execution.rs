//! [`Execution`]: one live run of an orchestration.

mod deliver;
mod steps;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    task::Waker,
};

use super::{
    Divergence, HistoryCheck, HistoryViolation, Seed, Shared, Turn, Value,
    matching::{agree, event_for},
    poll::{Polled, UserCode},
    seed::{Setup, StartFacts},
    state::{Access, Emission, KvState, State},
};
use crate::{
    Action, AppErrorKind, ErrorDetails, Event, EventKind, KvEntry, OrchestrationContext, ParentLink,
    RunOptions, RuntimeLimits, WorkItem, build_child_instance_id, limits::MAX_SELF_WAKES,
    version::BUILD_VERSION,
};

/// One live run of an orchestration: the suspended future and the calls it waits for.
///
/// An execution keeps no events, so the cost of a turn depends on its messages and not on the length of the history.
pub struct Execution {
    pub(super) shared: Arc<Shared>,
    pub(super) limits: RuntimeLimits,
    pub(super) check: HistoryCheck,
    pub(super) parent: Option<ParentLink>,
    /// Instance ids of children by the event id of their schedule.
    pub(super) children: BTreeMap<u64, String>,
    /// The code returned or panicked.
    pub(super) ended: Option<Result<String, ErrorDetails>>,
    /// The code was aborted because typed data did not decode.
    pub(super) undecodable: bool,
    /// The turn cannot go on: changed code, a system error, a self-waking loop.
    pub(super) failure: Option<ErrorDetails>,
    pub(super) divergence: Option<Box<Divergence>>,
    /// Input and version of the first continue-as-new that the code asked for.
    pub(super) continuation: Option<(String, Option<String>)>,
    pub(super) cancel_reason: Option<String>,
    started_at_ms: u64,
    /// Bytes of the input, which the code may still hold.
    input_bytes: usize,
    /// Bytes of the ids in `children`.
    child_bytes: usize,
    code: UserCode,
    poll_needed: bool,
    /// The last recorded event that was replayed.
    pub(super) replayed_to: u64,
    /// Seed events that are not stored yet.
    unstored: Vec<Event>,
    /// Seed events that the code has not seen yet.
    unapplied: Vec<Event>,
}

/// Most turns append at most this many events. A larger vector would exceed the allocator's per-thread cache (1 KiB).
const TYPICAL_DELTA_LEN: usize = 3;
const _: () = assert!(TYPICAL_DELTA_LEN * size_of::<Event>() <= 1_024);

/// The turn that is being computed.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) delta: Vec<Event>,
    /// The last event before this turn.
    pub(super) base: u64,
    /// The last event that records the start or a message. Later events record actions of the code.
    pub(super) received: u64,
    /// Actions that became events in this turn.
    pub(super) scheduled: Vec<(u64, Action)>,
    /// The run options of scheduled activities, by event id.
    pub(super) run_options: BTreeMap<u64, RunOptions>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("identity", &self.shared.identity)
            .field("last_event_id", &self.last_event_id())
            .finish_non_exhaustive()
    }
}

impl Execution {
    /// An execution whose start is not stored yet. Its first turn's delta begins with the seed's events.
    pub fn start(seed: Seed, setup: Setup) -> Self {
        let events = seed.into_events(setup.clock.now());
        let mut execution = Self::of_events(events.clone(), setup);
        execution.unstored = events;
        execution
    }

    /// Delivers messages and polls the code until it makes no more progress. Ignores starts and continue-as-new items,
    /// which the runtime has processed.
    ///
    /// If the turn's round is not committed, this execution is ahead of the store and must be dropped.
    pub fn turn(&mut self, messages: Vec<WorkItem>) -> Turn {
        self.shared.lock().begin_turn();
        let mut delta = std::mem::take(&mut self.unstored);
        delta.reserve_exact(TYPICAL_DELTA_LEN.saturating_sub(delta.len()));
        let base = delta.first().map_or(self.last_event_id(), |first| first.event_id - 1);
        let mut draft = Draft { delta, base, ..Draft::default() };
        let received = self.receive(messages, &mut draft);
        draft.received = self.last_event_id();
        if self.failure.is_none() {
            self.advance(received, &mut draft);
        }
        self.conclude(draft)
    }

    /// The last event, stored or decided in a turn.
    pub fn last_event_id(&self) -> u64 {
        self.check.last_event_id()
    }

    /// When the execution began, by the stamp of its first event.
    pub fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    /// The parent's call, if this is a child.
    pub fn parent(&self) -> Option<&ParentLink> {
        self.parent.as_ref()
    }

    /// The key-value state after the last turn, which the next execution inherits.
    pub fn key_values(&self) -> BTreeMap<String, KvEntry> {
        self.shared.lock().kv.entries.clone()
    }

    /// Estimates the memory that the execution holds between two turns: its input, the values its code received, unread
    /// messages, key-values and open calls. The memory of suspended code cannot be measured: the input and all received
    /// values count as held, and other allocations of the code do not count.
    pub fn held_bytes(&self) -> usize {
        let carried = self.unapplied.iter().map(|event| {
            let EventKind::QueueEventDelivered { name, data } = &event.kind else { return 0 };
            name.len() + data.len()
        });
        self.input_bytes + self.child_bytes + carried.sum::<usize>() + self.shared.lock().held_bytes()
    }

    /// An execution that has its seed and was not polled yet.
    pub(super) fn of_events(seed: Vec<Event>, setup: Setup) -> Self {
        let Setup { handler, clock, limits, worker_id, kv } = setup;
        let mut seed = seed.into_iter();
        let first = seed.next();
        let mut check = HistoryCheck::new();
        let failure = match &first {
            None => Some(ErrorDetails::nondeterminism("corrupted history: empty")),
            Some(first) => check.push(first).err().map(|broken| violation(&broken, first.event_id)),
        };
        let parent = first.as_ref().and_then(Event::parent_link);
        let started_at_ms = first.as_ref().map_or(0, |event| event.timestamp_ms);
        let StartFacts { identity, input, custom_status } = StartFacts::of(first, worker_id);
        let input_bytes = input.len();
        let kv = KvState { entries: kv, recorded_times: VecDeque::new() };
        let state = State::new(kv, custom_status, limits.max_actions_per_turn);
        let shared = Arc::new(Shared::new(identity, clock, state));
        let code = if failure.is_none() {
            UserCode::new(handler, OrchestrationContext::of(Arc::clone(&shared)), input)
        } else {
            UserCode::absent()
        };
        let mut execution = Self {
            shared,
            limits,
            check,
            parent,
            children: BTreeMap::new(),
            ended: None,
            undecodable: false,
            failure,
            divergence: None,
            continuation: None,
            cancel_reason: None,
            started_at_ms,
            input_bytes,
            child_bytes: 0,
            code,
            poll_needed: true,
            replayed_to: 0,
            unstored: Vec::new(),
            unapplied: Vec::new(),
        };
        for event in seed {
            execution.take(&event);
            execution.unapplied.push(event);
        }
        execution
    }

    /// The loop of rule 2.6: applies new events, then records new actions.
    fn advance(&mut self, received: Vec<Event>, draft: &mut Draft) {
        for events in [std::mem::take(&mut self.unapplied), received] {
            // Messages that were recorded before this turn, or carried into this execution, were reported already.
            self.shared.lock().queues.take_never_read();
            for event in events {
                self.poll_if_needed(false);
                if self.failure.is_some() {
                    return;
                }
                self.apply(event);
            }
        }
        loop {
            self.poll_if_needed(false);
            if self.failure.is_some() {
                return;
            }
            let Some(emission) = self.shared.lock().next_emission() else { return };
            let event_id = self.last_event_id() + 1;
            let Some(kind) = event_for(&emission.action, self.shared.identity.execution_id, event_id) else {
                if let Action::ContinueAsNew { input, version } = emission.action {
                    self.continuation.get_or_insert((input, version));
                }
                continue;
            };
            self.open(&emission, event_id, &kind);
            self.append(draft, None, kind);
            if emission.options != RunOptions::default() {
                draft.run_options.insert(event_id, emission.options);
            }
            draft.scheduled.push((event_id, emission.action));
        }
    }

    /// Applies an event to the state that the code sees. Events that only the history check needs do nothing here.
    pub(super) fn apply(&mut self, event: Event) {
        use EventKind as E;
        let source = event.source_event_id.unwrap_or_default();
        match event.kind {
            // These record an action of the code, which must have emitted the same one.
            kind @ (E::ActivityScheduled { .. }
            | E::TimerCreated { .. }
            | E::ExternalSubscribed { .. }
            | E::CancellationSubscribed
            | E::QueueSubscribed { .. }
            | E::SubOrchestrationScheduled { .. }
            | E::OrchestrationChained { .. }
            | E::CustomStatusUpdated { .. }
            | E::KeyValueSet { .. }
            | E::KeyValueCleared { .. }
            | E::KeyValuesCleared) => self.apply_schedule(event.event_id, &kind),
            E::ActivityCompleted { result } | E::SubOrchestrationCompleted { result } => {
                self.complete(source, Value::Result(Ok(result)));
            }
            E::ActivityFailed { details } | E::SubOrchestrationFailed { details } => {
                self.complete(source, Value::failed(details));
            }
            E::StepEnded { step, name, result } => self.end_step(event.event_id, step, &name, result),
            E::TimerFired { .. } => self.complete(source, Value::Fired),
            E::ExternalEvent { name, data } => self.raise(&name, data, event.event_id),
            E::QueueEventDelivered { name, data } => {
                let waker = self.shared.lock().queues.deliver(&name, data);
                self.poll_needed = true;
                wake(waker);
            }
            E::OrchestrationCancelRequested { reason } => self.tell_of_cancellation(reason),
            E::OrchestrationStarted { .. }
            | E::OrchestrationCompleted { .. }
            | E::OrchestrationFailed { .. }
            | E::OrchestrationContinuedAsNew { .. }
            | E::ActivityCancelRequested { .. }
            | E::ExternalSubscribedCancelled { .. }
            | E::QueueSubscriptionCancelled { .. }
            | E::SubOrchestrationCancelRequested { .. } => {}
        }
        self.code.event_applied();
    }

    /// A recorded schedule takes the oldest action, which must be the same.
    fn apply_schedule(&mut self, event_id: u64, kind: &EventKind) {
        let emission = self.shared.lock().next_emission();
        let action = emission.as_ref().map(|emission| &emission.action);
        match (agree(action, kind, &self.shared.identity.instance), emission) {
            (Ok(()), Some(emission)) => self.open(&emission, event_id, kind),
            (Ok(()), None) => {}
            (Err(text), emission) => {
                self.note_other_call(event_id, kind, emission.as_ref());
                self.fail(ErrorDetails::nondeterminism(format!("{text} (event {event_id})")));
            }
        }
    }

    fn open(&mut self, emission: &Emission, event_id: u64, kind: &EventKind) {
        let waker = self.shared.lock().record(emission, event_id);
        // A message may be waiting for a queue read, so the code is polled again (2.7).
        self.poll_needed |= matches!(kind, EventKind::QueueSubscribed { .. });
        self.code.event_applied();
        wake(waker);
    }

    fn complete(&mut self, event_id: u64, value: Value) {
        let delivered = self.shared.lock().complete(event_id, value);
        if let Some(waker) = delivered {
            self.poll_needed = true;
            wake(waker);
        }
    }

    pub(super) fn poll_if_needed(&mut self, replaying: bool) {
        if !std::mem::take(&mut self.poll_needed) || self.failure.is_some() || self.ended.is_some() {
            return;
        }
        {
            let mut state = self.shared.lock();
            (state.replaying, state.access) = (replaying, Access::this_thread());
        }
        let polled = self.code.poll();
        {
            let mut state = self.shared.lock();
            (state.replaying, state.access) = (false, Access::Nobody);
        }
        match polled {
            Polled::Pending => {}
            Polled::Returned(output) => self.ended = Some(output.map_err(ErrorDetails::orchestration_failed)),
            Polled::Panicked(message) => {
                self.ended = Some(Err(ErrorDetails::Application {
                    kind: AppErrorKind::Panicked,
                    message,
                    retryable: false,
                }));
            }
            Polled::Undecodable(error) => {
                self.undecodable = true;
                self.ended = Some(Err(ErrorDetails::orchestration_failed(error)));
            }
            Polled::SelfWaking => self.fail(ErrorDetails::Infrastructure {
                operation: "quiescence_loop".to_owned(),
                message: format!("the code woke itself more than {MAX_SELF_WAKES} times without an event"),
                retryable: false,
            }),
        }
    }

    /// Keeps the first failure.
    pub(super) fn fail(&mut self, details: ErrorDetails) {
        self.failure.get_or_insert(details);
    }

    /// Appends the next event of this turn.
    pub(super) fn append(&mut self, draft: &mut Draft, source_event_id: Option<u64>, kind: EventKind) {
        let identity = &self.shared.identity;
        let event = Event {
            event_id: self.last_event_id() + 1,
            source_event_id,
            instance_id: identity.instance.clone(),
            execution_id: identity.execution_id,
            timestamp_ms: self.shared.clock.now().as_millis(),
            duroxide_version: BUILD_VERSION.to_owned(),
            kind,
        };
        self.take(&event);
        draft.delta.push(event);
    }

    /// Passes an event, stored or new, to the history check, even if the code does not see the event.
    pub(super) fn take(&mut self, event: &Event) {
        if let Err(broken) = self.check.push(event) {
            self.fail(violation(&broken, event.event_id));
        }
        if let EventKind::SubOrchestrationScheduled { instance, .. } = &event.kind {
            let child = build_child_instance_id(&self.shared.identity.instance, instance);
            self.child_bytes += child.len();
            self.children.insert(event.event_id, child);
        } else if let EventKind::OrchestrationCancelRequested { reason } = &event.kind {
            // A stored request counts like a new one, because its turn may have been recorded without the end (2.10).
            if self.check.is_cancelled() {
                self.cancel_reason.get_or_insert_with(|| reason.clone());
            }
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        // Futures that the suspended code drops now are recorded as cancelled work, which no turn reads any more. The
        // code is dropped here and not with the fields, because its destructors may panic.
        self.shared.lock().access = Access::this_thread();
        self.code.discard();
        self.shared.lock().access = Access::Nobody;
    }
}

/// The error of a recorded event that breaks a rule. Adds the event id to texts that do not name it.
fn violation(broken: &HistoryViolation, event_id: u64) -> ErrorDetails {
    let text = match broken {
        HistoryViolation::NotOpen { .. } | HistoryViolation::WrongKind { .. } => {
            format!("{broken} (event {event_id})")
        }
        HistoryViolation::MisplacedStart
        | HistoryViolation::NotContiguous { .. }
        | HistoryViolation::AfterEnd { .. } => broken.to_string(),
    };
    ErrorDetails::nondeterminism(text)
}

/// Wakes a task. Wakers are user code, so they must be called without holding a lock.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
