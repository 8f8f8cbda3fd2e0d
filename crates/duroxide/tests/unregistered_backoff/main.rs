//! S0: handlers that a node does not have.
//!
//! The item is given back with a growing delay, so that a rolling deployment completes without coordination. It ends
//! only as poison.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod delays;
mod early_end;
mod logs;
mod poison;
mod rolling_deployment;

use duroxide::{
    ActivityContext, ErrorDetails, OrchestrationContext, OrchestrationRegistry, PoisonMessageType,
    runtime::{Runtime, registry::ActivityRegistry},
};
use fixture::until;

/// An orchestration that calls one activity.
async fn caller(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("NewActivity", input).await
}

async fn new_activity(_ctx: ActivityContext, input: String) -> Result<String, String> {
    Ok(format!("new-activity-result {input}"))
}

async fn echo(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(input)
}

fn no_activities() -> ActivityRegistry {
    ActivityRegistry::default()
}

fn new_activities() -> ActivityRegistry {
    ActivityRegistry::builder().register("NewActivity", new_activity).build()
}

fn no_orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::default()
}

fn callers() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register("Caller", caller).build()
}

/// How often this node gave something back because it has no handler for it.
fn bounces(runtime: &Runtime) -> u64 {
    let snapshot = runtime.metrics_snapshot().unwrap();
    snapshot.unregistered_orch_backoff + snapshot.unregistered_activity_backoff
}

/// Waits until this node has given something back so often.
async fn bounced(runtime: &Runtime, times: u64) {
    until("it bounces", async || bounces(runtime) >= times).await;
}

/// The attempt at which it was poisoned, the maximum, and the poisoned message.
#[track_caller]
fn poison(details: ErrorDetails) -> (u32, u32, PoisonMessageType) {
    match details {
        ErrorDetails::Poison { attempt_count, max_attempts, message_type, .. } => {
            (attempt_count, max_attempts, message_type)
        }
        other => panic!("expected poison, got {other:?}"),
    }
}
