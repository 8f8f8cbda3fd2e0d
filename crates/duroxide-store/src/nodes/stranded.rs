//! Work that no node can take.

use std::{collections::BTreeSet, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    JoinedNode, MissingCapability, NodeCapability, StrandedWork,
    store::{InstanceNeeds, StoreFailure, StoreReader, StoredNode},
};

use super::{NodeLocks, RENEW_INTERVAL};

/// Nodes that have ended are no longer listed, so the pause may be longer than a short stop.
const THERE_FOR: Duration = JoinedNode::THERE_FOR;
const _: () = assert!(RENEW_INTERVAL.as_secs() * 6 <= THERE_FOR.as_secs());

/// Ready work that none of the `stored` nodes that are there can take: at most `max` instances and as many activities. Nothing is
/// stranded while a node runs that could not join yet: it takes work, and nobody knows what it is able to do. The row of a
/// node that is `ending` may be gone while its lock is still held.
pub(crate) fn find(
    reader: &mut dyn StoreReader,
    stored: &[StoredNode],
    locks: Option<&dyn NodeLocks>,
    ending: &BTreeSet<String>,
    now: Timestamp,
    max: usize,
) -> Result<Vec<StrandedWork>, StoreFailure> {
    // After the nodes were read: one that joins in between is seen in one of the two places.
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

/// The capabilities of the nodes that have joined. `None` if there are none, or if one of them says something that cannot be read:
/// who knows what a later release can do.
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
