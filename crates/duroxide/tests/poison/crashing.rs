//! Processes that really die.
//!
//! The test runs itself as a child: `worker_process` is its main function, and the store's address comes through the
//! environment. Whenever the child dies, the next one is started.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, ErrorDetails, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    PoisonMessageType, RuntimeOptions,
    providers::sqlite::SqliteProvider,
    runtime::{Runtime, registry::ActivityRegistry},
};

use crate::fixture::{File, failure, quick_options};

const STORE: &str = "DUROXIDE_TEST_STORE";
const MAX_ATTEMPTS: u32 = 2;

async fn crashes(_ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    std::process::abort()
}

async fn calls_crasher(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_activity("Crashes", "the whole message").await
}

async fn crashing_activity(_ctx: ActivityContext, _input: String) -> Result<String, String> {
    std::process::abort()
}

/// The child's main function: a node that runs until it crashes, or is killed.
#[tokio::test]
#[ignore = "a process that the tests of this file start"]
async fn worker_process() {
    let url = std::env::var(STORE).expect("the parent names the store");
    let store = std::sync::Arc::new(SqliteProvider::new(&url, None).await.unwrap());
    let orchestrations = OrchestrationRegistry::builder()
        .register("Crashes", crashes)
        .register("CallsCrasher", calls_crasher)
        .build();
    let activities = ActivityRegistry::builder().register("Crashes", crashing_activity).build();
    let options = RuntimeOptions {
        max_attempts: MAX_ATTEMPTS,
        orchestrator_lock_timeout: Duration::from_millis(500),
        worker_lock_timeout: Duration::from_millis(500),
        ..quick_options()
    };
    let _runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;
    std::future::pending::<()>().await;
}

/// A worker process, killed at the end of the test.
struct Worker(Child);

impl Worker {
    fn start(url: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crashing::worker_process", "--ignored"])
            .env(STORE, url)
            .env("RUST_LOG", "off")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps a worker running until the instance has ended. Gives its end, and how many processes died.
async fn outlive(url: &str, client: &Client, instance: &str) -> (OrchestrationStatus, u32) {
    let mut worker = Worker::start(url);
    let mut deaths = 0;
    loop {
        if let Ok(status) = client.wait_for_orchestration(instance, Duration::from_millis(20)).await {
            return (status, deaths);
        }
        if let Some(status) = worker.0.try_wait().unwrap() {
            assert!(!status.success(), "a worker ends only by a crash");
            deaths += 1;
            assert!(deaths <= MAX_ATTEMPTS, "attempt {deaths} must not reach user code");
            worker = Worker::start(url);
        }
    }
}

/// S1.31, S1.2, S1.36, I12: exactly `max_attempts` processes die, then it is poison.
#[tokio::test]
async fn an_orchestration_that_kills_its_process_ends_in_poison() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("crasher", "Crashes", "the whole message").await.unwrap();

    let (status, deaths) = outlive(&file.url(), &client, "crasher").await;

    assert_eq!(deaths, MAX_ATTEMPTS);
    let details = failure(status);
    let ErrorDetails::Poison { attempt_count: 3, max_attempts: 2, message_type, message } = &details else {
        panic!("{details:?}")
    };
    let expected = PoisonMessageType::Orchestration { instance: "crasher".into(), execution_id: 1 };
    assert_eq!(*message_type, expected);
    assert!(message.contains("the whole message"), "S1.35: {message}");
}

/// S1.32, S1.2, S1.36, I12.
#[tokio::test]
async fn an_activity_that_kills_its_process_ends_in_poison() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("caller", "CallsCrasher", "").await.unwrap();

    let (status, deaths) = outlive(&file.url(), &client, "caller").await;

    assert_eq!(deaths, MAX_ATTEMPTS);
    let details = failure(status);
    let ErrorDetails::Poison { attempt_count: 3, max_attempts: 2, message_type, message } = &details else {
        panic!("{details:?}")
    };
    let PoisonMessageType::Activity { activity_name, activity_id: 2, .. } = message_type else {
        panic!("{details:?}")
    };
    assert_eq!(activity_name, "Crashes");
    assert!(message.contains("the whole message"), "S1.35: {message}");
}
