//! Random operations through the memory engine and through SQLite give the same answers and leave the same store.

use duroxide_provider::{
    memory::MemoryEngine,
    testing::{Subject, compare},
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use proptest::{collection::vec, prelude::*};

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_does_what_memory_does(numbers in vec(any::<u64>(), 1..150)) {
        let memory = MemoryEngine::default();
        let sqlite = SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap();
        compare(&mut Subject::new(memory), &mut Subject::new(sqlite), &numbers);
    }
}
