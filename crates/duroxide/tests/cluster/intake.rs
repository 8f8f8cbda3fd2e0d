//! Workflows that are started in the transaction of their caller.

use std::path::Path;

use duroxide::{
    Client, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    providers::postgres::Intake, runtime::registry::ActivityRegistry,
};
use tokio_postgres::Transaction;

use crate::{
    fixture::{ended, node, output, process::Process, quick_options, recorded},
    schema::{Schema, notes_in, options_in},
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
async fn place(transaction: &Transaction<'_>, folder: &Path, id: &str) {
    let schema = options_in(folder).schema;
    let insert = format!("INSERT INTO {schema}.orders VALUES ($1)");
    transaction.execute(&insert, &[&id]).await.unwrap();
    let intake = Intake::new(&schema);
    intake.start_orchestration(transaction, id, "Order", "teapot").await.unwrap();
    intake.enqueue_event(transaction, id, "payments", "paid").await.unwrap();
}

/// The role of a caller that writes everything and never commits.
pub async fn leave_an_order_half_done(folder: &Path) {
    let (mut client, connection) =
        options_in(folder).config.connect(tokio_postgres::NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    let transaction = client.transaction().await.unwrap();
    place(&transaction, folder, "half-done").await;
    notes_in(folder).add("written");
    std::future::pending::<()>().await;
}

/// 24.14: I10 reaches into the caller's own rows: order and workflow exist together, or neither does. Waiting nodes are notified
/// of the commit; without that they would find it after 30 seconds.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_and_its_workflow_exist_together_or_not_at_all() {
    let Some(schema) = Schema::new() else { return };
    let (store, other) = (schema.open().await, schema.open().await);
    let mut admin = schema.admin().await;
    admin
        .batch_execute(&format!("CREATE TABLE {}.orders (id text PRIMARY KEY)", schema.name()))
        .await
        .unwrap();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations(), quick_options()).await;
    let second = node(&other, ActivityRegistry::default(), orchestrations(), quick_options()).await;
    let client = Client::new(store.clone());

    let transaction = admin.transaction().await.unwrap();
    place(&transaction, schema.folder(), "rolled-back").await;
    transaction.rollback().await.unwrap();

    let caller = Process::start("dies before its commit", schema.folder(), "");
    schema.reach_notes(1).await;
    caller.kill();

    for id in ["order-1", "order-2", "order-3"] {
        let transaction = admin.transaction().await.unwrap();
        place(&transaction, schema.folder(), id).await;
        assert_eq!(client.get_orchestration_status(id).await.unwrap(), OrchestrationStatus::NotFound);
        transaction.commit().await.unwrap();
        // An event without a wait is lost.
        recorded(&client, id, |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
        let transaction = admin.transaction().await.unwrap();
        let intake = Intake::new(&options_in(schema.folder()).schema);
        intake.raise_event(&transaction, id, "address", "Elm Street").await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(output(ended(&client, id).await), "teapot paid Elm Street");
    }

    for id in ["rolled-back", "half-done"] {
        assert_eq!(client.get_orchestration_status(id).await.unwrap(), OrchestrationStatus::NotFound, "{id}");
    }
    let orders = admin.query(&format!("SELECT id FROM {}.orders", schema.name()), &[]).await.unwrap();
    assert_eq!(orders.len(), 3);
    runtime.shutdown(Some(10_000)).await;
    second.shutdown(Some(10_000)).await;
    let snapshot = schema.snapshot();
    assert_sound(&snapshot);
    assert_finished(&snapshot);
}
