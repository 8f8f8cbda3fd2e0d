//! The project's own commands, run as `cargo xtask <command>`.

mod arrows;
mod bench;
mod beside;
mod chromium;
mod citations;
mod measure;
mod postgres;
mod repeat;
mod step;
mod suite;
mod test_program;
mod test_run;
mod tidy;
mod time_limit;

use std::{env, process::ExitCode};

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check everything a change must pass: formatting, dependency arrows, citations, tidiness, clippy, docs, doctests, all
    /// tests, and builds with other crates that link SQLite, the oldest rusqlite among them.
    ///
    /// Needs only Rust and a C compiler; missing rustfmt and clippy components are installed through rustup, a missing
    /// PostgreSQL through apt-get if that is allowed, and skipped if not. Stops at the first step that fails and prints its
    /// command, so that it can be run again alone.
    Test,
    /// Check that dependencies between the workspace's crates point inwards, and that the pure crates are pure.
    Arrows,
    /// Check that every rule, requirement and pitfall that a comment cites is defined, and that a test cites each of them.
    ///
    /// Ids such as `16.11`, `S3.T14` and `B7` are defined in `docs/semantics.md` and `docs/requirements.md`. They are
    /// citations in comments of Rust and SQL, at the start of an assertion's message, and in Markdown. Also part of
    /// `test`.
    Citations,
    /// Check the code map of ARCHITECTURE.md, module docs, the lengths of files, functions and folders, and that wildcard
    /// arms are refused.
    Tidy,
    /// Build and run duroxide in one program with other crates that link SQLite, and run the SQLite tests with the
    /// oldest rusqlite it takes.
    ///
    /// The packages are below `testing/beside`, each with its own versions. `test` runs the part with the oldest
    /// rusqlite.
    Beside,
    /// Run the PostgreSQL tests on other major versions of the server, by default 14 and 18.
    ///
    /// The newest release of each is fetched with npm into `target/postgres`, for Linux on x86-64. A version that is too old for
    /// a store must be refused: of 13 only that is tested. Needs nextest.
    TestPostgresVersions(postgres::versions::Options),
    /// Run the timing-sensitive tests again and again and report every failure.
    ///
    /// These are all tests of the crates that know a clock, a thread or a process; the pure crates cannot be
    /// timing-sensitive. The test programs are built once. No failure is retried: one failed run fails the command,
    /// after all runs are done, and its output is kept below `target/repeat`.
    Repeat(repeat::Options),
    /// Measure the workloads of `bench/` on ours and on the published crate, in one run.
    ///
    /// Builds both packages, lets the implementations take turns, prints a table with medians, spread, ratios and
    /// targets, and writes it below `bench/results` as Markdown, JSON and a chart. Progress goes to stderr.
    Bench(bench::Options),
    /// Check promised bounds: memory of cached executions, recovery after crashes, the cost of a bulk delete.
    ///
    /// Each measurement prints its figures and fails beyond its bound. They are no part of `test`, because a busy machine
    /// can spoil them.
    Measure(measure::Options),
    /// Measure the console on a SQLite store with a million instances, under load: how fast its pages answer (under 100 ms at
    /// p99), and how much it slows the load (less than 5 %). On a machine that does nothing else.
    ///
    /// Prints each figure with its bound and whether it is kept. A bound that is missed is not an error, because a busy machine
    /// spoils the figures.
    MeasureConsole(chromium::MeasureOptions),
    /// Make the pictures of the console for the documents, below `docs/pictures`. Needs Chromium.
    Screenshots,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("\nFAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Commands work on the whole workspace, wherever in it they were called.
fn run(command: Command) -> Result<(), String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    env::set_current_dir(root).map_err(|error| format!("cannot enter {root}: {error}"))?;
    match command {
        Command::Test => suite::run(),
        Command::Arrows => arrows::check_workspace(),
        Command::Citations => citations::check_repository(),
        Command::Tidy => tidy::check_workspace(),
        Command::Beside => beside::run(),
        Command::TestPostgresVersions(options) => postgres::versions::run(&options),
        Command::Repeat(options) => repeat::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Measure(options) => measure::run(&options),
        Command::MeasureConsole(options) => chromium::measure(&options),
        Command::Screenshots => chromium::screenshots(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
