//! Subscribes to requests to cancel the instance.

use std::future::pending;

use super::{OrchestrationContext, into_data};
use crate::{
    Action, CallKind, DurableFuture,
    engine::{CANCELLATION, Value},
};

/// # Requests to cancel the instance
impl OrchestrationContext {
    /// Waits for a request to cancel the instance. Resolves to the reason.
    ///
    /// A request to cancel (`Client::cancel_instance`, or the end of the parent) ends an instance, and its code does not see
    /// it. While code holds the future of this call, the first request resolves the future instead, and the code can clean
    /// up. Its instance then ends as the code does: completed, failed, or cancelled with
    /// [`end_as_cancelled`](Self::end_as_cancelled). A second request ends the instance at once, and so does the
    /// deadline of `Client::cancel_instance_with_deadline`.
    ///
    /// Dropping the future ends the subscription. After a request is delivered, open calls continue until the code drops them,
    /// and open children are not cancelled before that; every later call of this method resolves at once; and the execution
    /// does not continue as new: it ends as cancelled.
    ///
    /// ```
    /// # use duroxide_core::{Either2, OrchestrationContext};
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let cancelled = ctx.cancel_requested();
    ///     let reserved = ctx.schedule_activity("Reserve", item.as_str()).await?;
    ///     match ctx.select2(ctx.schedule_wait("paid"), cancelled).await {
    ///         Either2::First(_) => Ok(reserved),
    ///         Either2::Second(_reason) => {
    ///             ctx.schedule_activity("Release", item.as_str()).await?;
    ///             ctx.end_as_cancelled().await
    ///         }
    ///     }
    /// }
    /// ```
    pub fn cancel_requested(&self) -> DurableFuture<String> {
        let delivered = self.shared.lock().told_to_cancel.clone();
        match delivered {
            Some(reason) => DurableFuture::known(Value::Data(reason), into_data),
            None => self.call(CallKind::Wait, CANCELLATION, Action::AwaitCancellation, into_data),
        }
    }

    /// Ends the instance as cancelled, with the reason that [`cancel_requested`](Self::cancel_requested) resolved to. Open
    /// activities, timers and children are cancelled. The future never resolves.
    ///
    /// # Panics
    /// The future panics if no request to cancel was delivered to the code.
    pub async fn end_as_cancelled<T>(&self) -> T {
        if let Some(mut state) = self.shared.lock_in_turn() {
            state.ends_cancelled = state.told_to_cancel.is_some();
            let delivered = state.ends_cancelled;
            drop(state);
            assert!(
                delivered,
                "end_as_cancelled() needs a request to cancel that cancel_requested() has returned"
            );
        }
        pending().await
    }
}
