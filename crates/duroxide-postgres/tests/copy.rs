//! A copy drops no store, and knows whether its last transaction was committed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod fixture;

use std::path::PathBuf;

use duroxide_postgres::{CopyError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide_provider::{Provider as _, testing::items};
use duroxide_sqlite::{SqliteExport, SqliteProvider};
use fixture::{
    fresh_options,
    proxy::{Proxy, Silence},
    sql::Admin,
};
use postgres_server::Server;

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
