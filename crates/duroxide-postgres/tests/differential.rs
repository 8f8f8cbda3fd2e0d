//! Random operations through the model, SQLite and PostgreSQL give the same answers and leave the same store.
//!
//! PostgreSQL is driven in three ways: with mailboxes in the working set, prepared statements and lists that begin where
//! something can be ready; with every mailbox left to statements and nothing prepared; and by two nodes in turn, each of
//! which has rows in its row cache that the other one changes.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use duroxide_postgres::PostgresEngine;
use duroxide_provider::{
    store::{Batch, Done, Fault, Op, StoreEngine},
    testing::{EngineLayer, ModelEngine, Subject, compare_all},
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use proptest::{collection::vec, prelude::*};

/// Two nodes on one store: each transaction is the other one's.
struct InTurn {
    node: PostgresEngine,
    other: PostgresEngine,
}

impl EngineLayer for InTurn {
    type Engine = PostgresEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut PostgresEngine) -> T) -> T {
        call(&mut self.node)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        std::mem::swap(&mut self.node, &mut self.other);
        self.node.take_letter_numbers(&mut self.other);
        let settings =
            batch.operations.iter().filter(|submitted| matches!(*submitted.op, Op::SetMaxAttempts(_)));
        let settings: Vec<_> = settings.cloned().collect();
        if !settings.is_empty() {
            // Each node has its own, it is not in the store.
            self.other.transact(&Batch { operations: settings, now: batch.now, ..Batch::default() })?;
        }
        self.with_engine(|engine| engine.transact(batch))
    }
}

proptest! {
    // Each step is a dozen round trips, and each case begins with new schemas.
    #![proptest_config(ProptestConfig { cases: 5, failure_persistence: None, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn postgres_agrees_with_the_model_and_sqlite(numbers in vec(any::<u64>(), 40..100)) {
        let Some(server) = postgres_server::server() else { return Ok(()) };
        let open = |prepared_statements| {
            let mut options = fixture::fresh_options(server);
            options.prepared_statements = prepared_statements;
            PostgresEngine::open(options).unwrap().with_callers_clock()
        };
        let sqlite = SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap();
        let shared = fixture::fresh_options(server);
        let node = || PostgresEngine::open(shared.clone()).unwrap().with_callers_clock();
        let mut others = [
            Subject::new(InTurn { node: node(), other: node() }),
            Subject::new(sqlite),
            Subject::new(open(true).as_only_writer()),
            Subject::new(open(false).with_mailbox_loaded_max(0)),
        ];
        let mut others: Vec<&mut Subject> = others.iter_mut().collect();
        compare_all(&mut Subject::new(ModelEngine::default()), &mut others, &numbers);
    }
}
