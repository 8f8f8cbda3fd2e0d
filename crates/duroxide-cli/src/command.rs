//! The commands.

pub mod change;
pub mod look;
pub mod maintain;

use clap::Subcommand;
use duroxide::typed::Handlers;

#[cfg(feature = "postgres")]
use self::maintain::copy;
#[cfg(feature = "ui")]
use self::maintain::ui;
use self::{
    change::{cancel, dead_letters, delete, enqueue, prune, raise, start},
    look::{explain, history, list, nodes, queues, show, stats, tree, versions, watch},
    maintain::{check, export, verify},
};
use crate::{
    exit::Outcome,
    options::Options,
    output::Output,
    store::{Access, Address, Store},
};

/// All commands, with their arguments.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// List instances, newest first
    List(list::List),
    /// Show an instance: status, executions, key-values, input and output
    Show(show::Show),
    /// Show what happened in an instance, as a timeline
    History(history::History),
    /// Show an instance with its children
    Tree(tree::Tree),
    /// Explain why an instance does not move
    Explain(explain::Explain),
    /// Start an instance
    Start(start::Start),
    /// Raise an event for an instance that waits for it
    Raise(raise::Raise),
    /// Put a message into an event queue of an instance
    Enqueue(enqueue::Enqueue),
    /// Cancel instances with their children
    Cancel(cancel::Cancel),
    /// Delete root instances with their children
    Delete(delete::Delete),
    /// Remove old executions of instances that continue as new
    Prune(prune::Prune),
    /// List, retry or discard messages that no node could process
    #[command(subcommand)]
    DeadLetters(dead_letters::DeadLetters),
    /// Show the nodes and their capabilities
    Nodes(nodes::Nodes),
    /// Show which versions run, and which nodes support them
    Versions(versions::Versions),
    /// Show the waiting work in the queues, and since when it waits
    Queues(queues::Queues),
    /// Show counts over the whole store
    Stats(stats::Stats),
    /// Watch the store: a live overview
    Watch(watch::Watch),
    /// Write histories as files that tests can replay
    Export(export::Export),
    /// Replay everything that runs with the handlers of this program
    Verify(verify::Verify),
    /// Check the guarantees of a store over its whole content
    Check(check::Check),
    /// Copy a SQLite file into a new schema of a PostgreSQL database
    #[cfg(feature = "postgres")]
    Copy(copy::Copy),
    /// Open the web console on this machine
    #[cfg(feature = "ui")]
    Ui(ui::Ui),
}

impl Command {
    pub(crate) async fn run(self, context: Context<'_>) -> Outcome {
        match self {
            Self::List(command) => command.run(&context).await,
            Self::Show(command) => command.run(&context).await,
            Self::History(command) => command.run(&context).await,
            Self::Tree(command) => command.run(&context).await,
            Self::Explain(command) => command.run(&context).await,
            Self::Start(command) => command.run(&context).await,
            Self::Raise(command) => command.run(&context).await,
            Self::Enqueue(command) => command.run(&context).await,
            Self::Cancel(command) => command.run(&context).await,
            Self::Delete(command) => command.run(&context).await,
            Self::Prune(command) => command.run(&context).await,
            Self::DeadLetters(command) => command.run(&context).await,
            Self::Nodes(command) => command.run(&context).await,
            Self::Versions(command) => command.run(&context).await,
            Self::Queues(command) => command.run(&context).await,
            Self::Stats(command) => command.run(&context).await,
            Self::Watch(command) => command.run(&context).await,
            Self::Export(command) => command.run(&context).await,
            Self::Verify(command) => command.run(context).await,
            Self::Check(command) => command.run(&context).await,
            #[cfg(feature = "postgres")]
            Self::Copy(command) => command.run(&context).await,
            #[cfg(feature = "ui")]
            Self::Ui(command) => command.run(&context).await,
        }
    }
}

/// The options and handlers that a command works with.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    options: &'a Options,
    pub(crate) out: Output,
    /// The handlers of the program, if it has any.
    pub(crate) handlers: Option<Handlers>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(options: &'a Options, handlers: Option<Handlers>) -> Self {
        Self { options, out: Output::new(options.output, options.full), handlers }
    }

    pub(crate) fn address(&self) -> Outcome<Address> {
        self.options.address()
    }

    /// Opens the store for reading only, where the store supports that.
    pub(crate) async fn reader(&self) -> Outcome<Store> {
        self.open(Access::Read).await
    }

    /// Opens the store for changes.
    pub(crate) async fn writer(&self) -> Outcome<Store> {
        self.open(Access::Write).await
    }

    pub(crate) async fn open(&self, access: Access) -> Outcome<Store> {
        Store::open(&self.address()?, access).await
    }
}
