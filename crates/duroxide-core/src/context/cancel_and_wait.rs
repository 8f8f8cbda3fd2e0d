//! Asking an activity to stop and waiting for its outcome.

use std::future::poll_fn;

use super::OrchestrationContext;
use crate::DurableFuture;

/// How an activity ended that was asked to stop by [`OrchestrationContext::cancel_and_wait`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityOutcome<T> {
    /// The activity returned this. It did its work, whether or not it noticed the request.
    Completed(T),
    /// The activity returned this error, or its output does not decode.
    Failed(String),
    /// The activity started and ended without an outcome: it did not return within the grace period and was dropped, or its
    /// worker died. It may have done some of its work.
    Stopped,
    /// No worker started the activity, and none will.
    NeverStarted,
}

impl<T> ActivityOutcome<T> {
    /// Whether the activity certainly did nothing.
    pub fn never_started(&self) -> bool {
        matches!(self, Self::NeverStarted)
    }
}

/// # Cancelling and waiting
impl OrchestrationContext {
    /// Asks an activity to stop, and waits until it has ended. Resolves to its outcome.
    ///
    /// Dropping a future only asks the activity to stop: it may still be running, and succeed, while the code goes on. A
    /// compensation that is started then runs at the same time as the work that it is meant to undo. After `cancel_and_wait`
    /// the activity has ended, and the outcome says whether there is something to undo.
    ///
    /// * An activity that no worker has begun ends at once, as [`NeverStarted`](ActivityOutcome::NeverStarted).
    /// * The token of a running activity is cancelled: at once if it runs on the node that runs this orchestration, else
    ///   when its lock is renewed, within 5 seconds. The activity has `activity_cancellation_grace_period` to return its
    ///   outcome. After that its task is dropped: [`Stopped`](ActivityOutcome::Stopped).
    /// * An activity that has ended already has its own outcome.
    /// * If its worker dies, the activity does not run again: `Stopped`, once its lock has ended.
    ///
    /// With a provider that does not store requests to stop, the request reaches only activities of this node; others run to
    /// their end.
    ///
    /// ```
    /// # use duroxide_core::{ActivityOutcome, Either2, OrchestrationContext};
    /// # use std::time::Duration;
    /// async fn pay(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    ///     let mut charge = ctx.schedule_activity("Charge", order.as_str());
    ///     match ctx.select2(&mut charge, ctx.schedule_timer(Duration::from_secs(60))).await {
    ///         Either2::First(receipt) => receipt,
    ///         Either2::Second(()) => match ctx.cancel_and_wait(charge).await {
    ///             ActivityOutcome::Completed(receipt) => Ok(receipt),
    ///             ActivityOutcome::NeverStarted => Err("too late, nothing was charged".into()),
    ///             _ => {
    ///                 ctx.schedule_activity("RefundIfCharged", order.as_str()).await?;
    ///                 Err("too late, refunded".into())
    ///             }
    ///         },
    ///     }
    /// }
    /// ```
    ///
    /// # Panics
    /// The future panics if it is given a child or anything else that is not an activity and has not resolved.
    pub async fn cancel_and_wait<T>(
        &self,
        mut activity: DurableFuture<Result<T, String>>,
    ) -> ActivityOutcome<T> {
        let mut asked = false;
        poll_fn(move |cx| {
            let polled = activity.poll_outcome(cx);
            if polled.is_pending() && !std::mem::replace(&mut asked, true) {
                activity.request_stop();
            }
            polled
        })
        .await
    }
}
