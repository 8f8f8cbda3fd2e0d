//! Consent to changes that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use crate::{
    exit::{Failure, Outcome},
    store::Access,
};

/// Options of commands that destroy something.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Consent {
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Show the changes without making them
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl Consent {
    pub(crate) fn is_dry_run(self) -> bool {
        self.dry_run
    }

    /// A dry run opens the store for reading only.
    pub(crate) fn access(self) -> Access {
        if self.dry_run { Access::Read } else { Access::Write }
    }

    /// Asks the user, unless `--yes` was given. Without a terminal the answer is no.
    pub(crate) fn ask(self, question: &str) -> Outcome<()> {
        if self.yes {
            return Ok(());
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::refused(format!(
                "{question}: there is no terminal to ask on, so nothing was changed"
            ))
            .advise("add --yes to do it, or --dry-run to see what would be done"));
        }
        write!(io::stderr().lock(), "{question}? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if is_yes(&answer) { Ok(()) } else { Err(Failure::refused("nothing was changed")) }
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(is_yes("y\n") && is_yes("Yes"));
        assert!(!is_yes("\n") && !is_yes("no") && !is_yes("yeah") && !is_yes(""));
    }
}
