//! [`Step`]: one command of a longer job.

use std::{
    borrow::Cow,
    fmt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::time_limit::run_within;

/// One command of a longer job, with the title under which it is announced.
#[derive(Debug)]
pub(crate) struct Step {
    title: String,
    program: &'static str,
    args: Vec<Cow<'static, str>>,
    env: Vec<(&'static str, String)>,
    folder: Option<String>,
    time_limit: Duration,
}

/// A step that takes longer hangs.
const TIME_LIMIT: Duration = Duration::from_secs(60 * 60);

impl Step {
    /// A step that runs cargo with the words of `args`.
    pub(crate) fn cargo(title: impl Into<String>, args: &'static str) -> Self {
        Self {
            title: title.into(),
            program: "cargo",
            args: args.split_whitespace().map(Cow::Borrowed).collect(),
            env: Vec::new(),
            folder: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, arg: impl Into<Cow<'static, str>>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Runs this step in a folder.
    pub(crate) fn inside(mut self, folder: impl Into<String>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Kills and fails this step after this time.
    pub(crate) fn within(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Sets an environment variable for this step.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Announces the step and runs it.
    pub(crate) fn run(&self) -> Result<(), String> {
        announce(&self.title);
        println!("    {self}");
        let begin = Instant::now();
        let mut command = Command::new(self.program);
        command
            .args(self.args.iter().map(Cow::as_ref))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.as_deref().unwrap_or("."));
        let ended = run_within(&mut command, self.time_limit)
            .map_err(|error| format!("{}: `{self}`: {error}", self.title))?;
        if !ended.successfully() {
            return Err(format!("{} ({ended})\n        {self}", self.title));
        }
        println!("    ok, {:.0} s", begin.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Shows the step as a line that can be pasted into a shell.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.folder {
            write!(f, "cd {folder} && ")?;
        }
        for (name, value) in &self.env {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "{} {}", self.program, self.args.join(" "))
    }
}

/// Prints a step's header.
pub(crate) fn announce(title: &str) {
    println!("\n==> {title}");
}

/// Whether a command exists and answers, without showing its output.
pub(crate) fn answers(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_reads_like_the_command_that_repeats_it() {
        let step = Step::cargo("docs", "doc --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(step.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
        let step = Step::cargo("program", "run").inside("testing/beside/diesel");
        assert_eq!(step.to_string(), "cd testing/beside/diesel && cargo run");
    }

    #[test]
    fn a_step_that_hangs_fails() {
        let step = Step::cargo("version", "--version").within(Duration::ZERO);
        let failure = step.run().unwrap_err();
        assert!(failure.contains("time limit"), "{failure}");
    }

    #[test]
    fn a_failing_step_names_its_command() {
        let failure = Step::cargo("nonsense", "no-such-subcommand").run().unwrap_err();
        assert!(failure.contains("cargo no-such-subcommand"), "{failure}");
    }
}
