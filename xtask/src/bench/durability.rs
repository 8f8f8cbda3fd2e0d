//! The durability of each store, and how often it really asks the disk to sync.

use std::{
    fmt, fs,
    path::Path,
    process::{Command, Stdio},
};

use serde::Serialize;

use crate::step::answers;

use super::{plan::Side, program::Programs, results::Report};

/// How many instances are run, one after another, while syncs are counted.
const INSTANCES: u64 = 20;

/// The durability of one column.
#[derive(Debug, Serialize)]
pub(super) struct Durability {
    side: Side,
    journal_mode: String,
    synchronous: String,
    /// Calls of `fsync` and `fdatasync` for one hello instance alone, opening and closing included.
    syncs_per_instance: Option<f64>,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: journal mode {}, synchronous {}",
            self.side.title(),
            self.journal_mode,
            self.synchronous
        )?;
        match self.syncs_per_instance {
            Some(syncs) => write!(f, ", {syncs:.1} syncs per hello instance alone (strace)"),
            None => write!(f, ", syncs not counted (no strace)"),
        }
    }
}

/// Runs a few instances per store on disk and watches.
pub(super) fn observe(programs: &Programs, scratch: &Path) -> Vec<Durability> {
    let mut sides = vec![Side::Full, Side::Normal];
    if programs.with_published {
        sides.insert(0, Side::Published);
    }
    sides.into_iter().filter_map(|side| of(side, programs, scratch)).collect()
}

fn of(side: Side, programs: &Programs, scratch: &Path) -> Option<Durability> {
    let args = format!("latency --instances {INSTANCES}");
    let report: Report = programs.run(side, &args, scratch).ok()?;
    Some(Durability {
        side,
        journal_mode: report.journal_mode.unwrap_or_else(|| "unknown".to_owned()),
        synchronous: report.synchronous,
        syncs_per_instance: syncs(side, &args, programs, scratch),
    })
}

/// Counts the system calls of a run under `strace`, if there is one.
fn syncs(side: Side, args: &str, programs: &Programs, scratch: &Path) -> Option<f64> {
    if !answers("strace", &["--version"]) {
        return None;
    }
    let log = scratch.join("syncs");
    let status = Command::new("strace")
        .args(["--follow-forks", "--trace=fsync,fdatasync", "--output"])
        .arg(&log)
        .arg(programs.path(side))
        .args(args.split_whitespace())
        .args(["--store", side.store(), "--folder"])
        .arg(scratch)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let text = fs::read_to_string(&log).ok()?;
    status.success().then(|| count(&text) as f64 / INSTANCES as f64)
}

/// A call that another thread interrupts is logged twice; its beginning counts.
fn count(log: &str) -> usize {
    log.lines().filter(|line| line.contains("fsync(") || line.contains("fdatasync(")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_counts_once() {
        let log = "7 fdatasync(3) = 0\n7 fdatasync(3 <unfinished ...>\n8 fsync(4) = 0\n\
                   7 <... fdatasync resumed>) = 0\n7 +++ exited with 0 +++\n";
        assert_eq!(count(log), 3);
    }
}
