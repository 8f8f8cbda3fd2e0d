//! Random operations through the model and through SQLite give the same answers and leave the same store.

use duroxide_provider::testing::{ModelEngine, Subject, compare};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use proptest::{collection::vec, prelude::*};

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_does_what_the_model_does(numbers in vec(any::<u64>(), 1..150)) {
        let model = ModelEngine::default();
        let sqlite = SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap();
        compare(&mut Subject::new(model), &mut Subject::new(sqlite), &numbers);
    }
}
