//! Key-value store: data that an instance keeps and shows, without a database of its own.
//!
//! Every change is recorded, so replay sees it again. Clients read the values while the instance runs and after it has
//! ended, other instances ask for a key with a recorded read, and the keys outlive continue-as-new.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Address {
    street: String,
    number: u32,
}

async fn cart(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    if ctx.execution_id() == 1 {
        ctx.set_kv_value("customer", "Ada");
        ctx.set_kv_value("coupon", "SUMMER");
        ctx.set_kv_value_typed("address", &Address { street: "Mill Lane".into(), number: 7 });
        ctx.schedule_wait("Checkout").await;
        return ctx.continue_as_new("").await;
    }

    let Some(address) = ctx.get_kv_value_typed::<Address>("address")? else {
        return Err("no address".into());
    };
    let label = format!("{} {}", address.number, address.street);
    ctx.clear_kv_value("coupon");

    // Pruning compares the time when a key was last set: "address" and "customer" are older than this moment, "label" is not.
    ctx.schedule_timer(Duration::from_millis(20)).await;
    let now = ctx.utc_now().await?.duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    ctx.set_kv_value("label", label);
    let before = ctx.get_kv_all_keys();
    let pruned = ctx.prune_kv_values_updated_before(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    Ok(format!("{before:?}, {pruned} pruned, left {:?}", ctx.get_kv_all_keys()))
}

async fn parcel(ctx: OrchestrationContext, cart: String) -> Result<String, String> {
    let label = ctx.get_kv_value_from_instance(cart, "label").await?;
    Ok(format!("to {}", label.unwrap_or_default()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations =
        OrchestrationRegistry::builder().register("Cart", cart).register("Parcel", parcel).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);
    let timeout = Duration::from_secs(30);

    client.start_orchestration("cart", "Cart", "").await?;
    let address: Address = client.wait_for_kv_value_typed("cart", "address", timeout).await?;
    println!("the running cart goes to {} {}", address.number, address.street);
    println!("its coupon is {:?}", client.get_kv_value("cart", "coupon").await?);

    client.raise_event("cart", "Checkout", "").await?;
    let output: String = client.wait_for_orchestration_typed("cart", timeout).await??;
    println!("cart: {output}");
    println!("after its end: {:?}", client.get_kv_all_values("cart").await?);

    client.start_orchestration("parcel", "Parcel", "cart").await?;
    let output: String = client.wait_for_orchestration_typed("parcel", timeout).await??;
    println!("parcel: {output}");

    runtime.shutdown(None).await;
    Ok(())
}
