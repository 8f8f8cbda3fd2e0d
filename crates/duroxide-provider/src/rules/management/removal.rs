//! Removing the rows of deleted instances and pruned executions in bounded steps.
//!
//! A delete removes the row that leads to the others, the instance or the execution: from then on no read, claim or commit
//! finds them. The same transaction removes a bounded number of the others. What is left becomes a task. The call carries it
//! out, a bounded number of rows in each transaction, so that other transactions run in between. If the call stops, by a
//! crash or because its caller was dropped, promotions remove the rest.

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
        let mut result = DeleteInstanceResult::default();
        let is_done = self.remove_rows_of_task(task.0, &mut result, STOPPED_AFTER)?;
        let rows = (!is_done).then_some(task.0);
        Ok(deleted(result, unfinished(rows, [])))
    }

    /// Removes some rows of a task whose call has stopped.
    pub(in crate::rules) fn remove_due_rows(&mut self) -> Rows<()> {
        let Some(task) = self.tables.due_removal_task(self.now)? else { return Ok(()) };
        self.remove_rows_of_task(task, &mut DeleteInstanceResult::default(), UNATTENDED_PAUSE).map(|_| ())
    }

    /// Removes rows within the budget. Returns how many of the first removals have no rows left.
    pub(in crate::rules) fn remove_rows(
        &mut self,
        removals: &[Removal],
        budget: &mut RemovalBudget,
        result: &mut DeleteInstanceResult,
    ) -> Rows<usize> {
        if removals.is_empty() || budget.is_spent() {
            return Ok(0);
        }
        let removed = self.tables.remove_rows(removals, budget)?;
        result.events_deleted += removed.events;
        result.queue_messages_deleted += removed.messages;
        result.executions_deleted += removed.executions;
        Ok(removed.done)
    }

    /// Leaves removals to a task, which the caller continues. Returns the task, if there is something to do.
    pub(in crate::rules) fn leave_removals(&mut self, removals: &[Removal]) -> Rows<Option<u64>> {
        if removals.is_empty() {
            return Ok(None);
        }
        let task = self.tables.next_number()?;
        let mut numbered = Vec::with_capacity(removals.len());
        for removal in removals {
            numbered.push((self.tables.next_number()?, *removal));
        }
        self.tables.insert_removals(task, &numbered)?;
        self.tables.write_removal_task(task, self.now.saturating_add(STOPPED_AFTER))?;
        Ok(Some(task))
    }

    /// Carries out a step of a task. Returns whether it was the last one.
    fn remove_rows_of_task(
        &mut self,
        task: u64,
        result: &mut DeleteInstanceResult,
        pause: Duration,
    ) -> Rows<bool> {
        let mut budget = STEP;
        // Each removal costs a row at least.
        let first = self.tables.first_removals(task, budget.rows())?;
        let removals: Vec<Removal> = first.iter().map(|(_, removal)| *removal).collect();
        let done = self.remove_rows(&removals, &mut budget, result)?;
        let ended: Vec<u64> = first.iter().take(done).map(|(number, _)| *number).collect();
        self.tables.delete_removals(&ended)?;
        if done < removals.len() || removals.len() == STEP.rows() {
            self.tables.write_removal_task(task, self.now.saturating_add(pause))?;
            return Ok(false);
        }
        self.tables.delete_removal_task(task)?;
        Ok(true)
    }
}

/// The rest of the task after a step.
pub(in crate::rules) fn unfinished(
    rows: Option<u64>,
    instances: impl IntoIterator<Item = String>,
) -> Unfinished {
    Unfinished { rows: rows.map(RemovalTask), instances: instances.into_iter().collect() }
}

/// The answer of a step of a delete.
pub(in crate::rules) fn deleted(result: DeleteInstanceResult, unfinished: Unfinished) -> Answer {
    if unfinished.is_empty() { Answer::Deleted(result) } else { Answer::DeletedPart(result, unfinished) }
}
