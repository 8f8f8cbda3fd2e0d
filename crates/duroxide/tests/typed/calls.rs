//! The calls of typed orchestrations.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide::{BackoffStrategy, Key, TagFilter, prelude::*};

use super::store;

/// The inputs of the activities of a test.
#[derive(Default)]
struct Log {
    runs: AtomicU32,
    keys: Mutex<Vec<String>>,
}

#[duroxide::activities]
impl Log {
    /// Fails until its third run.
    async fn third_time(self: Arc<Self>, ctx: ActivityContext) -> Result<u32, String> {
        self.keys.lock().unwrap().push(ctx.idempotency_key());
        match self.runs.fetch_add(1, Ordering::SeqCst) {
            run @ (0 | 1) => Err(format!("run {run}")),
            run => Ok(run),
        }
    }

    async fn where_am_i(
        self: Arc<Self>,
        ctx: ActivityContext,
    ) -> Result<(Option<String>, Option<String>), String> {
        Ok((ctx.tag().map(str::to_owned), ctx.session_id().map(str::to_owned)))
    }

    /// Runs until its token is cancelled.
    async fn endless(self: Arc<Self>, ctx: ActivityContext) -> Result<(), String> {
        ctx.cancelled().await;
        Ok(())
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

fn at_once(attempts: u32) -> RetryPolicy {
    RetryPolicy::new(attempts).with_backoff(BackoffStrategy::None)
}

#[duroxide::orchestration]
async fn persistent(ctx: OrchestrationContext) -> Result<u32, CallError<String>> {
    ctx.activity::<third_time>(()).retry(at_once(5)).await
}

#[tokio::test]
async fn a_call_is_retried_until_it_succeeds() {
    let (store, client) = store().await;
    let log = Arc::new(Log::default());
    let runtime =
        Runtime::builder(store).service(log.clone()).orchestration::<persistent>().build().await.unwrap();
    assert_eq!(client.start_and_wait::<persistent>("p", ()).await.unwrap(), Ok(2));
    assert_eq!(log.runs(), 3);
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn choosy(ctx: OrchestrationContext) -> Result<u32, CallError<String>> {
    ctx.activity::<third_time>(()).retry(at_once(5)).retry_if(|error| error == "run 0").await
}

#[tokio::test]
async fn the_error_decides_about_the_next_attempt() {
    let (store, client) = store().await;
    let log = Arc::new(Log::default());
    let runtime =
        Runtime::builder(store).service(log.clone()).orchestration::<choosy>().build().await.unwrap();
    let result = client.start_and_wait::<choosy>("c", ()).await.unwrap();
    assert_eq!(result, Err(CallError::Failed(CallError::Failed("run 1".to_owned()))));
    assert_eq!(log.runs(), 2);
    runtime.shutdown(None).await;
}

/// A payment must not be made again by the retry of a charge whose answer was lost.
#[tokio::test]
async fn every_attempt_of_one_call_has_the_same_idempotency_key() {
    let (store, client) = store().await;
    let log = Arc::new(Log::default());
    let runtime =
        Runtime::builder(store).service(log.clone()).orchestration::<twice>().build().await.unwrap();
    client.start_and_wait::<twice>("t", ()).await.unwrap().unwrap();
    let keys = log.keys.lock().unwrap().clone();
    assert_eq!(
        keys,
        ["t/1/2", "t/1/2", "t/1/2", "t/1/8"],
        "three attempts of the first call, one of the second"
    );
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn twice(ctx: OrchestrationContext) -> Result<u32, CallError<String>> {
    ctx.activity::<third_time>(()).retry(at_once(5)).await?;
    ctx.activity::<third_time>(()).retry(at_once(5)).await
}

type Place = (Option<String>, Option<String>);

#[duroxide::orchestration]
async fn placed(ctx: OrchestrationContext) -> Result<Vec<Place>, String> {
    let calls = vec![
        ctx.activity::<where_am_i>(()).tag("gpu"),
        ctx.activity::<where_am_i>(()).session("s-1"),
        ctx.activity::<where_am_i>(()),
    ];
    let places: Result<Vec<Place>, _> = ctx.join(calls).await.into_iter().collect();
    Ok(places?)
}

#[tokio::test]
async fn tags_and_sessions_reach_the_worker() {
    let (store, client) = store().await;
    let options =
        RuntimeOptions { worker_tag_filter: TagFilter::default_and(["gpu"]), ..RuntimeOptions::default() };
    let runtime = Runtime::builder(store)
        .service(Arc::new(Log::default()))
        .orchestration::<placed>()
        .options(options)
        .build()
        .await
        .unwrap();
    let places = client.start_and_wait::<placed>("p", ()).await.unwrap().unwrap();
    let expected = [(Some("gpu".to_owned()), None), (None, Some("s-1".to_owned())), (None, None)];
    assert_eq!(places, expected);
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn hasty(ctx: OrchestrationContext) -> Result<(bool, bool), String> {
    let short = Duration::from_millis(20);
    let by_caller = ctx.activity::<endless>(()).timeout(short).await;
    let by_worker = ctx.activity::<endless>(()).attempt_timeout(short).await;
    Ok((by_caller == Err(CallError::TimedOut), by_worker == Err(CallError::TimedOut)))
}

#[tokio::test]
async fn both_kinds_of_timeout_are_reported() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .service(Arc::new(Log::default()))
        .orchestration::<hasty>()
        .build()
        .await
        .unwrap();
    assert_eq!(client.start_and_wait::<hasty>("h", ()).await.unwrap(), Ok((true, true)));
    runtime.shutdown(None).await;
}

const STOCK: Key<u32> = Key::new("stock");

#[duroxide::orchestration]
async fn shop(ctx: OrchestrationContext, day: u32) -> Result<u32, String> {
    let stock = ctx.value(STOCK)?.unwrap_or(10);
    ctx.set_value(STOCK, &(stock - 1));
    if day < 3 { ctx.continue_as::<shop>(day + 1).await } else { Ok(stock - 1) }
}

#[tokio::test]
async fn values_outlive_executions_and_clients_read_them() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<shop>().build().await.unwrap();
    let handle = client.start::<shop>("s", 1).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), Ok(7));
    assert_eq!(handle.value(STOCK).await.unwrap(), Some(7));
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn lost(ctx: OrchestrationContext) -> Result<u32, String> {
    ctx.continue_as::<shop>(1).await
}

#[tokio::test]
async fn an_orchestration_cannot_continue_as_another() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<lost>().build().await.unwrap();
    let result = client.start_and_wait::<lost>("l", ()).await.unwrap();
    let text = "orchestration 'lost' cannot continue as 'shop': only as another version of itself";
    assert_eq!(result, Err(CallError::Panicked(text.to_owned())));
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn stops(ctx: OrchestrationContext) -> Result<bool, String> {
    let call = ctx.activity::<endless>(()).start().map(|result| result.map_err(String::from));
    // Asked to stop before any worker can have it.
    Ok(ctx.cancel_and_wait(call).await == ActivityOutcome::NeverStarted)
}

#[tokio::test]
async fn a_started_call_can_be_cancelled_and_waited_for() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .service(Arc::new(Log::default()))
        .orchestration::<stops>()
        .build()
        .await
        .unwrap();
    assert_eq!(client.start_and_wait::<stops>("s", ()).await.unwrap(), Ok(true));
    runtime.shutdown(None).await;
}

#[duroxide::activity]
async fn double(_ctx: ActivityContext, n: u32) -> Result<u32, String> {
    Ok(2 * n)
}

#[duroxide::orchestration]
async fn forgetful(ctx: OrchestrationContext) -> Result<u32, String> {
    let begun = ctx.activity::<double>(4).start();
    let never_polled = ctx.activity::<double>(5);
    drop(never_polled);
    Ok(begun.await?)
}

#[tokio::test]
async fn a_call_that_is_not_awaited_is_not_made() {
    let (store, client) = store().await;
    let runtime =
        Runtime::builder(store).activity::<double>().orchestration::<forgetful>().build().await.unwrap();
    assert_eq!(client.start_and_wait::<forgetful>("f", ()).await.unwrap(), Ok(8));
    let history = client.read_execution_history("f", 1).await.unwrap();
    let calls = history.iter().filter(|event| matches!(event.kind, EventKind::ActivityScheduled { .. }));
    assert_eq!(calls.count(), 1);
    runtime.shutdown(None).await;
}
