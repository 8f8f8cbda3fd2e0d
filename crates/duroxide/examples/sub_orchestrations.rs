//! Sub-orchestrations: an orchestration calls another one and waits for its result.
//!
//! A child is an instance of its own, with its own history. Its id is derived from the parent's, or given by the code.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Rectangle {
    width: u32,
    height: u32,
}

async fn parent(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let mut lines = Vec::new();

    lines.push(ctx.schedule_sub_orchestration("WhoAmI", "automatic id").await?);
    lines.push(ctx.schedule_sub_orchestration_with_id("WhoAmI", "child-a", "given id").await?);

    let version = Some("1.0.0".to_owned());
    lines.push(ctx.schedule_sub_orchestration_versioned("WhoAmI", version.clone(), "old version").await?);
    let both = ctx.schedule_sub_orchestration_versioned_with_id("WhoAmI", version, "child-b", "both given");
    lines.push(both.await?);

    let rectangle = Rectangle { width: 3, height: 4 };
    let area: u32 = ctx.schedule_sub_orchestration_typed("Area", &rectangle).await?;
    let again: u32 = ctx.schedule_sub_orchestration_with_id_typed("Area", "child-c", &rectangle).await?;
    lines.push(format!("areas {area} and {again}"));

    // Children can run in parallel, and their failures are values.
    let calls = (1..=3).map(|n| ctx.schedule_sub_orchestration("OnlyOdd", n.to_string())).collect();
    lines.push(format!("{:?}", ctx.join(calls).await));
    Ok(lines.join("\n"))
}

async fn who_am_i(ctx: OrchestrationContext, asked_for: String) -> Result<String, String> {
    Ok(format!("{asked_for}: {} v{}", ctx.instance_id(), ctx.orchestration_version()))
}

async fn area(_ctx: OrchestrationContext, rectangle: Rectangle) -> Result<u32, String> {
    Ok(rectangle.width * rectangle.height)
}

async fn only_odd(_ctx: OrchestrationContext, number: u32) -> Result<u32, String> {
    if number % 2 == 1 { Ok(number) } else { Err(format!("{number} is even")) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Parent", parent)
        .register_versioned("WhoAmI", "1.0.0", who_am_i)
        .register_versioned("WhoAmI", "2.0.0", who_am_i)
        .register_typed("Area", area)
        .register_typed("OnlyOdd", only_odd)
        .build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("parent", "Parent", "").await?;
    let output: String = client.wait_for_orchestration_typed("parent", Duration::from_secs(30)).await??;
    println!("{output}");

    runtime.shutdown(None).await;
    Ok(())
}
