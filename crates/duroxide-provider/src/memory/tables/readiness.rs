//! Ready instances by route, and due rows.

use duroxide_core::Timestamp;

use super::MemoryTables;
use crate::{
    rules::{DueInstance, ReadyIndex, Route, RouteId, Rows},
    store::Readies,
};

impl ReadyIndex for MemoryTables {
    fn route_id(&mut self, route: &Route) -> Rows<RouteId> {
        Ok(RouteId(self.routes.number(route)))
    }

    fn route(&mut self, id: RouteId) -> Rows<Option<Route>> {
        Ok(self.routes.value(id.0).cloned())
    }

    fn ready_routes(&mut self) -> Rows<Vec<RouteId>> {
        Ok(self.instances.ready_routes().collect())
    }

    fn ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<Vec<(u64, u64)>> {
        Ok(self.instances.ready_on(route).take(limit).collect())
    }

    fn stray_instances(&mut self) -> Rows<Vec<u64>> {
        Ok(self.instances.strays().collect())
    }

    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>> {
        let due = self.instances.due(now);
        Ok(due.map(|number| DueInstance { number, is_plainly_ready: false }).collect())
    }

    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>> {
        let mut sessions = self.sessions.ends_after(sessions_after);
        let session = sessions.find(|(_, id)| self.activities.are_in_session(id)).map(|(until, _)| *until);
        let removal = self.removal_tasks.iter().map(|(_, remove_at)| *remove_at).min();
        let rows = self.instances.next_due().into_iter().chain(self.activities.next_due());
        Ok(rows.chain(session).chain(removal).min())
    }

    fn may_be_ready(&mut self) -> Rows<Readies> {
        Ok(Readies { instances: self.instances.are_ready(), activities: self.activities.are_ready() })
    }
}
