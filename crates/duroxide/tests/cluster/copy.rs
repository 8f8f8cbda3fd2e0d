//! A SQLite file is copied into PostgreSQL, with everything that is going on in it.

pub mod failures;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use duroxide::{
    ActivityContext, Client, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
    providers::{
        copy_sqlite_to_postgres,
        postgres::{CopyError, PostgresProvider},
    },
    runtime::registry::ActivityRegistry,
};
use duroxide_provider::{
    memory::record::{DeadLetterRecord, StoredInstance},
    store::{CopySource, FailureClass, IntakeRow, StoreFailure, StoreSnapshot},
};
use duroxide_sqlite::SqliteExport;

use crate::{
    fixture::{File, ended, node, output, quick_options, recorded, until},
    schema::{Schema, options_in},
    sound::{assert_finished, assert_sound},
};

/// More than two pages of a copy.
const FINISHED: usize = 230;

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Hello", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Waits", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_kv_value("step", "waiting");
            ctx.set_custom_status("it waits");
            let first = ctx.schedule_wait("go").await;
            Ok(format!("{first}, {:?}", ctx.get_kv_value("step")))
        })
        .register("Counts", |ctx: OrchestrationContext, count: String| async move {
            let next = count.parse::<u32>().unwrap_or_default() + 1;
            ctx.set_kv_value("count", next.to_string());
            if next < 4 {
                return ctx.continue_as_new(next.to_string()).await;
            }
            let message: String = ctx.dequeue_event("messages").await;
            Ok(format!("{message} in execution {}", ctx.execution_id()))
        })
        .register("Works", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Slow", "large text ".repeat(1_000)).await
        })
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Waits", "child", "").await
        })
        .build()
}

/// The activity ends on the second store only.
fn activities(may_end: bool) -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Slow", move |_: ActivityContext, input: String| async move {
            if !may_end {
                std::future::pending::<()>().await;
            }
            Ok(format!("done with {} bytes", input.len()))
        })
        .build()
}

fn options() -> RuntimeOptions {
    RuntimeOptions { worker_lock_timeout: std::time::Duration::from_secs(2), ..quick_options() }
}

/// A store with something of everything.
async fn fill(file: &File) {
    let store = file.open().await;
    let client = Client::new(store.clone());
    let runtime = node(&store, activities(false), orchestrations(), options()).await;
    for number in 0..FINISHED {
        client.start_orchestration(format!("hello-{number}"), "Hello", number.to_string()).await.unwrap();
    }
    for (instance, orchestration) in
        [("waits", "Waits"), ("counts", "Counts"), ("works", "Works"), ("parent", "Parent")]
    {
        client.start_orchestration(instance, orchestration, "0").await.unwrap();
    }
    for number in 0..FINISHED {
        ended(&client, &format!("hello-{number}")).await;
    }
    let waits = |event: &duroxide::Event| matches!(event.kind, EventKind::ExternalSubscribed { .. });
    recorded(&client, "waits", waits).await;
    recorded(&client, "child", waits).await;
    until("the fourth execution waits", async || {
        client.list_executions("counts").await.is_ok_and(|executions| executions.len() == 4)
    })
    .await;
    let by_hand = "INSERT INTO intake (kind, instance_id, name, version, data) VALUES ('start', 'bad', 'Hello', 'x', '')";
    file.connect().execute(by_hand, []).unwrap();
    until("it is a dead letter", async || !client.list_dead_letters(None).await.unwrap().is_empty()).await;
    // A node runs: nothing is copied.
    let refused = PostgresProvider::copy_from(
        {
            let url = file.url();
            move || SqliteExport::open(&url)
        },
        duroxide::providers::postgres::PostgresOptions::new("host=nowhere").unwrap(),
        |_| {},
    );
    let error = refused.await.unwrap_err();
    assert!(matches!(error, CopyError::Source(_)) && error.to_string().contains("runs on"), "{error}");
    runtime.shutdown(Some(100)).await;
}

/// A source that fails after this many pages.
struct Failing {
    source: SqliteExport,
    pages: usize,
}

impl CopySource for Failing {
    fn state(&mut self) -> Result<String, StoreFailure> {
        self.source.state()
    }
    fn instance_count(&mut self) -> Result<u64, StoreFailure> {
        self.source.instance_count()
    }
    fn instances_after(&mut self, number: u64, max: usize) -> Result<Vec<StoredInstance>, StoreFailure> {
        if self.pages == 0 {
            return Err(StoreFailure::new(FailureClass::Retryable, "the disk is gone"));
        }
        self.pages -= 1;
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
        self.source.snapshot()
    }
}

/// Copies and is interrupted; returns how many instances an earlier attempt had left.
async fn interrupted(file: &File, schema: &Schema, pages: usize) -> u64 {
    let (url, found) = (file.url(), Arc::new(AtomicU64::new(u64::MAX)));
    let noted = Arc::clone(&found);
    let copied = PostgresProvider::copy_from(
        move || Ok(Failing { source: SqliteExport::open(&url)?, pages }),
        options_in(schema.folder()),
        move |progress| {
            noted.fetch_min(progress.copied, Ordering::SeqCst);
        },
    );
    let error = copied.await.unwrap_err();
    assert!(matches!(error, CopyError::Interrupted { .. }), "{error}");
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    found.load(Ordering::SeqCst)
}

/// Started without a node, and run by a node on the new store.
fn hand_in(file: &File) {
    let mut connection = file.connect();
    let transaction = connection.transaction().unwrap();
    let intake = duroxide::providers::sqlite::Intake::new(&transaction);
    intake.start_orchestration("handed-in", "Hello", "late").unwrap();
    transaction.commit().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_goes_on_in_a_file_goes_on_in_postgres() {
    let Some(schema) = Schema::new() else { return };
    let file = File::new();
    fill(&file).await;
    for pages in [0, 1] {
        assert_eq!(interrupted(&file, &schema, pages).await, 0);
    }
    assert_eq!(interrupted(&file, &schema, 1).await, 100, "it goes on where it was");
    hand_in(&file);
    assert_eq!(interrupted(&file, &schema, 2).await, 0, "the source has changed");
    let target = options_in(schema.folder());
    let before = file.snapshot();
    let found = Arc::new(AtomicU64::new(u64::MAX));
    let noted = Arc::clone(&found);
    let url = file.url();
    let copied = copy_sqlite_to_postgres(&url, target.clone(), move |progress| {
        noted.fetch_min(progress.copied, Ordering::SeqCst);
        assert_eq!(progress.total, FINISHED as u64 + 5);
    });
    assert_eq!(copied.await.unwrap(), FINISHED as u64 + 5);
    assert_eq!(found.load(Ordering::SeqCst), 200);
    let again = copy_sqlite_to_postgres(&file.url(), target, |_| {}).await.unwrap_err();
    assert!(matches!(again, CopyError::SchemaExists { .. }), "{again}");
    assert_eq!(file.snapshot(), before, "the source is as it was");

    let store = schema.open().await;
    let client = Client::new(store.clone());
    let runtime = node(&store, activities(true), orchestrations(), options()).await;
    assert_eq!(client.get_kv_value("waits", "step").await.unwrap().as_deref(), Some("waiting"));
    let OrchestrationStatus::Running { custom_status, .. } =
        client.get_orchestration_status("waits").await.unwrap()
    else {
        panic!("it waits")
    };
    assert_eq!(custom_status.as_deref(), Some("it waits"));
    client.raise_event("waits", "go", "gone").await.unwrap();
    client.raise_event("child", "go", "grown up").await.unwrap();
    client.enqueue_event("counts", "messages", "counted").await.unwrap();
    client.start_orchestration("new", "Hello", "new").await.unwrap();
    for (instance, expected) in [
        ("hello-0", "0"),
        ("waits", "gone, Some(\"waiting\")"),
        ("parent", "grown up, Some(\"waiting\")"),
        ("counts", "counted in execution 4"),
        ("works", "done with 11000 bytes"),
        ("handed-in", "late"),
        ("new", "new"),
    ] {
        assert_eq!(output(ended(&client, instance).await), expected, "{instance}");
    }
    let letters = client.list_dead_letters(None).await.unwrap();
    assert_eq!(letters.len(), 1);
    client.discard_dead_letter(&letters[0].id).await.unwrap();
    runtime.shutdown(Some(10_000)).await;
    let snapshot = schema.snapshot();
    assert_sound(&snapshot);
    assert_finished(&snapshot);
}
