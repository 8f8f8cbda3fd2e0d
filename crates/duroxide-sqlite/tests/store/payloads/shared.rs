//! A large text is stored once for all rows of an instance that have it, and goes with the last of them.

use std::path::{Path, PathBuf};

use duroxide_core::{Event, EventKind, WorkItem};
use duroxide_provider::{
    ExecutionMetadata, NextExecution, PruneOptions, Round,
    store::{MessageRow, Op, PreparedRound, StoreReader, TransactionSteps},
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{fixture::*, plans::plan};

const REPEATS: usize = 1000;

/// A text that JSON escapes.
fn large() -> String {
    "large \"text\" \u{1} ".repeat(REPEATS)
}

/// A store in a file whose instance has been started with a large text.
struct Shared {
    store: Store,
    path: PathBuf,
    _directory: TempDir,
}

impl Shared {
    fn started() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut store = Store::file(&path);
        store.send(&large_start());
        Self { store, path, _directory: directory }
    }

    fn payloads(&self) -> i64 {
        let conn = Connection::open(&self.path).unwrap();
        conn.query_row("SELECT count(*) FROM payload", [], |row| row.get(0)).unwrap()
    }

    fn history(&mut self) -> Vec<Event> {
        let rows = self.store.engine.history("order-1", None).unwrap();
        rows.iter().map(|row| serde_json::from_str(&row.data).unwrap()).collect()
    }

    /// The first turn: the activity gets the instance's input.
    fn schedule(&mut self) {
        let claim = self.store.claim().unwrap();
        assert_eq!(claim.messages, [large_start()]);
        self.store.commit(&claim.lock_token, first_turn()).unwrap();
    }

    /// The activity returns its input.
    fn complete(&mut self) {
        let work = self.store.claim_work().unwrap();
        assert_eq!(work.item, large_activity());
        let completion = Some(MessageRow::new(completed(), None).unwrap());
        self.store.apply(&Op::AckActivity { token: work.lock_token, completion });
    }

    /// The last turn: the instance returns what the activity returned.
    fn end(&mut self) {
        let claim = self.store.claim().unwrap();
        assert_eq!(claim.messages, [completed()]);
        self.store.commit(&claim.lock_token, last_turn()).unwrap();
    }

    fn delete(&mut self) {
        self.store.apply(&Op::DeleteInstances { ids: vec!["order-1".to_owned()], force: true });
    }
}

fn large_start() -> WorkItem {
    let mut item = start("order-1");
    if let WorkItem::StartOrchestration { input, .. } = &mut item {
        *input = large();
    }
    item
}

fn large_activity() -> WorkItem {
    let mut item = activity("order-1", 2);
    if let WorkItem::ActivityExecute { input, .. } = &mut item {
        *input = large();
    }
    item
}

fn completed() -> WorkItem {
    WorkItem::ActivityCompleted { instance: "order-1".to_owned(), execution_id: 1, id: 2, result: large() }
}

fn first_events() -> Vec<Event> {
    let mut events = vec![started("order-1"), scheduled("order-1", 2)];
    for event in &mut events {
        match &mut event.kind {
            EventKind::OrchestrationStarted { input, .. } | EventKind::ActivityScheduled { input, .. } => {
                *input = large();
            }
            other => panic!("{other:?}"),
        }
    }
    events
}

fn last_events() -> Vec<Event> {
    vec![
        event("order-1", 3, EventKind::ActivityCompleted { result: large() }),
        event("order-1", 4, EventKind::OrchestrationCompleted { output: large() }),
    ]
}

fn first_turn() -> Round {
    Round { history_delta: first_events(), worker_items: vec![large_activity()], ..first_round("order-1") }
}

fn last_turn() -> Round {
    let metadata = ExecutionMetadata {
        status: Some("Completed".to_owned()),
        output: Some(large()),
        ..ExecutionMetadata::default()
    };
    Round { execution_id: 1, history_delta: last_events(), metadata, ..Round::default() }
}

/// How many words of the text are in the log, which holds every page that was written. A word that two pages share is not
/// seen.
fn words_in_log(path: &Path) -> usize {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap();
    let word = br#"large \"text\" "#;
    log.windows(word.len()).filter(|window| window == word).count()
}

/// Everything that is read is whole, and the text was written once.
#[test]
fn a_text_that_goes_through_an_instance_is_stored_once() {
    let mut shared = Shared::started();
    shared.schedule();
    shared.complete();
    shared.end();
    assert_eq!(shared.payloads(), 1);
    let [mut expected, last] = [first_events(), last_events()];
    expected.extend(last);
    assert_eq!(shared.history(), expected);
    let engine = &mut shared.store.engine;
    assert_eq!(engine.instance_info("order-1").unwrap().unwrap().output, Some(large()));
    assert_eq!(engine.execution_info("order-1", 1).unwrap().unwrap().output, Some(large()));
    let bytes: usize = expected.iter().map(|event| serde_json::to_string(event).unwrap().len()).sum();
    assert_eq!(engine.stats("order-1").unwrap().unwrap().history_size_bytes, bytes as u64);
    let status = engine.status("order-1").unwrap().unwrap();
    let ended: Event = serde_json::from_str(&status.terminal_event.unwrap()).unwrap();
    assert_eq!(ended, expected[3]);
    let written = words_in_log(&shared.path);
    assert!((REPEATS / 2..=REPEATS).contains(&written), "{written} of {REPEATS} words");
    shared.delete();
    assert_eq!(shared.payloads(), 0);
}

/// The rows of the queues are deleted, the history still has the text.
#[test]
fn a_text_stays_while_an_event_has_it() {
    let mut shared = Shared::started();
    shared.schedule();
    let work = shared.store.claim_work().unwrap();
    shared.store.apply(&Op::AckActivity { token: work.lock_token, completion: None });
    assert_eq!((shared.history(), shared.payloads()), (first_events(), 1));
}

/// A text that no event refers to is deleted with its message.
#[test]
fn a_text_without_other_references_is_deleted_with_its_message() {
    let mut shared = Shared::started();
    let claim = shared.store.claim().unwrap();
    shared.store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    assert_eq!(shared.payloads(), 0);
    // The same text, sent again, does not refer to the deleted payload.
    shared.store.send(&raise("order-1", &large()));
    assert_eq!(shared.store.claim().unwrap().messages, [raise("order-1", &large())]);
}

/// 19: a prune deletes only payloads that the remaining executions do not refer to.
#[test]
fn a_prune_leaves_the_texts_of_the_other_executions() {
    let mut shared = Shared::started();
    let claim = shared.store.claim().unwrap();
    let mut next = started("order-1");
    next.execution_id = 2;
    if let EventKind::OrchestrationStarted { input, .. } = &mut next.kind {
        *input = large();
    }
    let own = "of the first execution ".repeat(1000);
    let mut first = first_events();
    first.push(event("order-1", 3, EventKind::OrchestrationContinuedAsNew { input: own }));
    let mut round = Round { history_delta: first, worker_items: Vec::new(), ..first_turn() };
    round.metadata.status = Some("ContinuedAsNew".to_owned());
    round.next_execution = Some(NextExecution {
        start: large_start(),
        execution_id: 2,
        history_delta: vec![next.clone()],
        worker_items: Vec::new(),
        orchestrator_items: Vec::new(),
        metadata: described(),
    });
    shared.store.commit(&claim.lock_token, round).unwrap();
    assert_eq!(shared.payloads(), 2);
    let options = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    shared.store.apply(&Op::Prune { instance: "order-1".to_owned(), options });
    assert_eq!((shared.history(), shared.payloads()), (vec![next], 1));
    shared.delete();
    assert_eq!(shared.payloads(), 0);
}

/// Texts of a rolled back transaction are stored again by the next.
#[test]
fn a_text_that_was_rolled_back_is_stored_again() {
    let mut shared = Shared::started();
    let claim = shared.store.claim().unwrap();
    let mut round = first_turn();
    round.history_delta[1] =
        event("order-1", 2, EventKind::ActivityCompleted { result: "other ".repeat(1000) });
    let op = Op::CommitRound(Box::new(PreparedRound::new(&claim.lock_token, &round).unwrap()));
    let now = shared.store.now;
    let engine = &mut shared.store.engine;
    engine.steps().begin(now).unwrap();
    engine.steps().apply(&op, now).unwrap();
    engine.steps().rollback();
    shared.store.apply(&op);
    assert_eq!((shared.history(), shared.payloads()), (round.history_delta, 2));
}

/// Another process deletes the instance, and with it the text.
#[test]
fn a_text_that_another_process_deleted_is_stored_again() {
    let mut shared = Shared::started();
    shared.schedule();
    let mut other = Store::file(&shared.path);
    other.apply(&Op::DeleteInstances { ids: vec!["order-1".to_owned()], force: true });
    assert_eq!(shared.payloads(), 0);
    other.send(&large_start());
    shared.schedule();
    assert_eq!((shared.history(), shared.payloads()), (first_events(), 1));
}

/// A message that the same process gets twice is not stored twice, and leaves nothing behind.
#[test]
fn a_duplicate_completion_leaves_nothing() {
    let mut shared = Shared::started();
    shared.schedule();
    let mut other = completed();
    if let WorkItem::ActivityCompleted { result, .. } = &mut other {
        *result = "other ".repeat(1000);
    }
    shared.store.send(&completed());
    shared.store.send(&other);
    assert_eq!(shared.payloads(), 1);
}

/// 23.3: a transaction finds other rows with a text by an index.
#[test]
fn whether_a_text_is_used_is_found_by_an_index() {
    let mut shared = Shared::started();
    let trace = shared.store.engine.trace_statements();
    shared.schedule();
    let statements = trace.statements();
    let unused = statements.iter().find(|sql| sql.contains("EXISTS (SELECT 1 FROM history")).unwrap();
    let conn = Connection::open(&shared.path).unwrap();
    let mut searches = plan(&conn, unused);
    searches.retain(|step| step.starts_with("SEARCH"));
    let indexes = ["history_payload (payload=?)", "PRIMARY KEY (instance=?)", "activity_once (instance=?)"];
    let by_index = searches.iter().zip(indexes).all(|(step, index)| step.ends_with(index));
    assert!(searches.len() == 3 && by_index, "{searches:?}");
}
