//! Random operations through the model, SQLite and PostgreSQL give the same answers and leave the same store.
//!
//! PostgreSQL is driven in two ways: with mailboxes in the working set, prepared statements and lists that begin where something
//! can be ready; and with every mailbox left to statements and nothing prepared.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use duroxide_postgres::PostgresEngine;
use duroxide_provider::testing::{ModelEngine, Subject, compare_all};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use proptest::{collection::vec, prelude::*};

proptest! {
    // Each step is a dozen round trips, and each case begins with new schemas.
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn postgres_does_what_the_model_and_sqlite_do(numbers in vec(any::<u64>(), 40..120)) {
        let Some(server) = postgres_server::server() else { return Ok(()) };
        let open = |prepared_statements| {
            let mut options = fixture::fresh_options(server);
            options.prepared_statements = prepared_statements;
            PostgresEngine::open(options).unwrap().with_callers_clock()
        };
        let sqlite = SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap();
        let mut others = [
            Subject::new(sqlite),
            Subject::new(open(true).hearing_of_ready()),
            Subject::new(open(false).with_mailbox_loaded_max(0)),
        ];
        let mut others: Vec<&mut Subject> = others.iter_mut().collect();
        compare_all(&mut Subject::new(ModelEngine::default()), &mut others, &numbers);
    }
}
