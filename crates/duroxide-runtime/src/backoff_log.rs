//! The two warnings about handlers that are not registered, each made in one place.
//!
//! They come once per attempt and always look the same, so that an operator can search for them.

use std::time::Duration;

/// An orchestration that this node cannot run.
#[derive(Debug)]
pub(crate) struct UnregisteredOrchestration<'a> {
    pub(crate) instance: &'a str,
    pub(crate) orchestration_name: &'a str,
    /// The version asked for.
    pub(crate) version: Option<&'a str>,
    pub(crate) attempt_count: u32,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Duration,
}

/// An activity that this node cannot run.
#[derive(Debug)]
pub(crate) struct UnregisteredActivity<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) activity_name: &'a str,
    pub(crate) activity_id: u64,
    pub(crate) worker_id: &'a str,
    pub(crate) activity_tag: Option<&'a str>,
    pub(crate) attempt_count: u32,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Duration,
}

/// Warns that an orchestration goes back to its queue for want of a handler.
pub(crate) fn warn_unregistered_orchestration(item: &UnregisteredOrchestration<'_>) {
    let remaining_attempts = remaining_attempts(item.attempt_count, item.max_attempts);
    let backoff_secs = item.backoff.as_secs_f32();
    tracing::warn!(
        target: "duroxide::runtime",
        instance = %item.instance,
        orchestration_name = %item.orchestration_name,
        version = %item.version.unwrap_or("latest"),
        attempt_count = item.attempt_count,
        max_attempts = item.max_attempts,
        remaining_attempts,
        backoff_secs,
        "Orchestration not registered, abandoning with {backoff_secs:.1}s backoff \
         (will poison in {remaining_attempts} more attempts)"
    );
}

/// Warns that an activity goes back to its queue for want of a handler.
pub(crate) fn warn_unregistered_activity(item: &UnregisteredActivity<'_>) {
    let remaining_attempts = remaining_attempts(item.attempt_count, item.max_attempts);
    let backoff_secs = item.backoff.as_secs_f32();
    tracing::warn!(
        target: "duroxide::runtime",
        instance = %item.instance,
        execution_id = item.execution_id,
        activity_name = %item.activity_name,
        activity_id = item.activity_id,
        worker_id = %item.worker_id,
        activity_tag = %item.activity_tag.unwrap_or("default"),
        attempt_count = item.attempt_count,
        max_attempts = item.max_attempts,
        remaining_attempts,
        backoff_secs,
        "Activity not registered, abandoning with {backoff_secs:.1}s backoff \
         (will poison in {remaining_attempts} more attempts)"
    );
}

/// How many further fetches it takes until the item is poisoned: attempt `max + 1` is the one that poisons.
fn remaining_attempts(attempt_count: u32, max_attempts: u32) -> u32 {
    max_attempts.saturating_add(1).saturating_sub(attempt_count)
}
