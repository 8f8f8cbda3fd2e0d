//! The workflow itself: ordinary async code.

use std::time::Duration;

use duroxide::{prelude::*, runtime::registry::ActivityRegistryBuilder};
use serde::{Deserialize, Serialize};

use crate::{WAIT_MAX, journal::Journal};

/// The pause before an order goes out, in which the customer may change their mind.
pub(crate) const COOLING_OFF: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    items: Vec<String>,
    euros: u32,
}

pub(crate) fn sample() -> Order {
    Order { items: vec!["teapot".into(), "kettle".into(), "cups".into()], euros: 99 }
}

async fn place_order(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    // Three activities in parallel.
    let reservations = order.items.iter().map(|item| ctx.schedule_activity("ReserveStock", item)).collect();
    for reservation in ctx.join(reservations).await {
        reservation?;
    }

    // The bank does not answer the first time.
    let policy =
        RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(200) });
    let receipt = ctx.schedule_activity_with_retry("ChargeCard", order.euros.to_string(), policy).await?;

    // A durable timer and a slow activity at the same time: here the worker is killed.
    let fraud_check = ctx.schedule_activity("FraudCheck", &receipt);
    let (verdict, ()) = ctx.join2(fraud_check, ctx.schedule_timer(COOLING_OFF)).await;
    verdict?;

    // Subscribe first, then ask: an answer without an open wait is not kept.
    let approval = ctx.schedule_wait("Approval");
    ctx.schedule_activity("AskManager", &receipt).await?;
    let decision = approval.await;

    let tracking = ctx.schedule_sub_orchestration("ShipOrder", order.items.join(", ")).await?;
    Ok(format!("{receipt}, {decision}, {tracking}"))
}

async fn ship_order(ctx: OrchestrationContext, items: String) -> Result<String, String> {
    let parcel = ctx.schedule_activity("PackParcel", items).await?;
    ctx.schedule_activity("BookCourier", parcel).await
}

pub(crate) fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register_typed("PlaceOrder", place_order)
        .register("ShipOrder", ship_order)
        .build()
}

/// One run of an activity.
struct Run {
    input: String,
    /// Counts from 1, over all processes.
    number: usize,
}

type Work = fn(Run) -> Result<String, String>;

/// Every activity writes into the journal before it works.
pub(crate) fn activities(journal: &Journal) -> ActivityRegistry {
    let steps: [(&'static str, Work); 6] = [
        ("ReserveStock", |run| Ok(format!("{} reserved", run.input))),
        ("ChargeCard", charge_card),
        ("FraudCheck", |_| Ok("looks honest".into())),
        ("AskManager", |_| Ok("asked".into())),
        ("PackParcel", |run| Ok(format!("parcel of {}", run.input))),
        ("BookCourier", |_| Ok("tracking number 4711".into())),
    ];
    let register = |builder: ActivityRegistryBuilder, (name, work)| {
        let journal = journal.clone();
        builder.register(name, move |_ctx, input| run(journal.clone(), name, input, work))
    };
    steps.into_iter().fold(ActivityRegistry::builder(), register).build()
}

async fn run(journal: Journal, name: &'static str, input: String, work: Work) -> Result<String, String> {
    journal.note(name, &input).map_err(|error| error.to_string())?;
    let number = journal.runs(name).map_err(|error| error.to_string())?;
    tokio::time::sleep(duration(name, number)).await;
    work(Run { input, number })
}

/// The first fraud check takes for ever, so that the worker is surely killed in the middle of it.
fn duration(name: &str, number: usize) -> Duration {
    match (name, number) {
        ("FraudCheck", 1) => WAIT_MAX,
        _ => Duration::from_millis(20),
    }
}

fn charge_card(run: Run) -> Result<String, String> {
    match run.number {
        1 => Err("the bank did not answer".into()),
        _ => Ok(format!("{} euros charged", run.input)),
    }
}
