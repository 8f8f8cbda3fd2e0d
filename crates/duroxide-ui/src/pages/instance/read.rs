//! Reads everything that the page of an instance shows.

use std::collections::BTreeMap;

use duroxide::{
    Client, Event, ExecutionInfo, Explanation, InstanceInfo, InstanceQuery, OrchestrationStatus,
    providers::QueuedWork,
};

use super::family::Family;
use crate::{console::Console, failure::Failure, format};

/// The data that the page of an instance shows.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) now_ms: u64,
    pub(super) info: InstanceInfo,
    /// Why the instance does not move, or why that cannot be explained.
    pub(super) explanation: Result<Explanation, String>,
    pub(super) executions: Vec<u64>,
    pub(super) execution_id: u64,
    pub(super) execution: Option<ExecutionInfo>,
    /// The history, or why it cannot be read: an event of a later version, or damage.
    pub(super) history: Result<Vec<Event>, String>,
    pub(super) key_values: BTreeMap<String, String>,
    pub(super) custom_status: Option<String>,
    pub(super) family: Family,
    pub(super) queued: Option<QueuedWork>,
}

pub(super) async fn read(console: &Console, id: &str, execution: Option<u64>) -> Result<Read, Failure> {
    let client = &console.client;
    let info = client.find_instance(id).await?;
    let is_pending = info.status == InstanceQuery::PENDING;
    let execution_id = execution.unwrap_or(info.current_execution_id);
    let executions = if is_pending { Vec::new() } else { client.list_executions(id).await? };
    if !is_pending && !executions.contains(&execution_id) {
        let text = format!("`{id}` has no execution {execution_id}. It may have been pruned.");
        return Err(Failure::NotFound(text));
    }
    // Concurrently, because the explanation reads a whole history too, and the store has several readers.
    let (explanation, history, execution, key_values, status, family, queued) = tokio::join!(
        client.explain(id),
        history(client, id, execution_id, is_pending),
        client.get_execution_info(id, execution_id),
        client.get_kv_all_values(id),
        client.get_orchestration_status(id),
        Family::read(client, &info),
        client.read_queued_work(id),
    );
    Ok(Read {
        explanation: explanation.map_err(|error| error.to_string()),
        execution: execution.ok(),
        history,
        key_values: key_values?.into_iter().collect(),
        custom_status: custom_status(status?),
        family: family?,
        queued: queued?,
        now_ms: format::now_ms(),
        info,
        executions,
        execution_id,
    })
}

async fn history(
    client: &Client,
    id: &str,
    execution_id: u64,
    is_pending: bool,
) -> Result<Vec<Event>, String> {
    if is_pending {
        return Ok(Vec::new());
    }
    client.read_execution_history(id, execution_id).await.map_err(|error| error.to_string())
}

fn custom_status(status: OrchestrationStatus) -> Option<String> {
    match status {
        OrchestrationStatus::NotFound => None,
        OrchestrationStatus::Running { custom_status, .. }
        | OrchestrationStatus::Completed { custom_status, .. }
        | OrchestrationStatus::Failed { custom_status, .. } => custom_status,
    }
}
