//! Subscriptions to cancellation, and sagas, on a real store.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide::prelude::*;

use super::{fixture::until, store};

/// The runs of the activities, in order.
#[derive(Default)]
struct Shop {
    done: Mutex<Vec<String>>,
}

impl Shop {
    fn note(&self, what: impl Into<String>) {
        self.done.lock().unwrap().push(what.into());
    }

    fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

#[duroxide::activities]
impl Shop {
    async fn work(self: Arc<Self>, ctx: ActivityContext, name: String) -> Result<(), String> {
        self.note(format!("{name} begins"));
        if name == "slow" {
            ctx.cancelled().await;
            // Work that is asked to stop may still be done. The undo must not run at the same time.
            self.note("slow ends");
        }
        Ok(())
    }

    async fn undo(self: Arc<Self>, ctx: ActivityContext, name: String) -> Result<(), String> {
        // The second attempt of the first undo succeeds.
        if name == "quick" && !self.done().contains(&"undo fails".to_owned()) {
            self.note("undo fails");
            return Err(format!("attempt of {}", ctx.activity_name()));
        }
        self.note(format!("{name} undone"));
        Ok(())
    }
}

#[duroxide::orchestration]
async fn sale(ctx: OrchestrationContext) -> Result<(), String> {
    let again = RetryPolicy::new(5).with_backoff(BackoffStrategy::None);
    ctx.saga(|saga| async move {
        for name in ["quick", "slow"] {
            let step = saga.step::<work>(name.to_owned()).undo_with::<undo>(name.to_owned());
            step.retry_undo(again.clone()).await.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    })
    .await?;
    Ok(())
}

/// Subscribes to cancellation, and then cleans up for ever.
#[duroxide::orchestration]
async fn stubborn(ctx: OrchestrationContext) -> Result<String, DecodeError> {
    ctx.set_status(&"asks");
    ctx.set_status(&"told".repeat(usize::from(!ctx.cancel_requested().await.is_empty())));
    ctx.event("never").await
}

/// The undo of a step waits until the step has ended, is retried, and comes in reverse.
#[tokio::test]
async fn a_cancelled_saga_undoes_its_steps_after_the_running_one_has_ended() {
    let (store, client) = store().await;
    let shop = Arc::new(Shop::default());
    let runtime =
        Runtime::builder(store).service(Arc::clone(&shop)).orchestration::<sale>().build().await.unwrap();
    let sale = client.start::<sale>("i", ()).await.unwrap();
    until("the slow step runs", async || shop.done().contains(&"slow begins".to_owned())).await;
    sale.cancel("enough").await.unwrap();
    let error = sale.result().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "canceled: enough");
    assert_eq!(
        shop.done(),
        ["quick begins", "slow begins", "slow ends", "slow undone", "undo fails", "quick undone"]
    );
    runtime.shutdown(None).await;
}

/// A second request ends code that got the first one, and so does the deadline of the first.
#[tokio::test]
async fn a_second_request_or_the_deadline_ends_the_clean_up() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<stubborn>().build().await.unwrap();
    for (id, deadline) in [("second", None), ("deadline", Some(Duration::from_millis(500)))] {
        let handle = client.start::<stubborn>(id, ()).await.unwrap();
        // Code that has not run yet has nothing to clean up, and does not get the request.
        let asks = handle.wait_until(|said: &String| said == "asks", Duration::from_secs(30)).await.unwrap();
        assert!(asks.is_some(), "{id}");
        match deadline {
            None => handle.cancel("first").await.unwrap(),
            Some(deadline) => handle.cancel_with_deadline("first", deadline).await.unwrap(),
        }
        let told = handle.wait_until(|said: &String| said == "told", Duration::from_secs(30)).await.unwrap();
        assert_eq!(told.as_deref(), Some("told"), "{id}");
        if deadline.is_none() {
            handle.cancel("second").await.unwrap();
        }
        let error = handle.result().await.unwrap().unwrap_err();
        let reason = if deadline.is_none() { "second" } else { "first" };
        assert_eq!(error, CallError::Cancelled { reason: reason.into() }, "{id}");
    }
    runtime.shutdown(None).await;
}
