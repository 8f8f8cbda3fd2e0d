//! [`for_seeds`]: runs one test with a crash at many different awaits.

use std::{
    env,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex},
    thread,
};

use crate::{
    ClusterBuilder,
    cluster::{CrashPlan, fail},
};

/// The environment variable that selects a single seed.
const SEED: &str = "DUROXIDE_SEED";

/// Runs a test once for each seed, and kills a node at a different await each time.
///
/// The first run has no crash and counts the awaits of the nodes. Each seed then selects one of these awaits: the node
/// that reaches it is killed, and restarted a few seconds of virtual time later. As many seeds as awaits cover every
/// await. Fewer seeds are spread evenly over the awaits; further seeds try other orders of tasks that can run at the
/// same time.
///
/// If the test fails, the seed is printed with the command that repeats it.
///
/// ```
/// # use std::time::Duration;
/// # use duroxide_runtime::{OrchestrationRegistry, typed::Handlers};
/// # use duroxide_testing::{TextMock, for_seeds};
/// # fn handlers() -> Handlers {
/// #     Handlers::new().orchestrations(
/// #         OrchestrationRegistry::builder()
/// #             .register("Greet", |ctx, name| async move { ctx.schedule_activity("Hello", name).await })
/// #             .build(),
/// #     )
/// # }
/// for_seeds(0..20, |cluster| {
///     let hello = TextMock::new("Hello", |name| Ok(format!("hello {name}")));
///     cluster.handlers(handlers()).mock_text(&hello).run(async |cluster| {
///         cluster.client().start_orchestration("g", "Greet", "world").await.unwrap();
///         let ended: Result<String, String> =
///             cluster.client().wait_for_orchestration_typed("g", Duration::from_secs(3_600)).await.unwrap();
///         assert_eq!(ended.unwrap(), "hello world");
///     });
/// });
/// ```
///
/// # Panics
/// If the test panics.
pub fn for_seeds(seeds: Range<u64>, mut test: impl FnMut(ClusterBuilder)) {
    let awaits = Arc::new(Mutex::new(0));
    attempt("without a crash", || test(ClusterBuilder::planned(0, None, Arc::clone(&awaits))));
    let awaits = *awaits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for seed in chosen(seeds, env::var(SEED).ok().as_deref()) {
        let (order, at_await) = (seed / awaits.max(1), spread(seed, awaits.max(1)));
        let plan = CrashPlan { at_await };
        let what = format!("with seed {seed}, a crash at await {at_await} of {awaits};\n{}", repeat(seed));
        attempt(&what, || test(ClusterBuilder::planned(order, Some(plan), Arc::default())));
    }
}

/// The seeds of the range, or only the seed that the environment variable names.
fn chosen(seeds: Range<u64>, asked_for: Option<&str>) -> Range<u64> {
    let Some(text) = asked_for else { return seeds };
    match text.parse::<u64>() {
        Ok(seed) => seed..seed.saturating_add(1),
        Err(error) => fail(&format!("{SEED}={text} is not a seed: {error}")),
    }
}

/// The await at which a seed kills a node. Consecutive seeds lie far apart, and `awaits` of them cover every await.
fn spread(seed: u64, awaits: u64) -> u64 {
    // Steps of about the golden ratio spread any number of seeds evenly.
    let start = (awaits as f64 * 0.618) as u64;
    let step = (start.max(1)..).find(|step| gcd(*step, awaits) == 1).unwrap_or(1);
    ((u128::from(seed) * u128::from(step)) % u128::from(awaits)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Runs the test. If it panics, prints `what`, which describes the run.
#[expect(clippy::print_stderr, reason = "a failed test says how to repeat it")]
fn attempt(what: &str, test: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(test)) {
        eprintln!("the test failed {what}");
        resume_unwind(panic);
    }
}

/// The command that repeats a seed. The test harness names threads after their tests.
fn repeat(seed: u64) -> String {
    let package = env::var("CARGO_PKG_NAME").map(|name| format!(" -p {name}")).unwrap_or_default();
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main").map(|name| format!(" -- --exact {name}"));
    format!("repeat it with: {SEED}={seed} cargo test{package}{}", test.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn as_many_seeds_as_awaits_reach_every_await() {
        for awaits in [1, 2, 3, 10, 97, 360] {
            let reached: BTreeSet<u64> = (0..awaits).map(|seed| spread(seed, awaits)).collect();
            assert_eq!(reached, (0..awaits).collect());
        }
    }

    #[test]
    fn a_failure_says_how_to_repeat_it() {
        let command = "DUROXIDE_SEED=17 cargo test -p duroxide-testing -- --exact";
        let test = "seeds::tests::a_failure_says_how_to_repeat_it";
        assert_eq!(repeat(17), format!("repeat it with: {command} {test}"));
        assert_eq!((chosen(0..500, None), chosen(0..500, Some("17"))), (0..500, 17..18));
    }

    #[test]
    #[should_panic(expected = "DUROXIDE_SEED=seventeen is not a seed")]
    fn a_seed_that_is_no_number_is_refused() {
        chosen(0..500, Some("seventeen"));
    }
}
