//! `cargo xtask measure`: bounds that are promised and that only a measurement shows.

use crate::step::Step;

/// Each runs in a process of its own, because peaks of memory are those of the whole process.
const MEASUREMENTS: &[&str] = &[
    "bulk_delete::a_hello_during_a_bulk_delete",
    "cache_memory::a_thousand_large_instances_stay_within_one_and_a_half_times_the_bound",
    "cache_memory::five_hundred_large_instances_stay_within_one_and_a_half_times_the_bound",
    "cache_memory::ten_thousand_small_instances_cost_about_their_estimate",
    "full_tables::a_million_instances_and_a_million_timers_leave_nearly_all_of_the_speed",
    "held_transaction::a_transaction_left_open_leaves_most_of_the_speed",
    "recovery::activities_after_two_kills",
    "recovery::innocents_with_a_killer_after_two_kills",
    "recovery::instances_that_bounced_three_times",
    "verify::ten_thousand_open_instances_with_new_code",
];

const RUN: &str = "test --quiet --profile measure -p duroxide --features postgres,testing --test measurements -- --ignored --nocapture --exact";

/// Tells `held_transaction` for how long.
const SECONDS: &str = "DUROXIDE_MEASURE_SECONDS";

/// The options of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only measurements whose name contains this text.
    #[arg(default_value = "")]
    filter: String,
    /// For how long `held_transaction` keeps a transaction open.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Runs all measurements and names those that are beyond their bounds.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let chosen = MEASUREMENTS.iter().filter(|name| name.contains(&options.filter));
    let seconds = options.seconds.to_string();
    let steps = chosen.map(|name| (*name, Step::cargo(*name, RUN).arg(*name).env(SECONDS, &seconds)));
    let failed: Vec<_> = steps.filter(|(_, step)| step.run().is_err()).map(|(name, _)| name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("beyond their bounds: {failed:?}")) }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn every_measurement_is_run() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/duroxide/tests/measurements");
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (text, path) = (fs::read_to_string(entry.path()).unwrap(), entry.path());
            let module = path.file_stem().unwrap().to_str().unwrap();
            for test in text.split("#[ignore = \"a measurement\"]\nasync fn ").skip(1) {
                found.insert(format!("{module}::{}", test.split('(').next().unwrap()));
            }
        }
        assert_eq!(found, MEASUREMENTS.iter().map(|name| (*name).to_owned()).collect());
    }
}
