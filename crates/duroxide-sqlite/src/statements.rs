//! The statements of a connection, each prepared once.
//!
//! A statement is found by the address of its text, which is a constant. A cache that hashes the text of each
//! statement, such as rusqlite's own, takes an eighth of the store thread's time.

use std::{cell::RefCell, fmt};

use rusqlite::{Connection, PrepFlags, Statement};
use self_cell::self_cell;

use crate::db::NumberMap;

self_cell!(
    /// A connection with the statements that are prepared on it. They go before it does.
    pub(crate) struct PreparedConnection {
        owner: Connection,
        #[not_covariant]
        dependent: Statements,
    }

    impl {Debug}
);

impl PreparedConnection {
    /// A connection of which nothing is prepared yet.
    pub(crate) fn over(conn: Connection) -> Self {
        Self::new(conn, |_| Statements::default())
    }

    /// Hands out the statement of this text. It is not among the kept ones meanwhile, so that `run` may use any, even the
    /// same one again, which is then prepared once more.
    pub(crate) fn with_statement<T>(
        &self,
        sql: &'static str,
        run: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.with_dependent(|conn, statements| {
            let (place, kept) = statements.take(sql);
            let mut statement = match kept {
                Some(statement) => statement,
                None => Box::new(conn.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)?),
            };
            let result = run(&mut statement);
            // SQLite copies bound values, and would keep a large text until the next call.
            statement.clear_bindings();
            statements.put_back(place, statement);
            result
        })
    }

    /// How many statements are kept.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.with_dependent(|_, statements| statements.0.borrow().kept.iter().flatten().count())
    }
}

/// Idle prepared statements.
#[derive(Default)]
struct Statements<'conn>(RefCell<Table<'conn>>);

#[derive(Default)]
struct Table<'conn> {
    /// Where the statement of a text is. A text that the compiler has put in two places has two statements.
    places: NumberMap<*const str, usize>,
    /// In boxes, since they are taken out and put back all the time.
    kept: Vec<Option<Box<Statement<'conn>>>>,
}

impl<'conn> Statements<'conn> {
    /// The place of a statement, and the statement unless it is new or in use.
    fn take(&self, sql: &'static str) -> (usize, Option<Box<Statement<'conn>>>) {
        let Table { places, kept } = &mut *self.0.borrow_mut();
        let place = *places.entry(std::ptr::from_ref(sql)).or_insert_with(|| {
            kept.push(None);
            kept.len() - 1
        });
        (place, kept.get_mut(place).and_then(Option::take))
    }

    /// Keeps a statement. If a nested use has put one there meanwhile, that one is dropped.
    fn put_back(&self, place: usize, statement: Box<Statement<'conn>>) {
        if let Some(kept) = self.0.borrow_mut().kept.get_mut(place) {
            *kept = Some(statement);
        }
    }
}

impl fmt::Debug for Statements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statements").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    // A constant may have more than one address.
    static INSERT: &str = "INSERT INTO t (a) VALUES (?1)";
    static SELECT: &str = "SELECT a FROM t WHERE a >= ?1 ORDER BY a";

    fn three_rows() -> PreparedConnection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").unwrap();
        PreparedConnection::over(conn)
    }

    fn from(conn: &PreparedConnection, least: i64) -> rusqlite::Result<Vec<i64>> {
        conn.with_statement(SELECT, |select| select.query_map([least], |row| row.get(0))?.collect())
    }

    #[test]
    fn a_statement_is_prepared_once() {
        let conn = three_rows();
        for n in 10..100 {
            conn.with_statement(INSERT, |insert| insert.execute([n])).unwrap();
            assert_eq!(from(&conn, n).unwrap(), [n]);
            assert_eq!(conn.kept(), 2);
        }
        let runs = conn.with_statement(INSERT, |insert| Ok(insert.get_status(StatementStatus::Run)));
        assert_eq!(runs, Ok(90));
    }

    /// A statement in use can be run again while its rows are read.
    #[test]
    fn a_statement_in_use_can_be_used() {
        let conn = three_rows();
        let pairs: Vec<(i64, Vec<i64>)> = conn
            .with_statement(SELECT, |select| {
                let least_of = |row: &rusqlite::Row<'_>| row.get(0);
                let each = select.query_map([1], least_of)?;
                each.map(|least| least.and_then(|least| Ok((least, from(&conn, least)?)))).collect()
            })
            .unwrap();
        assert_eq!(pairs, [(1, vec![1, 2, 3]), (2, vec![2, 3]), (3, vec![3])]);
        assert_eq!(conn.kept(), 1);
    }

    #[test]
    fn a_statement_that_failed_is_kept() {
        let conn = three_rows();
        conn.with_statement(INSERT, |insert| insert.execute([1, 2])).unwrap_err();
        conn.with_statement("not SQL", |statement| statement.execute([])).unwrap_err();
        assert_eq!(conn.kept(), 1);
        conn.with_statement(INSERT, |insert| insert.execute([4])).unwrap();
        assert_eq!(from(&conn, 3).unwrap(), [3, 4]);
    }

    /// A large text must not stay in memory until the statement is used again.
    #[test]
    fn nothing_stays_bound() {
        let conn = three_rows();
        conn.with_statement(INSERT, |insert| insert.execute(["x".repeat(1 << 20)])).unwrap();
        let bound = conn.with_statement(INSERT, |insert| Ok(insert.expanded_sql())).unwrap();
        assert_eq!(bound.as_deref(), Some("INSERT INTO t (a) VALUES (NULL)"));
    }

    /// SQLite prepares a statement anew by itself when the tables have changed.
    #[test]
    fn a_kept_statement_outlives_a_change_of_the_tables() {
        let conn = three_rows();
        assert_eq!(from(&conn, 3).unwrap(), [3]);
        conn.borrow_owner()
            .execute_batch("DROP TABLE t; CREATE TABLE t (b, a); INSERT INTO t VALUES (0, 7)")
            .unwrap();
        assert_eq!(from(&conn, 3).unwrap(), [7]);
        assert_eq!(conn.kept(), 1);
    }

    /// The connection is dropped last: SQLite does not close a connection with open statements.
    #[test]
    fn a_connection_can_be_closed_after_its_statements_have_gone() {
        let conn = three_rows();
        from(&conn, 1).unwrap();
        conn.into_owner().close().unwrap();
    }

    #[test]
    fn equal_addresses_of_different_length_are_different_texts() {
        static BOTH: &str = "SELECT 12";
        let conn = three_rows();
        let number = |sql: &'static str| {
            conn.with_statement(sql, |select| select.query_row([], |row| row.get::<_, i64>(0))).unwrap()
        };
        assert_eq!((number(BOTH), number(&BOTH[..8]), number(BOTH)), (12, 1, 12));
    }
}
