//! Instances whose start is queued.

use duroxide_core::{INITIAL_EXECUTION_ID, Timestamp};
use serde::Deserialize;

use crate::{InstanceInfo, InstanceQuery};

/// The parts of a queued start that describe its instance. Its input is skipped: it may be large.
#[derive(Deserialize)]
enum QueuedStart {
    StartOrchestration(Description),
    ContinueAsNew(Description),
}

#[derive(Deserialize, Default)]
struct Description {
    orchestration: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    parent_instance: Option<String>,
}

/// A pending instance as listings show it, from the JSON of its first queued start. A start that cannot be
/// decoded leaves the name empty.
pub fn pending_info(
    instance_id: String,
    start: &str,
    created_at: Timestamp,
    updated_at: Timestamp,
) -> InstanceInfo {
    let start = match serde_json::from_str(start) {
        Ok(QueuedStart::StartOrchestration(start) | QueuedStart::ContinueAsNew(start)) => start,
        Err(_) => Description::default(),
    };
    InstanceInfo {
        instance_id,
        orchestration_name: start.orchestration,
        orchestration_version: start.version.unwrap_or_else(|| "unknown".to_owned()),
        current_execution_id: INITIAL_EXECUTION_ID,
        status: InstanceQuery::PENDING.to_owned(),
        output: None,
        created_at: created_at.as_millis(),
        updated_at: updated_at.as_millis(),
        parent_instance_id: start.parent_instance,
    }
}
