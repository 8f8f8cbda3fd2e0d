//! A memory engine whose every transaction is also rolled back, on a copy.

use duroxide_core::Timestamp;
use proptest::prelude::*;

use crate::{
    memory::{MemoryEngine, tables::MemoryTables},
    rules::Rules,
    store::{Batch, Done, Fault, MessageRow, Op, StoreFailure, StoreReader, TransactionSteps},
    testing::{
        EngineLayer, StepLayer, Subject, check_invariants, items,
        scenario::{LEASE, batch_fetch},
    },
};

#[derive(Default)]
struct RolledBack {
    engine: MemoryEngine,
    before: MemoryTables,
}

impl EngineLayer for RolledBack {
    type Engine = MemoryEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut MemoryEngine) -> T) -> T {
        call(&mut self.engine)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.transact_in_steps(batch)
    }
}

impl StepLayer for RolledBack {
    type Steps = Rules<MemoryTables>;

    fn with_steps<T>(&mut self, call: impl FnOnce(&mut Self::Steps) -> T) -> T {
        call(self.engine.rules())
    }

    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        self.before = self.engine.tables().clone();
        self.engine.rules().begin(now)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        let mut copy = self.engine.clone();
        copy.rules().rollback();
        assert_eq!(shown(copy.tables().clone()), shown(self.before.clone()));
        self.engine.rules().commit()
    }
}

/// Rows and indexes. Numbers that were drawn, routes and lanes stay.
fn shown(mut tables: MemoryTables) -> String {
    (tables.last_number, tables.last_dead_letter, tables.last_node) = (0, 0, 0);
    (tables.routes, tables.lanes) = Default::default();
    format!("{tables:#?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rollback_leaves_no_trace_in_rows_and_indexes(
        numbers in prop::collection::vec(any::<u64>(), 1..120),
    ) {
        check_invariants(&mut Subject::new(RolledBack::default()), &numbers);
    }
}

/// I15: the clock may have been set back while the store was closed.
#[test]
fn leases_are_checked_again_if_the_first_transaction_was_rolled_back() {
    let (late, early) = (Timestamp::from_millis(9_000_000), Timestamp::from_millis(1_000_000));
    let mut engine = MemoryEngine::default();
    let rules = engine.rules();
    rules.begin(late).unwrap();
    let start = Op::EnqueueMessage(MessageRow::start(items::start("a")).unwrap());
    rules.apply(&start, late).unwrap();
    assert_eq!(rules.claim_instances(&batch_fetch(1), 1).unwrap().items.len(), 1);
    rules.commit().unwrap();

    rules.reopened();
    rules.begin(early).unwrap();
    rules.rollback();
    rules.begin(early).unwrap();
    rules.commit().unwrap();
    let lock = engine.snapshot().unwrap().instances.remove(0).lock.unwrap();
    assert_eq!(lock.until, early.saturating_add(LEASE));
}
