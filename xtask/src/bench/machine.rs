//! Where it was measured.

use std::{fs, process::Command, thread};

use serde::Serialize;

/// The machine, the compiler and the commit.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) processor: String,
    pub(super) kernel: String,
    pub(super) file_system: String,
    pub(super) rustc: String,
    pub(super) commit: String,
    /// The load average of the minute before: other work of the machine.
    pub(super) load_before: String,
}

/// Asks the system; a missing answer is shown as unknown.
pub(super) fn describe() -> Machine {
    Machine {
        cores: thread::available_parallelism().map_or(0, usize::from),
        processor: processor().unwrap_or_else(unknown),
        kernel: first_line("uname", &["-sr"]),
        file_system: first_line("stat", &["--file-system", "--format=%T", super::SCRATCH_FOLDER]),
        rustc: first_line("rustc", &["--version"]),
        commit: commit(),
        load_before: load().unwrap_or_else(unknown),
    }
}

/// The commit, and whether the code differs from it.
fn commit() -> String {
    let id = first_line("git", &["rev-parse", "--short", "HEAD"]);
    let changes =
        Command::new("git").args(["status", "--porcelain", "--", "crates", "bench/workloads"]).output();
    match changes {
        Ok(output) if output.stdout.is_empty() => id,
        _ => format!("{id} with changes"),
    }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
        .unwrap_or_else(unknown)
}

fn unknown() -> String {
    "unknown".to_owned()
}
