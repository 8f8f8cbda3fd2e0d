//! Attempts of a retried activity: how long each may run, and which error ends the retries (7.5).

use std::{sync::Arc, time::Duration};

use duroxide_core::{BackoffStrategy, OrchestrationContext, RetryPolicy, not_retryable};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, Runtime,
    RuntimeOptions,
};
use duroxide_store::MemoryProvider;

use crate::{
    WAIT_MAX,
    scene::{Counter, brisk, kinds, output, run, start},
};

/// `order` calls `work` with this number of attempts and this time limit for each.
fn orders(attempts: u32, timeout: Duration) -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("order", move |ctx: OrchestrationContext, input: String| async move {
            let policy =
                RetryPolicy::new(attempts).with_attempt_timeout(timeout).with_backoff(BackoffStrategy::None);
            ctx.schedule_activity_with_retry("work", input, policy).await
        })
        .build()
}

struct Shop {
    store: Arc<dyn Provider>,
    client: Client,
    runtime: Arc<Runtime>,
}

async fn open(work: ActivityRegistry, orders: OrchestrationRegistry, options: RuntimeOptions) -> Shop {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let runtime = start(&store, work, orders, options).await;
    Shop { client: Client::new(Arc::clone(&store)), store, runtime }
}

/// Waiting for a worker does not count: twelve orders on two slots wait three times as long as an attempt may run.
#[tokio::test]
async fn a_backlog_does_not_use_up_the_time_of_an_attempt() {
    let work = ActivityRegistry::builder()
        .register("work", |_ctx: ActivityContext, input: String| async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(input)
        })
        .build();
    let options = RuntimeOptions { worker_concurrency: 2, ..brisk() };
    let shop = open(work, orders(1, Duration::from_secs(1)), options).await;
    let ids: Vec<String> = (0..12).map(|n| format!("order-{n}")).collect();
    for id in &ids {
        shop.client.start_orchestration(id, "order", "in").await.unwrap();
    }
    for id in &ids {
        assert_eq!(output(&shop.client, id).await, "in");
    }
    shop.runtime.shutdown(None).await;
}

/// An attempt that runs too long is asked to stop, recorded as failed, and retried.
#[tokio::test]
async fn an_attempt_that_runs_too_long_is_stopped_and_retried() {
    let (runs, stopped) = (Counter::default(), Counter::default());
    let work = {
        let (runs, stopped) = (runs.clone(), stopped.clone());
        ActivityRegistry::builder()
            .register("work", move |ctx: ActivityContext, input: String| {
                runs.add();
                let (first, stopped) = (runs.get() == 1, stopped.clone());
                async move {
                    if first {
                        ctx.cancelled().await;
                        stopped.add();
                        return Ok("too late to count".to_owned());
                    }
                    Ok(input)
                }
            })
            .build()
    };
    let shop = open(work, orders(5, Duration::from_secs(1)), brisk()).await;
    assert_eq!(run(&shop.client, "i", "order").await, "in");
    assert_eq!((runs.get(), stopped.get()), (2, 1));
    assert_eq!(
        kinds(&shop.store, "i").await,
        [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityFailed",
            "ActivityScheduled",
            "ActivityCompleted",
            "OrchestrationCompleted"
        ]
    );
    shop.runtime.shutdown(None).await;
}

/// An activity that ignores its token is dropped after the grace period. The call fails with the last attempt's error.
#[tokio::test]
async fn the_last_attempt_that_runs_too_long_is_the_error_of_the_call() {
    let runs = Counter::default();
    let work = {
        let runs = runs.clone();
        ActivityRegistry::builder()
            .register("work", move |_ctx: ActivityContext, _input: String| {
                runs.add();
                std::future::pending()
            })
            .build()
    };
    let options = RuntimeOptions { activity_cancellation_grace_period: Duration::from_millis(10), ..brisk() };
    let shop = open(work, orders(2, Duration::from_millis(50)), options).await;
    shop.client.start_orchestration("i", "order", "in").await.unwrap();
    let status = shop.client.wait_for_orchestration("i", WAIT_MAX).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    assert_eq!(details.display_message(), "timeout: activity attempt timed out after 50 ms");
    assert_eq!(runs.get(), 2);
    shop.runtime.shutdown(None).await;
}

/// The node's own limit is shorter here: the item is abandoned and charged an attempt, as 7.4 says.
#[tokio::test]
async fn the_shorter_of_the_two_limits_applies() {
    let work = ActivityRegistry::builder()
        .register("work", |_ctx: ActivityContext, _input: String| std::future::pending())
        .build();
    let options = RuntimeOptions {
        activity_execution_timeout: Some(Duration::from_millis(50)),
        activity_cancellation_grace_period: Duration::from_millis(10),
        max_attempts: 2,
        ..brisk()
    };
    let shop = open(work, orders(2, Duration::from_secs(600)), options).await;
    shop.client.start_orchestration("i", "order", "in").await.unwrap();
    let status = shop.client.wait_for_orchestration("i", WAIT_MAX).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    assert_eq!(details.category(), "poison");
    shop.runtime.shutdown(None).await;
}

/// A non-retryable error ends the call after one run.
#[tokio::test]
async fn an_error_that_is_not_retryable_is_the_last() {
    let runs = Counter::default();
    let work = {
        let runs = runs.clone();
        ActivityRegistry::builder()
            .register("work", move |_ctx: ActivityContext, _input: String| {
                runs.add();
                async { Err(not_retryable("card declined")) }
            })
            .build()
    };
    let shop = open(work, orders(5, Duration::from_secs(60)), brisk()).await;
    shop.client.start_orchestration("i", "order", "in").await.unwrap();
    let status = shop.client.wait_for_orchestration("i", WAIT_MAX).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    assert_eq!(details.display_message(), "[not retryable] card declined");
    assert_eq!(runs.get(), 1);
    shop.runtime.shutdown(None).await;
}
