//! Workflows that are started in the transaction of their caller.

use std::path::Path;

use duroxide::{
    Client, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    providers::sqlite::Intake, runtime::registry::ActivityRegistry,
};
use rusqlite::Transaction;

use crate::{
    fixture::{
        File, connect_in, ended, node, notes::Notes, output, process::Process, quick_options, recorded, until,
    },
    sound::{assert_finished, assert_sound},
};

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", |ctx: OrchestrationContext, item: String| async move {
            let paid: String = ctx.dequeue_event("payments").await;
            let address = ctx.schedule_wait("address").await;
            Ok(format!("{item} {paid} {address}"))
        })
        .build()
}

/// The row of an order, its workflow, and the event that the workflow waits for.
fn place(transaction: &Transaction<'_>, id: &str) {
    transaction.execute("INSERT INTO orders VALUES (?1)", [id]).unwrap();
    let intake = Intake::new(transaction);
    intake.start_orchestration(id, "Order", "teapot").unwrap();
    intake.enqueue_event(id, "payments", "paid").unwrap();
}

/// The role of a caller that writes everything and never commits.
pub async fn leave_an_order_half_done(folder: &Path) {
    let mut connection = connect_in(folder);
    let transaction = connection.transaction().unwrap();
    place(&transaction, "half-done");
    Notes::new(folder, "written").add("written");
    std::future::pending::<()>().await;
}

fn orders(file: &File) -> Vec<String> {
    let connection = file.connect();
    let mut rows = connection.prepare("SELECT id FROM orders ORDER BY id").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// I10 reaches into the caller's own rows: order and workflow are there together, or neither is. A waiting node is notified
/// of the commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_and_its_workflow_exist_together_or_not_at_all() {
    let file = File::new();
    let store = file.open().await;
    let mut connection = file.connect();
    connection.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY)").unwrap();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations(), quick_options()).await;
    let client = Client::new(store.clone());

    let transaction = connection.transaction().unwrap();
    place(&transaction, "rolled-back");
    transaction.rollback().unwrap();

    let caller = Process::start("dies before its commit", file.folder(), "");
    until("the caller has written", async || !Notes::new(file.folder(), "written").lines().is_empty()).await;
    caller.kill();

    let transaction = connection.transaction().unwrap();
    place(&transaction, "order-1");
    assert_eq!(client.get_orchestration_status("order-1").await.unwrap(), OrchestrationStatus::NotFound);
    transaction.commit().unwrap();
    // An event without an open wait is lost.
    recorded(&client, "order-1", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    let transaction = connection.transaction().unwrap();
    Intake::new(&transaction).raise_event("order-1", "address", "Elm Street").unwrap();
    transaction.commit().unwrap();
    assert_eq!(output(ended(&client, "order-1").await), "teapot paid Elm Street");

    for id in ["rolled-back", "half-done"] {
        assert_eq!(client.get_orchestration_status(id).await.unwrap(), OrchestrationStatus::NotFound, "{id}");
    }
    assert_eq!(orders(&file), ["order-1"]);
    runtime.shutdown(Some(10_000)).await;
    let snapshot = file.snapshot();
    assert_sound(&snapshot);
    assert_finished(&snapshot);
}

/// Transactions that were committed while no node ran are carried out by the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_committed_while_no_node_ran_is_carried_out() {
    let file = File::new();
    drop(file.open().await);
    let mut connection = file.connect();
    connection.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY)").unwrap();
    let transaction = connection.transaction().unwrap();
    place(&transaction, "order-1");
    transaction.commit().unwrap();
    let store = file.open().await;
    let runtime = node(&store, ActivityRegistry::default(), orchestrations(), quick_options()).await;
    let client = Client::new(store);
    recorded(&client, "order-1", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    runtime.shutdown(Some(10_000)).await;
}
