//! Kind, unit and description of every metric, for exporters. Includes the metrics that a store records.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

const METRICS: [(Kind, &str, Unit, &str); 39] = [
    (
        Counter,
        "duroxide_orchestration_starts_total",
        Unit::Count,
        "Executions whose first turn was committed, by what initiated them",
    ),
    (Counter, "duroxide_orchestration_completions_total", Unit::Count, "Executions that ended, by status"),
    (Counter, "duroxide_orchestration_failures_total", Unit::Count, "Executions that failed, by category"),
    (
        Counter,
        "duroxide_orchestration_infrastructure_errors_total",
        Unit::Count,
        "Executions that failed because of the platform",
    ),
    (
        Counter,
        "duroxide_orchestration_configuration_errors_total",
        Unit::Count,
        "Executions that failed because of the deployment, nondeterminism included",
    ),
    (
        Histogram,
        "duroxide_orchestration_duration_seconds",
        Unit::Seconds,
        "Time from the start of an execution to its end",
    ),
    (Histogram, "duroxide_orchestration_turns", Unit::Count, "Turns of an ended execution"),
    (
        Histogram,
        "duroxide_orchestration_history_size",
        Unit::Count,
        "Events in the history of an ended execution",
    ),
    (
        Counter,
        "duroxide_orchestration_continue_as_new_total",
        Unit::Count,
        "Executions that continued as new",
    ),
    (Counter, "duroxide_orchestration_poison_total", Unit::Count, "Orchestrations ended as poison"),
    (
        Counter,
        "duroxide_orchestration_incompatible_version_abandoned_total",
        Unit::Count,
        "Executions abandoned because this node cannot replay their duroxide version",
    ),
    (
        Counter,
        "duroxide_audit_differences_total",
        Unit::Count,
        "Audited turns whose replay differed from their live execution",
    ),
    (Counter, "duroxide_suborchestration_calls_total", Unit::Count, "Ended calls of sub-orchestrations"),
    (
        Histogram,
        "duroxide_suborchestration_duration_seconds",
        Unit::Seconds,
        "Time from the start of a sub-orchestration to its end",
    ),
    (Counter, "duroxide_activity_executions_total", Unit::Count, "Activity runs with a recorded outcome"),
    (Histogram, "duroxide_activity_duration_seconds", Unit::Seconds, "Run time of an activity"),
    (Counter, "duroxide_activity_failures_total", Unit::Count, "Activities that failed, by category"),
    (
        Counter,
        "duroxide_activity_infrastructure_errors_total",
        Unit::Count,
        "Activities that failed because of the platform",
    ),
    (
        Counter,
        "duroxide_activity_configuration_errors_total",
        Unit::Count,
        "Activities that failed because of the deployment",
    ),
    (Counter, "duroxide_activity_poison_total", Unit::Count, "Activities ended as poison"),
    (Counter, "duroxide_poison_detected_total", Unit::Count, "Orchestrations and activities ended as poison"),
    (
        Counter,
        "duroxide_unregistered_orchestration_backoff_total",
        Unit::Count,
        "Orchestrator batches abandoned because this node has no handler for them",
    ),
    (
        Counter,
        "duroxide_unregistered_activity_backoff_total",
        Unit::Count,
        "Activities abandoned because this node has no handler for them",
    ),
    (Counter, "duroxide_dead_letters_total", Unit::Count, "Messages moved to the dead letters, by reason"),
    (
        Counter,
        "duroxide_provider_filtered_items_total",
        Unit::Count,
        "Ready items that fetches passed over because this node cannot take them",
    ),
    (Gauge, "duroxide_stranded_items", Unit::Count, "Items that no node can take"),
    (
        Gauge,
        "duroxide_active_orchestrations",
        Unit::Count,
        "Running instances: those of the store when this node started, and those it started and ended since",
    ),
    (
        Gauge,
        "duroxide_pending_orchestrations",
        Unit::Count,
        "Instances of the store that were started and have not begun",
    ),
    (
        Gauge,
        "duroxide_orchestrator_queue_depth",
        Unit::Count,
        "Unlocked messages in the store's orchestrator queue",
    ),
    (Gauge, "duroxide_worker_queue_depth", Unit::Count, "Unlocked activities in the store's worker queue"),
    (Gauge, "duroxide_nodes", Unit::Count, "Nodes that have joined the store"),
    (Counter, "duroxide_turns_total", Unit::Count, "Turns that ran, by where their execution came from"),
    (
        Counter,
        "duroxide_lock_losses_total",
        Unit::Count,
        "Locks that ended before their work was committed, by queue",
    ),
    (Counter, "duroxide_orchestration_dispatcher_items_fetched", Unit::Count, "Orchestrator batches fetched"),
    (Counter, "duroxide_worker_dispatcher_items_fetched", Unit::Count, "Activities fetched"),
    (
        Histogram,
        "duroxide_orchestration_dispatcher_processing_duration_ms",
        Unit::Milliseconds,
        "Time of an orchestrator batch from fetch to commit",
    ),
    (
        Histogram,
        "duroxide_worker_dispatcher_execution_duration_ms",
        Unit::Milliseconds,
        "Time of an activity from fetch to ack",
    ),
    (
        Histogram,
        "duroxide_provider_operation_duration_seconds",
        Unit::Seconds,
        "Time that a call of the store took",
    ),
    (Counter, "duroxide_provider_errors_total", Unit::Count, "Calls of the store that failed"),
];

/// Describes every metric to the installed recorder.
pub(super) fn describe_metrics() {
    for (kind, name, unit, description) in METRICS {
        match kind {
            Counter => describe_counter!(name, unit, description),
            Gauge => describe_gauge!(name, unit, description),
            Histogram => describe_histogram!(name, unit, description),
        }
    }
}

#[cfg(test)]
mod tests;
