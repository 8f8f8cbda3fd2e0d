//! Fetches that take an item in order to end it, because no node can run it.

use duroxide_core::Timestamp;
use duroxide_provider::{
    StrandedWork,
    store::{Op, StoredNode},
};

use super::StoreDriver;
use crate::{fetch::QueueFetch, job::Job, log, machine::Prospect, nodes::stranded};

/// How many stranded items are read to find one. The sweeper ends the items first that have waited longest.
const STRANDED_MAX: usize = 1_000;

/// The items that a fetch may take in order to end them, because no node can run them.
pub(super) enum Endable {
    /// No fetch asks for such an item.
    NotAsked,
    /// Unknown, because the batch itself changes the nodes.
    NotKnownYet,
    Known {
        /// The nodes of the store.
        nodes: Vec<StoredNode>,
        /// The items that none of them can take.
        work: Vec<StrandedWork>,
    },
}

impl StoreDriver {
    /// Finds the items that no node can take, if a fetch asks for such an item. The transaction checks that no node has
    /// joined in between.
    pub(super) fn look_for_endable(&mut self, jobs: &[Job], now: Timestamp) -> Endable {
        if !self.machine.instances.has_fetch_to_end() && !self.machine.activities.has_fetch_to_end() {
            return Endable::NotAsked;
        }
        if jobs.iter().any(|job| matches!(job.op(), Op::JoinNode(_) | Op::EndNode { .. })) {
            return Endable::NotKnownYet;
        }
        let found = self.call("nodes", |engine| engine.nodes()).and_then(|nodes| {
            let (locks, ending) = (self.nodes.locks(), self.nodes.ending());
            let work = stranded::find(&mut *self.engine, &nodes, locks, &ending, now, STRANDED_MAX)?;
            Ok(Endable::Known { nodes, work })
        });
        found.unwrap_or_else(|failure| {
            log::upkeep_failed(&self.name, "nodes", &failure);
            Endable::Known { nodes: Vec::new(), work: Vec::new() }
        })
    }
}

impl Endable {
    pub(super) fn prospect<F: QueueFetch>(&self, fetch: &F) -> Prospect {
        match self {
            _ if !fetch.is_to_end() => Prospect::Some,
            Self::NotKnownYet => Prospect::Later,
            Self::Known { work, .. } if work.iter().any(|work| fetch.names(work)) => Prospect::Some,
            Self::Known { .. } | Self::NotAsked => Prospect::None,
        }
    }

    pub(super) fn into_nodes(self) -> Option<Vec<StoredNode>> {
        match self {
            Self::Known { nodes, .. } => Some(nodes),
            Self::NotAsked | Self::NotKnownYet => None,
        }
    }
}
