//! [`StepCall`]: a short piece of work that runs in place.

use std::{
    fmt,
    future::{Future, IntoFuture},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use serde::{Serialize, de::DeserializeOwned};

use super::{ACTIVITY_PANICKED, CallError, call_error::typed_outcome, encode, encode_error};
use crate::{
    ErrorDetails, OrchestrationContext, RetryOptions, RetryPolicy,
    engine::{Shared, StepResult, StepWork, panic_text},
    is_not_retryable,
};

/// A short piece of work that runs where its orchestration runs: see [`OrchestrationContext::step`].
#[must_use = "a step does nothing until it is awaited"]
pub struct StepCall<F> {
    ctx: OrchestrationContext,
    name: String,
    work: F,
}

/// A [`StepCall`] that is repeated while it fails.
#[must_use = "a step does nothing until it is awaited"]
pub struct RetriedStep<F> {
    step: StepCall<F>,
    policy: RetryPolicy,
}

type Running<T, E> = Pin<Box<dyn Future<Output = Result<T, CallError<E>>> + Send>>;

/// # Steps in place
impl OrchestrationContext {
    /// Runs a short piece of work in place: on the node that runs the orchestration, under the lock of the instance,
    /// without the worker queue. Only its result is recorded. The work may use local values, clocks, random numbers and
    /// I/O.
    ///
    /// Like an activity it runs at least once: after a crash before its result was recorded it runs again. Several steps
    /// in a row share a commit if they are quick. The instance receives no messages while a step runs, except that a
    /// cancellation ends a long one within a second. A step that returns an error can be retried with
    /// [`retry`](StepCall::retry); each attempt is recorded.
    ///
    /// Use an activity for work that takes long, that blocks its thread, that needs other machines or a bound on how much of
    /// it runs at the same time.
    ///
    /// ```
    /// # use duroxide_core::OrchestrationContext;
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let length = item.len();
    ///     let price = ctx.step("price", move || async move { Ok::<_, String>(length * 100) }).await?;
    ///     Ok(format!("{item}: {price} cents"))
    /// }
    /// ```
    // Without a bound: with `FnOnce` here the compiler would take every closure for one that runs once, and none could be
    // retried.
    pub fn step<F>(&self, name: impl Into<String>, work: F) -> StepCall<F> {
        StepCall { ctx: self.clone(), name: name.into(), work }
    }
}

impl<F> StepCall<F> {
    /// Repeats the step while it fails, as the policy says; timeouts of the policy are ignored. Between two attempts the
    /// instance waits for a durable timer and is not locked.
    pub fn retry(self, policy: impl Into<RetryOptions>) -> RetriedStep<F> {
        RetriedStep { step: self, policy: policy.into().policy }
    }

    /// The result of an attempt.
    fn typed<T: DeserializeOwned, E: DeserializeOwned>(
        ctx: &OrchestrationContext,
        name: &str,
        result: StepResult,
    ) -> Result<T, CallError<E>> {
        let origin = ctx.origin("output of step", name);
        typed_outcome(result.map_err(Box::new), || origin.to_string())
    }
}

impl<T, E, F, Fut> IntoFuture for StepCall<F>
where
    T: Serialize + DeserializeOwned + Send + 'static,
    E: Serialize + DeserializeOwned + fmt::Display + Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
{
    type Output = Result<T, CallError<E>>;
    type IntoFuture = Running<T, E>;

    fn into_future(self) -> Running<T, E> {
        Box::pin(async move {
            let Self { ctx, name, work } = self;
            let result = Attempt::begin(&ctx, &name, work).await;
            Self::typed(&ctx, &name, result)
        })
    }
}

impl<T, E, F, Fut> IntoFuture for RetriedStep<F>
where
    T: Serialize + DeserializeOwned + Send + 'static,
    E: Serialize + DeserializeOwned + fmt::Display + Send + 'static,
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
{
    type Output = Result<T, CallError<E>>;
    type IntoFuture = Running<T, E>;

    fn into_future(self) -> Running<T, E> {
        let Self { step: StepCall { ctx, name, work }, policy } = self;
        let work = Arc::new(work);
        Box::pin(async move {
            let mut attempt = 1;
            loop {
                let again = Arc::clone(&work);
                let result = Attempt::begin(&ctx, &name, move || again()).await;
                let is_final = |details: &ErrorDetails| is_not_retryable(&details.display_message());
                if attempt >= policy.max_attempts || !result.as_ref().is_err_and(|error| !is_final(error)) {
                    return StepCall::<F>::typed(&ctx, &name, result);
                }
                let delay = policy.delay_for_attempt(attempt);
                if !delay.is_zero() {
                    ctx.schedule_timer(delay).await;
                }
                attempt += 1;
            }
        })
    }
}

impl<F> fmt::Debug for StepCall<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCall").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for RetriedStep<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetriedStep").field("name", &self.step.name).finish_non_exhaustive()
    }
}

/// One attempt of a step, as the code holds it.
struct Attempt {
    shared: Arc<Shared>,
    /// `None` once it has resolved.
    number: Option<u64>,
}

impl Attempt {
    fn begin<T, E, F, Fut>(ctx: &OrchestrationContext, name: &str, work: F) -> Self
    where
        T: Serialize,
        E: Serialize + fmt::Display,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let begin = move || -> StepWork {
            Box::pin(CatchPanic(Some(Box::pin(async move { to_json(work().await) }))))
        };
        let shared = ctx.shared();
        let number =
            shared.lock_in_turn().map(|mut state| state.steps.call(name.to_owned(), Box::new(begin)));
        Self { shared, number }
    }
}

impl Future for Attempt {
    type Output = StepResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StepResult> {
        let Some(number) = self.number else { return Poll::Pending };
        let Some(mut state) = self.shared.lock_in_turn() else { return Poll::Pending };
        let polled = state.steps.poll(number, cx.waker());
        drop(state);
        if polled.is_ready() {
            self.number = None;
        }
        polled
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.shared.lock();
        let unbegun = if state.access.is_allowed() { state.steps.give_up(number) } else { None };
        drop(state);
        // The work is user code, and is dropped without the lock.
        drop(unbegun);
    }
}

fn to_json<T: Serialize, E: Serialize + fmt::Display>(result: Result<T, E>) -> StepResult {
    match result {
        Ok(output) => encode(&output).map_err(ErrorDetails::activity_failed),
        Err(error) => Err(ErrorDetails::activity_failed(encode_error(&error))),
    }
}

/// A panic of the work is its failure.
struct CatchPanic(Option<StepWork>);

impl Future for CatchPanic {
    type Output = StepResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StepResult> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled,
            Err(payload) => {
                let text = panic_text(payload.as_ref());
                // Destructors are user code, and may panic too.
                let work = self.0.take();
                let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
                Poll::Ready(Err(ErrorDetails::activity_failed(format!("{ACTIVITY_PANICKED}{text}"))))
            }
        }
    }
}
