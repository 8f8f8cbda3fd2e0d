//! Serving the fetches of a batch, oldest first.

use crate::store::{ActivityFetch, Claimed, InstanceFetch, StoreFailure, StoredNode, WaitingFetch};

/// How many filters are remembered as having found nothing. Fetches of one runtime all have the same.
const EXHAUSTED_MAX: usize = 8;

/// What decides whether a fetch can get something that another one has left.
pub(super) trait Filter: Clone {
    fn passes_the_same_as(&self, other: &Self) -> bool;
    fn max(&self) -> usize;
    fn free_slots(&self) -> usize;
}

/// What each fetch of a queue gets: nothing if the store was asked for it before and the batch made nothing ready
/// (`readied`), or if an older fetch with the same filter has left nothing.
///
/// # Errors
/// The index of the fetch whose claim failed.
pub(super) fn serve_queue<F: Filter, C>(
    fetches: &[WaitingFetch<'_, F>],
    readied: bool,
    mut claim: impl FnMut(&F) -> Result<Claimed<C>, StoreFailure>,
) -> Result<Vec<Option<Claimed<C>>>, (usize, StoreFailure)> {
    let mut exhausted: Vec<&F> = Vec::new();
    let mut served = Vec::with_capacity(fetches.len());
    for (index, fetch) in fetches.iter().enumerate() {
        let request = &*fetch.request;
        if fetch.was_tried && !readied {
            served.push(None);
        } else if exhausted.iter().any(|other| other.passes_the_same_as(request)) {
            served.push(Some(Claimed { took_all: true, ..Claimed::default() }));
        } else {
            let mut claimed = claim(request).map_err(|failure| (index, failure))?;
            claimed.took_all |= has_emptied_queue(request, claimed.items.len());
            if claimed.took_all && exhausted.len() < EXHAUSTED_MAX {
                exhausted.push(request);
            }
            served.push(Some(claimed));
        }
    }
    Ok(served)
}

/// A fetch that got less than it asked for has emptied its queue, unless its free slots may have held it up: rows that
/// were attempted before are left to fetches with more of them.
fn has_emptied_queue<F: Filter>(fetch: &F, taken: usize) -> bool {
    taken < fetch.max() && taken < fetch.free_slots()
}

/// The nodes that were there when someone decided to fetch an item by its name.
pub(super) struct NodesSeen<'a> {
    seen: Option<&'a [StoredNode]>,
    are_still_there: Option<bool>,
}

impl<'a> NodesSeen<'a> {
    pub(super) fn new(seen: Option<&'a [StoredNode]>) -> Self {
        Self { seen, are_still_there: None }
    }

    /// Whether the same nodes are there now, and no other. A node that joined again under its name is another one.
    pub(super) fn are_still_there(
        &mut self,
        nodes: impl FnOnce() -> Result<Vec<StoredNode>, StoreFailure>,
    ) -> Result<bool, StoreFailure> {
        let Some(seen) = self.seen else { return Ok(true) };
        if let Some(known) = self.are_still_there {
            return Ok(known);
        }
        let now = nodes()?;
        let incarnation = |node: &StoredNode| (node.id, node.started_at);
        let same = seen.iter().map(incarnation).eq(now.iter().map(incarnation));
        self.are_still_there = Some(same);
        Ok(same)
    }
}

impl Filter for InstanceFetch {
    fn passes_the_same_as(&self, other: &Self) -> bool {
        self.passes_the_same_as(other)
    }

    fn max(&self) -> usize {
        self.max
    }

    fn free_slots(&self) -> usize {
        self.free_slots
    }
}

impl Filter for ActivityFetch {
    fn passes_the_same_as(&self, other: &Self) -> bool {
        self.passes_the_same_as(other)
    }

    fn max(&self) -> usize {
        self.max
    }

    fn free_slots(&self) -> usize {
        self.free_slots
    }
}
