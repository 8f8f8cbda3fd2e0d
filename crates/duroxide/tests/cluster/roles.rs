//! Roles with no more rights than they need, granted as in docs/postgres.md.

use std::sync::Arc;

use duroxide::{
    Client, OrchestrationStatus,
    providers::{Provider, postgres::PostgresProvider},
    runtime::Runtime,
};

use crate::{
    fixture::{ended, node, output},
    mix,
    schema::{Schema, options_in},
};

/// The block of the guide that makes roles.
fn grants(schema: &str) -> String {
    let guide = include_str!("../../../../docs/postgres.md");
    let block = guide.split("```sql").find(|block| block.contains("CREATE ROLE app_worker"));
    let block = block.and_then(|block| block.split("```").next()).expect("the guide makes roles");
    // Roles belong to the whole server, which other tests use too.
    block.replace("duroxide", schema).replace("app_", &format!("{schema}_"))
}

async fn open_as(schema: &Schema, role: &str) -> Arc<PostgresProvider> {
    let mut options = options_in(schema.folder());
    options.config.user(format!("{}_{role}", schema.name()));
    Arc::new(PostgresProvider::open(options).await.unwrap())
}

/// Runs a few workflows, and returns their client and their node.
async fn run_mix(schema: &Schema, store: Arc<PostgresProvider>) -> (Client, Arc<Runtime>) {
    let store: Arc<dyn Provider> = store;
    let activities = mix::activities(&schema.notes());
    let runtime = node(&store, activities, mix::orchestrations(), mix::options()).await;
    let client = Client::new(store);
    mix::start(&client, 1).await;
    mix::completed(&client, 1).await;
    (client, runtime)
}

async fn assert_healthy(store: &PostgresProvider) {
    let health = store.health().await.unwrap();
    assert!(health.tables.iter().any(|table| table.name == "instance"), "{health:?}");
    assert_eq!(health.intake_rows, 0);
}

/// A role that owns its schema and has no other right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_a_schema_needs_nothing_else() {
    let Some(schema) = Schema::new() else { return };
    let owner = format!("{}_owner", schema.name());
    let roles = format!("CREATE ROLE {owner} LOGIN; CREATE SCHEMA {} AUTHORIZATION {owner}", schema.name());
    schema.admin().await.batch_execute(&roles).await.unwrap();
    let store = open_as(&schema, "owner").await;
    assert_healthy(&store).await;
    let (_, runtime) = run_mix(&schema, store).await;
    runtime.shutdown(None).await;
}

/// The owner makes the tables, a worker works, and a viewer reads and changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_worker_and_viewer_have_what_they_need() {
    let Some(schema) = Schema::new() else { return };
    let admin = schema.admin().await;
    let grants = grants(schema.name());
    let (roles, rest) =
        grants.split_once("-- The owner opens the store once. Then:").expect("the guide says when");
    admin.batch_execute(roles).await.unwrap();
    drop(open_as(&schema, "owner").await);
    admin.batch_execute(rest).await.unwrap();

    let store = open_as(&schema, "worker").await;
    assert_healthy(&store).await;
    let (client, runtime) = run_mix(&schema, store).await;

    let store = open_as(&schema, "viewer").await;
    assert_healthy(&store).await;
    let viewer = Client::new(store);
    assert_eq!(output(ended(&viewer, "Sequence-0").await), "x1234");
    assert_eq!(viewer.list_all_instances().await.unwrap().len(), 7);
    assert!(viewer.read_execution_history("Sequence-0", 1).await.unwrap().len() > 5);
    viewer.start_orchestration("forbidden", "Sequence", "x").await.unwrap_err();
    let status = client.get_orchestration_status("forbidden").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::NotFound), "{status:?}");
    runtime.shutdown(None).await;
}
