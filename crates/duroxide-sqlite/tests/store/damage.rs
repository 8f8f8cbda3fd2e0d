//! Damaged rows stop only their own instance (Q1).

use std::{path::Path, time::Duration};

use duroxide_provider::store::{Op, StoreReader};
use rusqlite::Connection;

use crate::fixture::*;

fn damage(path: &Path, sql: &str) {
    let conn = Connection::open(path).unwrap();
    assert!(conn.execute(sql, []).unwrap() > 0, "{sql}");
}

/// 16.10, B6: text that is not UTF-8 becomes a dead letter like any other undecodable text, and other instances go on.
#[test]
fn a_damaged_message_becomes_a_dead_letter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.apply(&Op::SetMaxAttempts(2));
    store.send(&start("order-1"));
    damage(&path, "UPDATE message SET data = CAST(x'fffe00' AS TEXT)");
    store.send(&start("order-2"));

    assert_eq!(store.claim().unwrap().instance, "order-2");
    for _ in 0..2 {
        store.pass(Duration::from_secs(1));
        assert!(store.claim().is_none());
    }
    let letters = store.engine.dead_letters(None).unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].instance_id.as_deref(), letters[0].attempt_count), (Some("order-1"), 3));
    assert!(letters[0].reason.starts_with("undeserializable work item: "));
}

/// An undecodable activity becomes a dead letter, too. Repaired by an operator and retried, it is claimed.
#[test]
fn a_damaged_activity_can_be_mended_and_retried() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.apply(&Op::SetMaxAttempts(0));
    store.queue(&activity("order-1", 1));
    store.queue(&activity("order-1", 2));
    damage(&path, "UPDATE activity SET data = '{\"Nonsense\":1}' WHERE activity_id = 1");

    let claimed = store.claim_work_with(&one_activity());
    assert_eq!(claimed.items[0].item, activity("order-1", 2));
    assert_eq!(claimed.dead_letters.len(), 1);
    let letter = store.engine.dead_letters(None).unwrap().remove(0);
    store.apply(&Op::RetryDeadLetter { id: letter.id });
    assert!(store.claim_work().is_none(), "still damaged: a dead letter again");

    let mended = serde_json::to_string(&activity("order-1", 1)).unwrap();
    damage(&path, &format!("UPDATE dead_letter SET payload = '{mended}'"));
    let letter = store.engine.dead_letters(None).unwrap().remove(0);
    store.apply(&Op::RetryDeadLetter { id: letter.id });
    let work = store.claim_work().unwrap();
    assert_eq!((work.item, work.attempt_count), (activity("order-1", 1), 1));
}

/// S3.T47: damaged history is returned unchanged, and a commit appends to it without reading it.
#[test]
fn a_commit_appends_to_damaged_history() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    damage(&path, "UPDATE history SET data = x'ff' WHERE event_id = 1");
    store.send(&raise("order-1", "1"));

    let claim = store.claim().unwrap();
    let round = duroxide_provider::Round {
        execution_id: 1,
        history_delta: vec![scheduled("order-1", 3)],
        ..Default::default()
    };
    store.commit(&claim.lock_token, round).unwrap();
    let history = store.engine.history("order-1", None).unwrap();
    assert_eq!(history.len(), 3);
    assert_eq!(history[0].data, "\u{fffd}");
    assert_eq!(store.engine.last_event_id("order-1", 1).unwrap(), Some(3));
}
