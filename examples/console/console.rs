//! A service with its own routes and the console below `/duroxide`.
//!
//! ```text
//! CONSOLE_TOKEN=$(openssl rand -hex 32) cargo run -p console-example --example console
//! ```
//!
//! Without a token the example makes one for itself and prints it.

use std::{env, error::Error, sync::Arc, time::Duration};

use axum::{Router, extract::Path, routing::post};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry,
    providers::sqlite::SqliteProvider,
    runtime::{Runtime, registry::ActivityRegistry},
};
use duroxide_ui::{Auth, Console, Role};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities(), orchestrations()).await;
    let client = Client::new(store);
    client.start_orchestration("order-1", "Order", "teapot").await?;
    client.wait_for_status_change("order-1", 0, Duration::from_millis(10), Duration::from_secs(10)).await?;

    let token = env::var("CONSOLE_TOKEN").unwrap_or_else(|_| made_up_token());
    let auth = Auth::token("operators", &token, Role::Operator)?;
    let console = Console::new(client.clone(), auth)
        // The console never shows card numbers.
        .redact(|payload| (payload.name == "Charge").then(|| "a payment".to_owned()))
        .audit(|entry| {
            println!("audit: {} {} {:?}: {}", entry.who, entry.action, entry.subjects, entry.outcome);
        });

    let service = Router::new()
        .route("/orders/{id}", post(move |id| order(client.clone(), id)))
        .nest("/duroxide", console.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("the shop is open at http://{}", listener.local_addr()?);
    println!("its console is at   http://{}/duroxide", listener.local_addr()?);
    println!("its token is        {token}");
    axum::serve(listener, service).await?;
    runtime.shutdown(None).await;
    Ok(())
}

/// A route of the service itself.
async fn order(client: Client, Path(id): Path<String>) -> String {
    match client.start_orchestration(&id, "Order", "teapot").await {
        Ok(()) => format!("{id} is on its way\n"),
        Err(error) => format!("{id} was not started: {error}\n"),
    }
}

fn orchestrations() -> OrchestrationRegistry {
    let order = |ctx: OrchestrationContext, item: String| async move {
        ctx.set_custom_status("waits for approval");
        let approval = ctx.schedule_wait("Approval").await;
        let charged = ctx.schedule_activity("Charge", item).await?;
        Ok(format!("{charged}, approved {approval}"))
    };
    OrchestrationRegistry::builder().register("Order", order).build()
}

fn activities() -> ActivityRegistry {
    let charge = |_: ActivityContext, item: String| async move { Ok(format!("charged for a {item}")) };
    ActivityRegistry::builder().register("Charge", charge).build()
}

/// Good enough for an example that ends with its terminal: different for each run, and only on loopback.
fn made_up_token() -> String {
    use std::hash::{BuildHasher, RandomState};
    (0_u8..4).map(|n| format!("{:016x}", RandomState::new().hash_one(n))).collect()
}
