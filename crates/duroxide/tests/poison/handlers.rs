//! Orchestrations and activities that behave, and some that do not.

use duroxide::{
    ActivityContext, ErrorDetails, OrchestrationContext, OrchestrationRegistry, PoisonMessageType,
    RuntimeOptions, runtime::registry::ActivityRegistry,
};

use crate::fixture::{notes::Notes, quick_options};

pub const MAX_ATTEMPTS: u32 = 3;

/// One slot per queue. The leases are the usual ones: a node keeps its locks on a slow machine too, so that runs
/// and attempts can be counted.
pub fn options() -> RuntimeOptions {
    RuntimeOptions {
        max_attempts: MAX_ATTEMPTS,
        orchestration_concurrency: 1,
        worker_concurrency: 1,
        ..quick_options()
    }
}

/// `Echo` behaves; `Kill` takes its process with it. Both leave a note first.
pub fn activities(notes: &Notes) -> ActivityRegistry {
    let (echoes, kills) = (notes.clone(), notes.clone());
    ActivityRegistry::builder()
        .register("Echo", move |ctx: ActivityContext, input: String| {
            echoes.add(format!("Echo {}", ctx.instance_id()));
            async move { Ok(input) }
        })
        .register("Kill", move |_ctx: ActivityContext, _input: String| {
            kills.add("Kill");
            async move { std::process::abort() }
        })
        .build()
}

/// `One` behaves; the others lead to the death of their process in one way or another.
pub fn orchestrations(notes: &Notes) -> OrchestrationRegistry {
    let (first, later) = (notes.clone(), notes.clone());
    OrchestrationRegistry::builder()
        .register("One", one)
        .register("CallsKiller", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Kill", input).await
        })
        .register("KillsInItsFirstTurn", move |_ctx: OrchestrationContext, _input: String| {
            first.add("first turn");
            async move { std::process::abort() }
        })
        .register("KillsLater", move |ctx: OrchestrationContext, input: String| {
            let later = later.clone();
            async move {
                let _open = ctx.schedule_activity("Elsewhere", "").with_tag("nobody has it");
                ctx.schedule_activity("Echo", input).await?;
                later.add("later turn");
                std::process::abort()
            }
        })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration_with_id("KillsLater", "child", input).await
        })
        .build()
}

pub async fn one(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Echo", input).await
}

/// The parts of a poison error that came after exactly `MAX_ATTEMPTS` attempts (S1.34).
#[track_caller]
pub fn poison(details: ErrorDetails) -> (PoisonMessageType, String) {
    match details {
        ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } => {
            assert_eq!((attempt_count, max_attempts), (MAX_ATTEMPTS + 1, MAX_ATTEMPTS));
            (message_type, message)
        }
        other => panic!("expected poison, got {other:?}"),
    }
}
