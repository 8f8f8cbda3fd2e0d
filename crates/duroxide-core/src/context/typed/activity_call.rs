//! [`ActivityCall`]: a call of an activity, with its options, that can be awaited.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::{Activity, CallError, call_error::typed_outcome, encode};
use crate::{
    BackoffStrategy, DurableFuture, ErrorDetails, OrchestrationContext, RetryOptions, RetryPolicy,
    RunOptions,
    context::{ActivityRequest, RetryEnd},
    engine::Value,
};

const OUTPUT: &str = "output of activity";

/// A call of an activity. It is a future: awaiting it schedules the activity and waits for its result.
///
/// Like every future it does nothing until it is awaited, joined or selected; [`start`](Self::start) schedules it at once.
/// Dropping it after that, and before it resolved, asks the activity to stop.
///
/// ```
/// # use std::time::Duration;
/// # use duroxide_core::{OrchestrationContext, RetryPolicy, typed::Activity};
/// # enum charge {}
/// # impl Activity for charge {
/// #     const NAME: &'static str = "charge";
/// #     type Input = u64;
/// #     type Output = String;
/// #     type Error = String;
/// # }
/// # async fn order(ctx: OrchestrationContext) -> Result<String, String> {
/// let receipt = ctx
///     .activity::<charge>(1_200)
///     .retry(RetryPolicy::new(5))
///     .retry_if(|error| error != "no such card")
///     .attempt_timeout(Duration::from_secs(10))
///     .await?;
/// # Ok(receipt)
/// # }
/// ```
#[must_use = "a call does nothing until it is awaited or started"]
pub struct ActivityCall<A: Activity, M: CallMode = Once> {
    state: State<A, M>,
}

/// How often an [`ActivityCall`] is made: [`Once`] or [`Retried`].
pub trait CallMode: Sized {
    /// A call that has begun.
    type Running<A: Activity>: Future<Output = CallResult<A>> + Unpin + Send + 'static;

    #[doc(hidden)]
    fn begin<A: Activity>(built: &mut Built<A>) -> Self::Running<A>;
}

/// An [`ActivityCall`] that is made once.
#[derive(Debug)]
pub enum Once {}

/// An [`ActivityCall`] with a deadline or a retry policy.
#[derive(Debug)]
pub enum Retried {}

type CallResult<A> = Result<<A as Activity>::Output, CallError<<A as Activity>::Error>>;

enum State<A: Activity, M: CallMode> {
    Built(Box<Built<A>>),
    Running(M::Running<A>),
}

#[doc(hidden)]
pub struct Built<A: Activity> {
    ctx: OrchestrationContext,
    /// The error if the input has no JSON form.
    request: Result<ActivityRequest, String>,
    options: RetryOptions,
    retry_if: Option<RetryIf<A::Error>>,
}

type RetryIf<E> = Arc<dyn Fn(&E) -> bool + Send + Sync>;

impl OrchestrationContext {
    /// Calls an activity. Several arguments are given as a tuple, none as `()`.
    ///
    /// See [`ActivityCall`] for the options of the call. The typed counterpart of
    /// [`schedule_activity`](Self::schedule_activity).
    #[track_caller]
    pub fn activity<A: Activity>(&self, input: A::Input) -> ActivityCall<A> {
        let once = RetryPolicy { max_attempts: 1, backoff: BackoffStrategy::None, timeout: None };
        // Not in a closure, which would be the caller.
        let call = ActivityRequest { keeps_key: true, ..ActivityRequest::new(A::NAME, String::new()) };
        let built = Built {
            ctx: self.clone(),
            request: encode(&input).map(|input| ActivityRequest { input, ..call }),
            options: once.into(),
            retry_if: None,
        };
        ActivityCall { state: State::Built(Box::new(built)) }
    }
}

impl<A: Activity, M: CallMode> ActivityCall<A, M> {
    /// Schedules the activity now, to be awaited later. Retries are made when the future is polled.
    pub fn start(self) -> M::Running<A> {
        match self.state {
            State::Built(mut built) => M::begin(&mut built),
            State::Running(running) => running,
        }
    }

    /// Repeats the call while it fails, as the policy says. See [`RetryPolicy`].
    ///
    /// Every failure is retried except a handler that cannot read its input, a deadline ([`timeout`](Self::timeout)), and
    /// an error that the activity made with [`not_retryable`](crate::not_retryable).
    /// [`retry_if`](ActivityCall::retry_if) decides by the error.
    pub fn retry(self, policy: impl Into<RetryOptions>) -> ActivityCall<A, Retried> {
        self.into_retried(|built| {
            let mut options = policy.into();
            options.policy.timeout = options.policy.timeout.or(built.options.policy.timeout);
            options.attempt_timeout = options.attempt_timeout.or(built.options.attempt_timeout);
            built.options = options;
        })
    }

    /// Bounds each attempt from its call to its result: waiting for a worker and downtime count. After that the whole
    /// call fails with [`CallError::TimedOut`], without a retry, and the activity is asked to stop.
    pub fn timeout(self, timeout: Duration) -> ActivityCall<A, Retried> {
        self.into_retried(|built| built.options.policy.timeout = Some(timeout))
    }

    /// Bounds how long each attempt runs, measured by the worker that runs it. An attempt that takes longer has failed
    /// with [`CallError::TimedOut`], and is retried as the policy says.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.changed(|built| built.options.attempt_timeout = Some(timeout))
    }

    /// Routes the activity to workers that take this tag.
    pub fn tag(self, tag: impl Into<String>) -> Self {
        self.changed(|built| built.change_request(|request| request.tag = Some(tag.into())))
    }

    /// Runs the activity on the worker that has this session. Activities of one session run on one worker while it lives.
    pub fn session(self, session_id: impl Into<String>) -> Self {
        self.changed(|built| built.change_request(|request| request.session_id = Some(session_id.into())))
    }

    fn into_retried(self, change: impl FnOnce(&mut Built<A>)) -> ActivityCall<A, Retried> {
        let state = match self.changed(change).state {
            State::Built(built) => State::Built(built),
            State::Running(running) => {
                let running: <Retried as CallMode>::Running<A> = Box::pin(running);
                State::Running(running)
            }
        };
        ActivityCall { state }
    }

    /// Changes a call that has not begun. One that was polled goes on as it began.
    fn changed(mut self, change: impl FnOnce(&mut Built<A>)) -> Self {
        if let State::Built(built) = &mut self.state {
            change(built);
        }
        self
    }
}

impl<A: Activity> ActivityCall<A, Retried> {
    /// Asks whether an error of the activity is worth another attempt. Panics, attempts that ran too long and errors of
    /// another type are retried as the policy says.
    pub fn retry_if(self, again: impl Fn(&A::Error) -> bool + Send + Sync + 'static) -> Self {
        self.changed(|built| built.retry_if = Some(Arc::new(again)))
    }
}

impl<A: Activity> Built<A> {
    /// Takes the request out instead of cloning it, because its input may be large.
    fn take_request(&mut self) -> Result<ActivityRequest, String> {
        std::mem::replace(&mut self.request, Err(String::new()))
    }

    fn change_request(&mut self, change: impl FnOnce(&mut ActivityRequest)) {
        if let Ok(request) = &mut self.request {
            change(request);
        }
    }
}

impl CallMode for Once {
    type Running<A: Activity> = DurableFuture<CallResult<A>>;

    fn begin<A: Activity>(built: &mut Built<A>) -> Self::Running<A> {
        let origin = built.ctx.origin(OUTPUT, A::NAME);
        match built.take_request() {
            Ok(request) => built
                .ctx
                .call_activity(request, move |value| {
                    typed_outcome(value.into_outcome(), || origin.to_string())
                })
                .with_run_options(RunOptions {
                    attempt_timeout: built.options.attempt_timeout,
                    retry_of: None,
                }),
            Err(error) => DurableFuture::known(Value::Fired, |_| Err(CallError::Encode(error))),
        }
    }
}

impl CallMode for Retried {
    type Running<A: Activity> = Pin<Box<dyn Future<Output = CallResult<A>> + Send>>;

    fn begin<A: Activity>(built: &mut Built<A>) -> Self::Running<A> {
        let (ctx, options) = (built.ctx.clone(), built.options.clone());
        let request = match built.take_request() {
            Ok(request) => request,
            Err(error) => return Box::pin(std::future::ready(Err(CallError::Encode(error)))),
        };
        let retry_if = built.retry_if.take();
        let again = move |details: &ErrorDetails| {
            let Some(retry_if) = &retry_if else { return true };
            CallError::from_details(details.clone()).failed().is_none_or(|error| retry_if(error))
        };
        let first = ctx.first_attempt(&request, &options);
        Box::pin(async move {
            let origin = ctx.origin(OUTPUT, A::NAME);
            match ctx.retry(request, options, first, |call| call, again).await {
                Ok(output) => typed_outcome(Ok(output), || origin.to_string()),
                Err(RetryEnd::Failed(details)) => Err(CallError::from_details(*details)),
                Err(RetryEnd::TimedOut) => Err(CallError::TimedOut),
            }
        })
    }
}

impl<A: Activity, M: CallMode> Future for ActivityCall<A, M> {
    type Output = CallResult<A>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                State::Built(built) => {
                    let running = M::begin(built);
                    self.state = State::Running(running);
                }
                State::Running(running) => return Pin::new(running).poll(cx),
            }
        }
    }
}

impl<A: Activity> fmt::Debug for Built<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built").field("name", &A::NAME).finish_non_exhaustive()
    }
}

impl<A: Activity, M: CallMode> fmt::Debug for ActivityCall<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivityCall").field("name", &A::NAME).finish_non_exhaustive()
    }
}
