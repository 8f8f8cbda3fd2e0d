//! Rows of instances, and how claims and promotions find them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use duroxide_core::Timestamp;

use super::{
    MemoryTables,
    table::{Index, Table, refile},
};
use crate::{
    InstanceFilter,
    rules::{Family, InstanceChange, InstanceRow, InstanceTable, Loaded, Readiness, RouteId, Rows},
    store::bounds::BULK_LIMIT_DEFAULT,
};

pub(in crate::memory) type Instances = Table<u64, InstanceRow, InstanceIndex>;

#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct InstanceIndex {
    ids: BTreeMap<String, u64>,
    /// Parent and number.
    children: BTreeSet<(String, u64)>,
    /// Route, ready number and number of ready instances.
    ready: BTreeSet<(RouteId, u64, u64)>,
    strays: BTreeSet<u64>,
    /// When readiness has to be decided anew.
    waits: BTreeSet<(Timestamp, u64)>,
    /// When leases end.
    leases: BTreeSet<(Timestamp, u64)>,
}

impl Index<u64, InstanceRow> for InstanceIndex {
    fn file(&mut self, number: &u64, before: Option<&InstanceRow>, after: Option<&InstanceRow>) {
        if before.map(|row| &row.id) != after.map(|row| &row.id) {
            before.map(|row| self.ids.remove(&row.id));
            self.ids.extend(after.map(|row| (row.id.clone(), *number)));
        }
        let parent = |row: &InstanceRow| Some((row.parent.clone()?, *number));
        refile(&mut self.children, before.and_then(parent), after.and_then(parent));
        let ready = |row: &InstanceRow| match row.readiness {
            Readiness::Ready { number: ready } => Some((row.route?, ready, *number)),
            Readiness::Waiting { .. } | Readiness::Stray { .. } => None,
        };
        refile(&mut self.ready, before.and_then(ready), after.and_then(ready));
        let stray = |row: &InstanceRow| matches!(row.readiness, Readiness::Stray { .. }).then_some(*number);
        refile(&mut self.strays, before.and_then(stray), after.and_then(stray));
        let waits = |row: &InstanceRow| Some((row.waits_until()?, *number));
        refile(&mut self.waits, before.and_then(waits), after.and_then(waits));
        let lease = |row: &InstanceRow| Some((row.lock.as_ref()?.lease.until, *number));
        refile(&mut self.leases, before.and_then(lease), after.and_then(lease));
    }
}

impl Instances {
    pub(in crate::memory) fn find(&self, id: &str) -> Option<u64> {
        self.index().ids.get(id).copied()
    }

    pub(in crate::memory) fn named(&self, id: &str) -> Option<&InstanceRow> {
        self.get(&self.find(id)?)
    }

    /// Numbers in the order of ids.
    pub(in crate::memory) fn by_id(&self) -> impl Iterator<Item = &InstanceRow> {
        self.index().ids.values().filter_map(|number| self.get(number))
    }

    pub(in crate::memory) fn children(&self, id: &str) -> impl Iterator<Item = u64> {
        let of_parent = (id.to_owned(), 0)..=(id.to_owned(), u64::MAX);
        self.index().children.range(of_parent).map(|(_, number)| *number)
    }

    /// Writes a row of which only these columns may differ.
    pub(in crate::memory) fn write(&mut self, row: InstanceRow, change: InstanceChange) {
        debug_assert!(
            self.get(&row.number).is_some_and(|before| is_named(change, before, &row)),
            "{row:?} differs from {:?} in more than {change:?}",
            self.get(&row.number),
        );
        self.put(row.number, row);
    }

    pub(in crate::memory) fn ready_routes(&self) -> impl Iterator<Item = RouteId> {
        let ready = &self.index().ready;
        let next = |after: Bound<(RouteId, u64, u64)>| {
            ready.range((after, Bound::Unbounded)).next().map(|(route, ..)| *route)
        };
        std::iter::successors(next(Bound::Unbounded), move |route| {
            next(Bound::Excluded((*route, u64::MAX, u64::MAX)))
        })
    }

    /// Ready number and number of the ready instances on a route.
    pub(in crate::memory) fn ready_on(&self, route: RouteId) -> impl Iterator<Item = (u64, u64)> {
        let on_route = (route, 0, 0)..=(route, u64::MAX, u64::MAX);
        self.index().ready.range(on_route).map(|(_, ready, number)| (*ready, *number))
    }

    pub(in crate::memory) fn are_ready(&self) -> bool {
        !self.index().ready.is_empty() || !self.index().strays.is_empty()
    }

    pub(in crate::memory) fn strays(&self) -> impl Iterator<Item = u64> {
        self.index().strays.iter().copied()
    }

    pub(in crate::memory) fn due(&self, now: Timestamp) -> impl Iterator<Item = u64> {
        self.index().waits.range(..=(now, u64::MAX)).map(|(_, number)| *number)
    }

    /// Numbers of the rows that wait for a time, the earliest first.
    pub(in crate::memory) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.index().waits.iter().map(|(_, number)| *number)
    }

    pub(in crate::memory) fn next_due(&self) -> Option<Timestamp> {
        self.index().waits.first().map(|(until, _)| *until)
    }

    /// Rows whose lease ends after this time, by number.
    pub(in crate::memory) fn leased(&self, after: Timestamp) -> impl Iterator<Item = &InstanceRow> {
        let leases = self.index().leases.range((Bound::Excluded((after, u64::MAX)), Bound::Unbounded));
        let numbers: BTreeSet<u64> = leases.map(|(_, number)| *number).collect();
        numbers.into_iter().filter_map(|number| self.get(&number))
    }

    /// Known instances that the filter names, by number.
    pub(in crate::memory) fn named_by(&self, filter: &InstanceFilter) -> impl Iterator<Item = &InstanceRow> {
        let numbers: Option<BTreeSet<u64>> =
            filter.instance_ids.as_ref().map(|ids| ids.iter().filter_map(|id| self.find(id)).collect());
        let all = numbers.is_none().then(|| self.iter().map(|(_, row)| row));
        let named = numbers.unwrap_or_default().into_iter().filter_map(|number| self.get(&number));
        named.chain(all.into_iter().flatten()).filter(|row| row.known)
    }
}

/// How many instances a filter selects at most.
pub(in crate::memory) fn limit(filter: &InstanceFilter) -> usize {
    filter.limit.unwrap_or(BULK_LIMIT_DEFAULT) as usize
}

/// Whether two rows differ in nothing but readiness, route and the columns that a change names.
fn is_named(change: InstanceChange, before: &InstanceRow, after: &InstanceRow) -> bool {
    let mut named = InstanceRow { readiness: after.readiness, route: after.route, ..before.clone() };
    if change >= InstanceChange::Lock {
        (named.lock, named.may_be_poison, named.losses) =
            (after.lock.clone(), after.may_be_poison, after.losses);
    }
    if change >= InstanceChange::Round {
        (named.execution_id, named.updated_at) = (after.execution_id, after.updated_at);
    }
    if change >= InstanceChange::Status {
        named.status.clone_from(&after.status);
    }
    change == InstanceChange::Description || named == *after
}

impl InstanceTable for MemoryTables {
    fn instance(&mut self, number: u64) -> Rows<Option<InstanceRow>> {
        Ok(self.instances.get(&number).cloned())
    }

    fn instance_named(&mut self, id: &str) -> Rows<Option<InstanceRow>> {
        Ok(self.instances.named(id).cloned())
    }

    fn load(&mut self, number: u64) -> Rows<Option<Loaded>> {
        let row = self.instances.get(&number);
        Ok(row.map(|row| Loaded { row: row.clone(), execution: self.current_execution(row).cloned() }))
    }

    fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Rows<()> {
        self.instances.write(loaded.row, change);
        Ok(())
    }

    fn insert_instance(&mut self, row: &InstanceRow) -> Rows<bool> {
        let is_free = self.instances.find(&row.id).is_none();
        if is_free {
            self.instances.put(row.number, row.clone());
        }
        Ok(is_free)
    }

    fn update_instance(&mut self, row: &InstanceRow, change: InstanceChange) -> Rows<()> {
        self.instances.write(row.clone(), change);
        Ok(())
    }

    fn wake_instance(&mut self, number: u64, ready: u64) -> Rows<()> {
        self.instances.update(&number, |row| row.wake(ready));
        Ok(())
    }

    fn delete_instance(&mut self, number: u64) -> Rows<()> {
        self.instances.remove(&number);
        Ok(())
    }

    fn families(&mut self, numbers: &[u64]) -> Rows<Vec<Family>> {
        let rows = numbers.iter().filter_map(|number| self.instances.get(number));
        let family = |row: &InstanceRow| Family {
            row: row.clone(),
            children: self.instances.children(&row.id).collect(),
        };
        Ok(rows.map(family).collect())
    }

    fn leased_instances(&mut self, after: Timestamp) -> Rows<Vec<InstanceRow>> {
        Ok(self.instances.leased(after).cloned().collect())
    }

    fn bulk_selection(&mut self, filter: &InstanceFilter, running_too: bool) -> Rows<Vec<(u64, String)>> {
        let named = self.instances.named_by(filter);
        let selected = named.filter(|row| self.is_selected(row, filter, running_too)).take(limit(filter));
        Ok(selected.map(|row| (row.number, row.id.clone())).collect())
    }
}
