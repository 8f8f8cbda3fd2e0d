//! Claimed activities that do not run: stopped before they started, unregistered, stranded, poisoned, or no activities at all.

use std::{sync::Arc, time::Duration};

use duroxide_core::{ConfigErrorKind, ErrorDetails, PoisonMessageType, with_poison_reason};
use duroxide_provider::MissingCapability;
use tracing::{debug, error};

use super::{ActivityWork, Call};
use crate::dispatch::{
    backoff_log::{UnregisteredActivity, warn_unregistered_activity},
    decide::{joined_nodes, lacking},
    node::Node,
    queue::worker_id,
};

impl ActivityWork {
    /// Records a result without running the activity, because it was asked to stop before this claim could start it.
    pub(super) async fn ack_unstarted(&mut self, call: &Call) {
        let started = self.claimed_before;
        debug!(target: "duroxide::runtime", instance = call.instance, id = call.id, started, "activity asked to stop");
        let details =
            if started { ErrorDetails::activity_stopped() } else { ErrorDetails::activity_never_started() };
        self.ack(call, &call.completion(Err(details)), Duration::ZERO).await;
    }

    /// Abandons an activity without a handler here: another node, or a later deployment, may have it (16.8).
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

    /// Fails an activity that no node can run, and names the missing capability.
    pub(crate) async fn fail_stranded(mut self, missing: &MissingCapability) {
        let Some(call) = self.call.take() else { return self.dead_letter().await };
        let details = ErrorDetails::Configuration {
            kind: ConfigErrorKind::UnsupportedVersion,
            resource: call.name.clone(),
            message: Some(format!("activity could not be processed on any node: {missing}")),
        };
        self.ack(&call, &call.completion(Err(details)), Duration::ZERO).await;
    }

    /// Fails an activity that was attempted too often (16.7).
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
        self.ack(&call, &call.completion(Err(details)), Duration::ZERO).await;
    }

    /// Moves an item that is not an activity to the dead letters (16.10).
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
