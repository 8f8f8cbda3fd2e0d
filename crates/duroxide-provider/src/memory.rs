//! A store in memory: rows in ordered maps, under the [rules](crate::rules) that every store keeps.
//!
//! The maps have the indexes that a database would have: a claim looks only at the first rows of each route or lane
//! that passes its filter, a promotion only at rows that are due, and every other operation finds its row by key.

mod changes;
mod reads;
pub mod record;
mod snapshot;
mod tables;

use std::time::Duration;

use duroxide_core::Timestamp;

use self::tables::MemoryTables;
pub use crate::rules::RuleOptions as MemoryOptions;
use crate::{
    OrchestrationClaim, WorkClaim,
    rules::{ReadyIndex as _, Rules},
    store::{
        ActivityOrder, Answer, ApplyError, Claimed, DeadLetterNote, InstanceOrder, Op, Readies, StoreEngine,
        StoreFailure,
    },
};

/// A store in memory. It is lost with its process.
#[derive(Debug, Clone)]
pub struct MemoryEngine {
    rules: Rules<MemoryTables>,
}

impl MemoryEngine {
    /// An empty store.
    pub fn new(options: MemoryOptions) -> Self {
        Self { rules: Rules::new(MemoryTables::default(), options) }
    }

    fn tables(&self) -> &MemoryTables {
        self.rules.tables()
    }
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::new(MemoryOptions::default())
    }
}

impl StoreEngine for MemoryEngine {
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.rules.begin(now)
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        self.rules.apply(op, handed_in)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        self.rules.promote()
    }

    fn clamp_leases(&mut self) -> Result<(), StoreFailure> {
        self.rules.clamp_leases()
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.rules.move_leases(by)
    }

    fn claim_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        self.rules.claim_instances(order, nonce)
    }

    fn claim_activities(
        &mut self,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        self.rules.claim_activities(order, nonce)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        self.rules.commit()
    }

    fn rollback(&mut self) {
        self.rules.rollback();
    }

    fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure> {
        self.rules.next_wake()
    }

    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        Ok(false)
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        self.rules.tables_mut().may_be_ready()
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
