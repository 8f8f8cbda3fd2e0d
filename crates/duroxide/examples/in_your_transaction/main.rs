//! A workflow that is started in your own transaction, on SQLite: the order's row and its workflow commit together.
//!
//! No outbox, and no window in which there is an order without a workflow, or a workflow without an order.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{prelude::*, providers::sqlite::Intake};
use rusqlite::Connection;

async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    let payment: String = ctx.dequeue_event("payments").await;
    Ok(format!("{item} is paid with {payment} and shipped"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("orders.db");
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await?);
    let orchestrations = OrchestrationRegistry::builder().register("Order", order).build();
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    // The program's own connection to the same file, and its own table.
    let mut connection = Connection::open(&path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT NOT NULL)")?;

    let transaction = connection.transaction()?;
    transaction.execute("INSERT INTO orders VALUES ('order-1', 'teapot')", [])?;
    Intake::new(&transaction).start_orchestration("order-1", "Order", "teapot")?;
    assert_eq!(client.get_orchestration_status("order-1").await?, OrchestrationStatus::NotFound);
    println!("order-1 is stored, and nothing runs before the commit");
    transaction.commit()?;

    // Queue messages and events go the same way.
    let transaction = connection.transaction()?;
    Intake::new(&transaction).enqueue_event("order-1", "payments", "card 17")?;
    transaction.commit()?;
    let output: String = client.wait_for_orchestration_typed("order-1", Duration::from_secs(30)).await??;
    println!("order-1: {output}");

    let transaction = connection.transaction()?;
    transaction.execute("INSERT INTO orders VALUES ('order-2', 'cup')", [])?;
    Intake::new(&transaction).start_orchestration("order-2", "Order", "cup")?;
    transaction.rollback()?;
    let orders: u32 = connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    assert_eq!(orders, 1);
    assert_eq!(client.get_orchestration_status("order-2").await?, OrchestrationStatus::NotFound);
    println!("order-2 was rolled back: no order, no workflow");

    runtime.shutdown(None).await;
    Ok(())
}
