//! Tests of a store in a folder: engine stories, random steps compared with the memory engine, refused folders, damaged files.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]

use std::sync::atomic::{AtomicU64, Ordering};

use duroxide_peek_lock::{MemoryOptions, PeekLockEngine};
use duroxide_provider::{
    store::{Batch, Done, Fault, StoreEngine as _, StoreReader as _},
    testing::{
        EngineLayer, ModelEngine, Scenario, Subject, Turn, compare,
        items::{raise, start},
    },
};
use tempfile::TempDir;

use super::*;

fn open(folder: &Path) -> PeekLockEngine<FsStore> {
    let store = FsStore::open(folder, false).expect("a store");
    PeekLockEngine::open(store, MemoryOptions::default()).expect("a store")
}

/// An engine on a folder of its own.
struct InFolder {
    engine: PeekLockEngine<FsStore>,
    /// Whether the engine reads its files again after every commit.
    rereads: bool,
    _folder: TempDir,
}

impl InFolder {
    fn new(rereads: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { engine: open(folder.path()), rereads, _folder: folder }
    }
}

impl EngineLayer for InFolder {
    type Engine = PeekLockEngine<FsStore>;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut Self::Engine) -> T) -> T {
        call(&mut self.engine)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let done = self.engine.transact(batch)?;
        if self.rereads {
            self.engine.reopen().map_err(Fault::Unavailable)?;
        }
        Ok(done)
    }
}

duroxide_provider::engine_stories!(InFolder::new(false));

/// S4.29: an engine that reads its files again after every commit gives the answers of the model.
#[test]
fn files_give_the_answers_of_the_model() {
    static NUMBER: AtomicU64 = AtomicU64::new(7);
    for _ in 0..12 {
        let numbers: Vec<u64> = (0..60)
            .map(|_| NUMBER.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
            .map(|number| (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
            .collect();
        let (model, other) = (ModelEngine::default(), InFolder::new(true));
        compare(&mut Subject::new(model), &mut Subject::new(other), &numbers);
    }
}

/// An instance that waits for an activity, in a folder.
fn running() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = Scenario::new(open(folder.path()));
    scenario.run_first_turn(Turn::first("Order/1").activity(), &start("Order/1"));
    folder
}

fn error(folder: &Path) -> FsError {
    FsStore::open(folder, false).expect_err("the store is refused")
}

#[test]
fn a_store_is_readable_text_in_one_folder_per_instance() {
    let folder = running();
    let instance = folder.path().join("instances/+order%2f1");
    let history = fs::read_to_string(instance.join("history-1.jsonl")).unwrap();
    let types: Vec<_> = history.lines().map(|line| line.contains("OrchestrationStarted")).collect();
    assert_eq!(types, [true, false]);
    let activities: Vec<_> =
        fs::read_dir(instance.join("activities")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(activities.len(), 1);
    let activity = fs::read_to_string(&activities[0]).unwrap();
    assert!(activity.lines().nth(1).unwrap().starts_with(r#"{"ActivityExecute":{"#));
    assert!(fs::read_to_string(instance.join("instance.json")).unwrap().contains(r#""name": "Order""#));
    assert_eq!(fs::read_dir(instance.join("inbox")).unwrap().count(), 0, "the start was acknowledged");
}

#[test]
fn one_user_at_a_time_has_a_store() {
    let folder = running();
    let held = open(folder.path());
    assert_eq!(error(folder.path()), FsError::InUse { folder: folder.path().display().to_string() });
    assert!(error(folder.path()).is_retryable());
    drop(held);
    open(folder.path());
}

#[test]
fn a_folder_with_something_else_in_it_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.tex"), "text").unwrap();
    assert!(matches!(error(folder.path()), FsError::NotAStore { .. }));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let file = folder.path().join("thesis.tex");
    assert!(matches!(error(&file), FsError::Io { .. }));
}

#[test]
fn another_format_is_refused() {
    let folder = running();
    fs::write(folder.path().join("format.json"), r#"{"format":2}"#).unwrap();
    assert!(matches!(error(folder.path()), FsError::UnknownFormat { found: 2, known: 1, .. }));
}

#[test]
fn a_damaged_record_is_named() {
    for file in ["instance.json", "execution-1.json"] {
        let folder = running();
        let path = folder.path().join("instances/+order%2f1").join(file);
        fs::write(&path, "{").unwrap();
        let FsError::Damaged { file: named, .. } = error(folder.path()) else { panic!("another error") };
        assert_eq!(named, path.display().to_string());
    }
    let folder = running();
    fs::remove_file(folder.path().join("instances/+order%2f1/instance.json")).unwrap();
    assert!(matches!(error(folder.path()), FsError::Damaged { .. }));
    let folder = running();
    let instances = folder.path().join("instances");
    fs::rename(instances.join("+order%2f1"), instances.join("other")).unwrap();
    assert!(matches!(error(folder.path()), FsError::Damaged { .. }));
}

/// Q1: an undecodable event stays in its place, and the events after it keep their numbers.
#[test]
fn a_damaged_event_stays_in_its_place() {
    let folder = running();
    let path = folder.path().join("instances/+order%2f1/history-1.jsonl");
    let second = fs::read_to_string(&path).unwrap().lines().nth(1).unwrap().to_owned();
    fs::write(&path, [b"\xff\xfe\n".as_slice(), second.as_bytes(), b"\n"].concat()).unwrap();
    let rows = open(folder.path()).history("Order/1", None).unwrap();
    assert_eq!(rows.iter().map(|row| row.event_id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rows[1].data, second);
}

/// S4.36: a crash in the middle of an append leaves a part of a line; the repeated append completes it.
#[test]
fn a_line_that_was_cut_off_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |ids: &[u64]| -> Vec<EventRow> {
        ids.iter().map(|id| EventRow { event_id: *id, data: format!("{{\"event_id\":{id}}}") }).collect()
    };
    let mut store = FsStore::open(folder.path(), true).unwrap();
    store.append("a", 1, &rows(&[1, 2])).unwrap();
    let path = folder.path().join("instances/a/history-1.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let _ = store.histories.remove(&("a".to_owned(), 1));
        store.append("a", 1, &rows(&[1, 2, 3])).unwrap();
        assert_eq!(HistoryFile::read(&path).unwrap().rows, rows(&[1, 2, 3]), "cut at {cut}");
    }
}

#[test]
fn half_written_and_half_deleted_files_are_removed_when_opening() {
    let folder = running();
    let instances = folder.path().join("instances");
    fs::write(instances.join("+order%2f1/instance.tmp"), "{").unwrap();
    fs::create_dir(instances.join("new")).unwrap();
    fs::write(instances.join("new/instance.tmp"), "{").unwrap();
    fs::create_dir_all(folder.path().join("deleted/1/inbox")).unwrap();
    let mut engine = open(folder.path());
    assert_eq!(engine.instances(None).unwrap(), ["Order/1"]);
    assert_eq!(fs::read_dir(&instances).unwrap().count(), 1);
    assert!(!instances.join("+order%2f1/instance.tmp").exists());
    assert!(!folder.path().join("deleted").exists());
}

#[test]
fn long_ids_have_different_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = Scenario::new(open(folder.path()));
    let ids = ["x".repeat(1_000), format!("{}y", "x".repeat(999)), "../../up".to_owned(), "ä ö".to_owned()];
    ids.iter().for_each(|id| scenario.running(id));
    drop(scenario);
    let mut scenario = Scenario::new(open(folder.path()));
    for id in &ids {
        assert!(scenario.instance(id).is_some());
        scenario.send(&raise(id, "1"));
    }
    assert_eq!(fs::read_dir(folder.path().join("instances")).unwrap().count(), ids.len());
    assert_eq!(scenario.force_delete(&ids[0]).instances_deleted, 1);
    assert_eq!(fs::read_dir(folder.path().join("instances")).unwrap().count(), ids.len() - 1);
}
