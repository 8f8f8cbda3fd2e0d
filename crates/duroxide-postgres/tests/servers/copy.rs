//! A copy drops no store, and knows whether its last transaction was committed.

use std::path::PathBuf;

use duroxide_postgres::{CopyError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide_provider::{
    NodeAnnouncement, Provider as _,
    memory::record::{DeadLetterRecord, StoredInstance},
    store::{CopySource, IntakeRow, StoreFailure, StoreSnapshot},
    testing::items,
};
use duroxide_sqlite::{SqliteExport, SqliteProvider};
use postgres_server::Server;

use crate::fixture::{
    fresh_options,
    proxy::{Proxy, Silence},
    sql::Admin,
};

/// A SQLite file, which is deleted in the end.
struct File(PathBuf);

impl File {
    /// Makes a file with these instances.
    async fn with(name: &str, instances: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("duroxide-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = Self(folder);
        let store = SqliteProvider::new(&file.url(), None).await.unwrap();
        for instance in instances {
            store.enqueue_for_orchestrator(items::start(instance), None).await.unwrap();
        }
        file
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.join("store.db").display())
    }

    async fn copy_into(&self, options: &PostgresOptions) -> Result<u64, CopyError> {
        let url = self.url();
        PostgresProvider::copy_from(move || SqliteExport::open(&url), options.clone(), |_| {}).await
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The schema in which a copy into these options works.
fn working(options: &PostgresOptions) -> PostgresOptions {
    let schema = SchemaName::new(&format!("{}_copy", options.schema)).unwrap();
    PostgresOptions { schema, ..options.clone() }
}

async fn instances(options: &PostgresOptions) -> Vec<String> {
    let store = PostgresProvider::open_existing(options.clone()).await.unwrap();
    store.snapshot().await.unwrap().instances.into_iter().map(|found| found.instance).collect()
}

/// The copy is refused, and what the schema holds stays.
async fn refuses(file: &File, target: &PostgresOptions, admin: &Admin) {
    let before = admin.objects(working(target).schema.as_str()).await;
    for _ in 0..2 {
        let error = file.copy_into(target).await.unwrap_err();
        assert!(matches!(error, CopyError::WorkingSchemaExists { .. }), "{error}");
        assert!(error.to_string().contains("choose another name"), "{error}");
    }
    assert_eq!(admin.objects(working(target).schema.as_str()).await, before, "nothing was changed");
    assert!(!admin.has_schema(target.schema.as_str()).await);
}

#[tokio::test]
async fn a_copy_leaves_a_store_alone_that_has_the_name_of_its_working_schema() {
    let Some(server) = postgres_server::server() else { return };
    let admin = Admin::connect(server).await;
    let file = File::with("live", &["a", "b"]).await;
    for instance in [None, Some("live")] {
        let target = fresh_options(server);
        let store = PostgresProvider::open(working(&target)).await.unwrap();
        if let Some(instance) = instance {
            store.enqueue_for_orchestrator(items::start(instance), None).await.unwrap();
        }
        drop(store);
        refuses(&file, &target, &admin).await;
        assert_eq!(instances(&working(&target)).await, Vec::from_iter(instance));
    }
}

/// A trial copy that was published under that name.
#[tokio::test]
async fn a_copy_leaves_a_published_copy_alone_that_has_the_name_of_its_working_schema() {
    let Some(server) = postgres_server::server() else { return };
    let admin = Admin::connect(server).await;
    let file = File::with("published", &["a", "b"]).await;
    let target = fresh_options(server);
    assert_eq!(file.copy_into(&working(&target)).await.unwrap(), 2);
    refuses(&file, &target, &admin).await;
    assert_eq!(instances(&working(&target)).await, ["a", "b"]);
}

#[tokio::test]
async fn a_copy_leaves_a_schema_of_another_program_alone() {
    let Some(server) = postgres_server::server() else { return };
    let admin = Admin::connect(server).await;
    let file = File::with("foreign", &["a"]).await;
    for table in ["", "CREATE TABLE {s}.orders (id int)"] {
        let target = fresh_options(server);
        let schema = working(&target).schema;
        admin.run(&format!("CREATE SCHEMA {schema}; {}", table.replace("{s}", schema.as_str()))).await;
        refuses(&file, &target, &admin).await;
    }
}

/// The server gives the schema its name, and its answer is lost with the connection.
#[tokio::test]
async fn a_copy_whose_last_answer_is_lost_has_succeeded() {
    let Some(server) = Server::own() else { return };
    let file = File::with("answer", &["a", "b"]).await;
    let proxy = Proxy::start(server.address().port);
    proxy.set(Silence::LostAnswerTo("ALTER SCHEMA"));
    let url = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", proxy.port);
    let mut target = PostgresOptions::new(&url).unwrap();
    target.schema = SchemaName::new(&server.fresh_schema()).unwrap();
    assert_eq!(file.copy_into(&target).await.unwrap(), 2);
    proxy.set(Silence::Nothing);
    assert_eq!(instances(&target).await, ["a", "b"]);
    assert!(matches!(file.copy_into(&target).await, Err(CopyError::SchemaExists { .. })));
}

/// A source that calls `on_page` before each page, and whose intake has grown after it was read `intakes` times.
struct Source<F> {
    source: SqliteExport,
    on_page: F,
    intakes: usize,
}

impl<F: FnMut()> CopySource for Source<F> {
    fn state(&mut self) -> Result<String, StoreFailure> {
        self.source.state()
    }
    fn instance_count(&mut self) -> Result<u64, StoreFailure> {
        self.source.instance_count()
    }
    fn instances_after(&mut self, number: u64, max: usize) -> Result<Vec<StoredInstance>, StoreFailure> {
        (self.on_page)();
        self.source.instances_after(number, max)
    }
    fn dead_letters(&mut self) -> Result<Vec<DeadLetterRecord>, StoreFailure> {
        self.source.dead_letters()
    }
    fn intake(&mut self) -> Result<Vec<IntakeRow>, StoreFailure> {
        let mut rows = self.source.intake()?;
        if self.intakes == 0 {
            rows.push(IntakeRow {
                kind: IntakeRow::START.to_owned(),
                instance_id: "c".to_owned(),
                name: "Order".to_owned(),
                version: None,
                data: String::new(),
            });
        }
        self.intakes = self.intakes.saturating_sub(1);
        Ok(rows)
    }
    fn next_number(&mut self) -> Result<u64, StoreFailure> {
        self.source.next_number()
    }
    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        self.source.snapshot()
    }
}

async fn copy_from<F: FnMut() + Send + 'static>(
    file: &File,
    target: &PostgresOptions,
    on_page: F,
    intakes: usize,
) -> Result<u64, CopyError> {
    let url = file.url();
    let open = move || Ok(Source { source: SqliteExport::open(&url)?, on_page, intakes });
    PostgresProvider::copy_from(open, target.clone(), |_| {}).await
}

/// Rows of the intake are no part of a snapshot.
#[tokio::test]
async fn a_copy_whose_intake_differs_from_its_source_is_not_published() {
    let Some(server) = postgres_server::server() else { return };
    let file = File::with("intake", &["a"]).await;
    let target = fresh_options(server);
    let error = copy_from(&file, &target, || {}, 1).await.unwrap_err();
    assert!(matches!(&error, CopyError::Differs { what } if what == "the intake"), "{error}");
    assert!(!Admin::connect(server).await.has_schema(target.schema.as_str()).await);
    // The row is there from the beginning.
    assert_eq!(copy_from(&file, &target, || {}, 0).await.unwrap(), 1);
}

/// A node that is started on the file during a copy does not join, so that it cannot run instances which are copied.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_cannot_join_the_source_during_a_copy() {
    let Some(server) = postgres_server::server() else { return };
    let file = File::with("join", &["a"]).await;
    let url = file.url();
    let (sent, refused) = std::sync::mpsc::channel();
    let executor = tokio::runtime::Handle::current();
    let mut sent = Some(sent);
    let join = move || {
        // One attempt is enough: SQLite waits for a lock for a while.
        let Some(sent) = sent.take() else { return };
        let joined = executor.block_on(async {
            let store = SqliteProvider::new(&url, None).await.map_err(|error| error.to_string())?;
            let node = NodeAnnouncement { name: "late".to_owned(), ..NodeAnnouncement::default() };
            match store.join_node(&node).await {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err("there are no nodes".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        });
        sent.send(joined).unwrap();
    };
    let copied = copy_from(&file, &fresh_options(server), join, usize::MAX).await;
    assert_eq!(copied.unwrap(), 1);
    let error = refused.recv().unwrap().unwrap_err();
    assert!(error.contains("locked"), "{error}");
}
