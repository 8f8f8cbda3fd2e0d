use super::{MemoryEngine, instance::Instance, lock::Lock};
use crate::store::{InstanceSnapshot, StoreSnapshot};

impl MemoryEngine {
    pub(super) fn to_snapshot(&self) -> StoreSnapshot {
        StoreSnapshot {
            taken_at: self.now,
            instances: self.instances.by_id().map(|row| self.instance_snapshot(row)).collect(),
            dead_letters: self.dead_letters.iter().cloned().collect(),
        }
    }

    fn instance_snapshot(&self, row: &Instance) -> InstanceSnapshot {
        let mut activities: Vec<_> = row.activities.values().copied().collect();
        activities.sort_unstable();
        InstanceSnapshot {
            instance: row.id.clone(),
            name: row.name.clone(),
            version: row.version.clone(),
            parent: row.parent.clone(),
            execution_id: row.execution_id,
            lock: row.lock.as_ref().map(Lock::snapshot),
            custom_status: row.custom_status.clone(),
            executions: row.executions.iter().map(|(id, execution)| execution.snapshot(*id)).collect(),
            messages: row.mailbox.snapshot(self.now),
            activities: activities
                .into_iter()
                .filter_map(|key| self.activities.get(key))
                .map(|activity| activity.snapshot(self.now))
                .collect(),
            kv: row.kv.left().clone(),
            kv_changes: row.kv.changes().clone(),
        }
    }
}
