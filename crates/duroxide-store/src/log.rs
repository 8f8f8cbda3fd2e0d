//! The logs of a store, and one counter. Payloads are never logged.

use duroxide_provider::{
    ClaimToken, DeadLetterQueue, DeleteInstanceResult, ProviderError,
    store::{DeadLetterNote, HeldBack, StoreFailure},
};
use tracing::{error, info, warn};

use crate::machine::ClockStep;

const TARGET: &str = "duroxide::providers::store";

/// A row became a dead letter, and that is committed.
pub(crate) fn dead_letter(store: &str, note: &DeadLetterNote) {
    let queue = queue_label(&note.queue);
    let instance = note.instance.as_deref().unwrap_or("");
    warn!(
        target: TARGET,
        store, queue, instance, dead_letter = note.id, reason = %note.reason,
        "message moved to the dead letters"
    );
    count_dead_letter(queue, note.reason.label());
}

/// A delete or prune takes long.
pub(crate) fn removal_goes_on(operation: &str, deleted: &DeleteInstanceResult, instances_left: usize) {
    let DeleteInstanceResult { instances_deleted, executions_deleted, events_deleted, .. } = deleted;
    info!(
        target: TARGET,
        operation, instances_deleted, executions_deleted, events_deleted, instances_left,
        "removing rows of deleted instances"
    );
}

/// A delete has happened, but not all of its rows are removed.
pub(crate) fn removal_stopped(operation: &str, error: &ProviderError) {
    warn!(
        target: TARGET,
        operation, %error,
        "some rows of deleted instances are not removed yet and not counted; the store removes them later"
    );
}

/// The runtime submitted a work item to the worker queue that is not an activity.
pub(crate) fn unexpected_work_item(store: &str, reason: &str) {
    warn!(target: TARGET, store, queue = "worker", reason, "message moved to the dead letters");
    count_dead_letter("worker", "unexpected_kind");
}

fn count_dead_letter(queue: &'static str, reason: &'static str) {
    metrics::counter!("duroxide_dead_letters_total", "queue" => queue, "reason" => reason).increment(1);
}

fn queue_label(queue: &DeadLetterQueue) -> &'static str {
    match queue {
        DeadLetterQueue::Orchestrator => "orchestrator",
        DeadLetterQueue::Worker => "worker",
    }
}

/// Claims skipped ready work for lack of a capability (S3.46). Counted where the filter is applied, so that it costs no
/// query.
pub(crate) fn held_back(held_back: HeldBack) {
    let counts = [
        ("version", held_back.version),
        ("orchestration", held_back.orchestration),
        ("activity", held_back.activity),
    ];
    for (reason, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        metrics::counter!("duroxide_provider_filtered_items_total", "reason" => reason).increment(count);
    }
}

/// The engine panicked; the panic became a failure.
pub(crate) fn panic_in(store: &str, failure: &StoreFailure) {
    if let Some(call) = failure.panicked_in {
        error!(target: TARGET, store, call, message = %failure, "store engine panicked");
    }
}

/// A transaction had no effect.
pub(crate) fn transaction_failed(store: &str, ops: usize, failure: &StoreFailure) {
    warn!(target: TARGET, store, ops, %failure, "transaction failed");
}

/// A commit may or may not have happened.
pub(crate) fn outcome_unknown(store: &str, ops: usize, failure: &StoreFailure) {
    error!(target: TARGET, store, ops, %failure, "outcome of a commit is unknown, reopening the store");
}

/// The store could not be reopened.
pub(crate) fn reopen_failed(store: &str, attempt: u32, failure: &StoreFailure) {
    warn!(target: TARGET, store, attempt, %failure, "store could not be reopened");
}

/// The store works again.
pub(crate) fn reopened(store: &str, failed_attempts: u32) {
    info!(target: TARGET, store, failed_attempts, "store reopened");
}

/// A call of the engine outside of a transaction failed: the next due time, changes elsewhere, upkeep.
pub(crate) fn upkeep_failed(store: &str, what: &str, failure: &StoreFailure) {
    warn!(target: TARGET, store, what, %failure, "store upkeep failed");
}

/// A node's process has ended; its claims are released.
pub(crate) fn node_gone(store: &str, node: &str, blamed: Option<&ClaimToken>) {
    match blamed {
        None => info!(target: TARGET, store, node, "a node ended; its claims are released"),
        Some(claim) => warn!(
            target: TARGET, store, node, %claim,
            "a node died while it started this claim; its other claims are released"
        ),
    }
}

/// The system's clock was set, or the machine was suspended.
pub(crate) fn clock_was_set(store: &str, step: ClockStep) {
    let (direction, by) = match step {
        ClockStep::Back(by) => ("back", by),
        ClockStep::Forward(by) => ("forward", by),
    };
    let seconds = by.as_secs_f64();
    warn!(target: TARGET, store, direction, seconds, "the clock was set; leases are adjusted");
}

/// A thread of the store ended by a panic of its own: a bug here, not in an engine.
pub(crate) fn thread_panicked(thread: &str) {
    error!(target: TARGET, thread, "a thread of the store panicked");
}
