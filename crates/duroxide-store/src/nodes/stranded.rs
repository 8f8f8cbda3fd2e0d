//! Finds work that no node can take.

use std::{collections::BTreeSet, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    JoinedNode, MissingCapability, NodeCapability, StrandedWork,
    store::{InstanceNeeds, StoreFailure, StoreReader, StoredNode},
};

use super::{NodeLocks, RENEW_INTERVAL};

/// Dead nodes are not listed, so this may be longer than a process may be stopped for a moment.
const THERE_FOR: Duration = JoinedNode::THERE_FOR;
const _: () = assert!(RENEW_INTERVAL.as_secs() * 6 <= THERE_FOR.as_secs());

/// Ready work that none of the live `stored` nodes can take: at most `max` instances and as many activities. Nothing is stranded
/// while a node runs that could not join yet, because its capabilities are unknown. The row of a node in `ending` may be
/// deleted while its lock is still held.
pub(crate) fn find(
    reader: &mut dyn StoreReader,
    stored: &[StoredNode],
    locks: Option<&dyn NodeLocks>,
    ending: &BTreeSet<String>,
    now: Timestamp,
    max: usize,
) -> Result<Vec<StrandedWork>, StoreFailure> {
    // After the nodes were read: a node that joins in between is among the nodes or holds a lock.
    if locks.is_some_and(|locks| has_joining_node(locks, stored, ending)) {
        return Ok(Vec::new());
    }
    let Some(nodes) = capabilities(stored, now) else { return Ok(Vec::new()) };
    let mut stranded = instances(reader, &nodes, max)?;
    stranded.extend(activities(reader, &nodes, max)?);
    Ok(stranded)
}

fn has_joining_node(locks: &dyn NodeLocks, stored: &[StoredNode], ending: &BTreeSet<String>) -> bool {
    let joined = stored.iter().map(|node| node.name.clone()).chain(ending.iter().cloned()).collect();
    locks.has_joining_node(&joined, THERE_FOR)
}

/// The capabilities of the live nodes. `None` if there are no nodes, or if the capabilities of one cannot be decoded: a later
/// release may be able to take anything.
fn capabilities(nodes: &[StoredNode], now: Timestamp) -> Option<Vec<NodeCapability>> {
    let there = nodes.iter().filter(|node| now.saturating_since(node.seen_at) < THERE_FOR);
    let read: Option<Vec<_>> = there.map(|node| serde_json::from_str(&node.capability).ok()).collect();
    read.filter(|nodes| !nodes.is_empty())
}

fn instances(
    reader: &mut dyn StoreReader,
    nodes: &[NodeCapability],
    max: usize,
) -> Result<Vec<StrandedWork>, StoreFailure> {
    let missing = |needs: &InstanceNeeds| {
        MissingCapability::for_instance(nodes, needs.name.as_deref(), needs.version.as_deref(), needs.pinned)
    };
    let ready = reader.ready_instances(&|needs| missing(needs).is_some(), max)?;
    let stranded = ready.into_iter().filter_map(|ready| {
        Some(StrandedWork {
            missing: missing(&ready.needs)?,
            instance: ready.instance,
            activity: None,
            cancel_requested: ready.cancel_requested,
        })
    });
    Ok(stranded.collect())
}

fn activities(
    reader: &mut dyn StoreReader,
    nodes: &[NodeCapability],
    max: usize,
) -> Result<Vec<StrandedWork>, StoreFailure> {
    let missing = |name: &str, tag: Option<&str>| MissingCapability::for_activity(nodes, name, tag);
    let ready = reader.ready_activities(&|name, tag| missing(name, tag).is_some(), max)?;
    let stranded = ready.into_iter().filter_map(|ready| {
        Some(StrandedWork {
            instance: ready.id.instance.clone(),
            missing: missing(&ready.name, ready.tag.as_deref())?,
            activity: Some(ready.id),
            cancel_requested: false,
        })
    });
    Ok(stranded.collect())
}
