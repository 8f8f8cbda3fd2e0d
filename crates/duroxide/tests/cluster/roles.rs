//! Roles with no more rights than they need, granted as in docs/postgres.md.

use std::sync::Arc;

use duroxide::{Client, OrchestrationStatus, providers::Provider};

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

async fn open_as(schema: &Schema, role: &str) -> Arc<dyn Provider> {
    let mut options = options_in(schema.folder());
    options.config.user(format!("{}_{role}", schema.name()));
    schema.open_with(&options).await
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
    let activities = mix::activities(&schema.notes());
    let runtime = node(&store, activities, mix::orchestrations(), mix::options()).await;
    let client = Client::new(store);
    mix::start(&client, 1).await;
    mix::completed(&client, 1).await;

    let viewer = Client::new(open_as(&schema, "viewer").await);
    assert_eq!(output(ended(&viewer, "Sequence-0").await), "x1234");
    assert_eq!(viewer.list_all_instances().await.unwrap().len(), 7);
    assert!(viewer.read_execution_history("Sequence-0", 1).await.unwrap().len() > 5);
    viewer.start_orchestration("forbidden", "Sequence", "x").await.unwrap_err();
    let status = client.get_orchestration_status("forbidden").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::NotFound), "{status:?}");
    runtime.shutdown(None).await;
}
