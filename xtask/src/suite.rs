//! `cargo xtask test`: everything a change must pass.

use std::time::{Duration, Instant};

use crate::{
    arrows, beside, chromium, citations, postgres,
    step::{Step, announce, answers},
    test_run::TestRun,
    tidy,
};

/// Runs all steps, the quick ones first, and stops at the first that fails.
pub(crate) fn run() -> Result<(), String> {
    let begin = Instant::now();
    set_up()?;
    for step in formatting_steps().into_iter().chain(beside::formatting_steps()) {
        step.run()?;
    }
    arrows::check_workspace()?;
    citations::check_repository()?;
    tidy::check_workspace()?;
    for step in compiled_steps() {
        step.run()?;
    }
    TESTS.run()?;
    beside::run_oldest()?;
    println!("\nAll steps passed in {:.0} s.", begin.elapsed().as_secs_f64());
    Ok(())
}

/// A fresh machine may have Rust without these two components.
fn set_up() -> Result<(), String> {
    announce("Set-up");
    for (component, args) in [("rustfmt", ["fmt", "--version"]), ("clippy", ["clippy", "--version"])] {
        if !answers("cargo", &args) && !answers("rustup", &["component", "add", component]) {
            return Err(format!(
                "{component} is missing and `rustup component add {component}` did not work"
            ));
        }
    }
    println!("    rustfmt and clippy are there");
    postgres::set_up();
    chromium::set_up();
    Ok(())
}

/// The benchmark's packages are outside of the workspace. They are formatted like it, but not built here: the published
/// crate and a release build would cost more than all the rest.
fn formatting_steps() -> [Step; 3] {
    [
        Step::cargo("Formatting", "fmt --all --check"),
        Step::cargo("Formatting of bench/ours", "fmt --manifest-path bench/ours/Cargo.toml --check"),
        Step::cargo(
            "Formatting of bench/published",
            "fmt --manifest-path bench/published/Cargo.toml --check",
        ),
    ]
}

/// Building included.
const DOCTESTS_TIME_LIMIT: Duration = Duration::from_secs(20 * 60);

fn compiled_steps() -> [Step; 3] {
    [
        Step::cargo("Clippy", "clippy --workspace --all-targets --all-features -- -D warnings"),
        Step::cargo("Docs", "doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings"),
        Step::cargo("Doctests", "test --doc --workspace --all-features").within(DOCTESTS_TIME_LIMIT),
    ]
}

/// With nextest each test is a process. They share a PostgreSQL server instead of starting one each.
const TESTS: TestRun = TestRun {
    title: "Tests",
    folder: ".",
    selection: "--workspace --all-features",
    nextest: "run --quiet --package postgres-server -- \
              cargo nextest run --workspace --all-features --no-fail-fast",
};
