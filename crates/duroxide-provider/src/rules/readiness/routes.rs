//! Routes: which handler an instance needs next.

use duroxide_core::WorkItem;

use crate::rules::{InstanceRow, Route, RouteId, Rows, Rules, Tables};
use crate::{
    VersionTriple,
    store::{MessageKind, StartTarget},
};

impl<T: Tables> Rules<T> {
    /// The handler that is needed next: that of the instance, or, while it waits for its successor, that of the
    /// visible `ContinueAsNew`.
    pub(in crate::rules) fn route_of_known(&mut self, row: &InstanceRow) -> Rows<RouteId> {
        if row.waits_for_successor() {
            return self.route_of_successor(row);
        }
        match row.route {
            Some(route) => Ok(route),
            None => {
                let pinned = self.pinned(row)?;
                self.route_of_execution(row, pinned)
            }
        }
    }

    /// The route of an instance whose current execution is pinned to this version.
    pub(in crate::rules) fn route_of_execution(
        &mut self,
        row: &InstanceRow,
        pinned: Option<VersionTriple>,
    ) -> Rows<RouteId> {
        self.tables.route_id(&Route { name: row.name.clone(), version: row.version.clone(), pinned })
    }

    /// Found anew each time: the stored route may be that of a `ContinueAsNew` that is hidden by now.
    fn route_of_successor(&mut self, row: &InstanceRow) -> Rows<RouteId> {
        let pinned = self.pinned(row)?;
        match self.start_target(row.number, MessageKind::ContinueAsNew)? {
            Some(StartTarget { name, version }) => {
                self.tables.route_id(&Route { name: Some(name), version, pinned })
            }
            None => self.route_of_execution(row, pinned),
        }
    }

    pub(in crate::rules) fn route_of_mailbox(&mut self, number: u64) -> Rows<RouteId> {
        let continued = self.start_target(number, MessageKind::ContinueAsNew)?;
        let start = match continued {
            Some(start) => Some(start),
            None => self.start_target(number, MessageKind::Start)?,
        };
        self.tables.route_id(&start.map(route_of_start).unwrap_or_default())
    }

    fn pinned(&mut self, row: &InstanceRow) -> Rows<Option<VersionTriple>> {
        let current = self.tables.execution(row.number, row.execution_id)?;
        Ok(current.and_then(|execution| execution.pinned))
    }

    /// The handler that the first visible message of this kind asks for.
    fn start_target(&mut self, number: u64, kind: MessageKind) -> Rows<Option<StartTarget>> {
        let start = self.tables.first_visible_start(number, kind, self.now)?;
        Ok(start.and_then(|start| match &start.item {
            Some(item) => start_target(item),
            None => serde_json::from_str(&start.data).ok().as_ref().and_then(start_target),
        }))
    }
}

/// The route of a start, before its execution is pinned.
pub(in crate::rules) fn route_of_start(start: StartTarget) -> Route {
    Route { name: Some(start.name), version: start.version, pinned: None }
}

/// The handler that a start or `ContinueAsNew` asks for.
pub(in crate::rules) fn start_target(item: &WorkItem) -> Option<StartTarget> {
    let (WorkItem::StartOrchestration { orchestration, version, .. }
    | WorkItem::ContinueAsNew { orchestration, version, .. }) = item
    else {
        return None;
    };
    Some(StartTarget { name: orchestration.clone(), version: version.clone() })
}
