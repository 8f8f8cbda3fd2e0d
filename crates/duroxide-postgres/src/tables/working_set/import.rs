//! Rows of another store, put into these tables as they are.

use duroxide_provider::{
    memory::record::{ActivityRecord, DeadLetterRecord, StoredInstance},
    rules::{Lane, Origin},
};

use crate::{
    PostgresTables,
    database_error::DatabaseError,
    record::{Activity, CustomStatus, Execution, KeyValue, KeyValueChange, Letter, Message},
};

impl PostgresTables {
    /// Inserts instances with everything that belongs to them, in one transaction.
    pub(crate) fn import_instances(&mut self, instances: Vec<StoredInstance>) -> Result<(), DatabaseError> {
        self.in_transaction(|tables| {
            instances.into_iter().try_for_each(|stored| tables.import_instance(stored))
        })
    }

    /// Inserts dead letters, in one transaction.
    pub(crate) fn import_dead_letters(
        &mut self,
        letters: Vec<DeadLetterRecord>,
    ) -> Result<(), DatabaseError> {
        self.in_transaction(|tables| {
            for DeadLetterRecord { number, mut row, lane } in letters {
                if let (Origin::Activity { lane: id, .. }, Some(lane)) = (&mut row.origin, lane) {
                    *id = tables.lane_id(&lane)?;
                }
                tables.set.letters.put(number, Letter { number, row });
            }
            Ok(())
        })
    }

    fn in_transaction(
        &mut self,
        fill: impl FnOnce(&mut Self) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        self.begin();
        fill(self).and_then(|()| self.commit()).inspect_err(|_| self.rollback())
    }

    fn import_instance(&mut self, stored: StoredInstance) -> Result<(), DatabaseError> {
        let record = stored.instance;
        let (mut row, instance) = (record.row.clone(), record.row.number);
        row.route = record.route.map(|route| self.route_id(&route)).transpose()?;
        self.set.instances.put(instance, row);
        if let Some((status, version)) = record.custom_status {
            self.set.custom_status.put(instance, CustomStatus { instance, status, version });
        }
        for (key, entry) in record.kv {
            let key_value = KeyValue { instance, key: key.clone(), entry: Some(entry) };
            self.set.key_values.put((instance, key), key_value);
        }
        for (key, entry) in record.kv_changes {
            let change = KeyValueChange { instance, key: key.clone(), entry };
            self.set.key_value_changes.put((instance, key), change);
        }
        for (execution, events) in stored.executions {
            let (execution_id, row) = (execution.execution_id, execution.row);
            self.set.executions.put((instance, execution_id), Execution { instance, execution_id, row });
            self.append_events(instance, execution_id, &events)?;
        }
        for message in stored.messages {
            let bytes = message.row.data.len();
            let message = Message { instance, queued: message.row, bytes, has_data: true };
            self.set.messages.put(message.key(), message);
        }
        for ActivityRecord { row: mut queued, activity } in stored.activities {
            queued.instance = instance;
            queued.lane = self.lane_id(&Lane { tag: activity.tag, name: activity.name })?;
            let number = queued.number;
            let activity = Activity { queued, data: Some(activity.data), item: None };
            self.set.activities.put(number, activity);
        }
        Ok(())
    }
}
