//! A store in virtual time, with short names for its operations.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use duroxide_core::{Event, EventKind, Timestamp, WorkItem};
use duroxide_provider::{
    ExecutionMetadata, OrchestrationClaim, OrchestrationFetch, Round, TagFilter, WorkClaim, WorkFetch,
    store::{
        ActivityFetch, ActivityRow, Answer, Batch, Claimed, Done, InstanceFetch, MessageRow, Op,
        PreparedRound, Refusal, StoreEngine, StoreReader, Submitted, WaitingFetch,
    },
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};

pub(crate) const LEASE: Duration = Duration::from_secs(5);
pub(crate) const START: Timestamp = Timestamp::from_millis(1_000_000);

pub(crate) struct Store {
    pub(crate) engine: SqliteEngine,
    pub(crate) now: Timestamp,
}

impl Store {
    pub(crate) fn in_memory() -> Self {
        Self::new(SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap())
    }

    pub(crate) fn file(path: &std::path::Path) -> Self {
        let url = format!("sqlite:{}", path.display());
        Self::new(SqliteEngine::open(&url, SqliteOptions::default()).unwrap())
    }

    pub(crate) fn new(engine: SqliteEngine) -> Self {
        Self { engine, now: START }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    /// A transaction at the current time.
    pub(crate) fn transact(&mut self, batch: Batch<'_>) -> Done {
        let batch = Batch { now: self.now, nonce: nonce(), ..batch };
        self.engine.transact(&batch).unwrap_or_else(|fault| panic!("the store failed: {fault}"))
    }

    /// One operation in a transaction of its own.
    pub(crate) fn try_apply(&mut self, op: &Op) -> Result<Answer, Refusal> {
        let mut done = self.transact(Batch { operations: vec![Submitted::now(op)], ..Batch::default() });
        done.answers.remove(0)
    }

    pub(crate) fn apply(&mut self, op: &Op) -> Answer {
        self.try_apply(op).unwrap()
    }

    pub(crate) fn send(&mut self, item: &WorkItem) {
        self.apply(&Op::EnqueueMessage(MessageRow::new(item.clone(), None).unwrap()));
    }

    pub(crate) fn queue(&mut self, item: &WorkItem) {
        self.apply(&Op::EnqueueActivity(ActivityRow::new(item.clone()).unwrap()));
    }

    pub(crate) fn claim_with(&mut self, fetch: &InstanceFetch) -> Claimed<OrchestrationClaim> {
        let fetches = vec![WaitingFetch::new(fetch)];
        let done = self.transact(Batch { promote: true, instance_fetches: fetches, ..Batch::default() });
        done.instances.into_iter().flatten().next().unwrap()
    }

    pub(crate) fn claim(&mut self) -> Option<OrchestrationClaim> {
        self.claim_with(&one_instance()).items.pop()
    }

    pub(crate) fn claim_work_with(&mut self, fetch: &ActivityFetch) -> Claimed<WorkClaim> {
        let fetches = vec![WaitingFetch::new(fetch)];
        let done = self.transact(Batch { promote: true, activity_fetches: fetches, ..Batch::default() });
        done.activities.into_iter().flatten().next().unwrap()
    }

    pub(crate) fn claim_work(&mut self) -> Option<WorkClaim> {
        self.claim_work_with(&one_activity()).items.pop()
    }

    pub(crate) fn commit(&mut self, token: &str, round: Round) -> Result<Answer, Refusal> {
        self.try_apply(&Op::CommitRound(Box::new(PreparedRound::new(token, &round)?)))
    }

    pub(crate) fn event_ids(&mut self, instance: &str) -> Vec<u64> {
        let history = self.engine.history(instance, None).unwrap();
        history.into_iter().map(|event| event.event_id).collect()
    }
}

/// No two stores, even on one file, draw the same numbers.
fn nonce() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn one_instance() -> InstanceFetch {
    let request = OrchestrationFetch::new(LEASE, Duration::ZERO);
    InstanceFetch { whole_mailbox: true, ..InstanceFetch::new(&request) }
}

/// Like [`one_instance`], but with a bounded batch.
pub(crate) fn one_bounded_instance() -> InstanceFetch {
    InstanceFetch { whole_mailbox: false, ..one_instance() }
}

pub(crate) fn one_activity() -> ActivityFetch {
    ActivityFetch::new(&WorkFetch::new(LEASE, Duration::ZERO, &TagFilter::default()))
}

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Pay".to_owned(),
        input: "{}".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn raise(instance: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised {
        instance: instance.to_owned(),
        name: "signal".to_owned(),
        data: data.to_owned(),
    }
}

pub(crate) fn queued(instance: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_owned(), name: "q".to_owned(), data: data.to_owned() }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "Charge".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

/// A timer that is due in a long time.
pub(crate) fn timer(instance: &str, id: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_owned(), execution_id: 1, id, fire_at_ms: 1 << 40 }
}

pub(crate) fn event(instance: &str, event_id: u64, kind: EventKind) -> Event {
    Event {
        event_id,
        source_event_id: None,
        instance_id: instance.to_owned(),
        execution_id: 1,
        timestamp_ms: 1,
        duroxide_version: "0.5.0".to_owned(),
        kind,
    }
}

pub(crate) fn started(instance: &str) -> Event {
    event(
        instance,
        1,
        EventKind::OrchestrationStarted {
            name: "Pay".to_owned(),
            version: "1.0.0".to_owned(),
            input: "{}".to_owned(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
    )
}

pub(crate) fn scheduled(instance: &str, event_id: u64) -> Event {
    event(
        instance,
        event_id,
        EventKind::ActivityScheduled {
            name: "Charge".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        },
    )
}

/// The metadata of a first round.
pub(crate) fn described() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Pay".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}

/// The round of a first turn that schedules one activity.
pub(crate) fn first_round(instance: &str) -> Round {
    Round {
        execution_id: 1,
        history_delta: vec![started(instance), scheduled(instance, 2)],
        worker_items: vec![activity(instance, 2)],
        metadata: described(),
        ..Round::default()
    }
}
