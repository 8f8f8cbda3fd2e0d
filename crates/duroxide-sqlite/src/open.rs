//! Opening a store: checks the file's application id, sets up connections, and migrates the tables.

mod busy;
mod existing;
mod identity;
mod location;
mod migrate;
mod pragma;
mod reader;
mod real_path;

use rusqlite::{Connection, OpenFlags, config::DbConfig};

pub(crate) use existing::existing_store;
pub(crate) use location::Location;
pub(crate) use pragma::WRITER_CACHE;
pub use reader::SqliteReader;

use crate::{SqliteError, SqliteOptions, db::Db};

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Writer,
    Reader,
}

/// Opens the connection that writes; makes the tables if the store is new.
pub(crate) fn open_writer(location: &Location, options: &SqliteOptions) -> Result<Connection, SqliteError> {
    location.check()?;
    identity::check_untouched(location)?;
    let mut conn = connect(location)?;
    identity::check_writable(&conn, location)?;
    identity::check_unchanged(&conn, location)?;
    pragma::set_up(&conn, location, options, Role::Writer)?;
    migrate::migrate(&mut conn, location)?;
    Ok(conn)
}

/// Opens a connection that only reads a store which is already open.
pub(crate) fn open_reader(location: &Location, options: &SqliteOptions) -> Result<Db, SqliteError> {
    let conn = connect(location)?;
    pragma::set_up(&conn, location, options, Role::Reader)?;
    Ok(Db::new(conn))
}

fn connect(location: &Location) -> Result<Connection, SqliteError> {
    let create = matches!(location, Location::File { create: true, .. });
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let opened = location.open_file(flags).unwrap_or_else(Connection::open_in_memory);
    let mut conn = opened.map_err(|error| location.open_error(&error))?;
    // Otherwise SQLite reads bound values to choose an index, and compiles such a statement anew for every value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(|error| location.open_error(&error))?;
    busy::wait_when_busy(&mut conn).map_err(|error| location.open_error(&error))?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    /// A statement whose plan may depend on a bound value is compiled anew for every value, unless SQLite is set to
    /// ignore bound values.
    #[test]
    fn a_statement_is_compiled_once_whatever_is_bound_to_it() {
        let conn = connect(&Location::Memory).unwrap();
        conn.execute_batch("CREATE TABLE t (a, b); CREATE INDEX t_a ON t (a) WHERE b > 0").unwrap();
        let mut statement = conn.prepare("SELECT a FROM t WHERE a = ?1 AND b > ?2 AND b > 0").unwrap();
        for value in 0..10 {
            statement.exists([value, value]).unwrap();
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
