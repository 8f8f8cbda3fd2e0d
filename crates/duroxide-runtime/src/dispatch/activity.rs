//! Processes one claimed activity: runs it and records its outcome once (7 and 16).

mod run;
mod running;
mod unstarted;

pub(crate) use running::ActivityRun;
pub(super) use running::{RunningActivities, RunningActivity};

use std::{sync::Arc, time::Duration};

use duroxide_core::{ActivityInput, ErrorDetails, RunOptions, TraceContext, TracedInput, WorkItem};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{
    failure_log::{FailedActivity, activity_failed},
    locks::{CallOutcome, Lease, LeaseEnd, LockKind},
    node::Node,
    quarantine::{RunPermit, SUSPECT_RETRY_DELAY, Suspect},
    queue::{ClaimedActivity, InFlight, SlotGuard, worker_id},
    store_call::was_recorded,
    turn::item_bytes,
};
use crate::{
    env::Moment,
    observability::{ActivityEnd, EndedActivity},
};

use run::{Unfinished, label, limited};
use running::Tokens;

/// The delay of an abandoned activity whose session would be one too many (13.3).
const SESSION_RACE_DELAY: Duration = Duration::from_millis(100);

/// A claimed activity that this node processes.
pub(crate) struct ActivityWork {
    node: Arc<Node>,
    /// The kind of the work item, for logs.
    kind: &'static str,
    /// `None` for an item that is not an activity.
    call: Option<Call>,
    token: String,
    attempt_count: u32,
    /// Fires when the result is no longer wanted.
    cancellation: CancellationToken,
    /// Fires when the activity is asked to stop and its outcome is awaited.
    stop: CancellationToken,
    /// An earlier claim may have started the activity.
    claimed_before: bool,
    received: Moment,
    /// The row number of the activity's instance.
    incarnation: Option<u64>,
    lease: Lease,
    slot: SlotGuard,
    suspect: Option<Suspect>,
    /// Counts the activity's session while it runs; `None` if the session would be one too many.
    in_session: Option<InFlight>,
    /// Keeps the entry by which a committed round cancels this activity.
    _claimed: Option<RunningActivity>,
}

#[derive(Debug, Clone)]
struct Call {
    instance: String,
    execution_id: u64,
    id: u64,
    name: String,
    input: String,
    options: RunOptions,
    /// The context of the turn that scheduled it.
    trace: Option<TraceContext>,
    session_id: Option<String>,
    tag: Option<String>,
}

impl ActivityWork {
    pub(crate) fn new(node: Arc<Node>, claimed: ClaimedActivity, received: Moment, slot: SlotGuard) -> Self {
        let ClaimedActivity { claim, running, suspect, in_session } = claimed;
        let Tokens { cancelled: cancellation, stop } =
            running.as_ref().map(|running| running.tokens.clone()).unwrap_or_default();
        if claim.stop_requested {
            stop.cancel();
        }
        let token = claim.lock_token.clone();
        let lease = Lease::new(Arc::clone(&node), LockKind::Activity, token, received, Some(stop.clone()));
        Self {
            node,
            kind: claim.item.kind(),
            call: Call::of(claim.item),
            token: claim.lock_token,
            attempt_count: claim.attempt_count,
            cancellation,
            stop,
            claimed_before: claim.claimed_before,
            received,
            incarnation: claim.incarnation,
            lease,
            slot,
            suspect,
            in_session,
            _claimed: running,
        }
    }

    /// Processes the claim until it is acked, abandoned, or left to its lease.
    ///
    /// Rare paths are boxed, so that the future, which the tasks of a pool keep, stays small.
    pub(crate) async fn process(mut self) {
        if self.in_session.is_none() {
            let delay = Some(SESSION_RACE_DELAY);
            return self.node.abandon(LockKind::Activity, &self.token, delay, true).await;
        }
        let Some(mut call) = self.call.take() else { return Box::pin(self.dead_letter()).await };
        if self.stop.is_cancelled() {
            return Box::pin(self.ack_unstarted(&call)).await;
        }
        if self.attempt_count > self.node.options.max_attempts {
            return Box::pin(self.poison(call)).await;
        }
        if self.cancellation.is_cancelled() {
            // A round deleted the activity while it waited for a slot.
            return self.node.locks.remove(&self.token);
        }
        let Some((_, handler)) = self.node.activities.resolve_handler(&call.name) else {
            return self.abandon_unregistered(&call).await;
        };
        let Some(context) = self.context(&call).await else { return };
        // Held until the result is recorded, because the activity may crash the process.
        let mut permit = match &self.suspect {
            None => None,
            Some(suspect) => {
                match self.lease.renew_during(Box::pin(suspect.run_permit(&self.node.env))).await {
                    Some(permit) => Some(permit),
                    // Other suspects run. The activity is fetched again later.
                    None => return self.abandon(Some(SUSPECT_RETRY_DELAY), true).await,
                }
            }
        };
        if !self.still_has_lock().await {
            return self.node.locks.remove(&self.token);
        }
        if self.stop.is_cancelled() {
            return Box::pin(self.ack_unstarted(&call)).await;
        }
        let span = context.span(self.attempt_count, call.trace.as_ref());
        let starting = permit.as_mut().and_then(RunPermit::starting);
        let outcome = self.execute(&mut call, handler, context, span.clone(), starting).await;
        let ran = self.slot.elapsed();
        self.node.metrics.record_worker_dispatcher_execution_duration(ran.as_millis() as u64);
        let outcome = outcome.map(|result| limited(result, self.node.options.limits.max_payload_bytes));
        span.record("outcome", label(&outcome));
        drop(span);
        match outcome {
            Ok(result) => self.ack(&call, &call.completion(result), ran).await,
            Err(unfinished) => Box::pin(self.end_unfinished(&call, unfinished, ran)).await,
        }
    }

    /// Ends a claim whose run has no result to record.
    async fn end_unfinished(&mut self, call: &Call, unfinished: Unfinished, ran: Duration) {
        match unfinished {
            Unfinished::Cancelled => {
                debug!(target: "duroxide::runtime", instance = call.instance, id = call.id, "activity cancelled");
                self.node.locks.remove(&self.token);
                self.count(call, ActivityEnd::Cancelled, ran);
            }
            Unfinished::Interrupted => self.node.locks.remove(&self.token),
            Unfinished::TimedOut => {
                warn!(
                    target: "duroxide::runtime",
                    instance = call.instance, activity_name = call.name, activity_id = call.id,
                    attempt_count = self.attempt_count, "activity timed out, abandoning it"
                );
                self.abandon(None, false).await;
            }
        }
    }

    /// Records the result. The slot is free while the ack is on its way.
    async fn ack(&mut self, call: &Call, completion: &WorkItem, ran: Duration) {
        self.slot.submit(item_bytes(completion));
        let (store, token) = (&self.node.store, &self.token);
        let ack = || store.ack_work_item(token, Some(completion.clone()));
        match self.lease.retry("ack_work_item", ack).await {
            CallOutcome::Done(()) => self.recorded(call, completion, ran),
            CallOutcome::LockLost { unanswered: true } if Box::pin(self.was_recorded(completion)).await => {
                self.recorded(call, completion, ran);
            }
            CallOutcome::LockLost { .. } | CallOutcome::Refused(_) => {
                let (instance, id) = (&call.instance, call.id);
                debug!(target: "duroxide::runtime", instance, id, "lock lost, the activity's result is discarded");
                if !self.cancellation.is_cancelled() {
                    self.node.metrics.record_lock_loss("worker");
                }
                self.node.locks.remove(&self.token);
            }
            CallOutcome::Unavailable { error, panicked } => {
                warn!(target: "duroxide::runtime", instance = call.instance, %error, "ack failed for a whole lock timeout, abandoning the activity");
                self.abandon(None, !panicked).await;
            }
        }
    }

    /// Logs and counts an outcome that is stored.
    fn recorded(&self, call: &Call, completion: &WorkItem, ran: Duration) {
        self.node.locks.remove(&self.token);
        let WorkItem::ActivityFailed { details, .. } = completion else {
            return self.count(call, ActivityEnd::Completed, ran);
        };
        let version = self.node.activities.resolve_version(&call.name).map(|version| version.to_string());
        activity_failed(&FailedActivity {
            instance: &call.instance,
            execution_id: call.execution_id,
            activity_name: &call.name,
            version: version.as_deref().unwrap_or("unknown"),
            activity_id: call.id,
            attempt_count: self.attempt_count,
            worker_id: &worker_id(&self.node, self.slot.number()),
            details,
        });
        self.count(call, ActivityEnd::Failed(details), ran);
    }

    /// Whether an earlier attempt to record the outcome succeeded, although its answer was lost.
    async fn was_recorded(&mut self, completion: &WorkItem) -> bool {
        let lock_was_held =
            self.lease.ended() != Some(LeaseEnd::Expired) && !self.cancellation.is_cancelled();
        was_recorded(&self.node, completion, lock_was_held).await
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

    async fn abandon(&mut self, delay: Option<Duration>, ignore_attempt: bool) {
        self.slot.submit(0);
        self.node.abandon(LockKind::Activity, &self.token, delay, ignore_attempt).await;
    }
}

impl Call {
    fn of(item: WorkItem) -> Option<Self> {
        let WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag } = item
        else {
            return None;
        };
        let TracedInput { input, context: trace } = TracedInput::from_text(input);
        let ActivityInput { input, options } = ActivityInput::from_item_input(input);
        Some(Self { instance, execution_id, id, name, input, options, trace, session_id, tag })
    }

    /// The message that brings the instance this result.
    fn completion(&self, result: Result<String, ErrorDetails>) -> WorkItem {
        let (instance, execution_id, id) = (self.instance.clone(), self.execution_id, self.id);
        match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
        }
    }

    fn into_item(self) -> WorkItem {
        let Self { instance, execution_id, id, name, input, options, trace, session_id, tag } = self;
        let input = ActivityInput { input, options }.into_item_input();
        let input = TracedInput { input, context: trace }.into_text();
        WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag }
    }
}
