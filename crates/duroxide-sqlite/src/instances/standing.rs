//! When an instance can be claimed. Every change of a mailbox or a lock ends in [`SqliteEngine::settle`].

use duroxide_core::Timestamp;
use duroxide_provider::store::{MessageKind, StoreFailure};

use super::{Changed, InstanceRow, Place};
use crate::{
    SqliteEngine,
    db::micros,
    executions::ExecutionRow,
    routes::{ORPHANS, Route},
};

const SET_STANDING: &str = "UPDATE instance SET route = ?2, ready = ?3, wake_at = ?4 WHERE id = ?1";
const STAND_UP: &str = "UPDATE instance SET ready = ?2, wake_at = NULL WHERE id = ?1";
/// Only an instance that goes on waiting for messages and for nothing else; whatever is unusual about others is looked
/// at.
const STAND_UP_IF_WAITING: &str = "UPDATE instance SET ready = ?3, wake_at = NULL
    WHERE id = ?1 AND instance_id = ?2 AND known = 1 AND status = 'Running' AND ready IS NULL
      AND lock_token IS NULL AND route > 0";
const HAS_ACTIVITIES: &str = "SELECT 1 FROM activity WHERE instance = ?1 LIMIT 1";

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Someone holds it until then.
    Locked { until: Timestamp },
    /// It can be claimed by who accepts its route.
    Ready { route: i64 },
    /// Something may become visible then; otherwise it waits for a message.
    Waiting { until: Option<Timestamp> },
    /// A mailbox of only queue messages: the next claim drops it, or its time runs out.
    Stray { until: Option<Timestamp> },
    /// A mailbox that holds nothing.
    Empty,
}

impl SqliteEngine {
    /// Files an instance where it now belongs.
    pub(crate) fn settle(&mut self, row: &InstanceRow) -> Result<(), StoreFailure> {
        match self.place(row)? {
            Some(Place { route, ready, wake_at }) => {
                self.kept.forget(row.id);
                self.db.execute(SET_STANDING, (row.id, route, ready, wake_at)).map(|_| ())
            }
            None => self.delete_instance_row(row.id),
        }
    }

    /// The same for a row of which more than its place is written.
    pub(crate) fn write_settled(&mut self, row: &InstanceRow, changed: Changed) -> Result<(), StoreFailure> {
        match self.place(row)? {
            Some(place) => self.write_instance(row, place, changed),
            None => self.delete_instance_row(row.id),
        }
    }

    /// Lets an instance stand in line on its route that waited for nothing but a message.
    pub(crate) fn stand_up(&mut self, id: i64) -> Result<(), StoreFailure> {
        let ready = self.sequence.take();
        self.kept.stood_up(id, ready);
        self.db.execute(STAND_UP, (id, ready)).map(|_| ())
    }

    /// The same, if that is what it did; returns whether it was. Nothing of it is read.
    pub(crate) fn stand_up_if_waiting(&mut self, id: i64, instance_id: &str) -> Result<bool, StoreFailure> {
        let ready = self.sequence.take();
        let stood_up = self.db.execute(STAND_UP_IF_WAITING, (id, instance_id, ready))? > 0;
        if stood_up {
            self.kept.stood_up(id, ready);
        }
        Ok(stood_up)
    }

    /// Where an instance belongs; `None` if it holds nothing. One that stays ready keeps its place in the line.
    pub(crate) fn place(&mut self, row: &InstanceRow) -> Result<Option<Place>, StoreFailure> {
        let (route, ready, wake_at) = match self.standing(row)? {
            Standing::Empty => return Ok(None),
            Standing::Locked { until } => (row.route, None, Some(until)),
            // A stray stood in the line of those to be dropped; its start gives it a place in the other.
            Standing::Ready { route } if row.route == Some(ORPHANS) => {
                (Some(route), Some(self.sequence.take()), None)
            }
            Standing::Ready { route } => (Some(route), Some(self.place_in_line(row)), None),
            Standing::Waiting { until } => (row.route, None, until),
            Standing::Stray { until } => (Some(ORPHANS), Some(self.place_in_line(row)), until),
        };
        Ok(Some(Place { route, ready, wake_at: wake_at.map(micros) }))
    }

    /// Files an instance at the back of the line if it is ready: what stays after a turn must not starve others.
    pub(crate) fn settle_at_the_back(&mut self, row: &InstanceRow) -> Result<(), StoreFailure> {
        self.settle(&InstanceRow { ready: None, ..row.clone() })
    }

    /// Whether it can be claimed, as far as its messages are concerned.
    pub(crate) fn is_ready(&self, row: &InstanceRow) -> Result<bool, StoreFailure> {
        if row.known { self.has_visible(row.id) } else { self.has_visible_start(row.id) }
    }

    fn place_in_line(&mut self, row: &InstanceRow) -> i64 {
        row.ready.unwrap_or_else(|| self.sequence.take())
    }

    fn standing(&mut self, row: &InstanceRow) -> Result<Standing, StoreFailure> {
        if let Some(lock) = row.lock.as_ref().filter(|lock| lock.is_live(self.now)) {
            return Ok(Standing::Locked { until: lock.until });
        }
        if row.known { self.standing_of_known(row) } else { self.standing_of_mailbox(row) }
    }

    fn standing_of_known(&mut self, row: &InstanceRow) -> Result<Standing, StoreFailure> {
        if !self.has_messages(row.id)? {
            return Ok(Standing::Waiting { until: None });
        }
        if self.has_visible(row.id)? {
            return Ok(Standing::Ready { route: self.route_of_known(row)? });
        }
        Ok(Standing::Waiting { until: self.next_visible(row.id)? })
    }

    /// An instance without history is ready only with its start, so strays are never candidates (16.11).
    fn standing_of_mailbox(&mut self, row: &InstanceRow) -> Result<Standing, StoreFailure> {
        if !self.has_messages(row.id)? {
            let holds_activities = self.db.exists(HAS_ACTIVITIES, [row.id])?;
            return Ok(if holds_activities { Standing::Waiting { until: None } } else { Standing::Empty });
        }
        if self.has_visible_start(row.id)? {
            return Ok(Standing::Ready { route: self.route_of_mailbox(row.id)? });
        }
        let next_visible = self.next_visible(row.id)?;
        if self.has_start(row.id)? {
            return Ok(Standing::Waiting { until: next_visible });
        }
        let until = next_visible.into_iter().chain(self.next_orphan(row.id)?).min();
        let stray = self.holds_only_queue_messages(row.id)?;
        Ok(if stray { Standing::Stray { until } } else { Standing::Waiting { until } })
    }

    /// The handler that is needed next: that of the instance, or, while it waits for its successor, that of the
    /// visible `ContinueAsNew`.
    pub(crate) fn route_of_known(&mut self, row: &InstanceRow) -> Result<i64, StoreFailure> {
        if row.waits_for_successor() {
            return self.route_of_waiting(row);
        }
        if let Some(route) = row.route.filter(|route| *route != ORPHANS) {
            return Ok(route);
        }
        let current = self.execution(row.id, row.execution_id)?;
        self.route_of_execution(row, current.as_ref())
    }

    /// The route of an instance with this current execution.
    pub(crate) fn route_of_execution(
        &mut self,
        row: &InstanceRow,
        current: Option<&ExecutionRow>,
    ) -> Result<i64, StoreFailure> {
        let pinned = current.and_then(|execution| execution.pinned);
        self.route(Route { name: row.name.clone(), version: row.version.clone(), pinned })
    }

    /// Found anew each time: what is stored may be the route of a `ContinueAsNew` that is hidden by now.
    fn route_of_waiting(&mut self, row: &InstanceRow) -> Result<i64, StoreFailure> {
        let pinned = self.pinned(row.id, row.execution_id)?;
        let (name, version) = match self.start_target(row.id, MessageKind::ContinueAsNew)? {
            Some(start) => (Some(start.name), start.version),
            None => (row.name.clone(), row.version.clone()),
        };
        self.route(Route { name, version, pinned })
    }

    fn route_of_mailbox(&mut self, id: i64) -> Result<i64, StoreFailure> {
        let continued = self.start_target(id, MessageKind::ContinueAsNew)?;
        let start = match continued {
            Some(start) => Some(start),
            None => self.start_target(id, MessageKind::Start)?,
        };
        let (name, version) = start.map_or((None, None), |start| (Some(start.name), start.version));
        self.route(Route { name, version, pinned: None })
    }

    pub(crate) fn route(&mut self, route: Route) -> Result<i64, StoreFailure> {
        self.routes.id(&self.db, route)
    }
}
