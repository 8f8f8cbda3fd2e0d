//! Routes: which handler an instance needs next.

use duroxide_core::WorkItem;

use crate::rules::{InstanceRow, QueuedMessage, Route, RouteId, Rows, Rules, Tables};
use crate::{
    VersionTriple,
    store::{MessageKind, StartTarget},
};

impl<T: Tables> Rules<T> {
    /// The route that a claim of this instance must accept. The instance has the messages for a turn.
    pub(super) fn route_of(&mut self, row: &InstanceRow) -> Rows<RouteId> {
        if start_kinds(row).is_empty()
            && let Some(route) = row.route
        {
            return Ok(route);
        }
        let pinned = if row.known { self.pinned(row)? } else { None };
        let start = self.next_start(row)?;
        self.tables.route_id(&route(row, pinned, start))
    }

    /// The route of an instance whose current execution is pinned to this version.
    pub(in crate::rules) fn route_of_execution(
        &mut self,
        row: &InstanceRow,
        pinned: Option<VersionTriple>,
    ) -> Rows<RouteId> {
        self.tables.route_id(&route(row, pinned, None))
    }

    fn pinned(&mut self, row: &InstanceRow) -> Rows<Option<VersionTriple>> {
        let current = self.tables.execution(row.number, row.execution_id)?;
        Ok(current.and_then(|execution| execution.pinned))
    }

    fn next_start(&mut self, row: &InstanceRow) -> Rows<Option<StartTarget>> {
        for kind in start_kinds(row) {
            let start = self.tables.first_visible_start(row.number, *kind, self.now)?;
            if let Some(target) = start.as_ref().and_then(target_of) {
                return Ok(Some(target));
            }
        }
        Ok(None)
    }
}

/// The starts that decide the route of an instance: the first visible one of the first of these kinds of which one is visible and
/// can be decoded.
fn start_kinds(row: &InstanceRow) -> &'static [MessageKind] {
    if !row.known {
        &[MessageKind::ContinueAsNew, MessageKind::Start]
    } else if row.waits_for_successor() {
        // Found anew each time: the stored route may be that of a `ContinueAsNew` that is hidden by now.
        &[MessageKind::ContinueAsNew]
    } else {
        &[]
    }
}

/// The route of an instance with these messages, all of them visible and by position: [`Rules::route_of`] without tables.
pub(in crate::rules) fn route_with<'a>(
    row: &InstanceRow,
    pinned: Option<VersionTriple>,
    visible: impl Iterator<Item = &'a QueuedMessage> + Clone,
) -> Route {
    let first = |kind: &MessageKind| visible.clone().find(|message| message.kind == *kind);
    let start = start_kinds(row).iter().find_map(|kind| first(kind).and_then(target_of));
    route(row, pinned, start)
}

/// `start`: the start that decides the route, if one does.
fn route(row: &InstanceRow, pinned: Option<VersionTriple>, start: Option<StartTarget>) -> Route {
    match start {
        Some(StartTarget { name, version }) => Route { name: Some(name), version, pinned },
        None => Route { name: row.name.clone(), version: row.version.clone(), pinned },
    }
}

fn target_of(start: &QueuedMessage) -> Option<StartTarget> {
    match &start.item {
        Some(item) => start_target(item),
        None => serde_json::from_str(&start.data).ok().as_ref().and_then(start_target),
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
