//! Rows that are kept elsewhere too: taking out those that have changed, and bringing all of them back.

use std::collections::BTreeSet;

use super::{
    MemoryEngine, MemoryOptions, MemoryTables,
    record::{
        ActivityRecord, Changes, DeadLetterRecord, ExecutionRecord, Extent, InstanceRecord, Lane,
        MessageRecord, Origin, Records, StoredInstance,
    },
    tables::mailboxes::Message,
};
use crate::{
    rules::{InstanceRow, LaneId, RouteId},
    store::{ActivityRow, EventRow, StoreFailure, TransactionSteps as _},
};

impl MemoryEngine {
    /// The rows that changed since this was last called, or since the transaction began.
    pub fn take_changes(&mut self) -> Changes {
        let tables = self.rules.tables_mut();
        let mut changes = Changes::default();
        tables.take_instance_changes(&mut changes);
        tables.take_history_changes(&mut changes);
        tables.take_queue_changes(&mut changes);
        tables.take_dead_letter_changes(&mut changes);
        changes
    }

    /// An engine with these rows, at time zero: the first transaction promotes the due rows.
    ///
    /// # Errors
    /// If a row could not be written.
    pub fn restore(options: MemoryOptions, records: Records) -> Result<Self, StoreFailure> {
        let mut engine = Self::new(options);
        engine.load(records)?;
        Ok(engine)
    }

    /// Replaces all rows by these, as of the last transaction. Nodes, sessions and numbers go on as they were.
    ///
    /// # Errors
    /// If a row could not be written.
    pub fn replace(&mut self, records: Records) -> Result<(), StoreFailure> {
        let tables = self.rules.tables_mut();
        *tables = std::mem::take(tables).without_records();
        self.load(records)
    }

    fn load(&mut self, records: Records) -> Result<(), StoreFailure> {
        let tables = self.rules.tables_mut();
        records.instances.into_iter().for_each(|stored| tables.load_instance(stored));
        records.dead_letters.into_iter().for_each(|letter| tables.load_dead_letter(letter));
        let instances: Vec<u64> = tables.instances.iter().map(|(number, _)| *number).collect();
        let activities: Vec<u64> = tables.activities.iter().map(|(number, _)| *number).collect();
        self.rules.settle_loaded(&instances, &activities)?;
        // Needs no record: readiness is decided again whenever the rows are loaded.
        self.rules.commit()
    }
}

impl MemoryTables {
    fn take_instance_changes(&mut self, changes: &mut Changes) {
        let mut changed = BTreeSet::new();
        for (number, before) in self.instances.take_changes() {
            match (before, self.instances.contains(&number)) {
                (None, _) => changes.added_instances.extend(self.instance_record(number)),
                (Some(_), true) => drop(changed.insert(number)),
                (Some(gone), false) => changes.removed_instances.push(gone.id),
            }
        }
        let added: BTreeSet<u64> = changes.added_instances.iter().map(|record| record.row.number).collect();
        changed.extend(self.custom_statuses.take_changes().into_iter().map(|(number, _)| number));
        changed.extend(self.kv.take_changes().into_iter().map(|((number, _), _)| number));
        changed.extend(self.kv_changes.take_changes().into_iter().map(|((number, _), _)| number));
        let changed = changed.difference(&added).filter_map(|number| self.instance_record(*number));
        changes.changed_instances.extend(changed);
    }

    fn take_history_changes(&mut self, changes: &mut Changes) {
        for ((instance, execution_id), _) in self.executions.take_changes() {
            let Some(id) = self.id_of(instance) else { continue };
            match self.executions.get(&(instance, execution_id)).cloned() {
                Some(row) => changes.executions.push(ExecutionRecord { instance: id, execution_id, row }),
                None => changes.removed_executions.push((id, execution_id)),
            }
        }
        for ((instance, execution_id, event_id), _) in self.events.take_changes() {
            let Some(data) = self.events.get(&(instance, execution_id, event_id)).cloned() else { continue };
            let Some(id) = self.id_of(instance) else { continue };
            let event = EventRow { event_id, data };
            match changes.appended.last_mut() {
                Some((of, to, events)) if *of == id && *to == execution_id => events.push(event),
                _ => changes.appended.push((id, execution_id, vec![event])),
            }
        }
    }

    fn take_queue_changes(&mut self, changes: &mut Changes) {
        for (key, before) in self.messages.take_changes() {
            let Some(instance) = self.id_of(key.0) else { continue };
            let row = self.messages.get(&key).map(Message::whole);
            let record = row.map(|row| MessageRecord { instance: instance.clone(), row });
            let (_, (_, number)) = key;
            changes.messages.add(before.is_some(), record, || (instance, number));
        }
        self.activity_items.take_changes();
        for (number, before) in self.activities.take_changes() {
            let row = self.activities.get(&number).cloned();
            let instance = row.as_ref().or(before.as_ref()).map(|row| row.instance);
            let Some(id) = instance.and_then(|instance| self.id_of(instance)) else { continue };
            let record = row.and_then(|row| {
                Some(ActivityRecord { row, activity: self.activity_items.get(&number)?.clone() })
            });
            changes.activities.add(before.is_some(), record, || (id, number));
        }
    }

    fn take_dead_letter_changes(&mut self, changes: &mut Changes) {
        for (number, _) in self.dead_letters.take_changes() {
            let Some(row) = self.dead_letters.get(&number).cloned() else {
                changes.removed_dead_letters.push(number);
                continue;
            };
            let lane = match row.origin {
                Origin::Activity { lane, .. } => self.lanes.value(lane.0).cloned(),
                Origin::Message { .. } => None,
            };
            changes.added_dead_letters.push(DeadLetterRecord { number, row, lane });
        }
    }

    /// The id of an instance. `None` if it was deleted; its rows are deleted with it.
    fn id_of(&self, number: u64) -> Option<String> {
        self.instances.get(&number).map(|row| row.id.clone())
    }

    fn instance_record(&self, number: u64) -> Option<InstanceRecord> {
        let row = self.instances.get(&number)?.clone();
        Some(InstanceRecord {
            route: row.route.and_then(|RouteId(id)| self.routes.value(id)).cloned(),
            row,
            custom_status: self.custom_statuses.get(&number).cloned(),
            kv: self.kv.to_map(number),
            kv_changes: self.kv_changes.to_map(number),
        })
    }

    /// Keeps only the parts that are not stored as records of their own.
    fn without_records(self) -> Self {
        Self {
            last_number: self.last_number,
            last_dead_letter: self.last_dead_letter,
            last_node: self.last_node,
            routes: self.routes,
            lanes: self.lanes,
            sessions: self.sessions,
            nodes: self.nodes,
            ..Self::default()
        }
    }

    fn load_instance(&mut self, stored: StoredInstance) {
        let InstanceRecord { mut row, route, custom_status, kv, kv_changes } = stored.instance;
        let number = row.number;
        row.route = route.map(|route| RouteId(self.routes.number(&route)));
        self.note_number(highest_number(&row));
        self.instances.load(number, row);
        if let Some(custom_status) = custom_status {
            self.custom_statuses.load(number, custom_status);
        }
        kv.into_iter().for_each(|(key, entry)| self.kv.load((number, key), entry));
        kv_changes.into_iter().for_each(|(key, change)| self.kv_changes.load((number, key), change));
        for (execution, events) in stored.executions {
            self.load_execution(number, execution, events);
        }
        for MessageRecord { row, .. } in stored.messages {
            self.note_number(row.number.max(row.mark.unwrap_or_default()));
            self.messages.load((number, row.position()), Message::new(row));
        }
        for ActivityRecord { mut row, activity } in stored.activities {
            self.note_number(row.number);
            row.instance = number;
            row.lane = self.lane_of(&activity);
            self.activity_items.load(row.number, activity);
            self.activities.load(row.number, row);
        }
    }

    fn load_execution(&mut self, instance: u64, execution: ExecutionRecord, events: Vec<EventRow>) {
        let ExecutionRecord { execution_id, mut row, .. } = execution;
        row.last_event_id = events.iter().map(|event| event.event_id).max().unwrap_or_default();
        self.executions.load((instance, execution_id), row);
        for event in events {
            self.events.load((instance, execution_id, event.event_id), event.data);
        }
    }

    fn load_dead_letter(&mut self, letter: DeadLetterRecord) {
        let DeadLetterRecord { number, mut row, lane } = letter;
        if let (Origin::Activity { lane: id, .. }, Some(lane)) = (&mut row.origin, lane) {
            *id = LaneId(self.lanes.number(&lane));
        }
        self.last_dead_letter = self.last_dead_letter.max(number);
        self.dead_letters.load(number, row);
    }

    fn lane_of(&mut self, activity: &ActivityRow) -> LaneId {
        let lane = Lane { tag: activity.tag.clone(), name: activity.name.clone() };
        LaneId(self.lanes.number(&lane))
    }

    /// Numbers that are in use are not drawn again.
    fn note_number(&mut self, number: u64) {
        self.last_number = self.last_number.max(number);
    }
}

/// The highest number in a row. A message with a lower number might seem to belong to its lock.
fn highest_number(row: &InstanceRow) -> u64 {
    let of_lock = row.lock.as_ref().map(|lock| match lock.extent {
        Extent::Visible { up_to, .. } => up_to,
        Extent::Marked { mark } => mark,
    });
    row.number.max(row.ready_number().unwrap_or_default()).max(of_lock.unwrap_or_default())
}
