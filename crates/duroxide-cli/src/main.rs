//! The program `duroxide`.

use std::{io, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use duroxide_cli::{Cli, Command, Options};

/// Look into a duroxide store, see why an instance does not move, and steer instances
#[derive(Debug, Parser)]
#[command(name = "duroxide", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
struct Program {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    task: Task,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused.
Times are UTC. `-` stands for ids on stdin: duroxide list --status failed -o ids | duroxide explain -";

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
enum Task {
    #[command(flatten)]
    Store(Command),
    /// Print the completions of a shell, to be loaded by it
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Program { options, task } = Program::parse();
    match task {
        Task::Store(command) => duroxide_cli::run(Cli::new(options, command), None).await.into(),
        Task::Completions { shell } => {
            clap_complete::generate(shell, &mut Program::command(), "duroxide", &mut io::stdout());
            ExitCode::SUCCESS
        }
    }
}
