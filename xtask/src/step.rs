use std::{
    fmt,
    process::{Command, Stdio},
    time::Instant,
};

/// One command of a longer job, with the title under which it is announced.
#[derive(Debug)]
pub(crate) struct Step {
    title: &'static str,
    program: &'static str,
    args: Vec<&'static str>,
    env: Vec<(&'static str, &'static str)>,
}

impl Step {
    /// A step that runs cargo with the words of `args`.
    pub(crate) fn cargo(title: &'static str, args: &'static str) -> Self {
        Self { title, program: "cargo", args: args.split_whitespace().collect(), env: Vec::new() }
    }

    /// Sets an environment variable for this step.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Announces the step and runs it.
    pub(crate) fn run(&self) -> Result<(), String> {
        announce(self.title);
        println!("    {self}");
        let begin = Instant::now();
        let status = Command::new(self.program)
            .args(&self.args)
            .envs(self.env.iter().copied())
            .status()
            .map_err(|error| format!("{}: cannot run `{self}`: {error}", self.title))?;
        if !status.success() {
            return Err(format!("{} ({status})\n        {self}", self.title));
        }
        println!("    ok, {:.0} s", begin.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Shows the step as a line that can be pasted into a shell.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    }

    #[test]
    fn a_failing_step_names_its_command() {
        let failure = Step::cargo("nonsense", "no-such-subcommand").run().unwrap_err();
        assert!(failure.contains("cargo no-such-subcommand"), "{failure}");
    }
}
