//! A store, a client, and a runtime that comes and goes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide::{
    Client, EventKind, InstanceFilter, RuntimeOptions, TagFilter,
    runtime::{Runtime, registry::ActivityRegistry},
};
use duroxide_provider::{
    invariant,
    store::{InstanceSnapshot, StoreSnapshot},
};

use crate::{
    fixture::{WAIT_MAX, node, quick_options},
    script,
    seeded_random::Luck,
    store::Store,
};

pub struct World {
    pub store: Store,
    pub client: Client,
    pub luck: Luck,
    pub runtime: Option<Arc<Runtime>>,
    /// Messages sent to queues, so that each has a number of its own.
    pub sent: u64,
    seed: u64,
    log: Vec<String>,
}

impl World {
    pub fn new(store: Store, seed: u64) -> Self {
        let client = Client::new(store.provider());
        let luck = Luck::new(seed);
        Self { store, client, luck, runtime: None, sent: 0, seed, log: Vec::new() }
    }

    /// Notes a call before it is made.
    pub fn note(&mut self, call: impl Into<String>) {
        self.log.push(call.into());
    }

    /// The details that a failure message shows.
    pub fn story(&self) -> String {
        let last = self.log.len().saturating_sub(30);
        format!("seed {}, call {}, the last of them: {:#?}", self.seed, self.log.len(), &self.log[last..])
    }

    pub async fn start_runtime(&mut self) {
        if self.runtime.is_some() {
            return;
        }
        let options = RuntimeOptions {
            worker_tag_filter: TagFilter::Any,
            execution_cache_size: [0, 2, 1_000][self.luck.below(3) as usize],
            orchestration_concurrency: 1 + self.luck.below(3) as usize,
            worker_concurrency: 1 + self.luck.below(4) as usize,
            activity_cancellation_grace_period: Duration::from_millis(50),
            orchestrator_lock_timeout: Duration::from_millis(500),
            worker_lock_timeout: Duration::from_millis(500),
            // The claims of an aborted runtime are attempted again, each time.
            max_attempts: 1_000,
            ..quick_options()
        };
        let store = self.store.provider();
        let activities: ActivityRegistry = script::activities();
        self.runtime = Some(node(&store, activities, script::orchestrations(), options).await);
    }

    pub async fn stop_runtime(&mut self, timeout_ms: Option<u64>) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown(timeout_ms).await;
        }
    }

    pub async fn assert_sound(&self) {
        let snapshot = self.store.snapshot().await;
        let violations = invariant::check(&snapshot);
        assert!(violations.is_empty(), "{violations:#?}\n{}", self.story());
        for instance in &snapshot.instances {
            self.assert_queue_order(instance);
        }
    }

    /// I15: in every execution the messages of a queue are in the order in which they were sent, each once.
    fn assert_queue_order(&self, instance: &InstanceSnapshot) {
        for execution in &instance.executions {
            let delivered = execution.events.iter().filter_map(|row| {
                let event: duroxide::Event =
                    serde_json::from_str(&row.data).expect("stored events can be read");
                match event.kind {
                    EventKind::QueueEventDelivered { data, .. } => data.parse::<u64>().ok(),
                    _ => None,
                }
            });
            let numbers: Vec<u64> = delivered.collect();
            assert!(
                numbers.is_sorted_by(|a, b| a < b),
                "{}: {numbers:?}\n{}",
                instance.instance,
                self.story()
            );
        }
    }

    /// L1: cancels running instances, and waits until no work is left.
    pub async fn settle(&mut self) {
        self.start_runtime().await;
        for instance in self.client.list_all_instances().await.unwrap() {
            self.client.cancel_instance(instance, "the end").await.unwrap();
        }
        let quiet = async {
            loop {
                let snapshot = self.store.snapshot().await;
                if open(&snapshot).is_empty() {
                    return;
                }
                // A child that was started meanwhile has not been cancelled by hand.
                for instance in self.client.list_instances_by_status("Running").await.unwrap() {
                    self.client.cancel_instance(instance, "the end").await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(WAIT_MAX, quiet).await.is_err() {
            panic!("not quiet: {:#?}\n{}", open(&self.store.snapshot().await), self.story());
        }
        self.stop_runtime(None).await;
    }

    /// 19.1, 19.2: everything can be deleted, and then nothing is left.
    pub async fn delete_everything(&mut self) {
        self.client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
        for letter in self.client.list_dead_letters(None).await.unwrap() {
            self.client.discard_dead_letter(&letter.id).await.unwrap();
        }
        let left = self.store.snapshot().await;
        assert!(left.instances.is_empty() && left.dead_letters.is_empty(), "{left:#?}\n{}", self.story());
    }
}

/// The work that is left, by instance.
fn open(snapshot: &StoreSnapshot) -> BTreeMap<&str, String> {
    let is_open = |instance: &&InstanceSnapshot| {
        let ended = instance
            .executions
            .last()
            .is_some_and(|execution| matches!(execution.status.as_str(), "Completed" | "Failed"));
        !ended || !instance.messages.is_empty() || !instance.activities.is_empty() || instance.lock.is_some()
    };
    let describe = |instance: &InstanceSnapshot| {
        let status = instance.executions.last().map(|execution| execution.status.clone());
        format!("{status:?}, messages {:?}, activities {:?}", instance.messages, instance.activities)
    };
    let open = snapshot.instances.iter().filter(is_open);
    open.map(|instance| (instance.instance.as_str(), describe(instance))).collect()
}
