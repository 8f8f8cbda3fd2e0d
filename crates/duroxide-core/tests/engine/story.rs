//! A story: orchestration code, its messages, and the turns that follow.
//!
//! Every story runs twice, on a live execution and by replaying from scratch before every turn, and both must
//! give the same turns to the byte (2.14, I13).

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use duroxide_core::{
    AppErrorKind, Clock, ErrorDetails, Event, FnOrchestration, KvEntry, OrchestrationContext,
    OrchestrationHandlerRef, RuntimeLimits, Timestamp, WorkItem,
    engine::{Divergence, Execution, Outcome, Seed, Setup, Turn, check_replay},
};

pub(crate) const INSTANCE: &str = "order";

/// A clock that moves only when the test sets it.
#[derive(Default)]
pub(crate) struct ManualClock(AtomicU64);

impl ManualClock {
    pub(crate) fn advance_ms(&self, ms: u64) {
        self.advance_micros(ms * 1_000);
    }

    pub(crate) fn advance_micros(&self, micros: u64) {
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// One execution lives through all turns.
    Live,
    /// Every turn starts from the stored history.
    Replayed,
}

pub(crate) struct Story {
    handler: OrchestrationHandlerRef,
    mode: Mode,
    live: Option<Execution>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) history: Vec<Event>,
    pub(crate) limits: RuntimeLimits,
    pub(crate) kv: BTreeMap<String, KvEntry>,
    pub(crate) seed: Seed,
}

/// Tells a story in both modes and compares them.
pub(crate) fn tell<F, Fut>(code: F, script: impl Fn(&mut Story))
where
    F: Fn(OrchestrationContext, String) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let [live, replayed] = [Mode::Live, Mode::Replayed].map(|mode| {
        let mut story = Story::new(code.clone(), mode);
        script(&mut story);
        story.history
    });
    assert_eq!(json(&live), json(&replayed), "a live execution and a replay differ");
}

pub(crate) fn json(history: &[Event]) -> Vec<String> {
    history.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

impl Story {
    pub(crate) fn new<F, Fut>(code: F, mode: Mode) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            handler: Arc::new(FnOrchestration(code)),
            mode,
            live: None,
            clock: Arc::default(),
            history: Vec::new(),
            limits: RuntimeLimits::default(),
            kv: BTreeMap::new(),
            seed: Seed {
                instance: INSTANCE.into(),
                execution_id: 1,
                name: "Order".into(),
                version: "1.0.0".into(),
                input: "in".into(),
                parent: None,
                carried: Vec::new(),
                custom_status: None,
            },
        }
    }

    /// From here on the instance runs this code, as after a deployment.
    pub(crate) fn deploy<F, Fut>(&mut self, code: F)
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.handler = Arc::new(FnOrchestration(code));
        self.live = None;
    }

    /// The first turn.
    pub(crate) fn start(&mut self) -> Turn {
        self.turn([])
    }

    /// One turn with these messages; its events are stored.
    pub(crate) fn turn(&mut self, messages: impl IntoIterator<Item = WorkItem>) -> Turn {
        let mut execution = self.live.take().unwrap_or_else(|| self.load());
        let turn = execution.turn(messages.into_iter().collect());
        self.history.extend(turn.delta.iter().cloned());
        assert_eq!(execution.last_event_id(), self.history.len() as u64);
        if self.mode == Mode::Live && turn.outcome == Outcome::Running {
            self.live = Some(execution);
        }
        turn
    }

    /// The bytes that the execution counts as held between two turns.
    pub(crate) fn held_bytes(&self) -> usize {
        self.live.as_ref().map_or_else(|| self.load().held_bytes(), Execution::held_bytes)
    }

    /// Compares the code with the history, ended or not.
    pub(crate) fn check_replay(&self) -> Result<(), Box<Divergence>> {
        check_replay(self.history.clone(), self.setup())
    }

    fn setup(&self) -> Setup {
        Setup {
            handler: Arc::clone(&self.handler),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            limits: self.limits.clone(),
            worker_id: None,
            kv: self.kv.clone(),
        }
    }

    fn load(&self) -> Execution {
        let setup = self.setup();
        if self.history.is_empty() {
            Execution::start(self.seed.clone(), setup)
        } else {
            Execution::replay(self.history.clone(), setup)
        }
    }

    /// One turn on a stored history whose ids may be wrong, so nothing is stored.
    pub(crate) fn reload_and_turn(&self, messages: impl IntoIterator<Item = WorkItem>) -> Turn {
        self.load().turn(messages.into_iter().collect())
    }

    /// The history as `id Kind` lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.history)
    }
}

pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event.source_event_id {
            Some(source) => format!("{} {} <- {source}", event.event_id, event.kind.wire_name()),
            None => format!("{} {}", event.event_id, event.kind.wire_name()),
        })
        .collect()
}

pub(crate) fn completed(output: &str) -> Outcome {
    Outcome::Completed { output: output.into() }
}

pub(crate) fn failure(turn: &Turn) -> String {
    match &turn.outcome {
        Outcome::Failed { details } => details.display_message(),
        other => panic!("expected a failure, got {other:?}"),
    }
}

pub(crate) fn activity_completed(id: u64, result: &str) -> WorkItem {
    WorkItem::ActivityCompleted { instance: INSTANCE.into(), execution_id: 1, id, result: result.into() }
}

pub(crate) fn activity_failed(id: u64, message: &str) -> WorkItem {
    let kind = AppErrorKind::ActivityFailed;
    activity_failed_with(id, ErrorDetails::Application { kind, message: message.into(), retryable: false })
}

pub(crate) fn activity_failed_with(id: u64, details: ErrorDetails) -> WorkItem {
    WorkItem::ActivityFailed { instance: INSTANCE.into(), execution_id: 1, id, details }
}

pub(crate) fn timer_fired(id: u64) -> WorkItem {
    WorkItem::TimerFired { instance: INSTANCE.into(), execution_id: 1, id, fire_at_ms: 0 }
}

pub(crate) fn raised(name: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: INSTANCE.into(), name: name.into(), data: data.into() }
}

pub(crate) fn queued(name: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: INSTANCE.into(), name: name.into(), data: data.into() }
}

pub(crate) fn child_completed(id: u64, result: &str) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: INSTANCE.into(),
        parent_execution_id: 1,
        parent_id: id,
        result: result.into(),
    }
}

pub(crate) fn child_failed(id: u64, details: ErrorDetails) -> WorkItem {
    WorkItem::SubOrchFailed {
        parent_instance: INSTANCE.into(),
        parent_execution_id: 1,
        parent_id: id,
        details,
    }
}

pub(crate) fn cancel(reason: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: INSTANCE.into(), reason: reason.into() }
}

pub(crate) fn kinds(items: &[WorkItem]) -> Vec<&'static str> {
    items.iter().map(WorkItem::kind).collect()
}
