//! Reads the facts of an explanation.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use duroxide_core::{CallTarget, Event, OpenCalls, WorkItem, build_child_instance_id};
use duroxide_provider::{
    InstanceInfo, InstanceQuery, JoinedNode, ProviderAdmin, ProviderError, QueuedMessageInfo, QueuedWork,
};

use super::{Explanation, decide};
use crate::client::{Client, ClientError, find};

/// How many children are explained in all.
pub(super) const CHILDREN_MAX: usize = 10;
/// How many levels of children are explained.
pub(super) const LEVELS_MAX: usize = 3;

/// Everything that is known of an instance.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The instance; of a pending one, the values of its start.
    pub(super) info: InstanceInfo,
    /// The event that ended it.
    pub(super) end: Option<Event>,
    /// The history of the current execution, unless it has ended; or why the history cannot be read.
    pub(super) history: Result<Vec<Event>, String>,
    /// `None` if the store does not show it.
    pub(super) work: Option<QueuedWork>,
    /// The nodes that have joined. Without `work` the list has no meaning: the store may not record nodes.
    pub(super) nodes: Vec<JoinedNode>,
    /// The explanations of children.
    pub(super) children: BTreeMap<String, Explanation>,
    /// When the store was read.
    pub(super) now_ms: u64,
}

/// Reads an instance and its children; `None` for an unknown instance.
pub(super) async fn facts(
    client: &Client,
    instance: &str,
    levels: usize,
    children_left: &mut usize,
) -> Result<Option<Facts>, ClientError> {
    let admin = client.admin()?;
    let nodes = admin.list_nodes().await?;
    let Some(mut facts) = of_instance(client, admin, instance, nodes).await? else { return Ok(None) };
    for child in open_children(&facts) {
        if levels == 0 || *children_left == 0 {
            break;
        }
        *children_left -= 1;
        // The future of the recursion has to be on the heap, because it would contain itself.
        let below = Box::pin(self::facts(client, &child, levels - 1, children_left)).await?;
        facts.children.extend(below.map(|facts| (child, decide::explain(facts))));
    }
    Ok(Some(facts))
}

async fn of_instance(
    client: &Client,
    admin: &dyn ProviderAdmin,
    instance: &str,
    nodes: Vec<JoinedNode>,
) -> Result<Option<Facts>, ClientError> {
    let Some(status) = client.store.read_status_or_pending(instance).await? else { return Ok(None) };
    let work = admin.read_queued_work(instance).await?;
    let info = find::record(admin, instance, work.as_ref()).await?;
    let ended = status.terminal_event.is_some() || info.status == InstanceQuery::PENDING;
    let history = if ended { Ok(Vec::new()) } else { history(admin, &info).await? };
    let now_ms = work.as_ref().map_or_else(clock_ms, |work| work.now_ms);
    let end = status.terminal_event;
    Ok(Some(Facts { info, end, history, work, nodes, children: BTreeMap::new(), now_ms }))
}

/// The time for a store that does not show its own.
fn clock_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

async fn history(
    admin: &dyn ProviderAdmin,
    info: &InstanceInfo,
) -> Result<Result<Vec<Event>, String>, ProviderError> {
    let read = admin.read_history_with_execution_id(&info.instance_id, info.current_execution_id).await;
    match read {
        Ok(history) => Ok(Ok(history)),
        Err(error) if error.is_retryable() => Err(error),
        Err(error) => Ok(Err(error.message)),
    }
}

fn open_children(facts: &Facts) -> Vec<String> {
    let Ok(history) = &facts.history else { return Vec::new() };
    let calls = OpenCalls::of(history).calls.into_iter();
    let children = calls.filter_map(|call| match call.target {
        CallTarget::Child { instance, .. } => {
            Some(build_child_instance_id(&facts.info.instance_id, instance))
        }
        CallTarget::Activity { .. }
        | CallTarget::Event { .. }
        | CallTarget::Cancellation
        | CallTarget::Queue { .. }
        | CallTarget::Timer { .. } => None,
    });
    children.take(CHILDREN_MAX).collect()
}

/// The messages that can be decoded, with the times that the store shows.
pub(super) fn messages(work: &QueuedWork) -> Vec<Message> {
    let decode = |shown: &QueuedMessageInfo| {
        let item = serde_json::from_str(&shown.data).ok()?;
        Some(Message { item, enqueued_at_ms: shown.enqueued_at_ms, visible_at_ms: shown.visible_at_ms })
    };
    work.messages.iter().filter_map(decode).collect()
}

/// A message in the mailbox of the instance.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) item: WorkItem,
    pub(super) enqueued_at_ms: u64,
    pub(super) visible_at_ms: Option<u64>,
}
