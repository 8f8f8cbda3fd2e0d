//! The tables of a new store, and how older ones are brought there. Each migration is a file that is never changed again.

use rusqlite::{Connection, TransactionBehavior};

use super::{
    Location,
    identity::{APPLICATION_ID, Identity, Verdict},
};
use crate::{SqliteError, error::sqlite_error};

/// The tables of a new store.
const SCHEMA: &str = include_str!("../../migrations/schema.sql");

/// Migration n brings a store from schema n - 1 to n.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_tables.sql"),
    include_str!("../../migrations/0002_listing.sql"),
    include_str!("../../migrations/0003_nodes.sql"),
    include_str!("../../migrations/0004_child_starts.sql"),
    include_str!("../../migrations/0005_session_leases.sql"),
    include_str!("../../migrations/0006_payloads.sql"),
    include_str!("../../migrations/0007_sole_messages.sql"),
    include_str!("../../migrations/0008_whole_mailboxes.sql"),
    include_str!("../../migrations/0009_stopped_activities.sql"),
    include_str!("../../migrations/0010_lock_extents.sql"),
    include_str!("../../migrations/0011_shared_payloads.sql"),
    include_str!("../../migrations/0012_intake.sql"),
];

/// The schema this build works with, and the newest it can open.
pub(super) const SCHEMA_VERSION: i32 = MIGRATIONS.len() as i32;

/// Brings a store to the current schema, all or nothing. Of several processes that open a new file one makes the
/// tables; the others find them when they get the lock.
pub(super) fn migrate(conn: &mut Connection, location: &Location) -> Result<(), SqliteError> {
    let identity = Identity::read(conn).map_err(|error| location.open_error(&error))?;
    if identity.verdict(location)? == Verdict::Ours(SCHEMA_VERSION) {
        return Ok(());
    }
    run(conn, location)
}

fn run(conn: &mut Connection, location: &Location) -> Result<(), SqliteError> {
    let failed = |error: rusqlite::Error| SqliteError {
        message: format!("cannot make the tables of {location}: {error}"),
        ..sqlite_error("migrate", &error)
    };
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    match Identity::read(&transaction).map_err(failed)?.verdict(location)? {
        Verdict::New => transaction.execute_batch(SCHEMA).map_err(failed)?,
        Verdict::Ours(version) => {
            for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
                transaction.execute_batch(migration).map_err(failed)?;
            }
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(failed)?;
    transaction.commit().map_err(failed)
}
