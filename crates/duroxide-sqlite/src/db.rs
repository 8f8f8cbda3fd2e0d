//! [`Db`]: a connection with its prepared statements, and the stored forms of values.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
    time::Duration,
};

use duroxide_core::Timestamp;
use duroxide_provider::{NodeId, VersionTriple, rules::Lease, store::StoreFailure};
use rusqlite::{
    Connection, Params, Row, RowIndex, Statement, StatementStatus,
    types::{FromSql, ValueRef},
};

use crate::{
    SqliteError, StatementTrace,
    error::{failure, sqlite_error},
    statements::PreparedConnection,
};

/// The position of the column in a query that returns one column.
pub(crate) const ONLY: usize = 0;

const BEGIN_READ: &str = "BEGIN";
const END_READ: &str = "ROLLBACK";

/// A connection. Every statement of the store goes through it, prepared once.
#[derive(Debug)]
pub(crate) struct Db {
    prepared: PreparedConnection,
    trace: Option<Arc<StatementTrace>>,
}

impl Db {
    pub(crate) fn new(conn: Connection) -> Self {
        Self { prepared: PreparedConnection::over(conn), trace: None }
    }

    /// Adds every statement that runs from now on to a trace.
    pub(crate) fn trace_to(&mut self, trace: Option<Arc<StatementTrace>>) {
        self.trace = trace;
    }

    /// An empty database of this connection alone.
    pub(crate) fn empty() -> rusqlite::Result<Self> {
        Connection::open_in_memory().map(Self::new)
    }

    pub(crate) fn conn(&self) -> &Connection {
        self.prepared.borrow_owner()
    }

    /// Runs a statement without results.
    pub(crate) fn run(&self, sql: &'static str) -> rusqlite::Result<()> {
        self.traced(sql);
        self.prepared.with_statement(sql, |statement| statement.execute([]).map(drop))
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &'static str, params: impl Params) -> Result<usize, StoreFailure> {
        self.with_statement(sql, |statement| statement.execute(params))
    }

    /// Runs a statement for each of many rows, with one lookup in the statement cache.
    pub(crate) fn execute_each<P: Params>(
        &self,
        sql: &'static str,
        rows: impl IntoIterator<Item = P>,
    ) -> Result<(), StoreFailure> {
        let each = |statement: &mut Statement<'_>| {
            rows.into_iter().try_for_each(|row| {
                self.traced(sql);
                statement.execute(row).map(drop)
            })
        };
        self.prepared
            .with_statement(sql, |statement| self.counted(statement, each))
            .map_err(|error| failure(&error))
    }

    /// The number of the row that was inserted last.
    pub(crate) fn last_inserted(&self) -> i64 {
        self.conn().last_insert_rowid()
    }

    /// The first row of a query.
    pub(crate) fn first<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreFailure> {
        self.with_statement(sql, |statement| statement.query(params)?.next()?.map(read).transpose())
    }

    /// The first row of a query for one column.
    pub(crate) fn value<T: FromSql>(
        &self,
        sql: &'static str,
        params: impl Params,
    ) -> Result<Option<T>, StoreFailure> {
        self.first(sql, params, |row| row.get(ONLY))
    }

    /// All rows of a query for one column.
    pub(crate) fn values<T: FromSql>(
        &self,
        sql: &'static str,
        params: impl Params,
    ) -> Result<Vec<T>, StoreFailure> {
        self.all(sql, params, |row| row.get(ONLY))
    }

    /// Whether a query has a row.
    pub(crate) fn exists(&self, sql: &'static str, params: impl Params) -> Result<bool, StoreFailure> {
        Ok(self.first(sql, params, |_| Ok(()))?.is_some())
    }

    /// All rows of a query.
    pub(crate) fn all<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreFailure> {
        self.with_statement(sql, |statement| statement.query_map(params, read)?.collect())
    }

    /// All rows of a query that is put together at run time. It is not kept prepared: that is for the statements
    /// of every turn.
    pub(crate) fn all_once<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreFailure> {
        self.traced(sql);
        let run = || {
            let mut statement = self.conn().prepare(sql)?;
            statement.query_map(params, read)?.collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|error| failure(&error))
    }

    /// The rows of a query up to the first for which `read` returns `None`.
    pub(crate) fn all_while<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>, StoreFailure> {
        self.with_statement(sql, |statement| {
            let mut rows = statement.query(params)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let Some(value) = read(row)? else { break };
                found.push(value);
            }
            Ok(found)
        })
    }

    /// The value of a PRAGMA on this connection.
    pub(crate) fn pragma(&self, name: &str) -> Result<String, SqliteError> {
        self.conn()
            .pragma_query_value(None, name, |row| lossy_text(row, ONLY))
            .map_err(|error| sqlite_error(format!("PRAGMA {name}"), &error))
    }

    /// Runs several reads in one state of the store. Inside a write transaction that is the transaction's own.
    pub(crate) fn in_one_state<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, StoreFailure>,
    ) -> Result<T, StoreFailure> {
        if !self.conn().is_autocommit() {
            return read(self);
        }
        self.execute(BEGIN_READ, [])?;
        let _state = ReadTransaction { db: self };
        read(self)
    }

    fn with_statement<T>(
        &self,
        sql: &'static str,
        run: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreFailure> {
        self.traced(sql);
        self.prepared
            .with_statement(sql, |statement| self.counted(statement, run))
            .map_err(|error| failure(&error))
    }

    /// Runs a statement and adds its cost to the trace.
    fn counted<T>(
        &self,
        statement: &mut Statement<'_>,
        run: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let Some(trace) = &self.trace else { return run(statement) };
        statement.reset_status(StatementStatus::VmStep);
        let result = run(statement);
        trace.add_steps(statement.reset_status(StatementStatus::VmStep));
        result
    }

    fn traced(&self, sql: &str) {
        if let Some(trace) = &self.trace {
            trace.add(sql);
        }
    }
}

/// A transaction that only reads; it ends when this is dropped.
struct ReadTransaction<'a> {
    db: &'a Db,
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        if let Err(failure) = self.db.execute(END_READ, []) {
            tracing::warn!(target: "duroxide::providers::sqlite", %failure, "a read did not end");
        }
    }
}

/// The stored form of a time. SQLite's integers end at 2^63; a time beyond means "never" anyway.
pub(crate) fn micros(time: Timestamp) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A stored time.
pub(crate) fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// The stored form of a caller's number: the same 64 bits, so that none is lost.
pub(crate) fn number(value: u64) -> i64 {
    value.cast_signed()
}

/// A stored number of the caller's.
pub(crate) fn unsigned(stored: i64) -> u64 {
    stored.cast_unsigned()
}

/// The stored form of a lease's length.
pub(crate) fn length(lease: Duration) -> i64 {
    i64::try_from(lease.as_micros()).unwrap_or(i64::MAX)
}

/// A number of rows as the limit of a query.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// A stored count.
pub(crate) fn count(stored: i64) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX)
}

/// A text column, damaged or not: one corrupt row must not stop the call that meets it. NULL is an empty text.
pub(crate) fn lossy_text(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<String> {
    lossy_text_or_null(row, column).map(Option::unwrap_or_default)
}

/// Like `lossy_text`, of a column that may be NULL.
pub(crate) fn lossy_text_or_null(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        // Validating a large text as a whole is several times faster than searching for invalid bytes.
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        }),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Null => None,
    })
}

/// Reads a lease from its columns: token, end, length and node. A damaged row that has a token and no times has a lease that
/// ended long ago, so that its item can be claimed again.
pub(crate) fn lease(
    row: &Row<'_>,
    [token, until, length, node]: [usize; 4],
) -> rusqlite::Result<Option<Lease>> {
    let Some(token) = row.get(token)? else { return Ok(None) };
    let (until, length): (Option<i64>, Option<i64>) = (row.get(until)?, row.get(length)?);
    Ok(Some(Lease {
        token,
        until: until.map_or(Timestamp::ZERO, time),
        length: length.map_or(Duration::ZERO, |length| Duration::from_micros(unsigned(length))),
        node: row.get::<_, Option<i64>>(node)?.map(|node| NodeId(unsigned(node))),
    }))
}

/// The columns of a pinned version.
pub(crate) const TRIPLE: [&str; 3] = ["major", "minor", "patch"];

/// Reads a pinned version from its three columns.
pub(crate) fn triple(
    row: &Row<'_>,
    [major, minor, patch]: [impl RowIndex; 3],
) -> rusqlite::Result<Option<VersionTriple>> {
    let parts: (Option<i64>, Option<i64>, Option<i64>) = (row.get(major)?, row.get(minor)?, row.get(patch)?);
    Ok(match parts {
        (Some(major), Some(minor), Some(patch)) => {
            Some(VersionTriple { major: unsigned(major), minor: unsigned(minor), patch: unsigned(patch) })
        }
        _ => None,
    })
}

/// A pinned version as three columns.
pub(crate) fn triple_columns(pinned: Option<VersionTriple>) -> [Option<i64>; 3] {
    [
        pinned.map(|version| number(version.major)),
        pinned.map(|version| number(version.minor)),
        pinned.map(|version| number(version.patch)),
    ]
}

/// A map by numbers that callers cannot choose, such as row numbers and addresses, so that a multiplication is enough of a
/// hash. The standard hasher, which withstands chosen keys, takes a hundred instructions for each.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(SPREAD);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    /// The low bits of a product depend on few bits of its factors; the high ones on all.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}
