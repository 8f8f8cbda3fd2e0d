//! `StoreReader` for the writer and the reader connections.

use std::collections::BTreeMap;

use duroxide_core::{SystemStats, Timestamp};
use duroxide_provider::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary, QueueDepths,
    QueueSummary, QueuedWork, SummaryRequest, SystemMetrics,
    store::{
        EventRow, InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance,
        StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode,
        StoredStatus,
    },
};

use super::{bulk, listing, queued_work, ready, snapshot, summary};
use crate::{
    SqliteEngine, SqliteReader, reads,
    tables::{dead_letters, nodes},
};

/// The engine and its readers answer the same reads; they differ only in the time that they use.
macro_rules! read_through_db {
    ($type:ty) => {
        impl StoreReader for $type {
            fn history(
                &mut self,
                instance: &str,
                execution_id: Option<u64>,
            ) -> Result<Vec<EventRow>, StoreFailure> {
                self.db().in_one_state(|db| reads::history(db, instance, execution_id))
            }

            fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
                self.db().in_one_state(|db| reads::load(db, instance, execution_id))
            }

            fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
                reads::status(self.db(), instance)
            }

            fn status_or_pending(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
                reads::status_or_pending(self.db(), instance)
            }

            fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure> {
                self.db().in_one_state(|db| reads::descriptor(db, instance))
            }

            fn last_event_id(
                &mut self,
                instance: &str,
                execution_id: u64,
            ) -> Result<Option<u64>, StoreFailure> {
                self.db().in_one_state(|db| reads::last_event_id(db, instance, execution_id))
            }

            fn custom_status(
                &mut self,
                instance: &str,
            ) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
                self.db().in_one_state(|db| reads::custom_status(db, instance))
            }

            fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure> {
                self.db().in_one_state(|db| reads::kv_value(db, instance, key))
            }

            fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure> {
                self.db().in_one_state(|db| reads::kv_values(db, instance))
            }

            fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure> {
                self.db().in_one_state(|db| reads::stats(db, instance))
            }

            fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure> {
                listing::ids(self.db(), status)
            }

            fn select_instances(
                &mut self,
                query: &InstanceQuery,
                below: Option<u64>,
                max: usize,
            ) -> Result<Vec<SelectedInstance>, StoreFailure> {
                self.db().in_one_state(|db| listing::select(db, query, below, max))
            }

            fn bulk_selection(
                &mut self,
                filter: &InstanceFilter,
                running_too: bool,
            ) -> Result<Vec<String>, StoreFailure> {
                let selected = self.db().in_one_state(|db| bulk::select(db, filter, running_too))?;
                Ok(selected.into_iter().map(|(_, id)| id).collect())
            }

            fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure> {
                let (db, fullness) = self.db_and_fullness();
                db.in_one_state(|db| fullness.is_at_least(db, instance, at_least))
            }

            fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure> {
                self.db().in_one_state(|db| reads::executions(db, instance))
            }

            fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure> {
                reads::current_execution(self.db(), instance)
            }

            fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure> {
                self.db().in_one_state(|db| listing::info(db, instance))
            }

            fn execution_info(
                &mut self,
                instance: &str,
                execution_id: u64,
            ) -> Result<Option<ExecutionInfo>, StoreFailure> {
                self.db().in_one_state(|db| reads::execution_info(db, instance, execution_id))
            }

            fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure> {
                reads::system_metrics(self.db())
            }

            fn pending_instances(&mut self) -> Result<u64, StoreFailure> {
                listing::count_pending(self.db())
            }

            fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure> {
                self.db().in_one_state(|db| reads::queue_depths(db, self.read_at()?))
            }

            fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure> {
                reads::children(self.db(), instance)
            }

            fn running_versions(&mut self) -> Result<Vec<RunningVersion>, StoreFailure> {
                reads::running_versions(self.db())
            }

            fn ready_instances(
                &mut self,
                wanted: &dyn Fn(&InstanceNeeds) -> bool,
                max: usize,
            ) -> Result<Vec<ReadyInstance>, StoreFailure> {
                self.db().in_one_state(|db| ready::instances(db, wanted, max))
            }

            fn ready_activities(
                &mut self,
                wanted: &dyn Fn(&str, Option<&str>) -> bool,
                max: usize,
            ) -> Result<Vec<ReadyActivity>, StoreFailure> {
                self.db().in_one_state(|db| ready::activities(db, wanted, max))
            }

            fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
                nodes::list(self.db())
            }

            fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure> {
                dead_letters::list(self.db(), limit)
            }

            fn queued_work(
                &mut self,
                instance: &str,
                now: Timestamp,
            ) -> Result<Option<QueuedWork>, StoreFailure> {
                self.db().in_one_state(|db| queued_work::read(db, instance, now))
            }

            fn instance_summary(
                &mut self,
                request: &SummaryRequest,
            ) -> Result<InstanceSummary, StoreFailure> {
                self.db().in_one_state(|db| summary::instances(db, request))
            }

            fn queue_summary(&mut self, now: Timestamp) -> Result<QueueSummary, StoreFailure> {
                self.db().in_one_state(|db| summary::queues(db, now))
            }

            fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
                self.db().in_one_state(|db| snapshot::take(db, self.read_at()?))
            }
        }
    };
}

read_through_db!(SqliteEngine);
read_through_db!(SqliteReader);
