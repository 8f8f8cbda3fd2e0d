//! Orchestrations, activities and helpers for the stories.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide_core::{Event, OrchestrationContext};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, Runtime,
    RuntimeOptions,
};
use tokio::sync::{mpsc, watch};

use crate::WAIT_MAX;

/// A counter that tests can wait for.
#[derive(Debug, Clone)]
pub struct Counter(watch::Sender<u32>);

impl Default for Counter {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Counter {
    pub fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub fn get(&self) -> u32 {
        *self.0.borrow()
    }

    /// Waits until the counter reaches this value.
    pub async fn until(&self, times: u32) {
        self.0.subscribe().wait_for(|count| *count >= times).await.unwrap();
    }
}

/// Options with short waits, for stories about faults.
pub fn brisk() -> RuntimeOptions {
    RuntimeOptions { dispatcher_min_poll_interval: Duration::from_millis(10), ..RuntimeOptions::default() }
}

/// `echo` counts its runs and returns its input.
pub fn echo(runs: &Counter) -> ActivityRegistry {
    let runs = runs.clone();
    ActivityRegistry::builder()
        .register("echo", move |_ctx: ActivityContext, input: String| {
            runs.add();
            async move { Ok(input) }
        })
        .build()
}

/// `one` calls `echo` once; `three` calls it three times in a row.
pub fn callers() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("one", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("echo", input).await
        })
        .register("three", |ctx: OrchestrationContext, input: String| async move {
            for _ in 0..3 {
                ctx.schedule_activity("echo", input.clone()).await?;
            }
            Ok(input)
        })
        .build()
}

/// `stuck` signals that it began, and blocks its thread until it is released; `quick` returns its input.
pub fn stuck() -> (OrchestrationRegistry, Stuck) {
    let (began, begins) = mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let orchestrations = OrchestrationRegistry::builder()
        .register("stuck", move |_ctx: OrchestrationContext, input: String| {
            let _ = began.send(());
            let _ = released.lock().unwrap().recv();
            async move { Ok(input) }
        })
        .register("quick", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .build();
    (orchestrations, Stuck { begins, _release: release })
}

/// Blocked code. Dropping this releases it.
pub struct Stuck {
    begins: mpsc::UnboundedReceiver<()>,
    _release: std::sync::mpsc::Sender<()>,
}

impl Stuck {
    /// Waits until the code runs.
    pub async fn began(&mut self) {
        self.begins.recv().await.unwrap();
    }
}

pub async fn start(
    store: &Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    options: RuntimeOptions,
) -> Arc<Runtime> {
    Runtime::start_with_options(Arc::clone(store), activities, orchestrations, options).await
}

/// Starts an instance and waits for its output.
pub async fn run(client: &Client, instance: &str, orchestration: &str) -> String {
    client.start_orchestration(instance, orchestration, "in").await.unwrap();
    output(client, instance).await
}

/// Waits for the output of an instance.
pub async fn output(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{instance}: {other:?}"),
    }
}

/// The kinds of an instance's events, in order.
pub async fn kinds(store: &Arc<dyn Provider>, instance: &str) -> Vec<String> {
    let history: Vec<Event> = store.read(instance).await.unwrap();
    history
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect()
}
