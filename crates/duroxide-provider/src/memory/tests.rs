use proptest::prelude::*;

use super::MemoryEngine;
use crate::testing::{Subject, check_invariants, compare};

crate::engine_stories!(MemoryEngine::default());

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_whatever_is_done(numbers in prop::collection::vec(any::<u64>(), 0..250)) {
        check_invariants(&mut Subject::new(MemoryEngine::default()), &numbers);
    }

    #[test]
    fn two_engines_do_the_same(numbers in prop::collection::vec(any::<u64>(), 0..60)) {
        let (one, other) = (MemoryEngine::default(), MemoryEngine::default());
        compare(&mut Subject::new(one), &mut Subject::new(other), &numbers);
    }
}
