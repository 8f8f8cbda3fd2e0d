//! Capability routing: each node gets the work it has handlers for, and work that no node can do does not wait for ever.
//!
//! With `handler_capability_filter` a node announces to the store which handlers it has. The store compares before it
//! locks an item, so work for other nodes costs a node nothing. The sweeper finds work that no node can take, and ends it if
//! `sweep_unsupported_after` says so.

use std::{
    error::Error,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use duroxide::prelude::*;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

const WAIT_MAX: Duration = Duration::from_secs(30);

async fn sell(ctx: OrchestrationContext, what: String) -> Result<String, String> {
    ctx.schedule_activity("PrintBill", what).await
}

/// Runs in the warehouse, but the only printer is at the till.
async fn ship(ctx: OrchestrationContext, what: String) -> Result<String, String> {
    let label = ctx.schedule_activity("PrintBill", what.as_str()).await?;
    let parcel = ctx.schedule_activity("Pack", what).await?;
    Ok(format!("{label}, {parcel}"))
}

/// Opens the file for itself, as a process on another machine of the shop does.
async fn open(folder: &Path) -> Result<Arc<dyn Provider>, Box<dyn Error>> {
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    Ok(Arc::new(SqliteProvider::new(&url, None).await?))
}

async fn start_till(store: Arc<dyn Provider>) -> Arc<Runtime> {
    let print = |_ctx, what: String| async move { Ok(format!("bill for {what} printed at the till")) };
    let activities = ActivityRegistry::builder().register("PrintBill", print).build();
    let orchestrations = OrchestrationRegistry::builder().register("Sell", sell).build();
    let options = RuntimeOptions { handler_capability_filter: true, ..Default::default() };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

/// Also ends work that no node could take for a while. A real fleet sets hours here: enough for a deployment.
async fn start_warehouse(store: Arc<dyn Provider>) -> Arc<Runtime> {
    let pack = |_ctx, what: String| async move { Ok(format!("{what} packed in the warehouse")) };
    let activities = ActivityRegistry::builder().register("Pack", pack).build();
    let orchestrations = OrchestrationRegistry::builder().register("Ship", ship).build();
    let options = RuntimeOptions {
        handler_capability_filter: true,
        sweep_unsupported_after: Some(Duration::from_millis(200)),
        ..Default::default()
    };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let passed_over = PassedOver::default();
    metrics::set_global_recorder(passed_over.clone())?;
    let folder = tempfile::tempdir()?;
    let store = open(folder.path()).await?;
    let client = Client::new(store.clone());

    // The till sells; it does not fetch work that it has no handler for.
    let till = start_till(open(folder.path()).await?).await;
    client.start_orchestration("order-1", "Ship", "a lamp").await?;
    client.start_orchestration("order-2", "Shpi", "a chair").await?;
    client.start_orchestration("order-3", "Sell", "a vase").await?;
    println!("order-3: {}", client.wait_for_orchestration_typed::<String>("order-3", WAIT_MAX).await??);
    println!("the till has passed work over: {}", passed_over.0.load(Ordering::SeqCst) > 0);
    let admin = store.as_management_capability().ok_or("the store has no management")?;
    for work in admin.list_stranded_work(10).await? {
        println!("{} waits: {}", work.instance, work.missing);
    }

    // The warehouse takes the work that it has handlers for, and the rest of its order comes back to the till's printer.
    let warehouse = start_warehouse(open(folder.path()).await?).await;
    println!("order-1: {}", client.wait_for_orchestration_typed::<String>("order-1", WAIT_MAX).await??);
    if let OrchestrationStatus::Failed { details, .. } =
        client.wait_for_orchestration("order-2", WAIT_MAX).await?
    {
        println!("order-2: {}", details.display_message());
    }

    // No node locked work without a handler, so none was given back.
    println!("given back by the till: {}", stop(till).await?);
    println!("given back by the warehouse: {}", stop(warehouse).await?);
    Ok(())
}

/// Stops a node and returns how often it gave work back for lack of a handler.
async fn stop(node: Arc<Runtime>) -> Result<u64, &'static str> {
    node.clone().shutdown(None).await;
    let counted = node.metrics_snapshot().ok_or("metrics are off")?;
    Ok(counted.unregistered_orch_backoff + counted.unregistered_activity_backoff)
}

/// Counts the ready work that fetches passed over. A real program exports all metrics instead.
#[derive(Clone, Default)]
struct PassedOver(Arc<AtomicU64>);

impl Recorder for PassedOver {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match key.name() {
            "duroxide_provider_filtered_items_total" => Counter::from_arc(Arc::clone(&self.0)),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
