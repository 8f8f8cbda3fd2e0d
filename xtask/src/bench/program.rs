//! Runs a workload as a process of its own and reads its output.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{plan::Side, results::Report};

/// How long a workload may take before it is killed; its own limit is shorter.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// How often a running workload is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// The built programs.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    pub(super) with_published: bool,
}

impl Programs {
    pub(super) fn path(&self, side: Side) -> PathBuf {
        self.folder.join(match side {
            Side::Published => "bench-published",
            Side::Durare | Side::DurareFull => "bench-durare",
            Side::Full | Side::Normal | Side::Memory => "bench-ours",
        })
    }

    /// Runs a workload once. A failure is a result, so that one workload never ends the whole run.
    pub(super) fn run(&self, side: Side, args: &str, scratch: &Path) -> Result<Report, String> {
        settle_disk();
        let mut command = Command::new(self.path(side));
        command.args(args.split_whitespace()).args(["--store", side.store()]);
        command.arg("--folder").arg(scratch);
        report(command).map(|report| Report { command: portable(report.command, scratch), ..report })
    }
}

/// The syncs of a run must not wait for data that the run before left unwritten: an implementation that
/// does not sync would be measured without its writes, and the next one with them. Where there is no such command the
/// figures are only less steady.
fn settle_disk() {
    let _ = Command::new("sync").status();
}

/// The arguments of a workload without the folder, which differs between machines and is not measured.
fn portable(command: String, scratch: &Path) -> String {
    match command.strip_suffix(&format!(" --folder {}", scratch.display())) {
        Some(portable) => portable.to_owned(),
        None => command,
    }
}

/// The report that the command prints as the last line starting with a brace; some implementations log before it.
pub(super) fn report(mut command: Command) -> Result<Report, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let ended = wait(&mut child)?;
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    let line = stdout.lines().rev().find(|line| line.starts_with('{'));
    let Some(line) = line else {
        let last = stderr.lines().last().unwrap_or("no output");
        return Err(format!("{ended}: {last}"));
    };
    let report: Report = serde_json::from_str(line).map_err(|error| format!("unreadable report: {error}"))?;
    match report.error {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

fn wait(child: &mut Child) -> Result<String, String> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.to_string()),
            Ok(None) if begin.elapsed() < WAIT_MAX => thread::sleep(GLANCE),
            Ok(None) => {
                child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
                return Err(format!("killed after {} s", WAIT_MAX.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Reads a pipe to its end during the wait, because a full pipe would stop the child.
fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Output before an error is kept.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LINE: &str = r#"{"implementation":"ours","version":"0.5.0","store":"full","journal_mode":null,"synchronous":"FULL","slots":64,"command":"hello","instances":3,"failed":0,"problems":[],"figures":{"p50_ms":1.5},"error":null}"#;

    #[test]
    fn the_report_is_found_among_log_lines() {
        let report = report(shell(&format!("echo noise; echo '{LINE}'; echo more"))).unwrap();
        assert_eq!(report.instances, 3);
        assert_eq!(report.figures["p50_ms"], 1.5);
    }

    #[test]
    fn a_workload_without_report_tells_its_last_words() {
        let error = report(shell("echo first >&2; echo 'out of luck' >&2; exit 3")).unwrap_err();
        assert_eq!(error, "exit status: 3: out of luck");
    }

    #[test]
    fn a_reported_error_is_the_result() {
        let line = LINE.replace("\"error\":null", "\"error\":\"lead too short\"");
        assert_eq!(report(shell(&format!("echo '{line}'"))).unwrap_err(), "lead too short");
    }

    #[test]
    fn the_recorded_command_is_the_same_on_every_machine() {
        let scratch = Path::new("/tmp/some where/bench");
        let called = "hello --slots 64 --store full --folder /tmp/some where/bench".to_owned();
        assert_eq!(portable(called, scratch), "hello --slots 64 --store full");
        assert_eq!(portable("hello --slots 64".to_owned(), scratch), "hello --slots 64");
    }
}
