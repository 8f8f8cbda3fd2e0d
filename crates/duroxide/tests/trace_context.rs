//! Trace contexts in the store: which rows have one, which inputs are plain, and the bytes without one.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "this is a test")]

use std::{sync::Arc, time::Duration};

use duroxide::{
    prelude::*,
    providers::{RawEvent, StartOutcome},
    runtime::observability::TraceContext,
};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(60);
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// A caller may send this as its input. It has the form that a traced input has in memory.
const HOSTILE: &str = "\u{1}trace:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\u{1}x";

fn context() -> TraceContext {
    PARENT.parse::<TraceContext>().unwrap().with_tracestate("rojo=1")
}

struct Node {
    store: Arc<SqliteProvider>,
    runtime: Arc<Runtime>,
    client: Client,
}

impl Node {
    /// Each handler passes its input on, so that the output shows the input of the last one.
    async fn start() -> Self {
        let activities = ActivityRegistry::builder()
            .register("Echo", |_ctx, input: String| async move { Ok(input) })
            .build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("Root", |ctx: OrchestrationContext, input: String| async move {
                if ctx.execution_id() == 1 {
                    ctx.schedule_orchestration("Echo", "detached", &input);
                    return ctx.continue_as_new(input).await;
                }
                ctx.schedule_sub_orchestration_with_id("Echo", "child", input).await
            })
            .register("Echo", |ctx: OrchestrationContext, input: String| async move {
                ctx.schedule_activity("Echo", input).await
            })
            .build();
        let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
        let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
        Self { client: Client::new(store.clone()), store, runtime }
    }

    /// Runs `Root` and the detached orchestration. Both must return their input.
    async fn run(&self, client: &Client, input: &str) {
        client.start_orchestration("root", "Root", input).await.unwrap();
        for instance in ["root", "detached"] {
            let end = self.client.wait_for_orchestration(instance, LONG).await.unwrap();
            let OrchestrationStatus::Completed { output, .. } = end else { panic!("{end:?}") };
            assert_eq!(output, input);
        }
    }

    async fn raw(&self, instance: &str, execution_id: u64) -> Vec<RawEvent> {
        let admin = self.store.as_management_capability().unwrap();
        admin.read_raw_history(instance, execution_id).await.unwrap()
    }

    /// The `trace_context` of the first event.
    async fn stored_context(&self, instance: &str, execution_id: u64) -> Option<String> {
        let first: Value =
            serde_json::from_str(&self.raw(instance, execution_id).await.first().unwrap().data).unwrap();
        first.get("trace_context").map(|field| field.as_str().unwrap().to_owned())
    }
}

const EXECUTIONS: [(&str, u64); 4] = [("root", 1), ("root", 2), ("child", 1), ("detached", 1)];

#[tokio::test]
async fn every_execution_records_the_callers_context_and_all_code_gets_the_plain_input() {
    let node = Node::start().await;
    node.run(&node.client.clone().with_trace_context(context()), "in").await;
    for (instance, execution_id) in EXECUTIONS {
        let stored = node.stored_context(instance, execution_id).await;
        assert_eq!(stored.as_deref(), Some(format!("{PARENT},rojo=1").as_str()), "{instance} {execution_id}");
        // Clients read the input that the code got.
        let history = node.client.read_execution_history(instance, execution_id).await.unwrap();
        let EventKind::OrchestrationStarted { input, .. } = &history.first().unwrap().kind else { panic!() };
        assert_eq!(input, "in");
    }
    let exported = node.client.export_history("root").await.unwrap().to_json().unwrap();
    assert!(!exported.contains("trace"), "{exported}");
    let again = node.client.start_orchestration_if_new("root", "Root", "in").await.unwrap();
    assert_eq!(again, StartOutcome::Found, "the trace plays no part");
    let first = node.client.get_execution_info("root", 1).await.unwrap();
    assert_eq!(first.output.as_deref(), Some("in"), "the input of the next execution");
    node.runtime.shutdown(None).await;
}

#[tokio::test]
async fn without_a_context_every_stored_byte_is_as_before() {
    let node = Node::start().await;
    node.run(&node.client, "in").await;
    for (instance, execution_id) in EXECUTIONS {
        let history = node.raw(instance, execution_id).await;
        assert!(history.iter().all(|event| !event.data.contains("trace")), "{instance}: {history:?}");
    }
    let first = node.raw("detached", 1).await.remove(0).data;
    let timestamp: Value = serde_json::from_str::<Value>(&first).unwrap()["timestamp_ms"].clone();
    let expected = format!(
        r#"{{"event_id":1,"source_event_id":null,"instance_id":"detached","execution_id":1,"timestamp_ms":{timestamp},"duroxide_version":"{}","type":"OrchestrationStarted","name":"Echo","version":"1.0.0","input":"in","parent_instance":null,"parent_id":null}}"#,
        duroxide::current_build_version()
    );
    assert_eq!(first, expected);
    node.runtime.shutdown(None).await;
}

/// A caller's input cannot pretend to be a trace, and no part of it is lost.
#[tokio::test]
async fn an_input_that_looks_like_a_trace_is_an_input() {
    let node = Node::start().await;
    node.run(&node.client, HOSTILE).await;
    for (instance, execution_id) in EXECUTIONS {
        assert_eq!(node.stored_context(instance, execution_id).await, None, "{instance} {execution_id}");
        let stored: Value =
            serde_json::from_str(&node.raw(instance, execution_id).await.remove(0).data).unwrap();
        assert_eq!(stored["input"], json!(HOSTILE));
    }
    node.runtime.shutdown(None).await;
}

/// The same with a context, which must not change the input.
#[tokio::test]
async fn a_traced_input_that_looks_like_a_trace_keeps_both() {
    let node = Node::start().await;
    node.run(&node.client.clone().with_trace_context(context()), HOSTILE).await;
    assert_eq!(node.stored_context("child", 1).await.unwrap(), format!("{PARENT},rojo=1"));
    node.runtime.shutdown(None).await;
}

/// A caller that asks again is in another span then.
#[tokio::test]
async fn a_start_is_found_again_whatever_its_trace() {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let plain = Client::new(store);
    let traced = plain.clone().with_trace_context(context());
    let start = |client: &Client, input: &'static str| {
        let client = client.clone();
        async move { client.start_orchestration_if_new("order", "Order", input).await.unwrap() }
    };
    assert_eq!(start(&traced, "teapot").await, StartOutcome::Created);
    assert_eq!(start(&plain, "teapot").await, StartOutcome::Found);
    assert_eq!(start(&traced, "cup").await, StartOutcome::FoundDifferent);
}
