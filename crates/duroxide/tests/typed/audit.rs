//! Audits of turns on a real store.

use std::sync::atomic::{AtomicU32, Ordering};

use duroxide::{
    ConfigErrorKind, ErrorDetails,
    prelude::*,
    runtime::{AuditAction, AuditOptions},
};

use super::store;

#[duroxide::activity]
async fn echo(_ctx: ActivityContext, text: String) -> Result<String, String> {
    Ok(text)
}

#[duroxide::orchestration]
async fn healthy(ctx: OrchestrationContext, rounds: u32) -> Result<String, String> {
    let mut all = String::new();
    for round in 0..rounds {
        all += &ctx.activity::<echo>(round.to_string()).await?;
        all += &ctx.step("step", move || async move { Ok::<_, String>(round.to_string()) }).await?;
    }
    ctx.set_status(&all);
    Ok(all)
}

static RUNS: AtomicU32 = AtomicU32::new(0);

/// Makes other calls in every run, which no replay shows as long as the execution is cached.
#[duroxide::orchestration]
async fn fickle(ctx: OrchestrationContext) -> Result<String, String> {
    let run = RUNS.fetch_add(1, Ordering::SeqCst);
    ctx.activity::<echo>(run.to_string()).await?;
    Ok(ctx.activity::<echo>("last".to_owned()).await?)
}

async fn runtime_with(action: AuditAction) -> (std::sync::Arc<Runtime>, Client) {
    let (store, client) = store().await;
    let audit = AuditOptions { fraction: 1.0, action };
    let runtime = Runtime::builder(store)
        .activity::<echo>()
        .orchestration::<healthy>()
        .orchestration::<fickle>()
        .options(RuntimeOptions { audit, ..RuntimeOptions::default() })
        .build()
        .await
        .unwrap();
    (runtime, client)
}

#[tokio::test]
async fn audited_turns_of_healthy_code_pass() {
    let (runtime, client) = runtime_with(AuditAction::Fail).await;
    let all = client.start_and_wait::<healthy>("i", 5).await.unwrap().unwrap();
    assert_eq!(all, "0011223344");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_difference_fails_the_execution_or_is_only_reported() {
    let (runtime, client) = runtime_with(AuditAction::Fail).await;
    let error = client.start_and_wait::<fickle>("i", ()).await.unwrap().unwrap_err();
    let CallError::System(details) = error else { panic!("{error:?}") };
    assert!(
        matches!(&details, ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, .. }),
        "{details:?}"
    );
    let message = details.display_message();
    assert!(message.contains("audit: event 2: history says ActivityScheduled"), "{message}");
    assert!(message.contains("typed/audit.rs:"), "the place of the call: {message}");
    runtime.shutdown(None).await;

    let (runtime, client) = runtime_with(AuditAction::Report).await;
    assert_eq!(client.start_and_wait::<fickle>("i", ()).await.unwrap().unwrap(), "last");
    runtime.shutdown(None).await;
}
