//! Ready instances by route, and due rows.

use duroxide_core::Timestamp;

use crate::{
    rules::{Route, RouteId, Rows},
    store::Readies,
};

/// Ready instances by route, and due rows.
pub trait ReadyIndex {
    /// The key of a route, which is stored if it is new.
    fn route_id(&mut self, route: &Route) -> Rows<RouteId>;

    /// The route of a key.
    fn route(&mut self, id: RouteId) -> Rows<Option<Route>>;

    /// The routes on which an instance is ready, in any fixed order.
    fn ready_routes(&mut self) -> Rows<Vec<RouteId>>;

    /// Ready instances on a route, lowest ready number first, at most `limit`: ready number and number.
    fn ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<Vec<(u64, u64)>>;

    /// How many instances are ready on a route whose instances the claim does not take, at most `limit`. Tables whose rows
    /// are locked by [`Self::ready_on_route`] must not lock these, because another node may take them.
    fn count_ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<usize> {
        Ok(self.ready_on_route(route, limit)?.len())
    }

    /// Numbers of stray mailboxes, ascending.
    fn stray_instances(&mut self) -> Rows<Vec<u64>>;

    /// Due instances, by (time, number).
    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>>;

    /// The earliest time at which something is due: an instance or activity that waits, a removal, or the lease of a
    /// session that has queued activities and ends after `sessions_after`.
    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>>;

    /// Which queues may have ready items. A queue with a ready item is never left out.
    fn may_be_ready(&mut self) -> Rows<Readies>;
}

/// A due instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueInstance {
    /// The instance.
    pub number: u64,
    /// Whether the tables know that it is known, unlocked, on its route, does not wait for its successor, and has a
    /// message that is visible and no queue message: it is ready, and no other row has to be read. A shortcut of
    /// `rules/readiness.rs`; tables that do not know it return `false`.
    pub is_plainly_ready: bool,
}
