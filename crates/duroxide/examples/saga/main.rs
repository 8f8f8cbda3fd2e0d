//! A trip of three bookings that are undone, the last one first, if one of them fails or the trip is cancelled.

use std::{sync::Arc, time::Duration};

use duroxide::{prelude::*, typed::SagaError};

#[duroxide::activity]
async fn book(ctx: ActivityContext, what: String) -> Result<String, String> {
    match what.as_str() {
        "a full hotel" => Err("no room".to_owned()),
        "a slow car" => {
            // The desk answers after the customer has left.
            ctx.cancelled().await;
            println!("booked {what}, too late");
            Ok(what)
        }
        _ => {
            println!("booked {what}");
            Ok(what)
        }
    }
}

#[duroxide::activity]
async fn cancel_booking(_ctx: ActivityContext, what: String) -> Result<(), String> {
    println!("gave {what} back");
    Ok(())
}

#[duroxide::orchestration]
async fn trip(ctx: OrchestrationContext, stops: Vec<String>) -> Result<String, String> {
    let status = ctx.clone();
    let booked: Result<(), SagaError<CallError<String>>> = ctx
        .saga(|saga| async move {
            for stop in stops {
                status.set_status(&stop);
                saga.step::<book>(stop.clone()).undo_with::<cancel_booking>(stop).await?;
            }
            Ok(())
        })
        .await;
    match booked {
        Ok(()) => Ok("bon voyage".to_owned()),
        Err(error) if error.is_cancelled() => ctx.end_as_cancelled().await,
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::builder(store.clone())
        .activity::<book>()
        .activity::<cancel_booking>()
        .orchestration::<trip>()
        .build()
        .await?;
    let client = Client::new(store);
    let stops = |stops: &[&str]| stops.iter().map(|stop| (*stop).to_owned()).collect::<Vec<_>>();

    let happy = client.start_and_wait::<trip>("trip-1", stops(&["a flight", "a hotel"])).await?;
    println!("trip-1: {happy:?}");

    let full =
        client.start_and_wait::<trip>("trip-2", stops(&["a flight", "a train", "a full hotel"])).await?;
    println!("trip-2: {full:?}");

    let slow = client.start::<trip>("trip-3", stops(&["a flight", "a slow car"])).await?;
    slow.wait_until(|at: &String| at == "a slow car", Duration::from_secs(10)).await?;
    slow.cancel_with_deadline("changed plans", Duration::from_secs(60)).await?;
    println!("trip-3: {:?}", slow.result().await?);

    runtime.shutdown(None).await;
    Ok(())
}
