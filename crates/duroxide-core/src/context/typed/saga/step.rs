//! [`SagaStep`]: one step of a saga, with the activity that undoes it.

use std::{
    fmt,
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use super::scope::Scope;
use crate::{
    BackoffStrategy, DurableFuture, ErrorDetails, OrchestrationContext, RetryOptions, RetryPolicy,
    context::{
        ActivityRequest, RetryEnd,
        typed::{Activity, CallError, call_error::typed_outcome, encode},
    },
};

/// How often an undo is tried unless the step says otherwise: for about ten minutes.
const UNDO_ATTEMPTS: u32 = 20;

type Call = DurableFuture<Result<String, Box<ErrorDetails>>>;
type StepResult<A> = Result<<A as Activity>::Output, CallError<<A as Activity>::Error>>;

/// One step of a saga. It can be awaited; [`start`](Self::start) begins it at once, for steps that run side by side.
#[must_use = "a step does nothing until it is awaited or started"]
pub struct SagaStep<A: Activity> {
    ctx: OrchestrationContext,
    scope: Arc<Scope>,
    /// The error if an input has no JSON form.
    request: Result<ActivityRequest, String>,
    options: RetryOptions,
    undo: Option<ActivityRequest>,
    undo_options: RetryOptions,
    activity: PhantomData<fn() -> A>,
}

impl<A: Activity> SagaStep<A> {
    pub(super) fn new(ctx: OrchestrationContext, scope: Arc<Scope>, input: &A::Input) -> Self {
        let once = RetryPolicy { max_attempts: 1, backoff: BackoffStrategy::None, timeout: None };
        Self {
            ctx,
            scope,
            request: request::<A>(input),
            options: once.into(),
            undo: None,
            undo_options: RetryPolicy::new(UNDO_ATTEMPTS).into(),
            activity: PhantomData,
        }
    }

    /// The activity that undoes the step. Its input is known before the step runs, because the step may have to be undone
    /// although its result never arrived.
    pub fn undo_with<U: Activity>(mut self, input: U::Input) -> Self {
        match request::<U>(&input) {
            Ok(undo) => self.undo = Some(undo),
            Err(error) => self.request = Err(error),
        }
        self
    }

    /// Repeats the step while it fails, as the policy says.
    pub fn retry(mut self, policy: impl Into<RetryOptions>) -> Self {
        self.options = policy.into();
        self
    }

    /// Bounds how long each attempt of the step runs.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.options.attempt_timeout = Some(timeout);
        self
    }

    /// Repeats the undo while it fails, as the policy says. Without this it is tried 20 times, with growing delays.
    pub fn retry_undo(mut self, policy: impl Into<RetryOptions>) -> Self {
        self.undo_options = policy.into();
        self
    }

    /// Begins the step now, to be awaited later. Dropping the future does not stop the step: it belongs to its saga.
    pub fn start(self) -> Pin<Box<dyn Future<Output = StepResult<A>> + Send>> {
        let Self { ctx, scope, request, options, undo, undo_options, .. } = self;
        let request = match request {
            Ok(request) => request,
            Err(error) => return Box::pin(std::future::ready(Err(CallError::Encode(error)))),
        };
        let step = Arc::new(Step {
            undo: undo.map(|undo| (undo, undo_options)),
            returned_error: returned_error::<A>,
            progress: Mutex::default(),
        });
        scope.add(Arc::clone(&step));
        let origin = ctx.origin("output of activity", A::NAME);
        let keep = move |call| step.run(call);
        let first = ctx.first_attempt(&request, &options).kept(&keep);
        Box::pin(async move {
            match ctx.retry(request, options, first, keep, |_| true).await {
                Ok(output) => typed_outcome(Ok(output), || origin.to_string()),
                Err(RetryEnd::Failed(details)) => Err(CallError::from_details(*details)),
                Err(RetryEnd::TimedOut) => Err(CallError::TimedOut),
            }
        })
    }
}

impl<A: Activity> IntoFuture for SagaStep<A> {
    type Output = StepResult<A>;
    type IntoFuture = Pin<Box<dyn Future<Output = StepResult<A>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        self.start()
    }
}

impl<A: Activity> fmt::Debug for SagaStep<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaStep").field("name", &A::NAME).finish_non_exhaustive()
    }
}

fn request<A: Activity>(input: &A::Input) -> Result<ActivityRequest, String> {
    Ok(ActivityRequest { keeps_key: true, ..ActivityRequest::new(A::NAME, encode(input)?) })
}

/// Whether a step failed with an error of its own, so that it has nothing to undo.
fn returned_error<A: Activity>(details: &ErrorDetails) -> bool {
    let error = CallError::<A::Error>::from_details(details.clone());
    matches!(error, CallError::Failed(_) | CallError::Untyped(_) | CallError::Decode(_))
}

/// A step that has begun.
pub(super) struct Step {
    pub(super) undo: Option<(ActivityRequest, RetryOptions)>,
    returned_error: fn(&ErrorDetails) -> bool,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The attempt that runs. It belongs to the saga and not to the code that awaits it, so that the saga can wait for its
    /// end after it has dropped that code.
    running: Option<Call>,
    may_have_run: bool,
}

impl Step {
    /// Takes an attempt over, and returns a future of its result.
    fn run(self: &Arc<Self>, call: Call) -> Attempt {
        self.progress().running = Some(call);
        Attempt(Arc::clone(self))
    }

    /// Asks the attempt that runs to stop.
    pub(super) fn ask_to_stop(&self) {
        if let Some(call) = &self.progress().running {
            call.request_stop();
        }
    }

    /// Waits until no attempt runs.
    pub(super) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.progress().running.is_none() { Poll::Ready(()) } else { self.poll(cx).map(drop) }
    }

    /// Whether an attempt may have done something.
    pub(super) fn may_have_run(&self) -> bool {
        self.progress().may_have_run
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<String, Box<ErrorDetails>>> {
        let mut progress = self.progress();
        // Impossible: an attempt is polled until it has ended.
        let Some(call) = &mut progress.running else { return Poll::Pending };
        let Poll::Ready(result) = Pin::new(call).poll(cx) else { return Poll::Pending };
        progress.running = None;
        progress.may_have_run |= match &result {
            Ok(_) => true,
            Err(details) => {
                **details != ErrorDetails::activity_never_started() && !(self.returned_error)(details)
            }
        };
        Poll::Ready(result)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of the attempt that a step runs.
struct Attempt(Arc<Step>);

impl Future for Attempt {
    type Output = Result<String, Box<ErrorDetails>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undo = self.undo.as_ref().map(|(undo, _)| &undo.name);
        f.debug_struct("Step").field("undo", &undo).finish_non_exhaustive()
    }
}
