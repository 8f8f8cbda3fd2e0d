//! A store engine that a test can damage while a provider serves it, or that breaks a rule by itself.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
    time::{SystemTime, UNIX_EPOCH},
};

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    memory::{MemoryEngine, MemoryTables},
    rules::Rules,
    store::{
        ActivityFetch, ActivityRow, Answer, ApplyError, Batch, Claimed, Done, EventRow, Fault, InstanceFetch,
        MessageKind, MessageRow, Op, StoreFailure, StoreReader as _, StoredExecution, TransactionSteps,
        Visibility,
    },
    testing::{EngineLayer, StepLayer},
};

use crate::fault::BrokenRule;

const NONSENSE: &str = r#"{"Nonsense":1}"#;

/// A memory engine that two owners share: the store thread, and the test that damages it.
#[derive(Clone)]
pub(crate) struct DamagedEngine {
    engine: Arc<Mutex<MemoryEngine>>,
    /// Instance, execution and event id of the events that are no longer readable.
    damaged: Arc<Mutex<BTreeSet<(String, u64, u64)>>>,
    fault: Option<BrokenRule>,
}

impl DamagedEngine {
    pub(crate) fn new(engine: MemoryEngine, fault: Option<BrokenRule>) -> Self {
        Self { engine: Arc::new(Mutex::new(engine)), damaged: Arc::default(), fault }
    }

    /// Makes all current events of an instance undecodable.
    pub(crate) fn damage_history(&self, instance: &str) {
        let snapshot = self.engine().snapshot().expect("a memory engine can be read");
        let mut damaged = self.damaged.lock().unwrap();
        for stored in snapshot.instances.iter().filter(|stored| stored.instance == instance) {
            for execution in &stored.executions {
                damaged.extend(
                    execution
                        .events
                        .iter()
                        .map(|event| (instance.to_owned(), execution.execution_id, event.event_id)),
                );
            }
        }
    }

    pub(crate) fn max_attempt_count(&self, instance: &str) -> u32 {
        let snapshot = self.engine().snapshot().expect("a memory engine can be read");
        let messages = snapshot.instances.iter().filter(|stored| stored.instance == instance);
        messages.flat_map(|stored| &stored.messages).map(|message| message.attempt_count).max().unwrap_or(0)
    }

    /// Puts a row that cannot be decoded into each queue.
    pub(crate) fn enqueue_nonsense(&self, instance: &str) {
        let message = MessageRow {
            instance: instance.to_owned(),
            kind: MessageKind::Other,
            key: None,
            visible: Visibility::Now,
            start: None,
            data: NONSENSE.to_owned(),
            item: None,
            mailbox_max: None,
        };
        let activity = ActivityRow {
            instance: instance.to_owned(),
            execution_id: 1,
            activity_id: 1_000_000,
            name: "Nonsense".to_owned(),
            tag: None,
            session_id: None,
            data: NONSENSE.to_owned(),
            item: None,
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after the epoch");
        let now = Timestamp::from_millis(since_epoch.as_millis() as u64);
        let mut engine = self.engine();
        engine.rules().begin(now).expect("a memory engine has no failures");
        for op in [Op::EnqueueMessage(message), Op::EnqueueActivity(activity)] {
            engine.rules().apply(&op, now).expect("a memory engine has no failures");
        }
        engine.rules().commit().expect("a memory engine has no failures");
    }

    fn engine(&self) -> MutexGuard<'_, MemoryEngine> {
        self.engine.lock().unwrap()
    }

    fn with_damage(&self, instance: &str, execution_id: u64, mut events: Vec<EventRow>) -> Vec<EventRow> {
        let damaged = self.damaged.lock().unwrap();
        let is_damaged =
            |event: &EventRow| damaged.contains(&(instance.to_owned(), execution_id, event.event_id));
        if self.fault == Some(BrokenRule::SkipsUndecodableEvents) {
            events.retain(|event| !is_damaged(event));
        }
        for event in events.iter_mut().filter(|event| is_damaged(event)) {
            event.data = NONSENSE.to_owned();
        }
        events
    }
}

impl EngineLayer for DamagedEngine {
    type Engine = MemoryEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut MemoryEngine) -> T) -> T {
        call(&mut self.engine())
    }

    fn history(&mut self, instance: &str, execution_id: Option<u64>) -> Result<Vec<EventRow>, StoreFailure> {
        let events = self.engine().history(instance, execution_id)?;
        let current = self.engine().current_execution(instance)?;
        Ok(self.with_damage(instance, execution_id.or(current).unwrap_or(1), events))
    }

    fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
        let mut execution = self.engine().load(instance, execution_id)?;
        execution.events = self.with_damage(instance, execution_id, execution.events);
        Ok(execution)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.transact_in_steps(batch)
    }
}

impl StepLayer for DamagedEngine {
    type Steps = Rules<MemoryTables>;

    fn with_steps<T>(&mut self, call: impl FnOnce(&mut Self::Steps) -> T) -> T {
        call(self.engine().rules())
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        match self.fault {
            Some(fault) => fault.apply(self.engine().rules(), op.clone(), handed_in),
            None => self.engine().rules().apply(op, handed_in),
        }
    }

    fn claim_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        match self.fault {
            Some(fault) => fault.claim_instances(self.engine().rules(), fetch.clone(), nonce),
            None => self.engine().rules().claim_instances(fetch, nonce),
        }
    }

    fn claim_activities(
        &mut self,
        fetch: &ActivityFetch,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        match self.fault {
            Some(fault) => fault.claim_activities(self.engine().rules(), fetch.clone(), nonce),
            None => self.engine().rules().claim_activities(fetch, nonce),
        }
    }
}
