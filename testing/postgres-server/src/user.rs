//! The user that runs the server: PostgreSQL refuses to run as root.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

/// Under which user the programs of PostgreSQL run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum User {
    /// The one that runs the tests.
    Same,
    /// Another one, because the tests run as root.
    Other(&'static str),
}

impl User {
    pub(crate) fn choose() -> Self {
        if answer("id", &["-u"]).as_deref() != Some("0") {
            return Self::Same;
        }
        let exists = |name: &&str| answer("id", &["-u", name]).is_some();
        Self::Other(["postgres", "nobody"].into_iter().find(exists).expect("a user that is not root"))
    }

    /// A command that runs a program as this user.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Same => Command::new(program),
            Self::Other(name) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", name, "--regid", &group_of(name), "--clear-groups", "--"]);
                command.arg(program);
                command
            }
        }
    }

    /// Gives a folder with all it holds to this user.
    pub(crate) fn own(self, folder: &Path) {
        if let Self::Other(name) = self {
            run(Command::new("chown").arg("-R").arg(name).arg(folder));
        }
    }
}

fn group_of(user: &str) -> String {
    answer("id", &["-g", user]).expect("a user has a group")
}

fn answer(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs a command that may fail.
pub(crate) fn run_quietly(command: &mut Command) {
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
