//! A workflow that is started in your own transaction, on PostgreSQL: the order's row and its workflow commit together.
//!
//! The example takes a connection string, or starts a throw-away server.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{
    prelude::*,
    providers::postgres::{Intake, PostgresOptions, PostgresProvider, SchemaName},
};

async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    let payment: String = ctx.dequeue_event("payments").await;
    Ok(format!("{item} is paid with {payment} and shipped"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => postgres_server::server().ok_or("install PostgreSQL, or give a connection string")?.tcp_url(),
    };
    let mut options = PostgresOptions::new(&url)?;
    options.schema = SchemaName::new(&format!("example_{}", std::process::id()))?;
    let intake = Intake::new(&options.schema);
    let schema = options.schema.to_string();
    let store = Arc::new(PostgresProvider::open(options.clone()).await?);
    let orchestrations = OrchestrationRegistry::builder().register("Order", order).build();
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    // The program's own connection to the same database, and its own table.
    let mut database = options.connect().await?;
    database.batch_execute("CREATE TEMPORARY TABLE orders (id text PRIMARY KEY, item text NOT NULL)").await?;

    let transaction = database.transaction().await?;
    transaction.execute("INSERT INTO orders VALUES ('order-1', 'teapot')", &[]).await?;
    intake.start_orchestration(&transaction, "order-1", "Order", "teapot").await?;
    assert_eq!(client.get_orchestration_status("order-1").await?, OrchestrationStatus::NotFound);
    println!("order-1 is stored, and nothing runs before the commit");
    transaction.commit().await?;

    // Queue messages and events go the same way.
    let transaction = database.transaction().await?;
    intake.enqueue_event(&transaction, "order-1", "payments", "card 17").await?;
    transaction.commit().await?;
    let output: String = client.wait_for_orchestration_typed("order-1", Duration::from_secs(30)).await??;
    println!("order-1: {output}");

    let transaction = database.transaction().await?;
    transaction.execute("INSERT INTO orders VALUES ('order-2', 'cup')", &[]).await?;
    intake.start_orchestration(&transaction, "order-2", "Order", "cup").await?;
    transaction.rollback().await?;
    let orders: i64 = database.query_one("SELECT count(*) FROM orders", &[]).await?.get(0);
    assert_eq!(orders, 1);
    assert_eq!(client.get_orchestration_status("order-2").await?, OrchestrationStatus::NotFound);
    println!("order-2 was rolled back: no order, no workflow");

    runtime.shutdown(None).await;
    // The store closes its connections before its tables are dropped.
    drop(client);
    database.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await?;
    Ok(())
}
