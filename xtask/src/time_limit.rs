//! Runs a program and kills it when its time is over.

use std::{
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// The interval between two checks of a running program.
const PAUSE: Duration = Duration::from_millis(20);

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    ByItself(ExitStatus),
    /// It took longer than it may, and was killed.
    Killed,
}

impl Ended {
    pub(crate) fn successfully(&self) -> bool {
        matches!(self, Self::ByItself(status) if status.success())
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ByItself(status) => status.fmt(f),
            Self::Killed => f.write_str("killed: it did not end within its time limit"),
        }
    }
}

/// Runs a command. If it takes longer than `limit`, it is killed.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<Ended, String> {
    let program = command.get_program().to_owned();
    let run = |command: &mut Command| end_of(&mut command.spawn()?, limit);
    run(command).map_err(|error| format!("cannot run {}: {error}", program.display()))
}

fn end_of(child: &mut Child, limit: Duration) -> std::io::Result<Ended> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::ByItself(status));
        }
        if begin.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::Killed);
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_killed() {
        // Waits for input that never comes, because its writer is kept open.
        let mut hanging = Command::new("cat");
        hanging.stdin(std::process::Stdio::piped());
        let ended = run_within(&mut hanging, Duration::from_millis(50)).unwrap();
        assert_eq!(ended, Ended::Killed);
        assert!(!ended.successfully());
    }

    #[test]
    fn a_program_that_ends_in_time_says_how() {
        let limit = Duration::from_secs(60);
        assert!(run_within(Command::new("cargo").arg("--version"), limit).unwrap().successfully());
        assert!(!run_within(Command::new("cargo").arg("no-such-subcommand"), limit).unwrap().successfully());
    }
}
