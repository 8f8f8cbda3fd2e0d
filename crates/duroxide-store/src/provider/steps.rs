//! Deletes and prunes, step by step. Each step is one operation, in a transaction of its own that changes a bounded
//! number of rows; the store takes other work in between. If the caller drops the future, the call ends after the
//! current step.

use std::{collections::VecDeque, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    DeleteInstanceResult, InstanceFilter, ProviderError, PruneOptions, PruneResult,
    store::{Answer, Op, RemovalTask, Unfinished},
};

use super::StoreProvider;
use crate::log;

/// Instances that one step of a bulk call visits at most.
const STEP_INSTANCES_MAX: usize = 64;
/// How often a long call logs its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The progress of a call.
struct Progress {
    operation: &'static str,
    logged_at: Timestamp,
    deleted: DeleteInstanceResult,
}

impl Progress {
    fn add(&mut self, step: &DeleteInstanceResult) {
        self.deleted.instances_deleted += step.instances_deleted;
        self.deleted.executions_deleted += step.executions_deleted;
        self.deleted.events_deleted += step.events_deleted;
        self.deleted.queue_messages_deleted += step.queue_messages_deleted;
    }

    /// Adds the counts of a prune step; returns how many instances it has finished.
    fn add_pruned(&mut self, step: &PruneResult) -> u64 {
        self.deleted.executions_deleted += step.executions_deleted;
        self.deleted.events_deleted += step.events_deleted;
        step.instances_processed
    }

    fn log(&mut self, now: Timestamp, instances_left: usize) {
        if now.saturating_since(self.logged_at) >= PROGRESS_INTERVAL {
            self.logged_at = now;
            log::removal_goes_on(self.operation, &self.deleted, instances_left);
        }
    }
}

impl StoreProvider {
    /// Deletes the instances that the operation names. No read finds them after the first step; the other steps remove their
    /// rows.
    pub(super) async fn delete_in_steps(
        &self,
        operation: &'static str,
        op: Op,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut progress = self.progress(operation);
        let (step, unfinished) = deleted(self.submitter.apply(operation, Ok(op)).await?);
        progress.add(&step);
        if let Err(error) = self.remove_rows(unfinished.rows, 0, &mut progress).await {
            // The instances are deleted nevertheless, and the store removes their rows later.
            log::removal_stopped(operation, &error);
        }
        Ok(progress.deleted)
    }

    /// Deletes ended roots that match the filter, one tree after the other.
    pub(super) async fn delete_selected_in_steps(
        &self,
        operation: &'static str,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let completed_before = filter.completed_before;
        let mut progress = self.progress(operation);
        let mut waiting = self.bulk_selection(operation, filter, false).await?;
        while let Some(step) = next_step(&mut waiting, completed_before) {
            let (step, unfinished) =
                deleted(self.submitter.apply(operation, Ok(Op::DeleteBulk(step))).await?);
            progress.add(&step);
            put_back(&mut waiting, unfinished.instances);
            self.remove_rows(unfinished.rows, waiting.len(), &mut progress).await?;
        }
        Ok(progress.deleted)
    }

    pub(super) async fn prune_in_steps(
        &self,
        operation: &'static str,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let op = Op::Prune { instance: instance.to_owned(), options: options.clone() };
        let mut progress = self.progress(operation);
        let (step, unfinished) = pruned(self.submitter.apply(operation, Ok(op)).await?);
        let processed = progress.add_pruned(&step);
        self.remove_rows(unfinished.rows, 0, &mut progress).await?;
        let rest = unfinished.instances.into();
        self.prune_rest(rest, None, options, processed, progress).await
    }

    pub(super) async fn prune_selected_in_steps(
        &self,
        operation: &'static str,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let completed_before = filter.completed_before;
        let progress = self.progress(operation);
        let waiting = self.bulk_selection(operation, filter, true).await?;
        self.prune_rest(waiting, completed_before, options, 0, progress).await
    }

    async fn prune_rest(
        &self,
        mut waiting: VecDeque<String>,
        completed_before: Option<u64>,
        options: PruneOptions,
        mut instances_processed: u64,
        mut progress: Progress,
    ) -> Result<PruneResult, ProviderError> {
        while let Some(filter) = next_step(&mut waiting, completed_before) {
            let op = Op::PruneBulk { filter, options: options.clone() };
            let (step, unfinished) = pruned(self.submitter.apply(progress.operation, Ok(op)).await?);
            instances_processed += progress.add_pruned(&step);
            put_back(&mut waiting, unfinished.instances);
            self.remove_rows(unfinished.rows, waiting.len(), &mut progress).await?;
        }
        let DeleteInstanceResult { executions_deleted, events_deleted, .. } = progress.deleted;
        Ok(PruneResult { instances_processed, executions_deleted, events_deleted })
    }

    /// Removes the rows that a step has left.
    async fn remove_rows(
        &self,
        mut rows: Option<RemovalTask>,
        instances_left: usize,
        progress: &mut Progress,
    ) -> Result<(), ProviderError> {
        progress.log(self.submitter.now(), instances_left);
        while let Some(task) = rows {
            let answer = self.submitter.apply(progress.operation, Ok(Op::RemoveRows { task })).await?;
            let (step, unfinished) = deleted(answer);
            progress.add(&step);
            progress.log(self.submitter.now(), instances_left);
            rows = unfinished.rows;
        }
        Ok(())
    }

    async fn bulk_selection(
        &self,
        operation: &'static str,
        filter: InstanceFilter,
        running_too: bool,
    ) -> Result<VecDeque<String>, ProviderError> {
        let selected =
            self.query(operation, move |reader| reader.bulk_selection(&filter, running_too)).await?;
        Ok(selected.into())
    }

    fn progress(&self, operation: &'static str) -> Progress {
        Progress { operation, logged_at: self.submitter.now(), deleted: DeleteInstanceResult::default() }
    }
}

/// The next instances to visit, if any are left. Whether they still match is checked again by the step.
fn next_step(waiting: &mut VecDeque<String>, completed_before: Option<u64>) -> Option<InstanceFilter> {
    let count = waiting.len().min(STEP_INSTANCES_MAX);
    let ids: Vec<String> = waiting.drain(..count).collect();
    let limit = u32::try_from(count).ok();
    (count > 0).then_some(InstanceFilter { instance_ids: Some(ids), completed_before, limit })
}

fn put_back(waiting: &mut VecDeque<String>, unvisited: Vec<String>) {
    unvisited.into_iter().rev().for_each(|id| waiting.push_front(id));
}

fn deleted(answer: Answer) -> (DeleteInstanceResult, Unfinished) {
    if let Answer::Deleted(result) = answer {
        return (result, Unfinished::default());
    }
    let Answer::DeletedPart(result, unfinished) = answer else { return Default::default() };
    (result, unfinished)
}

fn pruned(answer: Answer) -> (PruneResult, Unfinished) {
    if let Answer::Pruned(result) = answer {
        return (result, Unfinished::default());
    }
    let Answer::PrunedPart(result, unfinished) = answer else { return Default::default() };
    (result, unfinished)
}
