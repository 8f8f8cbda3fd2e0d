//! Rows that callers write into the intake in transactions of their own.

use std::path::{Path, PathBuf};

use duroxide_core::WorkItem;
use duroxide_provider::store::{INTAKE_ROWS_MAX, Op, StoreEngine, StoreReader};
use duroxide_sqlite::{Intake, IntakeError};
use rusqlite::Connection;

use crate::fixture::*;

struct Shared {
    store: Store,
    caller: Connection,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

/// A store, and a connection of a caller to its file.
fn shared() -> Shared {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = Store::file(&path);
    let caller = Connection::open(&path).unwrap();
    caller.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY)").unwrap();
    let mut shared = Shared { store, caller, path, _directory: directory };
    shared.notice();
    shared
}

impl Shared {
    /// Repeats the reads of a store's thread after a write by another process.
    fn notice(&mut self) {
        self.store.engine.changed_elsewhere().unwrap();
        if self.store.engine.next_wake(self.store.now).unwrap() == Some(self.store.now) {
            self.store.transact(duroxide_provider::store::Batch { promote: true, ..Default::default() });
        }
    }
}

fn rows(path: &Path) -> i64 {
    let conn = Connection::open(path).unwrap();
    conn.query_row("SELECT count(*) FROM intake", [], |row| row.get(0)).unwrap()
}

fn data(message: &WorkItem) -> &str {
    match message {
        WorkItem::ExternalRaised { data, .. } | WorkItem::QueueMessage { data, .. } => data,
        _ => "start",
    }
}

/// 24.14
#[test]
fn a_committed_transaction_is_carried_out_in_order() {
    let mut shared = shared();
    let transaction = shared.caller.transaction().unwrap();
    transaction.execute("INSERT INTO orders VALUES ('order-1')", []).unwrap();
    let intake = Intake::new(&transaction);
    intake.start_orchestration_versioned("order-1", "Pay", "1.0.0", "{}").unwrap();
    intake.enqueue_event("order-1", "q", "1").unwrap();
    intake.raise_event("order-1", "signal", "2").unwrap();
    intake.enqueue_event("order-1", "q", "3").unwrap();
    transaction.commit().unwrap();
    shared.notice();
    let claim = shared.store.claim().unwrap();
    assert_eq!(claim.messages[0], start("order-1"));
    assert_eq!(claim.messages.iter().map(data).collect::<Vec<_>>(), ["start", "1", "2", "3"]);
    assert_eq!(rows(&shared.path), 0);
    shared.notice();
    assert!(shared.store.claim().is_none(), "once");
}

/// 24.14
#[test]
fn a_rolled_back_call_has_no_effect() {
    let mut shared = shared();
    let transaction = shared.caller.transaction().unwrap();
    transaction.execute("INSERT INTO orders VALUES ('order-1')", []).unwrap();
    Intake::new(&transaction).start_orchestration("order-1", "Pay", "{}").unwrap();
    transaction.rollback().unwrap();
    shared.notice();
    assert!(shared.store.claim().is_none());
    assert!(shared.store.engine.status("order-1").unwrap().is_none());
}

#[test]
fn a_start_of_an_instance_that_exists_does_nothing() {
    let mut shared = shared();
    shared.store.send(&start("order-1"));
    let claim = shared.store.claim().unwrap();
    shared.store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    Intake::new(&shared.caller).start_orchestration("order-1", "Pay", "again").unwrap();
    shared.notice();
    assert_eq!(rows(&shared.path), 0);
    assert!(shared.store.claim().is_none());
}

/// An invalid call fails at once; an invalid row written by hand becomes a dead letter, and the rows behind it are
/// applied.
#[test]
fn an_invalid_row_does_not_block_the_next() {
    let mut shared = shared();
    let intake = Intake::new(&shared.caller);
    let refused = intake.start_orchestration("a::sub::1", "Pay", "{}").unwrap_err();
    assert!(matches!(refused, IntakeError::Invalid(_)), "{refused}");
    let by_hand = "INSERT INTO intake (kind, instance_id, name, version, data) VALUES";
    for values in ["('cancel', 'a', 'b', NULL, '')", "('start', '', 'b', NULL, '')"] {
        shared.caller.execute(&format!("{by_hand} {values}"), []).unwrap_err();
    }
    shared.caller.execute(&format!("{by_hand} ('start', 'a', 'b', 'latest', 'input')"), []).unwrap();
    shared.caller.execute(&format!("{by_hand} ('start', 'b', 'b', x'ff', 'input')"), []).unwrap();
    intake.start_orchestration("order-1", "Pay", "{}").unwrap();
    shared.notice();
    assert_eq!(shared.store.claim().unwrap().instance, "order-1");
    let letters = shared.store.engine.dead_letters(None).unwrap();
    assert_eq!(letters.len(), 2);
    assert!(letters[0].reason.contains("'latest' is not a semantic version"), "{:?}", letters[0]);
    assert_eq!(letters[0].instance_id.as_deref(), Some("a"));
    assert!(letters[0].payload.contains("\"data\":\"input\""), "{:?}", letters[0]);
}

/// 24.15: a row whose transaction fails becomes a dead letter with the error; the other rows are applied.
#[test]
fn a_row_whose_transaction_fails_does_not_block_the_next() {
    let mut shared = shared();
    shared
        .caller
        .execute_batch(
            "CREATE TRIGGER broken BEFORE INSERT ON message WHEN NEW.data LIKE '%poison%'
            BEGIN SELECT RAISE(ABORT, 'this row cannot be stored'); END",
        )
        .unwrap();
    let intake = Intake::new(&shared.caller);
    for (instance, input) in [("first", "{}"), ("second", "poison"), ("third", "{}")] {
        intake.start_orchestration(instance, "Pay", input).unwrap();
    }
    let mut claimed = Vec::new();
    while rows(&shared.path) > 0 {
        shared.notice();
    }
    claimed.extend(std::iter::from_fn(|| shared.store.claim()).map(|claim| claim.instance));
    assert_eq!(claimed, ["first", "third"]);
    let letters = shared.store.engine.dead_letters(None).unwrap();
    assert_eq!(letters.len(), 1);
    assert!(letters[0].reason.contains("this row cannot be stored"), "{:?}", letters[0]);
}

/// 24.15: an operation of the same batch is not to blame for the intake, and is carried out.
#[test]
fn an_intake_that_cannot_be_applied_does_not_block_batches() {
    let mut shared = shared();
    shared
        .caller
        .execute_batch("CREATE TRIGGER broken BEFORE DELETE ON intake BEGIN SELECT RAISE(ABORT, 'kept'); END")
        .unwrap();
    Intake::new(&shared.caller).start_orchestration("stays", "Pay", "{}").unwrap();
    shared.store.engine.changed_elsewhere().unwrap();
    shared.store.send(&start("order-1"));
    assert_eq!(shared.store.claim().unwrap().instance, "order-1");
    assert!(shared.store.claim().is_none());
    assert_eq!(rows(&shared.path), 1);
}

#[test]
fn many_rows_are_taken_over_in_bounded_transactions() {
    let mut shared = shared();
    let count = 2 * INTAKE_ROWS_MAX + 1;
    let transaction = shared.caller.transaction().unwrap();
    for number in 0..count {
        Intake::new(&transaction).enqueue_event("order-1", "q", number.to_string()).unwrap();
    }
    transaction.commit().unwrap();
    let mut left = vec![rows(&shared.path)];
    while left.last() != Some(&0) {
        shared.notice();
        left.push(rows(&shared.path));
    }
    assert_eq!(left, [513, 257, 1, 0]);
    shared.store.send(&start("order-1"));
    let claim = shared.store.claim().unwrap();
    let sent: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    assert_eq!(claim.messages.iter().map(data).filter(|data| *data != "start").collect::<Vec<_>>(), sent);
}

/// A store without writes by other processes does not read the intake.
#[test]
fn an_idle_intake_costs_no_statement() {
    let mut shared = shared();
    shared.notice();
    let trace = shared.store.engine.trace_statements();
    shared.store.send(&start("order-1"));
    let claim = shared.store.claim().unwrap();
    shared.store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    shared.store.engine.next_wake(shared.store.now).unwrap();
    shared.store.apply(&Op::SetMaxAttempts(5));
    assert!(trace.statements().iter().all(|sql| !sql.contains("intake")), "{:?}", trace.statements());
}

/// Rows that were committed while no store was open are found by the next one.
#[test]
fn rows_written_while_the_store_was_closed_are_found_at_the_next_opening() {
    let shared = shared();
    drop(shared.store);
    Intake::new(&shared.caller).start_orchestration("order-1", "Pay", "{}").unwrap();
    let mut store = Store::file(&shared.path);
    assert_eq!(store.engine.next_wake(store.now).unwrap(), Some(store.now));
    assert_eq!(store.claim().unwrap().instance, "order-1");
}
