//! Here every text is stored apart, so that the comparison with the model exercises payloads too.

use std::{cell::Cell, rc::Rc};

use duroxide_provider::{
    store::StoreFailure,
    testing::{EngineLayer, ModelEngine, Subject, compare},
};
use proptest::{collection::vec, prelude::*};

use crate::{SqliteEngine, SqliteOptions};

const USED: &str = "WITH used AS (SELECT payload AS number FROM message WHERE payload IS NOT NULL
        UNION ALL SELECT payload FROM activity WHERE payload IS NOT NULL
        UNION ALL SELECT payload FROM history WHERE payload IS NOT NULL)
    SELECT (SELECT count(*) FROM payload WHERE id NOT IN (SELECT number FROM used)),
        (SELECT count(*) FROM used WHERE number NOT IN (SELECT id FROM payload)),
        (SELECT count(*) FROM released_payload),
        (SELECT count(*) - count(DISTINCT number) FROM used)";

/// Checks the payloads before the first read after a change.
struct Checked {
    engine: SqliteEngine,
    shared: Rc<Cell<i64>>,
    changes: u64,
}

impl EngineLayer for Checked {
    type Engine = SqliteEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut SqliteEngine) -> T) -> T {
        call(&mut self.engine)
    }

    fn before_read(&mut self) -> Result<(), StoreFailure> {
        let conn = self.engine.db().conn();
        let changes = conn.total_changes();
        if conn.is_autocommit() && changes != self.changes {
            self.changes = changes;
            let counts: (i64, i64, i64, i64) = conn
                .query_row(USED, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
                .unwrap();
            assert_eq!((counts.0, counts.1, counts.2), (0, 0, 0), "left over, missing, released");
            self.shared.set(self.shared.get() + counts.3);
        }
        Ok(())
    }
}

/// Answers and content are those of the model, and each payload exists exactly as long as rows refer to it.
#[test]
fn a_store_of_shared_texts_does_what_the_model_does() {
    let shared = Rc::new(Cell::new(0));
    let config = ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(numbers in vec(any::<u64>(), 1..150))| {
        let engine = SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap();
        let checked = Checked { engine, shared: Rc::clone(&shared), changes: 0 };
        compare(&mut Subject::new(ModelEngine::default()), &mut Subject::new(checked), &numbers);
    });
    assert!(shared.get() > 0, "rows shared a text");
}
