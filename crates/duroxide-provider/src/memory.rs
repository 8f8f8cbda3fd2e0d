//! A store in memory: rows in ordered maps, under the [rules](crate::rules) that every store keeps.
//!
//! The maps have the indexes that a database would have: a claim reads only the first rows of each route or lane that
//! passes its filter, a promotion only due rows, and every other operation finds its row by key.

mod changes;
mod reads;
pub mod record;
mod snapshot;
mod tables;

use duroxide_core::Timestamp;

pub use self::tables::MemoryTables;
pub use crate::rules::RuleOptions as MemoryOptions;
use crate::{
    rules::{ReadyIndex as _, Rules},
    store::{Batch, Done, Fault, Readies, StoreEngine, StoreFailure, TransactionSteps as _},
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

    /// The rules, to run a transaction in steps.
    pub fn rules(&mut self) -> &mut Rules<MemoryTables> {
        &mut self.rules
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
    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.rules.transact_in_steps(batch)
    }

    fn next_wake(&mut self, _now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
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
