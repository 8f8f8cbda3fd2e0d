//! Files of every earlier schema open in place, with running instances inside.

use std::{collections::BTreeSet, path::Path};

use duroxide_core::WorkItem;
use duroxide_provider::{
    Round,
    store::{Op, StoreEngine, StoreReader},
};
use rusqlite::Connection;

use crate::fixture::*;

const MIGRATIONS: [&str; 11] = [
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
];

/// Rows of a running instance whose claim took two of its three messages, as every schema up to 9 could write them: the
/// messages have the number of the batch, and their attempt is counted.
const MARKED: &str = "
    INSERT INTO route (id, name, version) VALUES (1, 'Pay', '1.0.0');
    INSERT INTO instance (id, instance_id, known, name, version, status, created_at, updated_at, route, wake_at,
            lock_token, lock_until, lease, batch, batch_due_at, batch_seq)
        VALUES (1, 'order-1', 1, 'Pay', '1.0.0', 'Running', 1000, 1000, 1, {until},
            '1-0000000000000000000000000000000a', {until}, 5000000, 7, 0, 3);
    INSERT INTO execution (instance, execution_id, status, started_at) VALUES (1, 1, 'Running', 1000);
    INSERT INTO message (instance, due_at, seq, kind, enqueued_at, attempt_count, batch, data) VALUES
        (1, 0, 2, 4, 1000, 1, 7, {raised}), (1, 0, 3, 4, 1000, 1, 7, {raised}), (1, 0, 4, 4, 1000, 0, NULL, {raised});
    UPDATE sequence SET next = 8;";
/// From schema 7 on a claim of one message named it by its position.
const SOLE: &str = "UPDATE instance SET batch = -7, batch_due_at = 0, batch_seq = 2;
    UPDATE message SET attempt_count = 0, batch = NULL;";
/// From schema 8 on a claim of a whole mailbox named its last message.
const WHOLE: &str = "UPDATE instance SET batch = -7, batch_due_at = -1, batch_seq = 3;
    UPDATE message SET attempt_count = 0, batch = NULL;";

/// The last schema that wrote such rows. In the file of a later one they are as its migrations have changed them.
const BATCHES: usize = 9;
/// Like `MARKED`, as every schema from 10 on writes the rows: the lock names its messages by the time of the claim and
/// the highest number, and their attempt is counted when it ends.
const VISIBLE: &str = "
    INSERT INTO route (id, name, version) VALUES (1, 'Pay', '1.0.0');
    INSERT INTO instance (id, instance_id, known, name, version, status, created_at, updated_at, route, wake_at,
            lock_token, lock_until, lease, extent_at, extent_up_to)
        VALUES (1, 'order-1', 1, 'Pay', '1.0.0', 'Running', 1000, 1000, 1, {until},
            '1-0000000000000000000000000000000a', {until}, 5000000, 1000, 3);
    INSERT INTO execution (instance, execution_id, status, started_at) VALUES (1, 1, 'Running', 1000);
    INSERT INTO message (instance, due_at, seq, kind, enqueued_at, data) VALUES
        (1, 0, 2, 4, 1000, {raised}), (1, 0, 3, 4, 1000, {raised}), (1, 0, 4, 4, 1000, {raised});
    UPDATE sequence SET next = 8;";
/// The lock of a part of the mailbox marks its messages.
const WITH_MARK: &str = "UPDATE instance SET extent_mark = 7, extent_at = NULL, extent_up_to = NULL;
    UPDATE message SET mark = 7 WHERE seq <= 3;";
/// From schema 6 on the large text of a queued row was kept under the number of the row.
const APART: &str = "INSERT INTO message (instance, due_at, seq, kind, enqueued_at, data) VALUES (1, 0, 5, 4, 1000, '');
    INSERT INTO activity (id, instance, execution_id, activity_id, lane, ready, data) VALUES (6, 1, 1, 2, 1, 1, '');
    INSERT INTO lane (id, activity_name) VALUES (1, 'Charge');
    INSERT INTO payload (id, data) VALUES (5, {raised}), (6, {activity});";

/// Writes a file of an earlier schema with the rows of schemas up to [`BATCHES`]; `rows_after` come after those of every file.
fn write_file(path: &Path, schema: usize, rows_after: &str) {
    write_rows(path, schema, schema.min(BATCHES), [MARKED, rows_after]);
}

/// Writes a file of an earlier schema, with rows as the schema `written` wrote them.
fn write_rows(path: &Path, schema: usize, written: usize, [rows, rows_after]: [&str; 2]) {
    let conn = Connection::open(path).unwrap();
    for migration in &MIGRATIONS[..written] {
        conn.execute_batch(migration).unwrap();
    }
    let raised = serde_json::to_string(&raise("order-1", "1")).unwrap();
    let until = START.saturating_add(LEASE).as_micros().to_string();
    let rows = rows.replace("{raised}", &format!("'{raised}'")).replace("{until}", &until);
    conn.execute_batch(&rows).unwrap();
    conn.execute_batch(rows_after).unwrap();
    for migration in &MIGRATIONS[written..schema] {
        conn.execute_batch(migration).unwrap();
    }
    conn.pragma_update(None, "application_id", i32::from_be_bytes(*b"dur5")).unwrap();
    conn.pragma_update(None, "user_version", i32::try_from(schema).unwrap()).unwrap();
}

/// The messages of the instance: attempts, and whether the lock holds each.
fn messages(store: &mut Store) -> Vec<(u32, bool)> {
    let snapshot = store.engine.snapshot().unwrap();
    let messages = &snapshot.instances[0].messages;
    messages.iter().map(|message| (message.attempt_count, message.locked)).collect()
}

fn each_schema_and_lock(mut check: impl FnMut(Store, usize)) {
    let locks =
        [(1, "", 2), (7, SOLE, 1), (8, WHOLE, 2)].map(|(first, held, taken)| (first, MARKED, held, taken));
    let extents = ["", WITH_MARK].map(|held| (BATCHES + 1, VISIBLE, held, 2));
    for (first, rows, held, taken) in locks.into_iter().chain(extents) {
        for schema in first..=MIGRATIONS.len() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("store.db");
            let written = if rows == MARKED { schema.min(BATCHES) } else { schema };
            write_rows(&path, schema, written, [rows, held]);
            check(Store::file(&path), taken);
        }
    }
}

/// Tables with their columns, and everything else with its definition, without order and comments.
fn schema(path: &Path) -> BTreeSet<String> {
    let conn = Connection::open(path).unwrap();
    let mut parts = BTreeSet::new();
    let mut columns = conn
        .prepare("SELECT t.name || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || coalesce(c.dflt_value, '-') || ' ' || c.pk
            FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'")
        .unwrap();
    parts.extend(columns.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap));
    let mut others =
        conn.prepare("SELECT sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL").unwrap();
    let definitions = others.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    parts.extend(definitions.map(|sql| sql.split_whitespace().collect::<Vec<_>>().join(" ")));
    parts
}

/// A new migration makes an earlier schema of the one before it, whose file has to be among the files that are opened
/// here.
#[test]
fn every_schema_but_the_current_one_is_opened_here() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.db");
    drop(Store::file(&path));
    let conn = Connection::open(&path).unwrap();
    let current: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(MIGRATIONS.len() as i64 + 1, current);
}

#[test]
fn an_upgraded_store_has_the_tables_of_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let (new, old) = (directory.path().join("new.db"), directory.path().join("old.db"));
    drop(Store::file(&new));
    write_file(&old, 1, "");
    drop(Store::file(&old));
    assert_eq!(schema(&old), schema(&new));
}

/// The holder of the lock commits after the upgrade: exactly the messages that it held are deleted.
#[test]
fn a_claim_made_before_the_upgrade_is_committed_after_it() {
    each_schema_and_lock(|mut store, taken| {
        let mut held = vec![(1, true); taken];
        held.resize(3, (0, false));
        assert_eq!(messages(&mut store), held);
        let round = Round { execution_id: 1, history_delta: vec![started("order-1")], ..Round::default() };
        store.commit("1-0000000000000000000000000000000a", round).unwrap();
        assert_eq!(messages(&mut store), vec![(0, false); 3 - taken]);
        assert_eq!(store.claim().unwrap().messages.len(), 3 - taken);
    });
}

/// The holder of the lock is dead: its attempt counts, and all messages are claimed again.
#[test]
fn a_claim_that_was_lost_over_the_upgrade_counts() {
    each_schema_and_lock(|mut store, _| {
        store.pass(LEASE * 2);
        let claim = store.claim().unwrap();
        assert_eq!((claim.messages.len(), claim.attempt_count), (3, 2));
    });
}

/// The holder of the lock gives its messages back.
#[test]
fn a_claim_made_before_the_upgrade_is_abandoned_after_it() {
    each_schema_and_lock(|mut store, taken| {
        let token = "1-0000000000000000000000000000000a".to_owned();
        store.apply(&Op::AbandonInstance { token, delay: None, ignore_attempt: false });
        let mut left = vec![(1, false); taken];
        left.resize(3, (0, false));
        assert_eq!(messages(&mut store), left);
        store.engine.next_wake(store.now).unwrap();
    });
}

/// A large text that was kept under the number of its row is returned whole, and deleted with its row.
#[test]
fn large_texts_of_queued_rows_outlive_the_upgrade() {
    let large = "large \"text\" ".repeat(1000);
    let activity = WorkItem::ActivityExecute {
        instance: "order-1".to_owned(),
        execution_id: 1,
        id: 2,
        name: "Charge".to_owned(),
        input: large.clone(),
        session_id: None,
        tag: None,
    };
    let json = |item: &WorkItem| format!("'{}'", serde_json::to_string(item).unwrap());
    let rows =
        APART.replace("{raised}", &json(&raise("order-1", &large))).replace("{activity}", &json(&activity));
    for schema in 6..=MIGRATIONS.len() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        write_file(&path, schema, &rows);
        let mut store = Store::file(&path);
        store.pass(LEASE * 2);
        let claim = store.claim().unwrap();
        assert_eq!(claim.messages.last(), Some(&raise("order-1", &large)));
        let work = store.claim_work().unwrap();
        assert_eq!(work.item, activity);
        let payloads = || -> i64 {
            let conn = Connection::open(&path).unwrap();
            conn.query_row("SELECT count(*) FROM payload", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(payloads(), 2);
        store.apply(&Op::AckActivity { token: work.lock_token, completion: None });
        assert_eq!(payloads(), 1);
        let round = Round { execution_id: 1, history_delta: vec![started("order-1")], ..Round::default() };
        store.commit(&claim.lock_token, round).unwrap();
        assert_eq!(payloads(), 0);
    }
}
