//! Stores in files: the disk holds exactly the committed transactions.

use duroxide_provider::{
    NodeAnnouncement,
    store::{ActivityRow, Batch, Fault, MessageRow, NodeRow, Op, StoreEngine, StoreReader, TransactionSteps},
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions, SqliteSynchronous};
use rusqlite::Connection;

use crate::fixture::*;

/// I18: a store that is opened again has all its rows, including locks.
#[test]
fn a_reopened_store_stands_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    store.send(&raise("order-1", "1"));
    let claim = store.claim().unwrap();
    let before = store.engine.snapshot().unwrap();
    drop(store);

    let mut store = Store::file(&path);
    store.send(&raise("order-1", "2"));
    assert!(store.claim().is_none(), "the lock is still there");
    let mut after = store.engine.snapshot().unwrap();
    assert_eq!(after.instances[0].messages.pop().unwrap().attempt_count, 0);
    assert_eq!(after.instances, before.instances);
    let round = duroxide_provider::Round {
        execution_id: 1,
        history_delta: vec![scheduled("order-1", 3)],
        ..Default::default()
    };
    store.commit(&claim.lock_token, round).unwrap();
    assert_eq!(store.event_ids("order-1"), [1, 2, 3]);
}

/// I10: before the commit no write is visible; after it, all are.
#[test]
fn a_transaction_that_was_never_committed_left_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    let before = store.engine.snapshot().unwrap();
    let round =
        duroxide_provider::store::PreparedRound::new(&claim.lock_token, &first_round("order-1")).unwrap();
    store.engine.steps().begin(store.now).unwrap();
    store.engine.steps().apply(&Op::CommitRound(Box::new(round)), store.now).unwrap();
    assert!(store.engine.steps().claim_activities(&one_activity(), 7).unwrap().items.len() == 1);
    drop(store);

    let mut store = Store::file(&path);
    assert_eq!(store.engine.snapshot().unwrap().instances, before.instances);
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    assert_eq!(store.event_ids("order-1"), [1, 2]);
}

/// Routes, lanes and numbers of a rolled back transaction are forgotten, too.
#[test]
fn a_rollback_forgets_new_routes_lanes_and_numbers() {
    let mut store = Store::in_memory();
    store.engine.steps().begin(store.now).unwrap();
    let op = Op::EnqueueMessage(MessageRow::new(start("order-1"), None).unwrap());
    store.engine.steps().apply(&op, store.now).unwrap();
    store.engine.steps().rollback();
    assert!(store.engine.snapshot().unwrap().instances.is_empty());

    store.send(&start("order-2"));
    store.queue(&activity("order-2", 2));
    assert_eq!(store.claim().unwrap().instance, "order-2");
    assert_eq!(store.claim_work().unwrap().item, activity("order-2", 2));
}

/// Names of orchestrations, tags and instances get numbers when they are first met. If that transaction is rolled back and
/// the same names come again, they must be stored again: a reopened store has only the stored rows.
#[test]
fn a_name_that_was_rolled_back_is_stored_when_it_comes_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    let ops = [
        Op::EnqueueMessage(MessageRow::new(start("order-1"), None).unwrap()),
        Op::EnqueueActivity(ActivityRow::new(activity("order-1", 2)).unwrap()),
    ];
    for _ in 0..2 {
        store.engine.steps().begin(store.now).unwrap();
        for op in &ops {
            store.engine.steps().apply(op, store.now).unwrap();
        }
        store.engine.steps().rollback();
    }
    for op in &ops {
        store.apply(op);
    }
    assert_eq!(store.claim().unwrap().instance, "order-1");
    assert_eq!(store.claim_work().unwrap().item, activity("order-1", 2));
    store.pass(LEASE);
    let later = store.now;
    drop(store);

    let mut store = Store { now: later, ..Store::file(&path) };
    assert_eq!(store.claim().unwrap().instance, "order-1");
    assert_eq!(store.claim_work().unwrap().item, activity("order-1", 2));
}

/// B19, 23.1: FULL unless NORMAL is asked for by name. The setting is a connection's own, so each is asked.
#[test]
fn every_connection_has_the_synchronous_setting_that_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    for (synchronous, value) in [(SqliteSynchronous::Full, 2), (SqliteSynchronous::Normal, 1)] {
        let path = directory.path().join(format!("{value}.db"));
        let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
        let engine = SqliteEngine::open(&format!("sqlite:{}", path.display()), options).unwrap();
        let readers = [engine.open_reader().unwrap().unwrap(), engine.open_reader().unwrap().unwrap()];
        assert_eq!(engine.pragma("synchronous").unwrap(), value.to_string());
        assert_eq!(engine.pragma("journal_mode").unwrap(), "wal");
        assert_eq!(engine.pragma("wal_autocheckpoint").unwrap(), "0");
        for reader in readers {
            assert_eq!(reader.pragma("synchronous").unwrap(), value.to_string());
            assert_eq!(reader.pragma("query_only").unwrap(), "1");
        }
    }
}

/// A reader sees committed rows, and no open transaction.
#[test]
fn a_reader_sees_only_commits_of_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::file(&directory.path().join("store.db"));
    let mut reader = store.engine.open_reader().unwrap().unwrap();
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    store.engine.steps().begin(store.now).unwrap();
    let op = Op::Append {
        instance: "order-1".into(),
        execution_id: 1,
        events: vec![duroxide_provider::store::EventRow::new(&scheduled("order-1", 3))],
        changes: Vec::new(),
    };
    store.engine.steps().apply(&op, store.now).unwrap();
    assert_eq!(reader.history("order-1", None).unwrap().len(), 2);
    store.engine.steps().commit().unwrap();
    assert_eq!(reader.history("order-1", None).unwrap().len(), 3);
    assert_eq!(reader.snapshot().unwrap(), store.engine.snapshot().unwrap());
}

/// A store in memory has one connection, so it has no reader.
#[test]
fn a_store_in_memory_has_no_other_readers() {
    let engine = SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap();
    assert!(engine.open_reader().unwrap().is_none());
}

/// An empty file, such as `tempfile` makes, is a new store.
#[test]
fn an_empty_file_is_a_new_store() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut store = Store::file(file.path());
    store.send(&start("order-1"));
    assert!(store.claim().is_some());
}

/// D8: the log stays bounded under constant writes, because the writer checkpoints between transactions.
#[test]
fn the_log_stays_bounded_under_constant_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let url = format!("sqlite:{}", path.display());
    let options = SqliteOptions { synchronous: SqliteSynchronous::Normal, ..SqliteOptions::default() };
    let mut store = Store::new(SqliteEngine::open(&url, options).unwrap());
    let payload = "x".repeat(512 << 10);
    for n in 0..64 {
        store.send(&raise(&format!("order-{n}"), &payload));
        store.engine.maintain().unwrap();
    }
    let log = std::fs::metadata(directory.path().join("store.db-wal")).unwrap().len();
    assert!(log < 8 << 20, "32 MiB were written, and the log has {log} bytes");
}

/// D8: a reader of the newest state lets a checkpoint reach the end of the log, but prevents that the log is
/// overwritten from its beginning. It is once the reader has ended.
#[test]
fn a_log_that_a_reader_kept_from_starting_over_does_so_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    let message = raise("order-1", &"x".repeat(512 << 10));
    let log_bytes = || std::fs::metadata(directory.path().join("store.db-wal")).unwrap().len();
    while log_bytes() < 5 << 20 {
        store.send(&message);
    }
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM instance").unwrap();
    store.engine.maintain().unwrap();
    let reached = log_bytes();
    store.send(&message);
    assert!(log_bytes() > reached, "it goes on behind what was checkpointed");
    drop(reader);
    for _ in 0..20 {
        store.engine.maintain().unwrap();
        store.send(&message);
    }
    assert!(log_bytes() < 8 << 20, "10 MiB were written, and the log has {} bytes", log_bytes());
}

/// D8: the log that a killed process left behind is moved into the database with the first work of the next.
#[test]
fn a_long_log_found_at_the_start_is_checkpointed() {
    let directory = tempfile::tempdir().unwrap();
    let killed = directory.path().join("killed.db");
    let found = directory.path().join("found.db");
    let mut store = Store::file(&killed);
    let payload = "x".repeat(512 << 10);
    for n in 0..20 {
        store.send(&raise(&format!("order-{n}"), &payload));
    }
    for suffix in ["", "-wal"] {
        let name = |path: &std::path::Path| format!("{}{suffix}", path.display());
        std::fs::copy(name(&killed), name(&found)).unwrap();
    }
    let database_bytes = || std::fs::metadata(&found).unwrap().len();
    assert!(database_bytes() < 1 << 20);
    let mut store = Store::file(&found);
    store.send(&raise("order-1", "1"));
    store.engine.maintain().unwrap();
    assert!(database_bytes() >= 10 << 20, "{} bytes", database_bytes());
}

/// A node finds the log as long as it gets, so that none of its commits has to make it longer; nothing else is changed.
#[test]
fn a_node_that_joins_finds_room_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::file(&directory.path().join("store.db"));
    store.send(&start("order-1"));
    let log_bytes = || std::fs::metadata(directory.path().join("store.db-wal")).unwrap().len();
    assert!(log_bytes() < 1 << 20);
    let cache = store.engine.pragma("cache_size").unwrap();
    let pages = store.engine.pragma("page_count").unwrap();

    store.apply(&Op::JoinNode(NodeRow::new(&NodeAnnouncement::default())));
    let room = log_bytes();
    assert!(room >= 4 << 20, "{room} bytes");
    assert_eq!(store.engine.pragma("cache_size").unwrap(), cache);
    assert_eq!(store.engine.pragma("page_count").unwrap(), pages);
    assert_eq!(store.engine.pragma("integrity_check").unwrap(), "ok");

    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    assert_eq!(log_bytes(), room, "it is overwritten");
    drop(store);
    let mut reopened = Store::file(&directory.path().join("store.db"));
    assert_eq!(reopened.event_ids("order-1"), [1, 2]);
}

/// D8: after a commit whose outcome is unknown the store is opened anew and proves that it works.
#[test]
fn a_reopened_engine_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::file(&directory.path().join("store.db"));
    store.send(&start("order-1"));
    store.engine.steps().begin(store.now).unwrap();
    store.engine.reopen().unwrap();
    assert_eq!(store.claim().unwrap().instance, "order-1");
}

/// While the store cannot be opened again, callers get a retryable error, and no transaction begins.
#[test]
fn an_engine_that_cannot_be_reopened_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let moved = directory.path().join("moved.db");
    let mut store = Store::file(&path);
    store.send(&start("order-1"));
    store.engine.checkpoint().unwrap();
    std::fs::rename(&path, &moved).unwrap();
    std::fs::create_dir(&path).unwrap();
    store.engine.reopen().unwrap_err();
    let fault = store.engine.transact(&Batch::default()).unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");

    std::fs::remove_dir(&path).unwrap();
    std::fs::rename(&moved, &path).unwrap();
    store.engine.reopen().unwrap();
    assert_eq!(store.claim().unwrap().instance, "order-1");
}

/// 23.2, B20: a statement trace shows no write after a deferred begin.
#[test]
fn every_transaction_that_writes_begins_immediate() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::file(&directory.path().join("store.db"));
    let trace = store.engine.trace_statements();
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    store.engine.load("order-1", 1).unwrap();
    assert_eq!((trace.begins(), trace.commits()), (3, 3));
    let mut may_write = false;
    for statement in trace.statements() {
        match statement.split_whitespace().next() {
            Some("BEGIN") => may_write = statement == "BEGIN IMMEDIATE",
            Some("COMMIT" | "ROLLBACK") => may_write = false,
            Some("SELECT") => {}
            _ => assert!(may_write, "{statement}"),
        }
    }
}

/// The file has our application id.
#[test]
fn the_header_has_our_application_id() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    drop(Store::file(&path));
    let conn = Connection::open(&path).unwrap();
    let id: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
    let version: i32 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!((id.to_be_bytes(), version), (*b"dur5", 12));
}

/// A file of the first schema opens, keeps its rows, and gets the later columns and tables.
#[test]
fn a_store_of_an_earlier_schema_is_upgraded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(include_str!("../../migrations/0001_tables.sql")).unwrap();
    conn.execute_batch(
        "INSERT INTO instance (id, instance_id, known, name, version, status, created_at, updated_at)
            VALUES (1, 'order-1', 1, 'Pay', '1.0.0', 'Running', 1000, 1000);
        INSERT INTO execution (instance, execution_id, status, started_at) VALUES (1, 1, 'Running', 1000);
        INSERT INTO activity (id, instance, execution_id, activity_id, lane, ready, data)
            VALUES (2, 1, 1, 2, 1, 1, json_object('ActivityExecute', json_object('instance', 'order-1',
                'execution_id', 1, 'id', 2, 'name', 'Charge', 'input', hex(zeroblob(4096)))));
        INSERT INTO lane (id, activity_name) VALUES (1, 'Charge');
        UPDATE sequence SET next = 3;",
    )
    .unwrap();
    conn.pragma_update(None, "application_id", i32::from_be_bytes(*b"dur5")).unwrap();
    conn.pragma_update(None, "user_version", 1).unwrap();

    let mut store = Store::file(&path);
    let version: i32 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 12);
    assert!(store.engine.nodes().unwrap().is_empty());
    let query = duroxide_provider::InstanceQuery::default().orchestration_name("Pay");
    let found = store.engine.select_instances(&query, None, 10).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].info.instance_id.as_str(), found[0].row), ("order-1", 1));
    store.send(&raise("order-1", "1"));
    assert_eq!(store.claim().unwrap().instance, "order-1");
    let work = store.claim_work().expect("a large text that an earlier schema kept in its row");
    store.apply(&Op::AckActivity { token: work.lock_token, completion: None });
    drop(store);
    drop(Store::file(&path));
}

/// A migration is done whole or not at all, by however many processes try it at once.
#[test]
fn an_upgrade_that_fails_leaves_the_store_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(include_str!("../../migrations/0001_tables.sql")).unwrap();
    // The index of a later migration exists already.
    conn.execute_batch("CREATE INDEX instance_created ON instance (created_at)").unwrap();
    conn.pragma_update(None, "application_id", i32::from_be_bytes(*b"dur5")).unwrap();
    conn.pragma_update(None, "user_version", 1).unwrap();
    let url = format!("sqlite:{}", path.display());
    let error = SqliteEngine::open(&url, SqliteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("instance_created"), "{error}");
    let version: i32 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
    let made: bool = conn
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'instance_name'", [], |row| row.get(0))
        .unwrap();
    assert!(!made, "the first half was undone");
}
