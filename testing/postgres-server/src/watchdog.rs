//! Ends a server with the test process that started it.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::{programs::Programs, user::User};

/// Waits until standard input ends, which happens when the test process ends in any way, then stops the server by its
/// data folder and deletes everything. It resumes processes that a test has stopped, because they would ignore the request.
/// A signal to the test's process group must not end the watchdog first.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
folder=$1; shift
postmaster=$(head -n 1 "$folder/data/postmaster.pid")
kill -CONT "$postmaster" $(ps -o pid= --ppid "$postmaster")
"$@" stop -D "$folder/data" -m immediate
rm -rf "$folder"
"#;

/// A process that waits for the end of this one.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Holds the pipe that the watchdog reads from.
    _process: Child,
}

impl Watchdog {
    /// Starts watching. The server need not be there yet.
    pub(crate) fn start(programs: &Programs, user: User, folder: &Path) -> Self {
        let stop = user.command(programs.path("pg_ctl"));
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "watchdog"]).arg(folder).arg(stop.get_program()).args(stop.get_args());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // The folder may be one that the other user cannot enter.
        command.current_dir("/");
        Self { _process: command.spawn().expect("a shell starts") }
    }
}
