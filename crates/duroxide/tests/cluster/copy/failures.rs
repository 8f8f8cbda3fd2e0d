//! Copies that are refused, interrupted or killed.

use std::{
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use duroxide::{
    Client,
    providers::postgres::{CopyError, PostgresProvider},
    providers::{ProviderError, copy_sqlite_to_postgres},
};
use duroxide_provider::{
    DeadLetter, DeadLetterQueue,
    memory::record::{DeadLetterRecord, StoredInstance},
    store::{CopySource, IntakeRow, StoreFailure, StoreSnapshot},
};
use duroxide_sqlite::SqliteExport;

use super::{activities, options, orchestrations};
use crate::{
    fixture::{File, ended, node, process::Process, until, url_in},
    schema::{Schema, notes_in, options_in},
    sound::assert_finished,
};

/// A page and a half.
const INSTANCES: u64 = 150;

async fn fill(file: &File) {
    let store = file.open().await;
    let client = Client::new(store.clone());
    let runtime = node(&store, activities(false), orchestrations(), options()).await;
    for number in 0..INSTANCES {
        client.start_orchestration(format!("hello-{number}"), "Hello", number.to_string()).await.unwrap();
    }
    for number in 0..INSTANCES {
        ended(&client, &format!("hello-{number}")).await;
    }
    runtime.shutdown(None).await;
}

/// A source that calls `before_page` before each page, and shows something else in the end.
struct Odd<B, S> {
    source: SqliteExport,
    before_page: B,
    show: S,
}

impl<B, S> Odd<B, S> {
    fn open(url: &str, before_page: B, show: S) -> Result<Self, ProviderError> {
        Ok(Self { source: SqliteExport::open(url)?, before_page, show })
    }
}

impl<B: FnMut(), S: Fn(&mut StoreSnapshot)> CopySource for Odd<B, S> {
    fn state(&mut self) -> Result<String, StoreFailure> {
        self.source.state()
    }
    fn instance_count(&mut self) -> Result<u64, StoreFailure> {
        self.source.instance_count()
    }
    fn instances_after(&mut self, number: u64, max: usize) -> Result<Vec<StoredInstance>, StoreFailure> {
        (self.before_page)();
        self.source.instances_after(number, max)
    }
    fn dead_letters(&mut self) -> Result<Vec<DeadLetterRecord>, StoreFailure> {
        self.source.dead_letters()
    }
    fn intake(&mut self) -> Result<Vec<IntakeRow>, StoreFailure> {
        self.source.intake()
    }
    fn next_number(&mut self) -> Result<u64, StoreFailure> {
        self.source.next_number()
    }
    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        let mut snapshot = self.source.snapshot()?;
        (self.show)(&mut snapshot);
        Ok(snapshot)
    }
}

/// Changes the snapshot that a source returns.
type Show = fn(&mut StoreSnapshot);

/// Copies a file whose snapshot changes at the end.
async fn copy_showing(file: &File, schema: &Schema, show: Show) -> CopyError {
    let url = file.url();
    let open = move || Odd::open(&url, || {}, show);
    PostgresProvider::copy_from(open, options_in(schema.folder()), |_| {}).await.unwrap_err()
}

async fn assert_missing(schema: &Schema) {
    let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    let found = schema.admin().await.query(sql, &[&schema.name()]).await.unwrap();
    assert!(found.is_empty(), "the schema exists");
}

/// The copy is compared with the source as a whole before it gets its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_differs_from_its_source_is_not_published() {
    let Some(schema) = Schema::new() else { return };
    let file = File::new();
    fill(&file).await;
    let changed: [(&str, Show); 3] = [
        ("instance hello-7", |snapshot| {
            let changed = snapshot.instances.iter_mut().find(|instance| instance.instance == "hello-7");
            changed.unwrap().executions[0].events[0].data.push(' ');
        }),
        ("the number of instances", |snapshot| {
            snapshot.instances.pop();
        }),
        ("the dead letters", |snapshot| {
            snapshot.dead_letters.push(DeadLetter {
                id: "1".to_owned(),
                queue: DeadLetterQueue::Worker,
                instance_id: None,
                payload: String::new(),
                reason: String::new(),
                attempt_count: 1,
                dead_lettered_at_ms: 1,
            });
        }),
    ];
    for (expected, show) in changed {
        match copy_showing(&file, &schema, show).await {
            CopyError::Differs { what } => assert_eq!(what, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert_missing(&schema).await;
    }
    let copied = copy_sqlite_to_postgres(&file.url(), options_in(schema.folder()), |_| {}).await;
    assert_eq!(copied.unwrap(), INSTANCES);
}

/// A source in which a guarantee does not hold is not made a store of many nodes.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_breaks_a_guarantee_is_not_published() {
    let Some(schema) = Schema::new() else { return };
    let file = File::new();
    fill(&file).await;
    let changed = file.connect().execute("UPDATE history SET event_id = event_id + 5 WHERE event_id = 2", []);
    assert_eq!(changed.unwrap() as u64, INSTANCES);
    let copied = copy_sqlite_to_postgres(&file.url(), options_in(schema.folder()), |_| {}).await;
    match copied.unwrap_err() {
        CopyError::Unsound { violations } => assert!(violations.len() as u64 >= INSTANCES, "{violations:?}"),
        other => panic!("{other:?}"),
    }
    assert_missing(&schema).await;
}

/// The first page waits for `go`.
fn waiting(begun: SyncSender<()>, go: Receiver<()>) -> impl FnMut() + Send {
    move || {
        // Both fail harmlessly for later pages: the test has ended, or waits for the end of the copy.
        let _ = begun.try_send(());
        let _ = go.recv();
    }
}

/// Of two copies into one schema the second is refused, and the first one is not disturbed.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_copy_next_to_the_first_is_refused() {
    let Some(schema) = Schema::new() else { return };
    let (file, other) = (File::new(), File::new());
    fill(&file).await;
    drop(other.open().await);
    let ((begun, has_begun), (may_go, go)) = (sync_channel(1), sync_channel(1));
    let url = file.url();
    let first = tokio::spawn(PostgresProvider::copy_from(
        move || Odd::open(&url, waiting(begun, go), |_: &mut StoreSnapshot| {}),
        options_in(schema.folder()),
        |_| {},
    ));
    tokio::task::block_in_place(|| has_begun.recv().unwrap());
    for _ in 0..2 {
        let second = copy_sqlite_to_postgres(&other.url(), options_in(schema.folder()), |_| {}).await;
        let error = second.unwrap_err();
        assert!(matches!(error, CopyError::Busy { .. }), "{error:?}");
    }
    drop(may_go);
    assert_eq!(first.await.unwrap().unwrap(), INSTANCES);
    assert_eq!(schema.snapshot().instances, file.snapshot().instances);
}

/// The role of a process that copies a page and is killed in front of the next one.
pub async fn work(folder: &Path) {
    let (url, notes) = (std::fs::read_to_string(folder.join("source")).unwrap(), notes_in(folder));
    let before_page = move || {
        notes.add("page");
        while notes.lines().len() > 1 {
            std::thread::park();
        }
    };
    let open = move || Odd::open(&url, before_page, |_: &mut StoreSnapshot| {});
    PostgresProvider::copy_from(open, options_in(folder), |_| {}).await.unwrap();
}

/// kill -9 of a process that copies: the next attempt goes on behind the last page, without a cleanup.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_process_is_killed_goes_on_in_another_one() {
    let Some(schema) = Schema::new() else { return };
    let file = File::new();
    fill(&file).await;
    std::fs::write(schema.folder().join("source"), url_in(file.folder())).unwrap();
    let copying = Process::start("copies", schema.folder(), "");
    schema.reach_notes(2).await;
    copying.kill();
    assert_missing(&schema).await;

    let (url, (seen, first)) = (file.url(), sync_channel(1));
    let mut copied = None;
    until("the server has noticed the end of the process", async || {
        let seen = seen.clone();
        let copy = copy_sqlite_to_postgres(&url, options_in(schema.folder()), move |progress| {
            let _ = seen.try_send(progress.copied);
        });
        let result = copy.await;
        let is_busy = matches!(result, Err(CopyError::Busy { .. }));
        copied = Some(result);
        !is_busy
    })
    .await;
    assert_eq!(copied.unwrap().unwrap(), INSTANCES);
    assert_eq!(first.recv().unwrap(), 100, "it goes on where it was");
    let snapshot = schema.snapshot();
    assert_eq!(snapshot.instances, file.snapshot().instances);
    assert_finished(&snapshot);
}
