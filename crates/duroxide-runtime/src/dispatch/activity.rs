//! One claimed activity: run it, and record its outcome once (semantics 7 and 16).

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use duroxide_core::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType, WorkItem};
use duroxide_provider::MissingCapability;
use futures_util::{
    FutureExt,
    future::{Either, select},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, debug, error, warn};

use super::{
    commit::{Insisted, insist},
    held::LockKind,
    node::Node,
    quarantine::{GIVE_WAY, Suspect},
    queue::Seat,
    renewal::{Lease, LeaseEnd},
    round::item_bytes,
    store_call::panic_text,
    worker::{ClaimedActivity, worker_id},
};
use crate::{
    ActivityContext, ActivityHandler,
    activity_context::ActivityCall,
    backoff_log::{UnregisteredActivity, warn_unregistered_activity},
    env::{Moment, Task},
    observability::{ActivityEnd, EndedActivity},
};

/// A claimed activity on its way through this node.
pub(crate) struct ActivityWork {
    node: Arc<Node>,
    item: WorkItem,
    token: String,
    attempt_count: u32,
    /// Fires when nobody wants the result any more.
    cancellation: CancellationToken,
    lease: Lease,
    seat: Seat,
    suspect: Option<Suspect>,
    /// Keeps the entry by which a committed round finds this activity.
    _claimed: Option<super::running::RunningActivity>,
}

/// An `ActivityExecute` item.
#[derive(Debug, Clone)]
struct Call {
    instance: String,
    execution_id: u64,
    id: u64,
    name: String,
    input: String,
    session_id: Option<String>,
    tag: Option<String>,
}

/// What came of running an activity.
enum Verdict {
    /// It returned or panicked.
    Finished(Result<String, ErrorDetails>),
    /// Nobody wants its result: it was cancelled, which may only show as a lost lock.
    Cancelled,
    /// Its lease ended, or its task. It will run again, and that run counts.
    Interrupted,
    /// It took too long.
    TimedOut,
}

/// Why an activity is told to stop.
enum Stop {
    Cancelled,
    TimedOut,
}

impl Verdict {
    /// An oversized result, or failure, becomes a failure that says so (semantics 15.2).
    fn limited(self, payload_bytes_max: Option<usize>) -> Self {
        let size = match &self {
            Self::Finished(Ok(output)) => output.len(),
            Self::Finished(Err(ErrorDetails::Application { message, .. })) => message.len(),
            _ => return self,
        };
        match payload_bytes_max {
            Some(max) if size > max => Self::Finished(Err(activity_failed(format!(
                "Activity result size ({size} bytes) exceeds limit ({max} bytes)"
            )))),
            _ => self,
        }
    }

    /// As the metrics name it.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Finished(Ok(_)) => "success",
            Self::Finished(Err(_)) => "app_error",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed_out",
        }
    }
}

/// The failure that user code made.
fn activity_failed(message: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message, retryable: false }
}

impl ActivityWork {
    pub(crate) fn new(node: Arc<Node>, claimed: ClaimedActivity, received: Moment, seat: Seat) -> Self {
        let ClaimedActivity { claim, running, suspect } = claimed;
        let lease = Lease::new(Arc::clone(&node), LockKind::Activity, claim.lock_token.clone(), received);
        let cancellation = running.as_ref().map(|running| running.token.clone()).unwrap_or_default();
        Self {
            node,
            item: claim.item,
            token: claim.lock_token,
            attempt_count: claim.attempt_count,
            cancellation,
            lease,
            seat,
            suspect,
            _claimed: running,
        }
    }

    /// Carries the claim to its end: acked, given back, or left to its lease.
    pub(crate) async fn run(mut self) {
        let Some(call) = Call::of(&self.item) else { return self.dead_letter().await };
        if self.attempt_count > self.node.options.max_attempts {
            return self.poison(call).await;
        }
        if self.cancellation.is_cancelled() {
            // A round deleted it while it waited for a slot.
            return self.node.held.let_go(&self.token);
        }
        let Some((_, handler)) = self.node.activities.resolve_handler(&call.name) else {
            return self.bounce(&call).await;
        };
        let Some(context) = self.context(&call).await else { return };
        // Until its result is recorded: what comes next may be a killer.
        let _stay = match &self.suspect {
            None => None,
            Some(suspect) => match self.lease.beside(suspect.enter(&self.node.env)).await {
                Some(stay) => Some(stay),
                // Another suspect runs: this one comes back when that is over.
                None => return self.give_back(Some(GIVE_WAY), true).await,
            },
        };
        let span = context.span(self.attempt_count);
        let verdict = self.execute(&call, handler, context, span.clone()).await;
        let ran = self.seat.elapsed();
        self.node.metrics.record_worker_dispatcher_execution_duration(ran.as_millis() as u64);
        let verdict = verdict.limited(self.node.options.limits.max_payload_bytes);
        span.record("outcome", verdict.outcome());
        drop(span);
        match verdict {
            Verdict::Finished(result) => self.complete(&call, result, ran).await,
            Verdict::Cancelled => {
                debug!(target: "duroxide::runtime", instance = call.instance, id = call.id, "activity cancelled");
                self.node.held.let_go(&self.token);
                self.count(&call, ActivityEnd::Cancelled, ran);
            }
            Verdict::Interrupted => self.node.held.let_go(&self.token),
            Verdict::TimedOut => {
                warn!(
                    target: "duroxide::runtime",
                    instance = call.instance, activity_name = call.name, activity_id = call.id,
                    attempt_count = self.attempt_count, "activity timed out, giving it back"
                );
                self.give_back(None, false).await;
            }
        }
    }

    // ---- running it -----------------------------------------------------------------------------------------

    /// What the activity is told. `None` if the store could not be asked and the claim was given back.
    async fn context(&mut self, call: &Call) -> Option<ActivityContext> {
        let (name, version) = match self.node.descriptors.find(&call.instance, call.execution_id) {
            Some(known) => known,
            None => self.read_descriptor(call).await?,
        };
        Some(ActivityContext::new(ActivityCall {
            instance_id: call.instance.clone(),
            execution_id: call.execution_id,
            orchestration_name: name,
            orchestration_version: version,
            activity_name: call.name.clone(),
            activity_id: call.id,
            worker_id: worker_id(&self.node, self.seat.slot()),
            session_id: call.session_id.clone(),
            tag: call.tag.clone(),
            // A child: user code that cancels its own token must not look like a cancelled activity.
            cancellation: self.cancellation.child_token(),
            client: self.node.client.clone(),
        }))
    }

    async fn read_descriptor(&mut self, call: &Call) -> Option<(String, String)> {
        let (store, timeout) = (Arc::clone(&self.node.store), self.node.options.worker_lock_timeout);
        let read = || store.read_descriptor(&call.instance);
        match insist(&self.node, &mut self.lease, timeout, "read_descriptor", read).await {
            Insisted::Done(found) => {
                let found = found.map(|found| (found.name, found.version)).unwrap_or_default();
                self.node.descriptors.remember(&call.instance, call.execution_id, &found.0, &found.1);
                Some(found)
            }
            Insisted::Refused(_) => Some(Default::default()),
            Insisted::LockLost => {
                self.give_back(None, true).await;
                None
            }
            Insisted::Unavailable { panicked, .. } => {
                self.give_back(None, !panicked).await;
                None
            }
        }
    }

    /// Runs user code in a task of its own, so that code that blocks its thread holds up nobody else.
    async fn execute(
        &mut self,
        call: &Call,
        handler: Arc<dyn ActivityHandler>,
        context: ActivityContext,
        span: Span,
    ) -> Verdict {
        let (answer, mut answered) = oneshot::channel();
        let input = call.input.clone();
        let label = format!("activity {}#{} of {}", call.name, call.id, call.instance);
        let task = self.node.user_code.spawn(label, async move {
            let run = async move { handler.invoke(context, input).await }.instrument(span);
            let result = AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|panic| {
                let text = panic_text(panic.as_ref()).unwrap_or("not a text");
                Err(format!("activity panicked: {text}"))
            });
            drop(answer.send(result));
        });
        let stop = self.stop_signal();
        match self.lease.while_held(select(&mut answered, stop)).await {
            // It saw its token before we did: the round that cancelled it has deleted it.
            Ok(Either::Left((Ok(_), _))) if self.cancellation.is_cancelled() => Verdict::Cancelled,
            Ok(Either::Left((Ok(result), _))) => Verdict::Finished(result.map_err(activity_failed)),
            // The task was dropped without an answer: the node is going down.
            Ok(Either::Left((Err(_), _))) => Verdict::Interrupted,
            Ok(Either::Right((Stop::TimedOut, _))) => {
                self.wind_down(&task, answered).await;
                Verdict::TimedOut
            }
            Ok(Either::Right((Stop::Cancelled, _))) | Err(LeaseEnd::Lost) => {
                self.wind_down(&task, answered).await;
                Verdict::Cancelled
            }
            Err(LeaseEnd::Expired) => {
                self.wind_down(&task, answered).await;
                Verdict::Interrupted
            }
        }
    }

    /// Resolves when the activity must stop.
    fn stop_signal(&self) -> crate::env::BoxFuture<Stop> {
        let cancellation = self.cancellation.clone();
        let limit = self.node.options.activity_execution_timeout.map(|limit| self.node.env.sleep(limit));
        Box::pin(async move {
            let cancelled = Box::pin(cancellation.cancelled_owned());
            match limit {
                None => {
                    cancelled.await;
                    Stop::Cancelled
                }
                Some(limit) => match select(cancelled, limit).await {
                    Either::Left(_) => Stop::Cancelled,
                    Either::Right(_) => Stop::TimedOut,
                },
            }
        })
    }

    /// Fires the token, waits for the grace period, then drops the task. A slot never waits longer for user code.
    async fn wind_down(&mut self, task: &Task, answered: oneshot::Receiver<Result<String, String>>) {
        self.cancellation.cancel();
        let grace = self.node.env.sleep(self.node.options.activity_cancellation_grace_period);
        self.lease.beside(select(answered, grace)).await;
        task.abort();
    }

    // ---- how it ends ----------------------------------------------------------------------------------------

    /// Records the outcome. The slot is free while the ack is on its way.
    async fn complete(&mut self, call: &Call, result: Result<String, ErrorDetails>, ran: Duration) {
        let (instance, execution_id, id) = (call.instance.clone(), call.execution_id, call.id);
        let failure = result.as_ref().err().cloned();
        let completion = match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
        };
        self.seat.submit(item_bytes(&completion));
        let (store, timeout) = (Arc::clone(&self.node.store), self.node.options.worker_lock_timeout);
        let token = self.token.clone();
        let ack = || store.ack_work_item(&token, Some(completion.clone()));
        match insist(&self.node, &mut self.lease, timeout, "ack_work_item", ack).await {
            Insisted::Done(()) => {
                self.node.held.let_go(&self.token);
                let end = failure.as_ref().map_or(ActivityEnd::Completed, ActivityEnd::Failed);
                self.count(call, end, ran);
            }
            Insisted::LockLost | Insisted::Refused(_) => {
                let (instance, id) = (&call.instance, call.id);
                debug!(target: "duroxide::runtime", instance, id, "lock lost, the activity's result is discarded");
                self.node.held.let_go(&self.token);
            }
            Insisted::Unavailable { error, panicked } => {
                warn!(target: "duroxide::runtime", instance = call.instance, %error, "ack failed too long");
                self.give_back(None, !panicked).await;
            }
        }
    }

    async fn give_back(&mut self, delay: Option<Duration>, ignore_attempt: bool) {
        self.seat.submit(0);
        self.node.abandon(LockKind::Activity, &self.token, delay, ignore_attempt).await;
    }

    /// No handler here: another node, or a later deployment, may have it (semantics 16.8).
    async fn bounce(&mut self, call: &Call) {
        let options = &self.node.options;
        let backoff = options.unregistered_backoff.delay(self.attempt_count);
        warn_unregistered_activity(&UnregisteredActivity {
            instance: &call.instance,
            execution_id: call.execution_id,
            activity_name: &call.name,
            activity_id: call.id,
            worker_id: &worker_id(&self.node, self.seat.slot()),
            activity_tag: call.tag.as_deref(),
            attempt_count: self.attempt_count,
            max_attempts: options.max_attempts,
            backoff,
        });
        self.node.metrics.record_unregistered_activity_backoff();
        self.give_back(Some(backoff), false).await;
    }

    /// No node can take it: it fails, and says what is missing.
    pub(crate) async fn fail_stranded(mut self, missing: &MissingCapability) {
        let Some(call) = Call::of(&self.item) else { return self.dead_letter().await };
        warn!(
            target: "duroxide::runtime",
            instance = call.instance, activity_name = call.name, activity_id = call.id, missing = %missing,
            "no node could take this activity for too long, failing it"
        );
        let details = ErrorDetails::Configuration {
            kind: ConfigErrorKind::UnsupportedVersion,
            resource: call.name.clone(),
            message: Some(format!("activity could not be processed on any node: {missing}")),
        };
        self.complete(&call, Err(details), Duration::ZERO).await;
    }

    /// It was attempted too often: it fails, and by that its orchestration (semantics 16.7).
    async fn poison(&mut self, call: Call) {
        let (attempt_count, max_attempts) = (self.attempt_count, self.node.options.max_attempts);
        warn!(
            target: "duroxide::runtime",
            instance = call.instance, activity_name = call.name, activity_id = call.id,
            attempt_count, max_attempts, "Activity message exceeded max attempts, marking as poison"
        );
        let details = ErrorDetails::Poison {
            attempt_count,
            max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: call.instance.clone(),
                execution_id: call.execution_id,
                activity_name: call.name.clone(),
                activity_id: call.id,
            },
            message: serde_json::to_string(&self.item).unwrap_or_else(|error| error.to_string()),
        };
        self.complete(&call, Err(details), Duration::ZERO).await;
    }

    /// Only activities belong into the worker queue (semantics 16.10).
    async fn dead_letter(&mut self) {
        let kind = self.item.kind();
        error!(target: "duroxide::runtime", kind, "unexpected WorkItem in Worker dispatcher");
        self.seat.submit(0);
        let reason = format!("unexpected work item kind {kind}");
        let (store, timeout) = (Arc::clone(&self.node.store), self.node.options.worker_lock_timeout);
        let token = self.token.clone();
        let call = || store.dead_letter_work_item(&token, &reason);
        // The store counts its dead letters. If it cannot take this one, the lease ends and it is tried again.
        insist(&self.node, &mut self.lease, timeout, "dead_letter_work_item", call).await;
        self.node.held.let_go(&self.token);
    }

    fn count(&self, call: &Call, end: ActivityEnd<'_>, duration: Duration) {
        self.node.metrics.activity_ended(&EndedActivity {
            activity_name: &call.name,
            end,
            duration,
            attempt_count: self.attempt_count,
            tag: call.tag.as_deref(),
        });
    }
}

impl Call {
    fn of(item: &WorkItem) -> Option<Self> {
        match item.clone() {
            WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag } => {
                Some(Self { instance, execution_id, id, name, input, session_id, tag })
            }
            _ => None,
        }
    }
}
