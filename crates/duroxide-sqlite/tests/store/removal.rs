//! 19: deletes and prunes remove a bounded number of rows in each transaction, and finish after a crash.

use std::{path::Path, time::Duration};

use duroxide_core::EventKind;
use duroxide_provider::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{
        Answer, EventRow, Op, StoreEngine, StoreReader, Unfinished,
        bounds::{REMOVED_BYTES_MAX, REMOVED_ROWS_MAX},
    },
};
use rusqlite::Connection;

use crate::{fixture::*, plans::expensive};

const MANY: u64 = 2 * REMOVED_ROWS_MAX as u64 + 500;

/// A store on a file, and how many rows of instances are in it.
struct Counted {
    store: Store,
    conn: Connection,
    directory: tempfile::TempDir,
}

impl Counted {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        Self { store: Store::file(&path), conn: Connection::open(&path).unwrap(), directory }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("store.db")
    }

    fn sum(&self, of: &str) -> usize {
        let tables = ["history", "execution", "message", "activity", "kv", "kv_change", "payload"];
        let sums = tables.map(|table| {
            let sql = format!("SELECT coalesce(sum({of}), 0) FROM {table}");
            self.conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap_or_default()
        });
        usize::try_from(sums.iter().sum::<i64>()).unwrap()
    }

    fn rows(&self) -> usize {
        self.sum("1")
    }

    /// Applies an operation, which must remove no more rows than a step may.
    fn step(&mut self, op: &Op) -> Answer {
        let before = self.rows();
        let answer = self.store.apply(op);
        let removed = before - self.rows();
        assert!(removed <= REMOVED_ROWS_MAX, "a step removed {removed} rows");
        answer
    }

    /// Removes the rows that a step has left; returns their counts and the number of steps.
    fn finish(&mut self, mut unfinished: Unfinished) -> (DeleteInstanceResult, usize) {
        let (mut total, mut steps) = (DeleteInstanceResult::default(), 0);
        while let Some(task) = unfinished.rows {
            let (step, left) = deleted(self.step(&Op::RemoveRows { task }));
            add(&mut total, &step);
            (unfinished, steps) = (left, steps + 1);
        }
        (total, steps)
    }
}

fn add(total: &mut DeleteInstanceResult, step: &DeleteInstanceResult) {
    total.instances_deleted += step.instances_deleted;
    total.executions_deleted += step.executions_deleted;
    total.events_deleted += step.events_deleted;
    total.queue_messages_deleted += step.queue_messages_deleted;
}

fn deleted(answer: Answer) -> (DeleteInstanceResult, Unfinished) {
    match answer {
        Answer::Deleted(result) => (result, Unfinished::default()),
        Answer::DeletedPart(result, unfinished) => (result, unfinished),
        other => panic!("unexpected answer {other:?}"),
    }
}

fn pruned(answer: Answer) -> (PruneResult, Unfinished) {
    match answer {
        Answer::Pruned(result) => (result, Unfinished::default()),
        Answer::PrunedPart(result, unfinished) => (result, unfinished),
        other => panic!("unexpected answer {other:?}"),
    }
}

fn append(store: &mut Store, instance: &str, execution_id: u64, events: u64, bytes: usize) {
    let row = |event_id| EventRow { event_id, data: "x".repeat(bytes) };
    let events = (1..=events).map(row).collect();
    store.apply(&Op::Append { instance: instance.to_owned(), execution_id, events, changes: Vec::new() });
}

fn delete(instance: &str) -> Op {
    Op::DeleteTree { instance: instance.to_owned(), force: true }
}

/// 19.1: the tree is deleted with the first step; its ids are free, and the remaining rows do not affect a new instance
/// of that id.
#[test]
fn a_large_instance_is_deleted_at_once_and_its_rows_in_steps() {
    let mut counted = Counted::new();
    append(&mut counted.store, "order-1", 1, MANY, 20);
    (0..MANY).for_each(|n| counted.store.send(&raise("order-1", &n.to_string())));
    let lost = counted.store.claim_with(&one_bounded_instance()).items.remove(0).lock_token;
    let (first, unfinished) = deleted(counted.step(&delete("order-1")));
    assert_eq!(first.instances_deleted, 1);
    let engine = &mut counted.store.engine;
    assert!(engine.instance_info("order-1").unwrap().is_none());
    assert!(engine.history("order-1", Some(1)).unwrap().is_empty());
    assert!(engine.snapshot().unwrap().instances.is_empty());
    let metrics = engine.system_metrics().unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions, metrics.total_events), (0, 0, 0));
    assert_eq!(engine.queue_depths().unwrap().orchestrator_queue, 0);
    assert!(counted.store.commit(&lost, first_round("order-1")).is_err(), "its lock is lost");

    counted.store.send(&start("order-1"));
    let claim = counted.store.claim().unwrap();
    counted.store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    let (rest, steps) = counted.finish(unfinished);
    assert!(steps >= 4, "{steps} steps");
    assert_eq!(first.events_deleted + rest.events_deleted, MANY);
    assert_eq!(first.queue_messages_deleted + rest.queue_messages_deleted, MANY);
    assert_eq!(first.executions_deleted + rest.executions_deleted, 1);
    assert_eq!(counted.store.event_ids("order-1"), [1, 2]);
    assert_eq!(counted.rows(), 4, "two events, an execution, an activity");
}

/// Large rows are removed few at a time.
#[test]
fn a_step_is_bounded_in_bytes() {
    let mut counted = Counted::new();
    append(&mut counted.store, "order-1", 1, 30, 1 << 20);
    let bytes = |counted: &Counted| counted.sum("octet_length(data)");
    let mut before = bytes(&counted);
    let mut next = delete("order-1");
    loop {
        let (_, unfinished) = deleted(counted.step(&next));
        let removed = before - bytes(&counted);
        assert!(removed <= REMOVED_BYTES_MAX + (1 << 20), "a step removed {removed} bytes");
        before = bytes(&counted);
        let Some(task) = unfinished.rows else { break };
        next = Op::RemoveRows { task };
    }
    assert_eq!(before, 0);
}

/// After a crash, or if the caller was dropped, the store finishes the removal in the background, with pauses.
#[test]
fn rows_left_by_a_stopped_delete_are_removed_by_a_later_transaction() {
    let mut counted = Counted::new();
    append(&mut counted.store, "order-1", 1, MANY, 20);
    let (_, unfinished) = deleted(counted.step(&delete("order-1")));
    assert!(unfinished.rows.is_some());
    let (now, left) = (counted.store.now, counted.rows());
    counted.store = Store::file(&counted.path());
    counted.store.now = now;
    assert!(counted.store.claim().is_none());
    assert_eq!(counted.rows(), left, "the call may still run elsewhere");
    let mut promotions = 0;
    while let Some(at) = counted.store.engine.next_wake(START).unwrap() {
        counted.store.now = at;
        let before = counted.rows();
        assert!(counted.store.claim().is_none());
        assert!(before - counted.rows() <= REMOVED_ROWS_MAX);
        promotions += 1;
        assert!(promotions <= 10, "{} rows are left", counted.rows());
    }
    assert!(promotions >= 2, "{promotions} promotions");
    assert_eq!(counted.rows(), 0);
    assert!(counted.store.now.saturating_since(now) >= Duration::from_secs(60));
}

/// A call that goes on is left alone, however long it takes.
#[test]
fn a_call_that_makes_steps_counts_them_all() {
    let mut counted = Counted::new();
    append(&mut counted.store, "order-1", 1, MANY, 20);
    let (mut total, mut unfinished) = deleted(counted.step(&delete("order-1")));
    while let Some(task) = unfinished.rows {
        counted.store.pass(Duration::from_secs(59));
        assert!(counted.store.claim().is_none());
        let (step, left) = deleted(counted.step(&Op::RemoveRows { task }));
        add(&mut total, &step);
        unfinished = left;
    }
    assert_eq!((total.events_deleted, total.executions_deleted), (MANY, 1));
}

/// 19.2
#[test]
fn a_bulk_delete_stops_between_two_trees_and_goes_on() {
    let mut counted = Counted::new();
    let (instances, events) = (20, 199);
    for n in 0..instances {
        let (store, id) = (&mut counted.store, format!("order-{n}"));
        store.send(&start(&id));
        let claim = store.claim().unwrap();
        let end = EventKind::OrchestrationCompleted { output: "done".to_owned() };
        let mut round = first_round(&id);
        round.worker_items.clear();
        round.history_delta = vec![started(&id), event(&id, 2, end)];
        round.metadata.status = Some("Completed".to_owned());
        store.commit(&claim.lock_token, round).unwrap();
        append(store, &id, 2, events, 20);
        append(store, &id, 1, 0, 0);
        store.apply(&Op::Append {
            instance: id.clone(),
            execution_id: 3,
            events: vec![EventRow { event_id: 1, data: "{}".to_owned() }],
            changes: Vec::new(),
        });
    }
    // Executions that were only appended to never end; the root must.
    counted.conn.execute("UPDATE execution SET status = 'Completed'", []).unwrap();
    let mut total = DeleteInstanceResult::default();
    let mut filter = InstanceFilter::default();
    let mut steps = 0;
    loop {
        let (step, unfinished) = deleted(counted.step(&Op::DeleteBulk(filter)));
        add(&mut total, &step);
        let left = unfinished.instances.clone();
        let (rest, _) = counted.finish(unfinished);
        add(&mut total, &rest);
        let there = counted.store.engine.instances(None).unwrap();
        assert_eq!(there.iter().rev().collect::<Vec<_>>(), left.iter().collect::<Vec<_>>());
        steps += 1;
        if left.is_empty() {
            break;
        }
        filter = InstanceFilter { instance_ids: Some(left), ..InstanceFilter::default() };
    }
    assert!(steps >= 3, "{steps} steps");
    assert_eq!(total.instances_deleted, instances);
    assert_eq!(total.executions_deleted, 3 * instances);
    assert_eq!(total.events_deleted, (2 + events + 1) * instances);
    assert_eq!(counted.rows(), 0);
}

/// 19.3
#[test]
fn a_prune_of_many_executions_goes_in_steps_and_never_takes_the_current_one() {
    let mut counted = Counted::new();
    (1..=MANY).for_each(|execution| append(&mut counted.store, "order-1", execution, 1, 20));
    counted.conn.execute("UPDATE execution SET status = 'Completed'", []).unwrap();
    let options = PruneOptions { keep_last: Some(2), ..PruneOptions::default() };
    let mut next = Op::Prune { instance: "order-1".to_owned(), options: options.clone() };
    let mut total = PruneResult::default();
    loop {
        let (step, unfinished) = pruned(counted.step(&next));
        let left = unfinished.instances.clone();
        let (rest, _) = counted.finish(unfinished);
        total.instances_processed += step.instances_processed;
        total.executions_deleted += step.executions_deleted;
        total.events_deleted += step.events_deleted + rest.events_deleted;
        if left.is_empty() {
            break;
        }
        let filter = InstanceFilter { instance_ids: Some(left), ..InstanceFilter::default() };
        next = Op::PruneBulk { filter, options: options.clone() };
    }
    assert_eq!(total.instances_processed, 1);
    assert_eq!((total.executions_deleted, total.events_deleted), (MANY - 2, MANY - 2));
    assert_eq!(counted.store.engine.executions("order-1").unwrap(), [MANY - 1, MANY]);
}

/// 19.3: no read finds any part of a pruned execution, although its events are removed in steps.
#[test]
fn a_large_execution_that_is_being_pruned_cannot_be_read() {
    let mut counted = Counted::new();
    append(&mut counted.store, "order-1", 1, MANY, 20);
    append(&mut counted.store, "order-1", 2, 1, 20);
    counted.conn.execute("UPDATE execution SET status = 'Completed' WHERE execution_id = 1", []).unwrap();
    let op = Op::Prune { instance: "order-1".to_owned(), options: PruneOptions::default() };
    let (first, unfinished) = pruned(counted.step(&op));
    assert_eq!((first.instances_processed, first.executions_deleted), (1, 1));
    let engine = &mut counted.store.engine;
    assert!(engine.history("order-1", Some(1)).unwrap().is_empty());
    assert_eq!(engine.last_event_id("order-1", 1).unwrap(), None);
    assert_eq!(engine.executions("order-1").unwrap(), [2]);
    assert_eq!(engine.system_metrics().unwrap().total_events, 1);
    let (rest, _) = counted.finish(unfinished);
    assert_eq!(first.events_deleted + rest.events_deleted, MANY);
    assert_eq!(counted.store.event_ids("order-1"), [1]);
}

/// 23.3: a step costs its rows, however large the store is.
#[test]
fn every_statement_of_a_removal_uses_an_index() {
    let mut counted = Counted::new();
    append(&mut counted.store, "order-1", 1, MANY, 20);
    append(&mut counted.store, "order-2", 1, MANY, 20);
    append(&mut counted.store, "order-2", 2, 1, 20);
    counted.conn.execute("UPDATE execution SET status = 'Completed' WHERE execution_id = 1", []).unwrap();
    let trace = counted.store.engine.trace_statements();
    let (_, unfinished) = deleted(counted.step(&delete("order-1")));
    counted.finish(unfinished);
    let op = Op::Prune { instance: "order-2".to_owned(), options: PruneOptions::default() };
    let (_, unfinished) = pruned(counted.step(&op));
    counted.finish(unfinished);
    counted.store.engine.next_wake(START).unwrap();
    let path: &Path = &counted.path();
    assert_eq!(expensive(path, trace.statements()), Vec::<String>::new());
}
