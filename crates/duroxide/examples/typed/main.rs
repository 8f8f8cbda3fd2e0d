//! Typed authoring: names, inputs, outputs and errors that the compiler checks.
//!
//! Three orders: one is paid and approved, one has a card that is declined, and one is never approved, so its payment is
//! given back. The card reader answers with a typed error, which the orchestration matches.

use std::{
    collections::BTreeSet,
    error::Error,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
    card: String,
    /// How long the order waits for its approval.
    timeout: Duration,
}

/// Why a payment failed. The error is recorded as JSON and returned as this type.
#[derive(Debug, Serialize, Deserialize)]
enum PaymentError {
    Declined { card: String },
    LineBusy,
}

impl fmt::Display for PaymentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined { card } => write!(f, "{card} is declined"),
            Self::LineBusy => f.write_str("the line is busy"),
        }
    }
}

/// The state that the payment activities share: here the keys that were charged, usually a connection pool.
#[derive(Default)]
struct Payments {
    seen: Mutex<BTreeSet<String>>,
}

#[duroxide::activities]
impl Payments {
    /// The line is busy at first. The key is the same in both attempts, so a bank would charge once.
    async fn charge(self: Arc<Self>, ctx: ActivityContext, order: Order) -> Result<u64, PaymentError> {
        if order.card == "stolen card" {
            return Err(PaymentError::Declined { card: order.card });
        }
        let first_attempt = self.seen.lock().is_ok_and(|mut seen| seen.insert(ctx.idempotency_key()));
        if first_attempt { Err(PaymentError::LineBusy) } else { Ok(order.cents) }
    }

    async fn refund(self: Arc<Self>, _ctx: ActivityContext, cents: u64) -> Result<(), PaymentError> {
        println!("{cents} cents are given back");
        Ok(())
    }
}

#[duroxide::activity]
async fn pack(_ctx: ActivityContext, item: String, count: u32) -> Result<String, String> {
    Ok(format!("a box with {count} {item}"))
}

#[duroxide::orchestration]
async fn ship(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    let parcel = ctx.activity::<pack>((item, 1)).await?;
    Ok(format!("shipped {parcel}"))
}

#[derive(Serialize, Deserialize)]
struct Approval {
    by: String,
}

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    let policy =
        RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(10) });
    let charged = ctx
        .activity::<charge>(order.clone())
        .retry(policy)
        .retry_if(|error| matches!(error, PaymentError::LineBusy))
        .await;
    let cents = match charged {
        Ok(cents) => cents,
        Err(CallError::Failed(PaymentError::Declined { card })) => {
            return Ok(format!("another card than the {card}, please"));
        }
        Err(other) => return Err(other.to_string()),
    };

    ctx.set_status(&format!("{cents} cents are paid"));
    let approval = ctx.event::<Approval>("approval");
    let deadline = ctx.schedule_timer(order.timeout);
    match ctx.select2(approval, deadline).await {
        Either2::First(approval) => {
            let shipped = ctx.child::<ship>(order.item).await?;
            Ok(format!("{shipped}, approved by {}", approval?.by))
        }
        Either2::Second(()) => {
            ctx.activity::<refund>(cents).await?;
            Ok("nobody approved it".to_owned())
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::builder(store.clone())
        .service(Arc::new(Payments::default()))
        .activity::<pack>()
        .orchestration::<order>()
        .orchestration::<ship>()
        .build()
        .await?;

    let client = Client::new(store);
    let teapot = |card: &str, timeout| Order {
        item: "teapot".to_owned(),
        cents: 1_200,
        card: card.to_owned(),
        timeout,
    };
    let (long, short) = (Duration::from_secs(60), Duration::from_millis(20));

    let approved = client.start::<order>("order-1", teapot("good card", long)).await?;
    let paid = approved.wait_until(|status: &String| status.contains("paid"), long).await?;
    println!("{}", paid.unwrap_or_default());
    approved.raise("approval", &Approval { by: "Ada".to_owned() }).await?;
    println!("order-1: {}", approved.result().await??);

    println!("order-2: {}", client.start_and_wait::<order>("order-2", teapot("stolen card", long)).await??);
    println!("order-3: {}", client.start_and_wait::<order>("order-3", teapot("good card", short)).await??);

    runtime.shutdown(None).await;
    Ok(())
}
