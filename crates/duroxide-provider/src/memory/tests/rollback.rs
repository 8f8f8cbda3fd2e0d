//! A memory engine whose every transaction is also rolled back, on a copy.

use proptest::prelude::*;

use crate::{
    memory::{MemoryEngine, tables::MemoryTables},
    store::{StoreEngine, StoreFailure},
    testing::{EngineLayer, Subject, check_invariants},
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

    fn begin(&mut self, now: duroxide_core::Timestamp) -> Result<(), StoreFailure> {
        self.before = self.engine.tables().clone();
        self.engine.begin(now)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        let mut copy = self.engine.clone();
        copy.rollback();
        assert_eq!(shown(copy.tables().clone()), shown(self.before.clone()));
        self.engine.commit()
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
