//! Taking the rows out of a memory engine as they change, and bringing them back.

use duroxide_core::Timestamp;

use super::{
    MemoryEngine, MemoryOptions,
    history::Execution,
    instance::Instance,
    instances::InstanceKey,
    record::{Changes, Records, StoredInstance},
};

impl MemoryEngine {
    /// The rows that changed since this was last called, or since the last commit.
    pub fn take_changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        self.instances.take_changes(&mut changes);
        self.activities.take_changes(&mut changes.activities);
        self.dead_letters.take_changes(&mut changes);
        changes
    }

    /// Like [`Self::take_changes`], without making the records.
    pub(super) fn forget_changes(&mut self) {
        self.instances.forget_changes();
        self.activities.forget_changes();
        self.dead_letters.forget_changes();
    }

    /// An engine with these rows, at time zero: the first transaction makes visible what has become due.
    pub fn restore(options: MemoryOptions, records: Records) -> Self {
        let mut engine = Self::new(options);
        engine.fill(records);
        engine
    }

    /// Replaces all rows by these, as of the last transaction. Nodes, sessions and numbers go on as they were.
    pub fn replace(&mut self, records: Records) {
        let options = MemoryOptions { orphan_message_ttl: self.instances.orphan_ttl() };
        let before = std::mem::replace(self, Self::new(options));
        self.now = before.now;
        self.max_attempts = before.max_attempts;
        self.nodes = before.nodes;
        self.activities.continue_from(before.activities);
        self.fill(records);
        self.instances.continue_numbers_of(&before.instances);
        self.dead_letters.continue_numbers_of(&before.dead_letters);
    }

    fn fill(&mut self, records: Records) {
        let now = self.now;
        for stored in records.instances {
            self.restore_instance(stored, now);
        }
        self.instances.file_restored(now);
        records.dead_letters.into_iter().for_each(|letter| self.dead_letters.restore(letter));
        self.forget_changes();
    }

    fn restore_instance(&mut self, stored: StoredInstance, now: Timestamp) {
        let (number, ready) = (stored.instance.number, stored.instance.ready);
        let mut instance = Instance::restore(stored.instance);
        for (record, events) in stored.executions {
            instance.executions.insert(record.execution_id, Execution::restore(record, &events));
        }
        stored.messages.into_iter().for_each(|message| instance.mailbox.restore(message));
        for activity in stored.activities {
            let id = (activity.row.execution_id, activity.row.activity_id);
            let key = self.activities.restore(InstanceKey(number), activity, now);
            instance.activities.insert(id, key);
        }
        self.instances.restore(number, ready, instance, now);
    }
}
