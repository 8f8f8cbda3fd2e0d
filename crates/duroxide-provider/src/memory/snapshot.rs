//! Everything as plain values.

use duroxide_core::Timestamp;

use super::{MemoryTables, tables::mailboxes::Message};
use crate::{
    rules::{InstanceRow, QueuedActivity, still_hidden},
    store::{
        ActivitySnapshot, ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MessageSnapshot, StoreSnapshot,
    },
};

impl MemoryTables {
    /// The whole content. Rows hidden until now or earlier count as visible.
    pub(super) fn snapshot(&self, now: Timestamp) -> StoreSnapshot {
        StoreSnapshot {
            taken_at: now,
            instances: self.instances.by_id().map(|row| self.instance_snapshot(row, now)).collect(),
            dead_letters: self.dead_letters.shown().collect(),
        }
    }

    fn instance_snapshot(&self, row: &InstanceRow, now: Timestamp) -> InstanceSnapshot {
        let number = row.number;
        let mut activities: Vec<u64> = self.activities.of(number).collect();
        activities.sort_unstable();
        let executions = self.executions.of(number).map(|(execution_id, execution)| ExecutionSnapshot {
            execution_id,
            status: execution.status.clone(),
            output: execution.output.clone(),
            pinned: execution.pinned,
            turns: execution.turns,
            events: self.events.rows(number, execution_id),
        });
        InstanceSnapshot {
            instance: row.id.clone(),
            name: row.name.clone(),
            version: row.version.clone(),
            parent: row.parent.clone(),
            execution_id: row.execution_id,
            lock: row.lock.as_ref().map(|lock| LockSnapshot::from(&lock.lease)),
            custom_status: self.custom_statuses.get(&number).cloned(),
            executions: executions.collect(),
            messages: self.messages.of(number).map(|message| message_snapshot(row, message, now)).collect(),
            activities: activities.iter().filter_map(|number| self.activity_snapshot(*number, now)).collect(),
            kv: self.kv.to_map(number),
            kv_changes: self.kv_changes.to_map(number),
        }
    }

    fn activity_snapshot(&self, number: u64, now: Timestamp) -> Option<ActivitySnapshot> {
        let activity: &QueuedActivity = self.activities.get(&number)?;
        Some(ActivitySnapshot {
            execution_id: activity.execution_id,
            activity_id: activity.activity_id,
            hidden_until: still_hidden(activity.hidden_until, now),
            attempt_count: activity.attempts,
            claimed: activity.claimed,
            stop_requested: activity.stop_requested,
            lock: activity.lock.as_ref().map(LockSnapshot::from),
            data: self.activity_items.get(&number)?.data.clone(),
        })
    }
}

/// The attempt of a message that the lock of its instance holds is not counted in its row yet.
fn message_snapshot(instance: &InstanceRow, message: &Message, now: Timestamp) -> MessageSnapshot {
    let row = message.row();
    let locked = instance.lock.as_ref().is_some_and(|lock| lock.extent.holds(row));
    MessageSnapshot {
        due_at_ms: row.due_at.as_millis(),
        hidden_until: still_hidden(row.hidden_until, now),
        attempt_count: row.attempts.saturating_add(u32::from(locked)),
        locked,
        key: row.key.clone(),
        data: message.data().to_owned(),
    }
}
