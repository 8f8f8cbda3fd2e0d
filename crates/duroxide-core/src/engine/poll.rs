//! Polling user code.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::{OrchestrationContext, OrchestrationHandlerRef, limits::MAX_SELF_WAKES};

type UserFuture = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// The suspended future of an orchestration.
pub(crate) struct UserCode {
    future: Option<UserFuture>,
    root: Arc<RootWaker>,
    /// Polls caused by self-waking since the last event.
    self_wakes: usize,
}

/// The result of a poll.
pub(crate) enum Polled {
    /// The code waits.
    Pending,
    /// The code returned.
    Returned(Result<String, String>),
    /// The code panicked with this text.
    Panicked(String),
    /// The code waited for typed data that does not decode.
    Undecodable(String),
    /// The code kept waking itself although no event was applied.
    SelfWaking,
}

/// The payload with which the code is unwound when typed data does not decode: the text of the decode error.
pub(crate) struct Undecodable(pub(crate) String);

/// Records whether the code was woken during its own poll.
struct RootWaker(AtomicBool);

impl Wake for RootWaker {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserCode").field("parked", &self.future.is_some()).finish_non_exhaustive()
    }
}

impl UserCode {
    /// Code that has not run yet.
    pub(crate) fn new(handler: OrchestrationHandlerRef, ctx: OrchestrationContext, input: String) -> Self {
        let future: UserFuture = Box::pin(async move { handler.invoke(ctx, input).await });
        Self { future: Some(future), ..Self::absent() }
    }

    /// No code, for a history that cannot be replayed.
    pub(crate) fn absent() -> Self {
        Self { future: None, root: Arc::new(RootWaker(AtomicBool::new(false))), self_wakes: 0 }
    }

    /// Resets the count of self-wakes, because an event was applied and the code may make progress.
    pub(crate) fn event_applied(&mut self) {
        self.self_wakes = 0;
    }

    /// Polls until the code waits without having woken itself. A future that returned or panicked is dropped at once, so
    /// that the calls it held are given up in the same poll.
    pub(crate) fn poll(&mut self) -> Polled {
        let Some(future) = self.future.as_mut() else { return Polled::Pending };
        let waker = Waker::from(Arc::clone(&self.root));
        let mut cx = Context::from_waker(&waker);
        loop {
            self.root.0.store(false, Ordering::Relaxed);
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx))) {
                Ok(Poll::Ready(output)) => {
                    self.discard();
                    return Polled::Returned(output);
                }
                Err(payload) => {
                    self.discard();
                    return match payload.downcast::<Undecodable>() {
                        Ok(undecodable) => Polled::Undecodable(undecodable.0),
                        Err(payload) => Polled::Panicked(panic_text(payload.as_ref())),
                    };
                }
                Ok(Poll::Pending) if !self.root.0.load(Ordering::Relaxed) => return Polled::Pending,
                Ok(Poll::Pending) => {
                    self.self_wakes += 1;
                    if self.self_wakes > MAX_SELF_WAKES {
                        return Polled::SelfWaking;
                    }
                }
            }
        }
    }

    /// Drops the future. Destructors are user code and may panic.
    pub(crate) fn discard(&mut self) {
        let future = self.future.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    }
}

pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "orchestration panicked".to_owned())
}
