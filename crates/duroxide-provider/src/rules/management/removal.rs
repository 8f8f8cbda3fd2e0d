//! Removing the rows of deleted instances and pruned executions in bounded steps.
//!
//! A delete first removes the row that leads to the others: the instance, or the execution. From then on no read, claim
//! or commit finds them. The rows themselves are removed by the same call, a bounded number in each transaction, so
//! that other transactions run in between. If the call stops, by a crash or because its caller was dropped, promotions
//! remove the rest.

use std::time::Duration;

use crate::rules::{Removal, RemovalBudget, Rows, Rules, Tables};
use crate::{
    DeleteInstanceResult,
    store::{
        Answer, ApplyError, RemovalTask, Unfinished,
        bounds::{REMOVED_BYTES_MAX, REMOVED_ROWS_MAX},
    },
};

/// After this long without a step the caller counts as stopped, and promotions continue its removal.
const STOPPED_AFTER: Duration = Duration::from_secs(60);
/// The pause between two background steps.
const UNATTENDED_PAUSE: Duration = Duration::from_millis(20);

/// How many rows one step may remove.
pub(in crate::rules) const STEP: RemovalBudget = RemovalBudget::new(REMOVED_ROWS_MAX, REMOVED_BYTES_MAX);

impl<T: Tables> Rules<T> {
    /// Removes more of the rows that a delete or a prune has left.
    pub(in crate::rules) fn continue_removal(&mut self, task: RemovalTask) -> Result<Answer, ApplyError> {
        let (mut result, mut budget) = (DeleteInstanceResult::default(), STEP);
        let rows = self.remove_rows(task.0, &mut budget, &mut result)?.then_some(task.0);
        Ok(deleted(result, unfinished(rows, [])))
    }

    pub(in crate::rules) fn add_removal(
        &mut self,
        task: u64,
        instance: u64,
        execution_id: Option<u64>,
    ) -> Rows<()> {
        let number = self.tables.next_number()?;
        self.tables.insert_removal(task, &Removal { number, instance, execution_id })
    }

    /// Removes rows of a task within the budget. Returns whether some are left.
    pub(in crate::rules) fn remove_rows(
        &mut self,
        task: u64,
        budget: &mut RemovalBudget,
        result: &mut DeleteInstanceResult,
    ) -> Rows<bool> {
        self.remove_rows_then_pause(task, budget, result, STOPPED_AFTER)
    }

    /// Removes some rows of a task whose call has stopped.
    pub(in crate::rules) fn remove_due_rows(&mut self) -> Rows<()> {
        let Some(task) = self.tables.due_removal_task(self.now)? else { return Ok(()) };
        let (mut budget, mut result) = (STEP, DeleteInstanceResult::default());
        self.remove_rows_then_pause(task, &mut budget, &mut result, UNATTENDED_PAUSE).map(|_| ())
    }

    fn remove_rows_then_pause(
        &mut self,
        task: u64,
        budget: &mut RemovalBudget,
        result: &mut DeleteInstanceResult,
        pause: Duration,
    ) -> Rows<bool> {
        while let Some(removal) = self.tables.first_removal(task)? {
            if !self.remove_from(&removal, budget, result)? {
                self.tables.write_removal_task(task, self.now.saturating_add(pause))?;
                return Ok(true);
            }
            self.tables.delete_removal(&removal)?;
        }
        self.tables.delete_removal_task(task)?;
        Ok(false)
    }

    /// Removes rows within the budget. Returns whether all are gone.
    fn remove_from(
        &mut self,
        removal: &Removal,
        budget: &mut RemovalBudget,
        result: &mut DeleteInstanceResult,
    ) -> Rows<bool> {
        // A removal counts against the budget even without rows: reading its tables has a cost.
        if !budget.spend(0) {
            return Ok(false);
        }
        let removed = self.tables.remove_rows(removal, budget)?;
        result.events_deleted += removed.events;
        result.queue_messages_deleted += removed.messages;
        result.executions_deleted += removed.executions;
        Ok(removed.is_done)
    }
}

/// The rest of the task after a step.
pub(in crate::rules) fn unfinished(
    rows: Option<u64>,
    instances: impl IntoIterator<Item = (u64, String)>,
) -> Unfinished {
    Unfinished { rows: rows.map(RemovalTask), instances: instances.into_iter().map(|(_, id)| id).collect() }
}

/// The answer of a step of a delete.
pub(in crate::rules) fn deleted(result: DeleteInstanceResult, unfinished: Unfinished) -> Answer {
    if unfinished.is_empty() { Answer::Deleted(result) } else { Answer::DeletedPart(result, unfinished) }
}
