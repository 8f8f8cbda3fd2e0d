//! Runs the user code of an activity: its context, its stop signals, its result.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use duroxide_core::{
    AppErrorKind, ErrorDetails,
    typed::{ACTIVITY_ATTEMPT_TIMED_OUT, ACTIVITY_PANICKED},
};
use futures_util::{
    FutureExt,
    future::{Either, select},
};
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use super::{ActivityWork, Call};
use crate::{
    ActivityContext, ActivityHandler,
    activity_context::ActivityCall,
    dispatch::{
        ActivityRun,
        locks::{CallOutcome, LeaseEnd},
        provider_call,
        quarantine::{StartGuard, started},
        queue::worker_id,
        store_call::panic_text,
        timing::UNSTARTED_MAX,
    },
    env::{BoxFuture, Task},
};

/// Why the run of an activity has no result to record.
pub(super) enum Unfinished {
    /// The activity was cancelled. A lost lock means the same, because a cancelled activity is deleted.
    Cancelled,
    /// Its lease expired, or its task was dropped. The activity will run again, as a counted attempt.
    Interrupted,
    /// The code ran longer than the node allows.
    TimedOut,
}

/// The result of a run in which the code returned or panicked.
pub(super) type Outcome = Result<Result<String, ErrorDetails>, Unfinished>;

/// Turns a result or an error over the payload limit into a failure (15.2).
pub(super) fn limited(
    result: Result<String, ErrorDetails>,
    payload_bytes_max: Option<usize>,
) -> Result<String, ErrorDetails> {
    let size = match &result {
        Ok(output) => output.len(),
        Err(ErrorDetails::Application { message, .. }) => message.len(),
        Err(_) => return result,
    };
    match payload_bytes_max {
        Some(max) if size > max => {
            Err(activity_failed(format!("Activity result size ({size} bytes) exceeds limit ({max} bytes)")))
        }
        _ => result,
    }
}

/// The outcome label of spans.
pub(super) fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Ok(Ok(_)) => "success",
        Ok(Err(_)) => "app_error",
        Err(Unfinished::Cancelled) => "cancelled",
        Err(Unfinished::Interrupted) => "interrupted",
        Err(Unfinished::TimedOut) => "timed_out",
    }
}

/// The failure of user code.
fn activity_failed(message: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message, retryable: false }
}

/// Why a running activity is asked to stop.
enum Stop {
    Cancelled,
    /// The outcome is awaited.
    Requested,
    /// The activity ran longer than the node allows.
    TimedOut,
    /// The activity ran longer than its caller allows for one attempt.
    AttemptTimedOut(Duration),
}

impl ActivityWork {
    /// The context of the activity. `None` if the store could not be read and the claim was abandoned.
    pub(super) async fn context(&mut self, call: &Call) -> Option<ActivityContext> {
        let (name, version) =
            match self.node.descriptors.find(&call.instance, call.execution_id, self.incarnation) {
                Some(known) => known,
                None => Box::pin(self.read_descriptor(call)).await?,
            };
        let code = self.node.activity_code.begin(ActivityRun {
            instance: call.instance.clone(),
            activity_name: call.name.clone(),
            activity_id: call.id,
            lock_token: self.token.clone(),
            began: self.node.env.moment(),
        });
        Some(ActivityContext::new(ActivityCall {
            instance_id: call.instance.clone(),
            execution_id: call.execution_id,
            orchestration_name: name,
            orchestration_version: version,
            activity_name: call.name.clone(),
            activity_id: call.id,
            first_activity_id: call.options.retry_of.unwrap_or(call.id),
            worker_id: worker_id(&self.node, self.slot.number()),
            session_id: call.session_id.clone(),
            tag: call.tag.clone(),
            attempt: self.attempt_count,
            // A child token: user code that cancels it must not look like a cancelled activity.
            cancellation: self.cancellation.child_token(),
            client: self.node.client.clone(),
            code: Some(Arc::new(code)),
        }))
    }

    async fn read_descriptor(&mut self, call: &Call) -> Option<(Arc<str>, Arc<str>)> {
        let store = Arc::clone(&self.node.store);
        let read = || store.read_descriptor(&call.instance);
        match self.lease.retry("read_descriptor", read).await {
            CallOutcome::Done(found) => {
                let found = found.map(|found| (found.name.into(), found.version.into())).unwrap_or_default();
                let known = &self.node.descriptors;
                known.remember(&call.instance, call.execution_id, self.incarnation, &found.0, &found.1);
                Some(found)
            }
            CallOutcome::Refused(_) => Some(Default::default()),
            CallOutcome::LockLost { .. } => {
                self.abandon(None, true).await;
                None
            }
            CallOutcome::Unavailable { panicked, .. } => {
                self.abandon(None, !panicked).await;
                None
            }
        }
    }

    /// Whether this node still has the lock. Asks the store if the activity did not start at once: its row may have
    /// been deleted meanwhile, and the next renewal would notice only after the code has run for seconds.
    pub(super) async fn still_has_lock(&mut self) -> bool {
        if self.node.env.moment().since(self.received) < UNSTARTED_MAX {
            return true;
        }
        let (store, timeout) = (Arc::clone(&self.node.store), self.node.options.worker_lock_timeout);
        let call = provider_call("renew_work_item_lock", store.renew_work_item(&self.token, timeout));
        match self.lease.renew_during(pin!(call)).await {
            Ok(renewed) => {
                if renewed.stop_requested {
                    self.stop.cancel();
                }
                true
            }
            // A store that is unavailable does not mean that the lock is lost.
            Err(error) => error.is_retryable(),
        }
    }

    /// Runs user code in a task of its own, so that code that blocks its thread delays nothing else. Takes the input
    /// out of the call.
    pub(super) async fn execute(
        &mut self,
        call: &mut Call,
        handler: Arc<dyn ActivityHandler>,
        context: ActivityContext,
        span: Span,
        starting: Option<StartGuard>,
    ) -> Outcome {
        let (answer, mut answered) = oneshot::channel();
        let input = std::mem::take(&mut call.input);
        let code = context.code();
        let task = self.node.user_code.spawn("activity", async move {
            // The code still runs after it has dropped its context.
            let _code = code;
            let run = async move { handler.invoke(context, input).await }.instrument(span);
            let run = started(starting, run);
            let result = AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|panic| {
                let text = panic_text(panic.as_ref()).unwrap_or("not a text");
                Err(format!("{ACTIVITY_PANICKED}{text}"))
            });
            drop(answer.send(result));
        });
        let stop = self.stop_signal(call.options.attempt_timeout);
        match self.lease.while_held(select(&mut answered, stop)).await {
            // The code saw its token first. The round that cancelled the activity has deleted it.
            Ok(Either::Left((Ok(_), _))) if self.cancellation.is_cancelled() => Err(Unfinished::Cancelled),
            Ok(Either::Left((Ok(result), _))) => Ok(result.map_err(activity_failed)),
            // The task was dropped without an answer, because the node is stopping.
            Ok(Either::Left((Err(_), _))) => Err(Unfinished::Interrupted),
            Ok(Either::Right((Stop::TimedOut, _))) => {
                self.stop_task(&task, answered).await;
                Err(Unfinished::TimedOut)
            }
            Ok(Either::Right((Stop::Requested, _))) => match self.stop_task(&task, answered).await {
                Some(result) => Ok(result.map_err(activity_failed)),
                None => Ok(Err(ErrorDetails::activity_stopped())),
            },
            Ok(Either::Right((Stop::AttemptTimedOut(limit), _))) => {
                self.stop_task(&task, answered).await;
                Ok(Err(attempt_timed_out(limit)))
            }
            Ok(Either::Right((Stop::Cancelled, _))) | Err(LeaseEnd::Lost) => {
                self.stop_task(&task, answered).await;
                Err(Unfinished::Cancelled)
            }
            Err(LeaseEnd::Expired) => {
                self.node.metrics.record_lock_loss("worker");
                self.stop_task(&task, answered).await;
                Err(Unfinished::Interrupted)
            }
        }
    }

    /// Resolves when the activity must stop. Time limits start now.
    fn stop_signal(&self, attempt_timeout: Option<Duration>) -> BoxFuture<Stop> {
        let (cancellation, stop) = (self.cancellation.clone(), self.stop.clone());
        let node_limit = self.node.options.activity_execution_timeout;
        let limit = match (node_limit, attempt_timeout) {
            (Some(node), Some(attempt)) if node < attempt => Some((node, Stop::TimedOut)),
            (_, Some(attempt)) => Some((attempt, Stop::AttemptTimedOut(attempt))),
            (Some(node), None) => Some((node, Stop::TimedOut)),
            (None, None) => None,
        };
        let limit = limit.map(|(limit, stop)| (self.node.env.sleep(limit), stop));
        Box::pin(async move {
            let cancelled = cancellation.cancelled_owned().map(|()| Stop::Cancelled);
            let requested = stop.cancelled_owned().map(|()| Stop::Requested);
            let signal = select(Box::pin(cancelled), Box::pin(requested)).map(|first| first.factor_first().0);
            match limit {
                None => signal.await,
                Some((limit, timed_out)) => match select(signal, limit).await {
                    Either::Left((stop, _)) => stop,
                    Either::Right(_) => timed_out,
                },
            }
        })
    }

    /// Fires the cancellation token, waits for the grace period, then aborts the task. Returns the result, if the code
    /// returned in time.
    async fn stop_task(
        &mut self,
        task: &Task,
        answered: oneshot::Receiver<Result<String, String>>,
    ) -> Option<Result<String, String>> {
        self.cancellation.cancel();
        let grace = self.node.env.sleep(self.node.options.activity_cancellation_grace_period);
        let answer = match self.lease.renew_during(select(answered, grace)).await {
            Either::Left((answer, _)) => answer.ok(),
            Either::Right(_) => None,
        };
        task.abort();
        answer
    }
}

/// The failure of an attempt that ran longer than its caller allows. A result that came after the stop signal does not
/// count: the caller's retry policy decides about the next attempt.
fn attempt_timed_out(limit: Duration) -> ErrorDetails {
    let limit_ms = limit.as_millis() as u64;
    activity_failed(format!("{ACTIVITY_ATTEMPT_TIMED_OUT}{limit_ms} ms"))
}
