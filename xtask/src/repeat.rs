//! `cargo xtask repeat`: the timing-sensitive tests, again and again.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use crate::{
    step::announce,
    test_program::{self, TestProgram},
    test_run::PROGRAM_TIME_LIMIT,
    time_limit::run_within,
};

/// Crates whose tests depend on a clock, a thread or a process.
const TIMING_SENSITIVE: &[&str] = &["duroxide-store", "duroxide-sqlite", "duroxide-runtime", "duroxide"];

/// Where the output of failed runs is kept.
const LOG_FOLDER: &str = "target/repeat";

/// The tests to repeat, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How many runs.
    #[arg(long, default_value_t = 200)]
    runs: u32,
    /// Only tests whose name contains this text.
    #[arg(long)]
    filter: Option<String>,
    /// Leave out tests whose name contains this text; may be given several times.
    #[arg(long)]
    skip: Vec<String>,
    /// Only tests of this package; may be given several times.
    #[arg(long)]
    package: Vec<String>,
    /// Only this test program, by the name of its target (`poison`, `dispatch`, …); may be given several times.
    #[arg(long)]
    program: Vec<String>,
    /// Build the tests optimised: shorter runs, tighter races.
    #[arg(long)]
    release: bool,
    /// Stop at the first failed run.
    #[arg(long)]
    fail_fast: bool,
}

/// Builds the test programs once and runs them `runs` times.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    announce("Building the tests");
    let mut programs = build(options)?;
    programs.retain(|program| options.wants(program) && options.has_tests_in(program));
    if programs.is_empty() {
        return Err("no test matches".to_owned());
    }
    announce(&format!("{} runs of {} test programs", options.runs, programs.len()));
    let failures = repeat(&programs, options)?;
    if failures.is_empty() {
        println!("\n{} runs, no failure.", options.runs);
        return Ok(());
    }
    Err(format!("{} failed runs, none retried\n        {}", failures.len(), failures.join("\n        ")))
}

fn repeat(programs: &[TestProgram], options: &Options) -> Result<Vec<String>, String> {
    fs::create_dir_all(LOG_FOLDER).map_err(|error| unwritable(Path::new(LOG_FOLDER), &error))?;
    let mut failures = Vec::new();
    for run in 1..=options.runs {
        for program in programs {
            let log = Path::new(LOG_FOLDER).join(format!("{}-{run}.log", program.name));
            let ended = run_within(&mut options.command(program, &log)?, PROGRAM_TIME_LIMIT)?;
            if ended.successfully() {
                fs::remove_file(&log).map_err(|error| unwritable(&log, &error))?;
            } else {
                let failure = format!("run {run}: {} FAILED ({ended}), see {}", program.name, log.display());
                println!("    {failure}");
                failures.push(failure);
            }
        }
        println!("    run {run} of {}: {} failures so far", options.runs, failures.len());
        if options.fail_fast && !failures.is_empty() {
            break;
        }
    }
    Ok(failures)
}

impl Options {
    fn wants(&self, program: &TestProgram) -> bool {
        self.program.is_empty() || self.program.contains(&program.target)
    }

    fn has_tests_in(&self, program: &TestProgram) -> bool {
        let mut command = self.chosen_tests(program);
        let output = command.args(["--list", "--format", "terse"]).output();
        output.is_ok_and(|output| !output.stdout.trim_ascii().is_empty())
    }

    /// A run whose output goes to a file.
    fn command(&self, program: &TestProgram, log: &Path) -> Result<Command, String> {
        let file = File::create(log).map_err(|error| unwritable(log, &error))?;
        let errors = file.try_clone().map_err(|error| unwritable(log, &error))?;
        let mut command = self.chosen_tests(program);
        command.stdout(file).stderr(errors);
        Ok(command)
    }

    fn chosen_tests(&self, program: &TestProgram) -> Command {
        let mut command = program.command();
        command.args(&self.filter).args(self.skip.iter().flat_map(|name| ["--skip", name]));
        command
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

fn build(options: &Options) -> Result<Vec<TestProgram>, String> {
    let chosen: Vec<&str> = if options.package.is_empty() {
        TIMING_SENSITIVE.to_vec()
    } else {
        options.package.iter().map(String::as_str).collect()
    };
    let packages = chosen.iter().flat_map(|package| ["--package", package]);
    let release = options.release.then_some("--release");
    test_program::build(".", ["--all-features"].into_iter().chain(release).chain(packages))
}
