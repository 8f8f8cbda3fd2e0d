//! Activities by outcome.

use std::sync::Arc;

use duroxide_core::OrchestrationContext;
use duroxide_provider::TagFilter;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, Runtime, RuntimeOptions,
};

use crate::{POLL_INTERVAL, WAIT_MAX, counters_of, memory_store, options, recorder::Recorder};

/// An activity that ends as its input says.
async fn end_like(ctx: ActivityContext, how: String) -> Result<String, String> {
    match how.as_str() {
        "fail" => Err("closed".to_owned()),
        "panic" => panic!("tripped"),
        "stall" => {
            ctx.trace_info("stalling");
            ctx.cancelled().await;
            Ok("cancelled".to_owned())
        }
        _ => Ok(how),
    }
}

/// Calls activities with every possible outcome except poison.
async fn all_outcomes(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_activity("EndAsTold", "shop").await?;
    ctx.schedule_activity("EndAsTold", "fail").await.unwrap_err();
    ctx.schedule_activity("EndAsTold", "panic").await.unwrap_err();
    let stalled = ctx.schedule_activity("EndAsTold", "stall").with_tag("slow");
    let enough = ctx.schedule_wait("enough");
    ctx.set_custom_status("waiting");
    ctx.select2(enough, stalled).await;
    Ok("done".to_owned())
}

/// B12, 22.1
#[tokio::test]
async fn every_outcome_of_an_activity_is_counted_once() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let activities = ActivityRegistry::builder().register("EndAsTold", end_like).build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("AllOutcomes", all_outcomes)
        .register(
            "Lost",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Nowhere", "").await },
        )
        .build();
    let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..options() };
    let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;

    client.start_orchestration("day", "AllOutcomes", "").await.unwrap();
    client.start_orchestration("ghost", "Lost", "").await.unwrap();
    client.wait_for_status_change("day", 0, POLL_INTERVAL, WAIT_MAX).await.unwrap();
    client.raise_event("day", "enough", "").await.unwrap();
    for instance in ["day", "ghost"] {
        client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap();
    }
    Arc::clone(&runtime).shutdown(None).await;
    drop(guard);

    let executions = counters_of(&recorder, "duroxide_activity_executions_total");
    let expected = [
        ("{activity_name=EndAsTold,outcome=app_error,retry_attempt=0,tag=default}".to_owned(), 2),
        ("{activity_name=EndAsTold,outcome=cancelled,retry_attempt=0,tag=slow}".to_owned(), 1),
        ("{activity_name=EndAsTold,outcome=success,retry_attempt=0,tag=default}".to_owned(), 1),
    ];
    assert_eq!(executions, expected.into());
    let failures = counters_of(&recorder, "duroxide_activity_failures_total");
    assert_eq!(
        failures,
        [("{category=application}".to_owned(), 2), ("{category=poison}".to_owned(), 1)].into()
    );
    assert_eq!(counters_of(&recorder, "duroxide_activity_poison_total"), [(String::new(), 1)].into());
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!(
        (snapshot.activity_success, snapshot.activity_app_errors, snapshot.activity_poison),
        (1, 2, 1)
    );
    assert_eq!((snapshot.unregistered_activity_backoff, snapshot.orch_poison), (2, 1));
    let series = "duroxide_orchestration_failures_total{category=poison,error_category=poison,\
                  error_type=poison,orchestration_name=Lost,version=1.0.0}";
    assert_eq!(recorder.counters().get(series), Some(&1), "its poison is its orchestration's failure");
}
