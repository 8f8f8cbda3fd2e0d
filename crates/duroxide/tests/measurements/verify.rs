//! How long it takes to replay ten thousand open instances with new code, and how much memory.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, RuntimeOptions,
    providers::{Provider, sqlite::SqliteProvider},
    runtime::Runtime,
    testing::verify_open_instances,
    typed::Handlers,
};

use crate::fixture::within;

const INSTANCES: u64 = 10_000;
const SECONDS_MAX: f64 = 60.0;
/// The bytes that the check may add to the resident memory of its process. All histories together have more than 60 MB.
const MEMORY_MAX_MB: f64 = 40.0;

#[duroxide::activity]
async fn note(_ctx: ActivityContext, text: String) -> Result<String, String> {
    Ok(text)
}

/// Ten activities with a payload of 500 bytes, then a wait.
#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    for _ in 0..10 {
        ctx.activity::<note>(text.clone()).await?;
    }
    let approval: String = ctx.event("approval").await?;
    Ok(approval)
}

/// Waits before it works.
#[duroxide::orchestration(name = "order")]
async fn changed(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    let approval: String = ctx.event("approval").await?;
    ctx.activity::<note>(text).await?;
    Ok(approval)
}

async fn make_open(store: &Arc<dyn Provider>) {
    let options =
        RuntimeOptions { orchestration_concurrency: 32, worker_concurrency: 32, ..RuntimeOptions::default() };
    let runtime = Runtime::builder(Arc::clone(store)).activity::<note>().orchestration::<order>();
    let runtime = runtime.options(options).build().await.unwrap();
    let client = Client::new(Arc::clone(store));
    for n in 0..INSTANCES {
        client.start::<order>(format!("order-{n}"), "x".repeat(500)).await.unwrap();
    }
    let admin = store.as_management_capability().unwrap();
    within(Duration::from_secs(600), "all instances wait", async || {
        let depths = admin.get_queue_depths().await.unwrap();
        let running = admin.get_system_metrics().await.unwrap().running_instances;
        running == INSTANCES && depths.orchestrator_queue == 0 && depths.worker_queue == 0
    })
    .await;
    runtime.shutdown(None).await;
}

/// The resident memory of this process, in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1_024.0
}

#[tokio::test]
#[ignore = "a measurement"]
async fn ten_thousand_open_instances_with_new_code() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    let opened: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
    make_open(&opened).await;
    drop(opened);
    let store: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
    for (what, handlers, failed) in [
        ("unchanged", Handlers::new().orchestration::<order>(), 0),
        ("changed", Handlers::new().orchestration::<changed>(), INSTANCES),
    ] {
        let (before, mut peak, began) = (resident(), 0.0_f64, Instant::now());
        let report = verify_open_instances(&store, handlers, |progress| {
            if progress.checked % 100 == 0 {
                peak = peak.max(resident());
            }
        });
        let report = report.await.unwrap();
        let (took, memory) = (began.elapsed().as_secs_f64(), peak - before);
        println!(
            "{what} code, {INSTANCES} open instances of 23 events: {took:.1} s, {memory:.0} MB more at the peak"
        );
        assert_eq!((report.checked(), report.failed()), (INSTANCES, failed), "{report}");
        assert!(took < SECONDS_MAX, "{took} s");
        assert!(memory < MEMORY_MAX_MB, "{memory} MB");
    }
}
