//! Large texts are stored apart from their rows, which changes only the disk, no answer.

mod shared;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use duroxide_core::WorkItem;
use duroxide_provider::{
    Round, ScheduledActivityIdentifier,
    store::{MessageRow, Op, StoreReader},
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A store in a file, and a connection that reads its table of large texts.
struct Beside {
    store: Store,
    path: PathBuf,
    _directory: TempDir,
}

impl Beside {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        Self { store: Store::file(&path), path, _directory: directory }
    }

    fn payloads(&self) -> i64 {
        let conn = Connection::open(&self.path).unwrap();
        conn.query_row("SELECT count(*) FROM payload", [], |row| row.get(0)).unwrap()
    }
}

/// Moves the log into the database and leaves an empty file, so that the log holds only later writes.
fn empty_log(path: &Path) {
    let conn = Connection::open(path).unwrap();
    let busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert!(!busy);
}

fn large() -> String {
    "large ".repeat(20_000)
}

fn large_start(instance: &str) -> WorkItem {
    match start(instance) {
        WorkItem::StartOrchestration {
            instance,
            orchestration,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            execution_id,
            ..
        } => WorkItem::StartOrchestration {
            instance,
            orchestration,
            input: large(),
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            execution_id,
        },
        other => other,
    }
}

fn large_activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "Charge".to_owned(),
        input: large(),
        session_id: None,
        tag: None,
    }
}

fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted { instance: instance.to_owned(), execution_id: 1, id, result: large() }
}

/// Each queue returns its texts unchanged, a snapshot shows them, and consumed ones are deleted.
#[test]
fn a_large_text_goes_through_both_queues_and_leaves_nothing() {
    let mut beside = Beside::new();
    let store = &mut beside.store;
    store.send(&large_start("order-1"));
    let claim = store.claim().unwrap();
    assert_eq!(claim.messages, [large_start("order-1")]);
    let round = Round { worker_items: vec![large_activity("order-1", 2)], ..first_round("order-1") };
    store.commit(&claim.lock_token, round).unwrap();

    let snapshot = store.engine.snapshot().unwrap();
    let kept = &snapshot.instances[0].activities[0].data;
    assert_eq!(serde_json::from_str::<WorkItem>(kept).unwrap(), large_activity("order-1", 2));
    let work = store.claim_work().unwrap();
    assert_eq!(work.item, large_activity("order-1", 2));
    let completion = Some(MessageRow::new(completed("order-1", 2), None).unwrap());
    store.apply(&Op::AckActivity { token: work.lock_token, completion });

    let snapshot = store.engine.snapshot().unwrap();
    let kept = &snapshot.instances[0].messages[0].data;
    assert_eq!(serde_json::from_str::<WorkItem>(kept).unwrap(), completed("order-1", 2));
    store.send(&raise("order-1", &large()));
    let claim = store.claim().unwrap();
    assert_eq!(claim.messages, [completed("order-1", 2), raise("order-1", &large())]);
    let round = Round { execution_id: 1, ..Round::default() };
    store.commit(&claim.lock_token, round).unwrap();
    assert_eq!(beside.payloads(), 0);
}

/// A claim, a renewal and an abandon do not write the text: their writes do not grow with it.
#[test]
fn a_claim_does_not_write_the_text_again() {
    let mut beside = Beside::new();
    let store = &mut beside.store;
    store.send(&large_start("order-1"));
    store.queue(&large_activity("order-1", 2));
    empty_log(&beside.path);
    let claim = store.claim().unwrap();
    let work = store.claim_work().unwrap();
    let token = claim.lock_token;
    store.apply(&Op::RenewActivity { token: work.lock_token.clone(), extend_for: LEASE });
    store.apply(&Op::AbandonActivity { token: work.lock_token, delay: None, ignore_attempt: false });
    store.apply(&Op::AbandonInstance { token, delay: None, ignore_attempt: false });
    let log = std::fs::read(beside.path.with_extension("db-wal")).unwrap();
    let needle = b"large large large";
    assert!(!log.is_empty() && !log.windows(needle.len()).any(|window| window == needle));
}

/// The same text is stored once, whichever instance sends it.
#[test]
fn a_repeated_large_message_or_activity_is_kept_once() {
    let mut beside = Beside::new();
    for _ in 0..2 {
        beside.store.send(&completed("order-1", 2));
        beside.store.queue(&large_activity("order-1", 2));
    }
    assert_eq!(beside.payloads(), 1);
}

/// A text is deleted with its row, however the row is deleted: cancelled, deleted with its instance, dropped as a
/// stray.
#[test]
fn a_text_goes_with_its_row() {
    let mut beside = Beside::new();
    let store = &mut beside.store;
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    let cancelled =
        ScheduledActivityIdentifier { instance: "order-1".to_owned(), execution_id: 1, activity_id: 2 };
    let round = Round {
        worker_items: vec![large_activity("order-1", 2), large_activity("order-1", 3)],
        cancelled_activities: vec![cancelled],
        ..first_round("order-1")
    };
    store.commit(&claim.lock_token, round).unwrap();
    store.send(&raise("order-1", &large().replace("large", "other")));
    store.send(&queued("stray", &large()));
    assert_eq!(beside.payloads(), 3);

    beside.store.claim();
    assert_eq!(beside.payloads(), 2, "the stray was dropped");
    let delete = Op::DeleteInstances { ids: vec!["order-1".to_owned()], force: true };
    beside.store.apply(&delete);
    assert_eq!(beside.payloads(), 0);
}

/// 16.10, 16.11: a dead letter has the whole text, and a retry queues it again.
#[test]
fn a_large_dead_letter_is_kept_whole_and_can_be_retried() {
    let mut beside = Beside::new();
    let store = &mut beside.store;
    store.send(&raise("ghost", &large()));
    store.queue(&large_activity("order-1", 2));
    let work = store.claim_work().unwrap();
    store.apply(&Op::DeadLetterActivity { token: work.lock_token, reason: "unknown".to_owned() });
    store.pass(8 * DAY);
    assert!(store.claim().is_none());
    let letters = store.engine.dead_letters(None).unwrap();
    let mut items: Vec<WorkItem> =
        letters.iter().map(|letter| serde_json::from_str(&letter.payload).unwrap()).collect();
    items.sort_by_key(|item| matches!(item, WorkItem::ExternalRaised { .. }));
    assert_eq!(items, [large_activity("order-1", 2), raise("ghost", &large())]);
    assert_eq!(beside.payloads(), 0);

    for letter in letters {
        beside.store.apply(&Op::RetryDeadLetter { id: letter.id });
    }
    assert_eq!(beside.payloads(), 2);
    assert_eq!(beside.store.claim_work().unwrap().item, large_activity("order-1", 2));
}

/// The route of a mailbox is found in its start, however large.
#[test]
fn a_large_start_behind_another_message_finds_its_route() {
    let mut beside = Beside::new();
    beside.store.send(&raise("order-1", "1"));
    beside.store.send(&large_start("order-1"));
    let claim = beside.store.claim().unwrap();
    assert_eq!(claim.orchestration_name, "Pay");
    assert_eq!(claim.messages, [raise("order-1", "1"), large_start("order-1")]);
}

/// Small texts cost no statement more than their row. A large one is stored, and its transaction searches for texts without
/// references.
#[test]
fn only_a_large_text_costs_more_statements() {
    let mut store = Store::in_memory();
    store.send(&start("warm-up"));
    let trace = store.engine.trace_statements();
    let mut statements = |item: &WorkItem| {
        trace.clear();
        store.send(item);
        trace.statements()
    };
    let small = statements(&raise("warm-up", "1"));
    let large = statements(&raise("warm-up", &large()));
    assert!(small.iter().all(|sql| !sql.starts_with("INSERT INTO payload")));
    assert_eq!(large.len(), small.len() + 2);
}
