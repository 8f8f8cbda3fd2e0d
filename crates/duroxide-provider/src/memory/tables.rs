//! The tables of a memory engine.

mod activities;
mod dead_letters;
mod history;
mod instances;
mod interned;
mod key_values;
mod mailbox_table;
pub(super) mod mailboxes;
mod nodes;
mod readiness;
mod removals;
mod sessions;
mod table;

use duroxide_core::{KvEntry, Timestamp};

use self::{
    activities::Activities,
    dead_letters::DeadLetters,
    history::{Events, Executions},
    instances::Instances,
    interned::Interned,
    key_values::KeyValues,
    mailboxes::Mailboxes,
    nodes::Nodes,
    removals::Removals,
    sessions::Sessions,
    table::{Table, Transact},
};
use crate::{
    InstanceFilter,
    rules::{ExecutionRow, InstanceRow, Lane, Route, Rows, Transactions},
    store::ActivityRow,
};

/// All rows of a store, in ordered maps.
#[derive(Debug, Clone, Default)]
pub struct MemoryTables {
    pub(super) last_number: u64,
    pub(super) last_dead_letter: u64,
    pub(super) last_node: u64,
    pub(super) instances: Instances,
    pub(super) routes: Interned<Route>,
    pub(super) executions: Executions,
    pub(super) events: Events,
    pub(super) messages: Mailboxes,
    pub(super) activities: Activities,
    /// The work item of each activity.
    pub(super) activity_items: Table<u64, ActivityRow>,
    pub(super) lanes: Interned<Lane>,
    pub(super) sessions: Sessions,
    pub(super) kv: KeyValues<KvEntry>,
    pub(super) kv_changes: KeyValues<Option<KvEntry>>,
    /// The custom status of each instance, and how often it was set.
    pub(super) custom_statuses: Table<u64, (Option<String>, u64)>,
    pub(super) dead_letters: DeadLetters,
    pub(super) nodes: Nodes,
    pub(super) removals: Removals,
    /// The time from which promotions may continue a task.
    pub(super) removal_tasks: Table<u64, Timestamp>,
}

impl MemoryTables {
    fn each(&mut self, act: impl FnMut(&mut dyn Transact)) {
        let tables: [&mut dyn Transact; 14] = [
            &mut self.instances,
            &mut self.executions,
            &mut self.events,
            &mut self.messages,
            &mut self.activities,
            &mut self.activity_items,
            &mut self.sessions,
            &mut self.kv,
            &mut self.kv_changes,
            &mut self.custom_statuses,
            &mut self.dead_letters,
            &mut self.nodes,
            &mut self.removals,
            &mut self.removal_tasks,
        ];
        tables.into_iter().for_each(act);
    }

    pub(super) fn current_execution(&self, row: &InstanceRow) -> Option<&ExecutionRow> {
        self.executions.get(&(row.number, row.execution_id))
    }

    pub(super) fn is_selected(&self, row: &InstanceRow, filter: &InstanceFilter, running_too: bool) -> bool {
        let ended_before = |millis| {
            let completed_at = self.current_execution(row).and_then(|execution| execution.completed_at);
            !row.is_running() && completed_at.is_some_and(|at| at < Timestamp::from_millis(millis))
        };
        let is_accepted = running_too || (row.parent.is_none() && !row.is_running());
        is_accepted && filter.completed_before.is_none_or(ended_before)
    }
}

impl Transactions for MemoryTables {
    fn begin(&mut self) -> Rows<()> {
        Ok(())
    }

    fn commit(&mut self, _: Timestamp) -> Rows<()> {
        self.each(|table| table.commit());
        Ok(())
    }

    fn rollback(&mut self) {
        self.each(|table| table.rollback());
    }

    fn next_number(&mut self) -> Rows<u64> {
        self.last_number += 1;
        Ok(self.last_number)
    }
}
