//! Deletes and prunes that take several steps: together they must have the effect of one step elsewhere.

use duroxide_core::Timestamp;

use super::subject::Subject;
use crate::{
    DeleteInstanceResult, InstanceFilter, PruneResult,
    store::{Answer, Op, StoreFailure},
};

impl Subject {
    /// Carries out the further steps of a delete or prune: an engine may need several, and together they must do the same.
    pub(super) fn finish(
        &mut self,
        op: &Op,
        answer: Answer,
        handed_in: Timestamp,
    ) -> Result<Answer, StoreFailure> {
        let (deleted, pruned, left) = match answer {
            Answer::DeletedPart(deleted, left) => (Some(deleted), None, left),
            Answer::PrunedPart(pruned, left) => (None, Some(pruned), left),
            whole => return Ok(whole),
        };
        let (mut rows, mut further) = (DeleteInstanceResult::default(), None);
        if let Some(task) = left.rows {
            let removed = self.step(&Op::RemoveRows { task }, handed_in)?;
            if let Answer::Deleted(removed) = removed {
                rows = removed;
            }
        }
        if !left.instances.is_empty() {
            let filter = InstanceFilter { instance_ids: Some(left.instances), ..InstanceFilter::default() };
            let op = match op {
                Op::Prune { options, .. } | Op::PruneBulk { options, .. } => {
                    Op::PruneBulk { filter, options: options.clone() }
                }
                _ => Op::DeleteBulk(filter),
            };
            further = Some(self.step(&op, handed_in)?);
        }
        Ok(match (deleted, pruned, further) {
            (Some(first), _, further) => {
                let next = if let Some(Answer::Deleted(next)) = further { next } else { Default::default() };
                Answer::Deleted(DeleteInstanceResult {
                    instances_deleted: first.instances_deleted + next.instances_deleted,
                    executions_deleted: first.executions_deleted
                        + rows.executions_deleted
                        + next.executions_deleted,
                    events_deleted: first.events_deleted + rows.events_deleted + next.events_deleted,
                    queue_messages_deleted: first.queue_messages_deleted
                        + rows.queue_messages_deleted
                        + next.queue_messages_deleted,
                })
            }
            (None, first, further) => {
                let first = first.unwrap_or_default();
                let next = if let Some(Answer::Pruned(next)) = further { next } else { Default::default() };
                Answer::Pruned(PruneResult {
                    instances_processed: first.instances_processed + next.instances_processed,
                    executions_deleted: first.executions_deleted + next.executions_deleted,
                    events_deleted: first.events_deleted + rows.events_deleted + next.events_deleted,
                })
            }
        })
    }

    fn step(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, StoreFailure> {
        let answer = self.answer(op, handed_in)?;
        let answer = answer.unwrap_or_else(|refusal| panic!("a further step was refused: {refusal}"));
        self.finish(op, answer, handed_in)
    }
}
