//! Tests, each with a time limit that fails it.

mod memory_folder;

use std::time::{Duration, Instant};

use crate::{
    step::{Step, announce, answers},
    test_program::{self, TestProgram},
    time_limit::run_within,
};
use memory_folder::MemoryFolder;

/// Without nextest, which knows a limit for each test (`.config/nextest.toml`), a whole test program must end in this time.
/// It says itself which of its tests take long.
pub(crate) const PROGRAM_TIME_LIMIT: Duration = Duration::from_secs(15 * 60);

/// The environment variable that names the folder of temporary files.
const TMPDIR: &str = "TMPDIR";

/// All tests of a workspace.
#[derive(Debug)]
pub(crate) struct TestRun {
    pub(crate) title: &'static str,
    pub(crate) folder: &'static str,
    /// For `cargo test` and `cargo nextest run`. Naming no target kind also builds the examples, which a test runs.
    pub(crate) selection: &'static str,
    /// The arguments of cargo that run nextest, with the settings of the main workspace.
    pub(crate) nextest: &'static str,
}

impl TestRun {
    pub(crate) fn run(&self) -> Result<(), String> {
        let files = MemoryFolder::new();
        if answers("cargo", &["nextest", "--version"]) {
            let step = Step::cargo(self.title, self.nextest).inside(self.folder);
            return files
                .iter()
                .fold(step, |step, files| step.env(TMPDIR, files.path().display().to_string()))
                .run();
        }
        announce(self.title);
        let begin = Instant::now();
        let programs = test_program::build(self.folder, self.selection.split_whitespace())?;
        let failures = failures_of(&programs, files.as_ref())?;
        if !failures.is_empty() {
            return Err(format!("{}\n        {}", self.title, failures.join("\n        ")));
        }
        println!("    ok, {:.0} s", begin.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Runs all programs, also after a failure.
fn failures_of(programs: &[TestProgram], files: Option<&MemoryFolder>) -> Result<Vec<String>, String> {
    let mut failures = Vec::new();
    for program in programs {
        println!("    {}", program.name);
        let mut command = program.command();
        command.envs(files.map(|files| (TMPDIR, files.path())));
        let ended = run_within(&mut command, PROGRAM_TIME_LIMIT)?;
        if !ended.successfully() {
            failures.push(format!("{} ({ended})", program.name));
        }
    }
    Ok(failures)
}
