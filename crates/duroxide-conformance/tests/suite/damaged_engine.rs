//! A store engine that a test can damage while a provider serves it, or that breaks a rule by itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{SystemTime, UNIX_EPOCH},
};

use duroxide_core::{SystemStats, Timestamp};
use duroxide_provider::{
    DeadLetter, ExecutionInfo, InstanceInfo, InstanceQuery, OrchestrationClaim, QueueDepths, SystemMetrics,
    WorkClaim,
    memory::MemoryEngine,
    store::{
        ActivityOrder, ActivityRow, Answer, ApplyError, Claimed, DeadLetterNote, EventRow, InstanceNeeds,
        InstanceOrder, MessageKind, MessageRow, Op, ReadyActivity, ReadyInstance, SelectedInstance,
        StoreEngine, StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode,
        StoredStatus, Visibility,
    },
};

use crate::fault::Fault;

const NONSENSE: &str = r#"{"Nonsense":1}"#;

/// A memory engine that two owners share: the store thread, and the test that damages it.
#[derive(Clone)]
pub(crate) struct DamagedEngine {
    engine: Arc<Mutex<MemoryEngine>>,
    /// Instance, execution and event id of the events that are no longer readable.
    damaged: Arc<Mutex<BTreeSet<(String, u64, u64)>>>,
    fault: Option<Fault>,
}

impl DamagedEngine {
    pub(crate) fn new(engine: MemoryEngine, fault: Option<Fault>) -> Self {
        Self { engine: Arc::new(Mutex::new(engine)), damaged: Arc::default(), fault }
    }

    /// Makes the events that an instance has now undecodable.
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
        };
        let activity = ActivityRow {
            instance: instance.to_owned(),
            execution_id: 1,
            activity_id: 1_000_000,
            name: "Nonsense".to_owned(),
            tag: None,
            session_id: None,
            data: NONSENSE.to_owned(),
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after the epoch");
        let now = Timestamp::from_millis(since_epoch.as_millis() as u64);
        let mut engine = self.engine();
        engine.begin(now).expect("a memory engine has no failures");
        for op in [Op::EnqueueMessage(message), Op::EnqueueActivity(activity)] {
            engine.apply(&op, now).expect("a memory engine has no failures");
        }
        engine.commit().expect("a memory engine has no failures");
    }

    fn engine(&self) -> MutexGuard<'_, MemoryEngine> {
        self.engine.lock().unwrap()
    }

    fn with_damage(&self, instance: &str, execution_id: u64, mut events: Vec<EventRow>) -> Vec<EventRow> {
        let damaged = self.damaged.lock().unwrap();
        let is_damaged =
            |event: &EventRow| damaged.contains(&(instance.to_owned(), execution_id, event.event_id));
        if self.fault == Some(Fault::SkipsUndecodableEvents) {
            events.retain(|event| !is_damaged(event));
        }
        for event in events.iter_mut().filter(|event| is_damaged(event)) {
            event.data = NONSENSE.to_owned();
        }
        events
    }
}

macro_rules! forward {
    ($(fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&mut self $(, $argument: $type)*) -> $result {
            self.engine().$name($($argument),*)
        })*
    };
}

impl StoreReader for DamagedEngine {
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

    forward! {
        fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure>;
        fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure>;
        fn last_event_id(&mut self, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure>;
        fn custom_status(&mut self, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure>;
        fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure>;
        fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure>;
        fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure>;
        fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure>;
        fn select_instances(&mut self, query: &InstanceQuery, below: Option<u64>, max: usize)
            -> Result<Vec<SelectedInstance>, StoreFailure>;
        fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure>;
        fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure>;
        fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure>;
        fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure>;
        fn execution_info(&mut self, instance: &str, execution_id: u64)
            -> Result<Option<ExecutionInfo>, StoreFailure>;
        fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure>;
        fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure>;
        fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure>;
        fn running_starts(&mut self) -> Result<Vec<String>, StoreFailure>;
        fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure>;
        fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure>;
        fn ready_instances(&mut self, wanted: &dyn Fn(&InstanceNeeds) -> bool, max: usize)
            -> Result<Vec<ReadyInstance>, StoreFailure>;
        fn ready_activities(&mut self, wanted: &dyn Fn(&str, Option<&str>) -> bool, max: usize)
            -> Result<Vec<ReadyActivity>, StoreFailure>;
        fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure>;
    }
}

impl StoreEngine for DamagedEngine {
    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        match self.fault {
            Some(fault) => fault.apply(&mut self.engine(), op.clone(), handed_in),
            None => self.engine().apply(op, handed_in),
        }
    }

    fn claim_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        match self.fault {
            Some(fault) => fault.claim_instances(&mut self.engine(), order.clone(), nonce),
            None => self.engine().claim_instances(order, nonce),
        }
    }

    fn claim_activities(
        &mut self,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        match self.fault {
            Some(fault) => fault.claim_activities(&mut self.engine(), order.clone(), nonce),
            None => self.engine().claim_activities(order, nonce),
        }
    }

    forward! {
        fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure>;
        fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure>;
        fn commit(&mut self) -> Result<(), StoreFailure>;
        fn rollback(&mut self) -> ();
        fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure>;
        fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure>;
        fn reopen(&mut self) -> Result<(), StoreFailure>;
    }
}
