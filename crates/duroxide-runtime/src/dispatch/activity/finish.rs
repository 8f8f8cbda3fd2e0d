//! Ends the run of an activity: records its outcome, or abandons it.

use std::{sync::Arc, time::Duration};

use duroxide_core::{ConfigErrorKind, ErrorDetails, PoisonMessageType, WorkItem, with_poison_reason};
use duroxide_provider::MissingCapability;
use tracing::{debug, error, warn};

use super::{ActivityWork, Call, run::RunOutcome};
use crate::{
    dispatch::{
        backoff_log::{UnregisteredActivity, warn_unregistered_activity},
        decide::{joined_nodes, lacking},
        failure_log::{FailedActivity, activity_failed},
        locks::{CallOutcome, LeaseEnd},
        node::Node,
        queue::worker_id,
        store_call::was_recorded,
        turn::item_bytes,
    },
    observability::{ActivityEnd, EndedActivity},
};

impl ActivityWork {
    /// Acts on the outcome of a run.
    pub(super) async fn finish(&mut self, call: &Call, outcome: RunOutcome, ran: Duration) {
        match outcome {
            RunOutcome::Finished(result) => self.complete(call, &call.completion(result), ran).await,
            RunOutcome::Cancelled => {
                debug!(target: "duroxide::runtime", instance = call.instance, id = call.id, "activity cancelled");
                self.node.locks.remove(&self.token);
                self.count(call, ActivityEnd::Cancelled, ran);
            }
            RunOutcome::Interrupted => self.node.locks.remove(&self.token),
            RunOutcome::TimedOut => {
                warn!(
                    target: "duroxide::runtime",
                    instance = call.instance, activity_name = call.name, activity_id = call.id,
                    attempt_count = self.attempt_count, "activity timed out, abandoning it"
                );
                self.abandon(None, false).await;
            }
        }
    }

    /// Records the outcome. The slot is free while the ack is on its way.
    async fn complete(&mut self, call: &Call, completion: &WorkItem, ran: Duration) {
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
        let end = if let WorkItem::ActivityFailed { details, .. } = completion {
            self.log_failure(call, details);
            ActivityEnd::Failed(details)
        } else {
            ActivityEnd::Completed
        };
        self.count(call, end, ran);
    }

    /// Whether an earlier attempt to record the outcome succeeded, although its answer was lost.
    async fn was_recorded(&mut self, completion: &WorkItem) -> bool {
        let lock_was_held =
            self.lease.ended() != Some(LeaseEnd::Expired) && !self.cancellation.is_cancelled();
        was_recorded(&self.node, completion, lock_was_held).await
    }

    /// Records an outcome without running the activity, because it was asked to stop before this claim could start it.
    pub(super) async fn complete_unstarted(&mut self, call: &Call) {
        let started = self.claimed_before;
        debug!(target: "duroxide::runtime", instance = call.instance, id = call.id, started, "activity asked to stop");
        let details =
            if started { ErrorDetails::activity_stopped() } else { ErrorDetails::activity_never_started() };
        self.complete(call, &call.completion(Err(details)), Duration::ZERO).await;
    }

    /// Abandons an activity without a handler here: another node, or a later deployment, may have it (semantics 16.8).
    pub(super) async fn abandon_unregistered(&mut self, call: &Call) {
        let options = &self.node.options;
        let backoff = options.unregistered_backoff.delay(self.attempt_count);
        warn_unregistered_activity(&UnregisteredActivity {
            instance: &call.instance,
            execution_id: call.execution_id,
            activity_name: &call.name,
            activity_id: call.id,
            worker_id: &worker_id(&self.node, self.slot.number()),
            activity_tag: call.tag.as_deref(),
            attempt_count: self.attempt_count,
            max_attempts: options.max_attempts,
            backoff,
        });
        self.node.metrics.record_unregistered_activity_backoff();
        self.abandon(Some(backoff), false).await;
    }

    /// Fails an activity that no node can run, naming what is missing.
    pub(crate) async fn fail_stranded(mut self: Box<Self>, missing: &MissingCapability) {
        let Some(call) = self.call.take() else { return self.dead_letter().await };
        let details = ErrorDetails::Configuration {
            kind: ConfigErrorKind::UnsupportedVersion,
            resource: call.name.clone(),
            message: Some(format!("activity could not be processed on any node: {missing}")),
        };
        self.complete(&call, &call.completion(Err(details)), Duration::ZERO).await;
    }

    /// Fails an activity that was attempted too often (semantics 16.7).
    pub(super) async fn poison(&mut self, call: Call) {
        let (attempt_count, max_attempts) = (self.attempt_count, self.node.options.max_attempts);
        let details = ErrorDetails::Poison {
            attempt_count,
            max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: call.instance.clone(),
                execution_id: call.execution_id,
                activity_name: call.name.clone(),
                activity_id: call.id,
            },
            message: poisoned_json(Arc::clone(&self.node), call.clone()).await,
        };
        self.complete(&call, &call.completion(Err(details)), Duration::ZERO).await;
    }

    fn log_failure(&self, call: &Call, details: &ErrorDetails) {
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
    }

    /// Moves an item that is not an activity to the dead letters (semantics 16.10).
    pub(super) async fn dead_letter(&mut self) {
        let kind = self.kind;
        error!(target: "duroxide::runtime", kind, "unexpected WorkItem in Worker dispatcher");
        self.slot.submit(0);
        let reason = format!("unexpected work item kind {kind}");
        let (store, token) = (&self.node.store, &self.token);
        let call = || store.dead_letter_work_item(token, &reason);
        // The store counts its dead letters. If the call fails, the lease ends and another claim tries again.
        self.lease.retry("dead_letter_work_item", call).await;
        self.node.locks.remove(&self.token);
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

/// The poisoned item as JSON, with the nodes that lack its handler if this one does.
async fn poisoned_json(node: Arc<Node>, call: Call) -> String {
    let name = call.name.clone();
    let json = serde_json::to_string(&call.into_item()).unwrap_or_else(|error| error.to_string());
    if node.activities.resolve_handler(&name).is_some() {
        return json;
    }
    let joined = joined_nodes(&node).await;
    let nodes = lacking(&node.id, &joined, |capability| capability.has_activity(&name));
    with_poison_reason(json, &format!("activity {name} is not registered on {nodes}"))
}
