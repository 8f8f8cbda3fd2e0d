//! The SQLite store of duroxide.
//!
//! [`SqliteProvider`] is for runtimes and clients: an engine served by a thread of its own. [`SqliteEngine`] is a
//! [`StoreEngine`](duroxide_provider::store::StoreEngine): one connection, synchronous, with the time as an argument,
//! so that a simulator can drive the real SQL.
//!
//! # Code map
//!
//! * `engine`: [`SqliteEngine`], the storage rules of `duroxide_provider::rules` over these tables.
//! * `tables`: the tables below the rules, a file for each, and the row cache.
//! * `provider/intake`: [`Intake`], with which callers start and send in transactions of their own.
//! * `reads`: the reads of clients and operators, on the writer and on reader connections.
//! * `open`: URLs, the application id, pragmas read back, migrations, readers.
//! * `db`, `statements`, `columns`: one connection, its prepared statements, and the names of columns.
//! * `wal`: checkpoints, room for the log, and a watcher for other processes' writes.
//! * `node_files`, `compact`, `provider`: files that show which nodes live; giving free pages back; the provider.
//!
//! Every statement is a constant next to the function that runs it. Nothing scans a queue: an instance or an activity
//! is either *ready*, and found through its route or lane, or it has a `wake_at` at which
//! [`promote`](duroxide_provider::store::TransactionSteps::promote) decides about it again, or it waits for a message.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use duroxide_provider::Provider;
//! use duroxide_sqlite::SqliteProvider;
//!
//! let provider = SqliteProvider::new("sqlite::memory:", None).await?;
//! assert_eq!(provider.name(), "sqlite");
//! # Ok::<(), duroxide_sqlite::SqliteError>(())
//! # }).unwrap();
//! ```

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod columns;
mod compact;
mod db;
mod engine;
mod error;
mod node_files;
mod open;
mod options;
mod provider;
mod reads;
mod statements;
mod tables;
mod trace;
mod wal;

pub use duroxide_provider::store::InvalidIntake;
pub use engine::SqliteEngine;
pub use error::SqliteError;
pub use open::SqliteReader;
pub use options::{SqliteOptions, SqliteSynchronous};
pub use provider::{Intake, IntakeError, SqliteProvider};
pub use reads::SqliteExport;
pub use trace::StatementTrace;
