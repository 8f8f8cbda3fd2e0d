//! The command line of duroxide: inspects a store, explains why an instance does not move, and changes instances.
//!
//! The program `duroxide` is this library without handlers. A program with handlers gets the same commands as a
//! subcommand, and also `verify`, which replays all running instances with its current code:
//!
//! ```no_run
//! use clap::{Parser, Subcommand};
//! use duroxide::prelude::*;
//!
//! #[derive(Parser)]
//! enum Program {
//!     /// Run a node
//!     Serve,
//!     /// Look into the store and steer its instances
//!     Admin(duroxide_cli::Cli),
//! }
//!
//! fn handlers() -> duroxide::typed::Handlers {
//!     duroxide::typed::Handlers::new() // .orchestration::<order>().activity::<charge>()
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::process::ExitCode {
//!     match Program::parse() {
//!         Program::Serve => unimplemented!(),
//!         Program::Admin(cli) => duroxide_cli::run(cli, handlers()).await.into(),
//!     }
//! }
//! ```
//!
//! # Code map
//!
//! * `command`: the commands, a file for each.
//! * `options`, `selection`, `consent`: options that several commands share.
//! * `store`: opens the store that the user names. Creates and upgrades nothing.
//! * `output`, `progress`, `time`: how results are printed.
//! * `exit`: exit codes, and errors that say what to do next.

// A wildcard arm would hide a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod command;
mod consent;
mod exit;
mod options;
mod output;
mod progress;
mod selection;
mod store;
mod time;

use clap::Args;
use duroxide::typed::Handlers;

pub use self::{command::Command, exit::Exit, options::Options, output::Format};
use self::{command::Context, exit::Failure, output::note};

/// The snippets of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/command-line.md")]
struct Guide;

/// A command and its options. A program of its own takes them as a subcommand.
#[derive(Debug, Args)]
#[non_exhaustive]
pub struct Cli {
    /// The options that all commands have.
    #[command(flatten)]
    pub options: Options,
    /// The command to run.
    #[command(subcommand)]
    pub command: Box<Command>,
}

impl Cli {
    /// A command with its options.
    pub fn new(options: Options, command: Command) -> Self {
        Self { options, command: Box::new(command) }
    }
}

/// Carries a command out, in a tokio runtime. Answers go to stdout; errors, questions and progress to stderr.
///
/// `handlers` are the program's own [`Handlers`], which `verify` needs, or `None`.
pub async fn run(cli: Cli, handlers: impl Into<Option<Handlers>>) -> Exit {
    let context = Context::new(&cli.options, handlers.into());
    match Box::pin(cli.command.run(context)).await {
        Ok(exit) => exit,
        Err(failure) => {
            tell(&failure);
            failure.exit
        }
    }
}

fn tell(failure: &Failure) {
    // After a closed pipe no report can be printed.
    if failure.exit != Exit::Done {
        note(&format!("error: {failure}"));
    }
}
