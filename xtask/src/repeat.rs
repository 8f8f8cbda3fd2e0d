//! `cargo xtask repeat`: the timing-sensitive tests, again and again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde::Deserialize;

use crate::step::announce;

/// Crates whose tests know a clock, a thread or a process.
const TIMING_SENSITIVE: &[&str] = &["duroxide-store", "duroxide-sqlite", "duroxide-runtime", "duroxide"];

/// Where the output of failed runs is kept.
const LOG_FOLDER: &str = "target/repeat";

/// What to repeat, and how often.
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
    programs.retain(|program| options.wants(program) && program.has_tests(options));
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
    let mut failures = Vec::new();
    for run in 1..=options.runs {
        for program in programs {
            let output = program.output(options, &[])?;
            if !output.status.success() {
                let log = program.keep_log(run, &output)?;
                println!("    run {run}: {} FAILED, see {}", program.name, log.display());
                failures.push(format!("run {run}: {}, see {}", program.name, log.display()));
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
}

/// One compiled test program.
#[derive(Debug, PartialEq, Eq)]
struct TestProgram {
    name: String,
    target: String,
    executable: PathBuf,
    package_folder: PathBuf,
}

impl TestProgram {
    fn has_tests(&self, options: &Options) -> bool {
        self.output(options, &["--list", "--format", "terse"])
            .is_ok_and(|output| !output.stdout.trim_ascii().is_empty())
    }

    /// Runs the program where cargo would run it.
    fn output(&self, options: &Options, args: &[&str]) -> Result<Output, String> {
        let skip = options.skip.iter().flat_map(|name| ["--skip", name]);
        Command::new(&self.executable)
            .args(&options.filter)
            .args(skip)
            .args(args)
            .current_dir(&self.package_folder)
            .output()
            .map_err(|error| format!("cannot run {}: {error}", self.executable.display()))
    }

    fn keep_log(&self, run: u32, output: &Output) -> Result<PathBuf, String> {
        let log = Path::new(LOG_FOLDER).join(format!("{}-{run}.log", self.name));
        let text = [output.stdout.as_slice(), &output.stderr].concat();
        fs::create_dir_all(LOG_FOLDER)
            .and_then(|()| fs::write(&log, text))
            .map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        Ok(log)
    }
}

fn build(options: &Options) -> Result<Vec<TestProgram>, String> {
    let chosen: Vec<&str> = if options.package.is_empty() {
        TIMING_SENSITIVE.to_vec()
    } else {
        options.package.iter().map(String::as_str).collect()
    };
    let output = Command::new("cargo")
        .args(["test", "--no-run", "--all-features", "--message-format=json-render-diagnostics"])
        .args(options.release.then_some("--release"))
        .args(chosen.iter().flat_map(|package| ["--package", package]))
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(test_program).collect())
}

/// The test program that a message of cargo announces, if it does.
fn test_program(message: &str) -> Option<TestProgram> {
    let artifact: Artifact = serde_json::from_str(message).ok()?;
    if !artifact.profile.test {
        return None;
    }
    let package_folder = artifact.manifest_path.parent()?.to_owned();
    let package = package_folder.file_name()?.to_str()?;
    Some(TestProgram {
        name: format!("{package}-{}", artifact.target.name),
        target: artifact.target.name,
        executable: artifact.executable?,
        package_folder,
    })
}

/// What cargo says about something it built. Its other messages lack these fields.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_cargos_messages() {
        let message = serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/duroxide/Cargo.toml",
            "target": {"name": "orders"},
            "profile": {"test": true},
            "executable": "/w/target/debug/deps/orders-1",
        });
        let program = test_program(&message.to_string()).unwrap();
        assert_eq!((program.name.as_str(), program.target.as_str()), ("duroxide-orders", "orders"));
        assert_eq!(program.executable, Path::new("/w/target/debug/deps/orders-1"));
    }

    #[test]
    fn libraries_and_other_lines_are_not_test_programs() {
        let library = r#"{"manifest_path":"/w/Cargo.toml","target":{"name":"lib"},"profile":{"test":false},"executable":null}"#;
        assert_eq!(test_program(library), None);
        assert_eq!(test_program("Compiling duroxide"), None);
    }
}
