//! Tools to test store engines with, behind the feature `testing`.
//!
//! * [`Scenario`]: drives one engine in virtual time, one small transaction per call.
//! * [`stories`]: short stories that every engine must pass; [`engine_stories!`](crate::engine_stories) makes a test of
//!   each.
//! * [`Driver`] and [`Subject`]: random steps, as a correct runtime, impatient clients and a careless operator take
//!   them, to check invariants after each ([`check_invariants`]) and to compare engines ([`compare`], [`compare_all`]).
//! * [`ModelEngine`]: the oracle that engines are compared with.
//! * [`EngineLayer`] and [`intercept`]: the [`layers`](crate::layers), which a smaller feature has alone.
//! * [`NotingProvider`], [`call_every_method`] and [`call_every_admin_method`]: whether a provider in front of another one
//!   hands every call on.
//!
//! ```ignore
//! duroxide_provider::engine_stories!(MyEngine::new());
//! ```
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a broken expectation is a failed test"
)]

mod answers;
mod dice;
mod driver;
mod early;
mod every_method;
pub mod items;
mod model;
pub mod scenario;
mod script;
mod steps;
pub mod stories;
mod subject;
mod told_end;
mod turn;

pub use crate::layers::{EngineLayer, FullyIntercepted, Intercept, Intercepted, StepLayer, intercept};
pub use driver::Driver;
pub use early::TurnsInTransaction;
pub use every_method::{NotingProvider, call_every_admin_method, call_every_method};
pub use model::ModelEngine;
pub use scenario::Scenario;
pub use subject::{Observation, Step, Subject};
pub use turn::Turn;

use crate::invariant;

/// Drives two engines with the same numbers and compares all they do: answers, reads and the whole content.
///
/// # Panics
/// If the engines differ, an invariant is broken or a store fails.
pub fn compare(one: &mut Subject, other: &mut Subject, numbers: &[u64]) {
    compare_all(one, &mut [other], numbers);
}

/// Drives engines with the same numbers and compares all answers of the others with those of the first one.
///
/// # Panics
/// If an engine differs, an invariant is broken or a store fails.
pub fn compare_all(one: &mut Subject, others: &mut [&mut Subject], numbers: &[u64]) {
    let mut driver = Driver::default();
    for (n, number) in numbers.iter().enumerate() {
        let step = driver.step(*number);
        let seen = one.take(&step).unwrap();
        let (reads, snapshot) = (one.reads().unwrap(), one.comparable_snapshot().unwrap());
        for (place, other) in others.iter_mut().enumerate() {
            let at = || format!("step {n}, engine {}: {step:#?}", place + 2);
            assert_same(&seen.text(), &other.take(&step).unwrap().text(), at);
            assert_same(&reads, &other.reads().unwrap(), at);
            let same = other.comparable_snapshot().unwrap();
            if snapshot != same {
                assert_same(&format!("{snapshot:#?}"), &format!("{same:#?}"), at);
            }
        }
        driver.learn(&seen);
    }
}

/// Panics with the first lines in which two texts differ, and the lines before them.
fn assert_same(one: &str, other: &str, at: impl Fn() -> String) {
    if one == other {
        return;
    }
    let (one, other): (Vec<_>, Vec<_>) = (one.lines().collect(), other.lines().collect());
    let first = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let (from, to) = (first.saturating_sub(12), first + 6);
    let show = |lines: &[&str]| lines[from.min(lines.len())..to.min(lines.len())].join("\n");
    let at = at();
    panic!("the engines differ at {at}\n--- one\n{}\n--- other\n{}", show(&one), show(&other));
}

/// Drives an engine with numbers and checks the invariants after every step.
///
/// # Panics
/// If an invariant is broken or the store fails.
pub fn check_invariants(subject: &mut Subject, numbers: &[u64]) {
    let mut driver = Driver::default();
    let mut deleted = false;
    for (n, number) in numbers.iter().enumerate() {
        let step = driver.step(*number);
        let seen = subject.take(&step).unwrap();
        driver.learn(&seen);
        deleted |= seen
            .answer
            .as_ref()
            .is_some_and(|answer| matches!(answer, Ok(text) if text.starts_with("Deleted")));
        let mut violations = invariant::check(&subject.snapshot().unwrap());
        // A start that a deleted parent had sent may find another instance under the parent's id.
        violations.retain(|violation| !(deleted && violation.invariant.starts_with("I17")));
        assert!(violations.is_empty(), "step {n}: {step:#?}\n{violations:#?}");
    }
}
