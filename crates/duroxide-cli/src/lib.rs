//! The command line of duroxide: looks into a store, says why an instance does not move, and steers instances.
//!
//! The program `duroxide` is this library with no handlers. A program that has handlers gets the same commands as a
//! subcommand of its own, and with them `verify`, which replays everything that runs against the code of today:
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
//! * `command`: what can be asked, a file for each command.
//! * `options`, `selection`, `consent`: what several commands have in common.
//! * `store`: opens the store that the user names, as it is.
//! * `output`, `progress`, `time`: how answers look.
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
    /// What all commands have in common.
    #[command(flatten)]
    pub options: Options,
    /// What is to be done.
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
/// `handlers` are those of the program, for `verify`: its [`Handlers`], or `None`.
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
    // A closed pipe has nobody to tell.
    if failure.exit != Exit::Done {
        note(&format!("error: {failure}"));
    }
}
