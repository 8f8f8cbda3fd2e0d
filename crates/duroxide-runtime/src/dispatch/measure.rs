//! Records the metrics of a committed round (22).

use std::{sync::Arc, time::Duration};

use duroxide_core::{ErrorDetails, INITIAL_EXECUTION_ID, ParentLink, Timestamp, engine::Outcome};

use super::{failure_log::RuntimeEnd, node::Node, provider_call};
use crate::observability::{EndedExecution, ExecutionEnd};

/// The facts of a committed round for metrics and logs.
#[derive(Debug)]
pub(crate) struct Facts {
    pub name: Arc<str>,
    pub version: Arc<str>,
    pub execution_id: u64,
    /// Whether this is the first turn of the execution.
    pub first_turn: bool,
    pub end: Option<End>,
    /// Turns of the execution, this one included.
    pub turns: u64,
    pub history_events: u64,
    pub started_at_ms: Option<u64>,
    pub parent: Option<ParentLink>,
    /// Why the runtime ended the execution, if its code did not.
    pub ended: Option<RuntimeEnd>,
}

#[derive(Debug)]
pub(crate) enum End {
    Completed,
    Failed(ErrorDetails),
    ContinuedAsNew,
}

impl End {
    pub(crate) fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Running => None,
            Outcome::Completed { .. } => Some(Self::Completed),
            Outcome::Failed { details } => Some(Self::Failed(details.clone())),
            Outcome::ContinuedAsNew(_) => Some(Self::ContinuedAsNew),
        }
    }

    pub(crate) fn ends_instance(&self) -> bool {
        !matches!(self, Self::ContinuedAsNew)
    }
}

pub(crate) async fn count(node: &Node, facts: &Facts) {
    let metrics = &node.metrics;
    if facts.first_turn {
        metrics.record_orchestration_start(&facts.name, &facts.version, initiated_by(facts));
        if !continued(facts) {
            metrics.increment_active_orchestrations();
        }
    }
    let Some(end) = &facts.end else { return };
    let duration = since(node.now(), facts.started_at_ms);
    metrics.execution_ended(&EndedExecution {
        orchestration_name: &facts.name,
        version: &facts.version,
        execution_id: facts.execution_id,
        end: match end {
            End::Completed => ExecutionEnd::Completed,
            End::Failed(details) => ExecutionEnd::Failed(details),
            End::ContinuedAsNew => ExecutionEnd::ContinuedAsNew,
        },
        duration,
        turns: facts.turns,
        history_events: facts.history_events,
    });
    if end.ends_instance() {
        metrics.decrement_active_orchestrations();
        count_call(node, facts, end, duration).await;
    }
}

fn continued(facts: &Facts) -> bool {
    facts.execution_id > INITIAL_EXECUTION_ID
}

/// A detached start has no parent link, so it counts as a client's.
fn initiated_by(facts: &Facts) -> &'static str {
    match &facts.parent {
        _ if continued(facts) => "continueAsNew",
        Some(_) => "suborchestration",
        None => "client",
    }
}

/// Counts the ended call of a child. Labels contain the parent's orchestration name, which is looked up.
async fn count_call(node: &Node, facts: &Facts, end: &End, duration: Duration) {
    let Some(link) = &facts.parent else { return };
    let known = link.execution_id.and_then(|execution| node.descriptors.last_name(&link.instance, execution));
    let parent = match known {
        Some(name) => Some(name),
        None => provider_call("read_descriptor", node.store.read_descriptor(&link.instance))
            .await
            .ok()
            .flatten()
            .map(|descriptor| descriptor.name.into()),
    };
    let parent = parent.as_deref().unwrap_or("unknown");
    let outcome = if matches!(end, End::Completed) { "success" } else { "failed" };
    node.metrics.record_suborchestration_call(parent, &facts.name, outcome);
    node.metrics.record_suborchestration_duration(parent, &facts.name, duration.as_secs_f64(), outcome);
}

fn since(now: Timestamp, started_at_ms: Option<u64>) -> Duration {
    started_at_ms.map_or(Duration::ZERO, |started| now.saturating_since(Timestamp::from_millis(started)))
}
