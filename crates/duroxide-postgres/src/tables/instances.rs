//! Instances by number and id.

mod families;

use duroxide_core::Timestamp;
use duroxide_provider::{
    InstanceFilter,
    rules::{InstanceChange, InstanceRow, Loaded},
    store::bounds::BULK_LIMIT_DEFAULT,
};

pub(super) use self::families::{Families, FamilyPart};
use super::{PostgresTables, load::NamedInstances, working_set::Mailbox};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::rules_in_sql::is_end_of_instance,
    value::{Columns, micros, unsigned},
};

const LEASED: &str = "SELECT {columns instance} FROM {s}.instance
    WHERE instance.lock_until > $1 ORDER BY instance.number FOR UPDATE";
/// Ended roots, or all known instances.
const BULK: &str = concat!(
    "SELECT instance.number, instance.id FROM {s}.instance
    LEFT JOIN {s}.execution
        ON execution.instance = instance.number AND execution.execution_id = instance.execution_id
    WHERE instance.known
      AND ($1 OR (instance.parent IS NULL AND ",
    is_end_of_instance!("execution.status"),
    ")) AND ($2::bigint IS NULL OR (",
    is_end_of_instance!("execution.status"),
    " AND execution.completed_at < $2)) AND ($3::text[] IS NULL OR instance.id = ANY ($3))
    ORDER BY instance.number LIMIT $4"
);

/// A statement for the instances that a bulk delete or prune visits.
pub(crate) fn bulk_query(filter: &InstanceFilter, running_too: bool) -> Query {
    let before = filter.completed_before.map(|millis| micros(Timestamp::from_millis(millis)));
    let limit = i64::from(filter.limit.unwrap_or(BULK_LIMIT_DEFAULT));
    Query::of_whole_tables(BULK, parameters![running_too, before, filter.instance_ids.clone(), limit])
}

impl PostgresTables {
    pub(super) fn instance(&mut self, number: u64) -> Result<Option<InstanceRow>, DatabaseError> {
        if !self.set.instances.knows(&number) {
            self.load_instances(&NamedInstances { numbers: [number].into(), ..NamedInstances::default() })?;
        }
        Ok(self.set.instances.get(&number).cloned())
    }

    /// Loads all that are not known in one round trip.
    pub(super) fn instances(&mut self, wanted: &[u64]) -> Result<Vec<InstanceRow>, DatabaseError> {
        let unknown = wanted.iter().copied().filter(|number| !self.set.instances.knows(number));
        let named = NamedInstances { numbers: unknown.collect(), ..NamedInstances::default() };
        if !named.is_empty() {
            self.load_instances(&named)?;
        }
        Ok(wanted.iter().filter_map(|number| self.set.instances.get(number).cloned()).collect())
    }

    pub(super) fn instance_named(&mut self, id: &str) -> Result<Option<InstanceRow>, DatabaseError> {
        if !self.set.ids.contains_key(id) {
            self.load_instances(&NamedInstances {
                ids: [id.to_owned()].into(),
                ..NamedInstances::default()
            })?;
        }
        let number = self.set.ids.get(id).copied().flatten();
        Ok(number.and_then(|number| self.set.instances.get(&number).cloned()))
    }

    pub(super) fn load_with_execution(&mut self, number: u64) -> Result<Option<Loaded>, DatabaseError> {
        let Some(row) = self.instance(number)? else { return Ok(None) };
        let execution = self.execution(number, row.execution_id)?;
        Ok(Some(Loaded { row, execution }))
    }

    pub(super) fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Result<(), DatabaseError> {
        self.update_instance(&loaded.row, change)
    }

    pub(super) fn insert_instance(&mut self, row: &InstanceRow) -> Result<bool, DatabaseError> {
        // If it exists although this node does not know it, its insert fails.
        let is_new = self.relied_on_cache
            && !self.set.ids.contains_key(&row.id)
            && !self.row_cache.has_instance(&row.id);
        if !is_new && self.instance_named(&row.id)?.is_some() {
            return Ok(false);
        }
        self.set.ids.insert(row.id.clone(), Some(row.number));
        self.set.instances.put(row.number, row.clone());
        // Nothing belongs to it yet.
        self.set.mailboxes.insert(row.number, Mailbox::Whole);
        self.set.executions.learn((row.number, row.execution_id), None);
        self.set.custom_status.learn(row.number, None);
        self.set.whole_key_values.insert(row.number);
        self.set.whole_key_value_changes.insert(row.number);
        Ok(true)
    }

    /// All columns that can change travel together; PostgreSQL writes a whole new row anyway.
    pub(super) fn update_instance(
        &mut self,
        row: &InstanceRow,
        _: InstanceChange,
    ) -> Result<(), DatabaseError> {
        self.set.instances.put(row.number, row.clone());
        Ok(())
    }

    pub(super) fn wake_instance(&mut self, number: u64, ready: u64) -> Result<(), DatabaseError> {
        if let Some(mut row) = self.instance(number)? {
            row.wake(ready);
            self.set.instances.put(number, row);
        }
        Ok(())
    }

    pub(super) fn delete_instance(&mut self, number: u64) -> Result<(), DatabaseError> {
        if let Some(row) = self.instance(number)? {
            self.set.ids.insert(row.id, None);
            self.set.instances.delete(&number);
        }
        Ok(())
    }

    pub(super) fn leased_instances(&mut self, after: Timestamp) -> Result<Vec<InstanceRow>, DatabaseError> {
        let rows = self.ask(Query::new(LEASED, parameters![micros(after)]))?;
        let numbers = self.take_instances(&rows)?;
        Ok(numbers.iter().filter_map(|number| self.set.instances.get(number).cloned()).collect())
    }

    pub(super) fn bulk_selection(
        &mut self,
        filter: &InstanceFilter,
        running_too: bool,
    ) -> Result<Vec<(u64, String)>, DatabaseError> {
        let rows = self.ask(bulk_query(filter, running_too))?;
        rows.iter().map(|row| Ok((unsigned(row.column("number")?), row.column("id")?))).collect()
    }
}
