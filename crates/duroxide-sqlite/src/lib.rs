//! The SQLite store of duroxide.
//!
//! [`SqliteProvider`] is what a runtime and a client use: an engine served by a thread of its own.
//! [`SqliteEngine`] is a [`StoreEngine`](duroxide_provider::store::StoreEngine): one connection, synchronous, with
//! the time as an argument, so that a simulator can drive the real SQL.
//!
//! # Code map
//!
//! * `open`: URLs, whose file it is, pragmas read back, migrations, readers.
//! * `db`, `statements`: one connection, and the statements that it keeps prepared.
//! * `instances`, `mailbox`: rows, locks and batches; `standing` decides when an instance can be claimed, and every
//!   change of a mailbox or a lock ends there. `routes` holds what fetches filter by.
//! * `rounds`, `executions`, `history`, `kv`, `custom_status`: what a commit writes.
//! * `activities`, `lanes`, `sessions`: the worker queue.
//! * `dead_letters`, `admin`, `removal`, `reads`, `snapshot`: what operators and clients ask for.
//! * `checkpoint`, `leases`, `trace`: upkeep and diagnosis. `sentry`: word of what other processes write.
//!
//! Every statement stands in a constant next to the function that runs it. Nothing scans a queue: an instance or an
//! activity is either *ready*, and found through its route or lane, or it has a `wake_at` at which
//! [`promote`](duroxide_provider::store::StoreEngine::promote) looks at it again, or it waits for a message.
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

mod activities;
mod admin;
mod bulk;
mod checkpoint;
mod compact;
mod custom_status;
mod db;
mod dead_letters;
mod engine;
mod error;
mod executions;
mod history;
mod instances;
mod kv;
mod lanes;
mod leases;
mod listing;
mod log_space;
mod mailbox;
mod nodes;
mod open;
mod options;
mod payloads;
mod provider;
mod reader;
mod reads;
mod ready;
mod removal;
mod rounds;
mod routes;
mod sentry;
mod sequence;
mod sessions;
mod snapshot;
mod statements;
mod thread;
mod trace;

pub use engine::SqliteEngine;
pub use error::SqliteError;
pub use open::SqliteReader;
pub use options::{SqliteOptions, SqliteSynchronous};
pub use provider::SqliteProvider;
pub use trace::StatementTrace;
