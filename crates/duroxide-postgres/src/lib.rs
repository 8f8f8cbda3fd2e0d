//! The PostgreSQL store engine of duroxide.
//!
//! [`PostgresTables`] are the rows below the storage rules of [`duroxide_provider::rules`], and [`PostgresEngine`] runs the
//! rules on them. A network database answers in round trips, so the tables of a transaction are a *working set*: the rows
//! read so far, locked, and the rows written and not sent. [`transact`](duroxide_provider::store::StoreEngine::transact)
//! takes a whole batch and usually needs two round trips for it, however many operations it holds:
//!
//! 1. Begin, lock and load every row that the operations name, claim candidates for the fetches, draw numbers, read the
//!    database's clock. All statements travel together.
//! 2. The rules run in memory.
//! 3. Write one statement for each touched table, and commit. All statements travel together.
//!
//! A row that the rules read and the forecast lacks costs one more round trip, and so does a query that only the database
//! can answer; the unsent writes are sent before such a query.
//!
//! A node keeps the rows that it wrote last (the *row cache*). A batch that needs no others is one round trip: the rules run on
//! the cached rows, and the writing statements fail if another process has changed one of them since, which its *revision*
//! shows. Then the transaction is rolled back, and the batch is carried out in two round trips.

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod connection;
mod database_error;
mod engine;
mod needs;
mod node_locks;
mod open;
mod options;
mod provider;
mod reads;
mod record;
mod session;
mod tables;
mod tracked_rows;
mod value;

pub use connection::Tls;
pub use duroxide_provider::store::InvalidIntake;
pub use engine::PostgresEngine;
pub use open::OpenError;
pub use options::{InvalidSchemaName, PasswordSource, PostgresOptions, SchemaName};
pub use provider::{CopyError, CopyProgress, Intake, IntakeError, PostgresProvider};
pub use reads::{PostgresHealth, TableHealth};
pub use tables::PostgresTables;
