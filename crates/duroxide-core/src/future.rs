//! [`DurableFuture`]: the future that the scheduling calls of the context return.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    Action, ActivityOutcome, RunOptions,
    engine::{Shared, Value},
};

/// A recorded step that has not resolved yet.
///
/// Dropping it before it resolved asks the work to stop and waits for nothing: an activity is taken off its queue or, if
/// it runs, its token is cancelled; a timer is removed; a child is cancelled. To wait for an activity that is asked to
/// stop, use [`cancel_and_wait`](crate::OrchestrationContext::cancel_and_wait).
#[must_use = "dropping a durable future asks its work to stop"]
pub struct DurableFuture<T> {
    source: Source,
    /// Converts the recorded value into the type of the caller. Taken when the future resolves.
    convert: Option<Box<dyn FnOnce(Value) -> T + Send>>,
}

/// The call that a [`DurableFuture`] waits for.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// An activity.
    Activity {
        /// The name under which the activity is registered.
        name: String,
    },
    /// A timer.
    Timer,
    /// An external event.
    ExternalWait {
        /// The name for which the code waits.
        event_name: String,
    },
    /// A message of an event queue.
    QueueDequeue {
        /// The queue from which the code reads.
        event_name: String,
    },
    /// A child.
    SubOrchestration {
        /// The position of the call among all calls of the execution.
        token: u64,
    },
}

enum Source {
    /// A call in the execution's history.
    Call { shared: Arc<Shared>, token: u64, kind: ScheduleKind },
    /// Known at once, with nothing recorded.
    Known(Option<Value>),
}

impl<T> DurableFuture<T> {
    pub(crate) fn call(
        shared: Arc<Shared>,
        token: u64,
        kind: ScheduleKind,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> Self {
        Self { source: Source::Call { shared, token, kind }, convert: Some(Box::new(convert)) }
    }

    pub(crate) fn known(value: Value, convert: impl FnOnce(Value) -> T + Send + 'static) -> Self {
        Self { source: Source::Known(Some(value)), convert: Some(Box::new(convert)) }
    }

    /// The future of a call that was refused. It cannot be awaited.
    pub(crate) fn refused() -> Self {
        Self { source: Source::Known(None), convert: None }
    }

    /// A future of the mapped value. Dropping it asks the same work to stop.
    pub fn map<U>(mut self, f: impl FnOnce(T) -> U + Send + 'static) -> DurableFuture<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        let source = std::mem::replace(&mut self.source, Source::Known(None));
        let convert = self.convert.take();
        DurableFuture {
            source,
            convert: convert.map(|convert| -> Box<dyn FnOnce(Value) -> U + Send> {
                Box::new(move |value| f(convert(value)))
            }),
        }
    }

    /// Routes the activity to workers that take this tag.
    ///
    /// # Panics
    /// If this is not an activity, or if it was polled since it was scheduled.
    #[expect(clippy::panic, reason = "the published contract: misuse of the builder is a programming error")]
    pub fn with_tag(self, tag: impl Into<String>) -> Self {
        let (shared, token) = match &self.source {
            Source::Call { shared, token, kind: ScheduleKind::Activity { .. } } => (shared, *token),
            Source::Call { kind, .. } => {
                panic!("with_tag() can only be called on activity futures, got {kind:?}")
            }
            Source::Known(_) => {
                panic!("with_tag() can only be called on activity futures, got a resolved one")
            }
        };
        let found = if let Some(Action::CallActivity { tag: slot, .. }) = shared.lock().emitted_action(token)
        {
            *slot = Some(tag.into());
            true
        } else {
            false
        };
        assert!(
            found,
            "with_tag(): token {token} not found in emitted_actions; call it right after schedule_activity"
        );
        self
    }

    /// Sets the options of the activity's run, if this is one that was just called.
    pub(crate) fn with_run_options(self, options: RunOptions) -> Self {
        if let Source::Call { shared, token, .. } = &self.source {
            shared.lock().set_run_options(*token, options);
        }
        self
    }

    /// The recorded value, before it is converted.
    #[expect(clippy::panic, reason = "a future that is polled after it resolved breaks its contract")]
    fn poll_value(&mut self, cx: &mut Context<'_>) -> Poll<Value> {
        let value = match &mut self.source {
            Source::Call { shared, token, .. } => {
                let Some(mut state) = shared.lock_in_turn() else { return Poll::Pending };
                match state.poll_call(*token, cx.waker()) {
                    Poll::Ready(value) => value,
                    Poll::Pending => return Poll::Pending,
                }
            }
            Source::Known(value) => match value.take() {
                Some(value) => value,
                None => panic!("DurableFuture polled after it resolved"),
            },
        };
        // The future has resolved, so dropping it cancels nothing any more.
        self.source = Source::Known(None);
        Poll::Ready(value)
    }

    /// Returns the future unchanged. Older samples call it.
    pub fn into_activity(self) -> Self {
        self
    }
}

impl<T, E> DurableFuture<Result<T, E>> {
    /// Asks the activity to stop. The future still waits for its outcome.
    #[expect(clippy::panic, reason = "only activities can be asked to stop: a programming error")]
    pub(crate) fn request_stop(&self) {
        match &self.source {
            Source::Call { shared, token, kind: ScheduleKind::Activity { .. } } => {
                if let Some(mut state) = shared.lock_in_turn() {
                    state.request_stop(*token);
                }
            }
            Source::Call { kind, .. } => {
                panic!("cancel_and_wait() can only be called on activity futures, got {kind:?}")
            }
            Source::Known(_) => {}
        }
    }
}

impl<T> DurableFuture<Result<T, String>> {
    /// The outcome of an activity that was asked to stop.
    pub(crate) fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<ActivityOutcome<T>> {
        let Poll::Ready(value) = self.poll_value(cx) else { return Poll::Pending };
        Poll::Ready(match value {
            Value::Stopped { started: true } => ActivityOutcome::Stopped,
            Value::Stopped { started: false } => ActivityOutcome::NeverStarted,
            value @ (Value::Result(_) | Value::Fired | Value::Data(_)) => {
                match self.convert.take().map(|convert| convert(value)) {
                    Some(Ok(output)) => ActivityOutcome::Completed(output),
                    Some(Err(error)) => ActivityOutcome::Failed(error),
                    // Impossible: the conversion is taken together with the value, which comes once.
                    None => ActivityOutcome::Stopped,
                }
            }
        })
    }
}

impl<T> Future for DurableFuture<T> {
    type Output = T;

    #[expect(clippy::panic, reason = "a future that is polled after it resolved breaks its contract")]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Poll::Ready(value) = self.poll_value(cx) else { return Poll::Pending };
        match self.convert.take() {
            Some(convert) => Poll::Ready(convert(value)),
            None => panic!("DurableFuture polled after it resolved"),
        }
    }
}

impl<T> Drop for DurableFuture<T> {
    fn drop(&mut self) {
        if let Source::Call { shared, token, .. } = &self.source {
            let waker = shared.lock().drop_call(*token);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

// The conversion is a boxed closure and the source is owned data: nothing in here is ever pinned.
impl<T> Unpin for DurableFuture<T> {}

impl<T> fmt::Debug for DurableFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Call { token, kind, .. } => {
                f.debug_struct("DurableFuture").field("token", token).field("kind", kind).finish()
            }
            Source::Known(_) => f.write_str("DurableFuture(resolved)"),
        }
    }
}
