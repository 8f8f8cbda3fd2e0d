//! Malformed names, ids and versions are refused at the door.

use std::sync::Arc;

use duroxide::{Client, OrchestrationContext, OrchestrationRegistry, runtime::registry::ActivityRegistry};

use crate::{
    fixture::{File, ended, failure, node, output, quick_options},
    refused,
};

#[tokio::test]
async fn starts_with_malformed_names_are_refused_and_store_nothing() {
    let file = File::new();
    let client = Client::new(file.open().await);
    refused(client.start_orchestration("", "Echo", "x").await, "instance id is empty");
    refused(client.start_orchestration("i", "", "x").await, "orchestration name is empty");
    for reserved in ["sub::1", "parent::sub::1"] {
        let text = format!("instance id '{reserved}' uses the reserved sub-orchestration marker 'sub::'");
        refused(client.start_orchestration(reserved, "Echo", "x").await, &text);
    }
    for version in ["", "1", "one", "1.0.0.0"] {
        let text = format!("'{version}' is not a semantic version");
        refused(client.start_orchestration_versioned("i", "Echo", version, "x").await, &text);
    }
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);
}

/// Names are opaque: every name is returned unchanged.
#[tokio::test]
async fn unusual_ids_are_just_ids() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations =
        OrchestrationRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    for id in ["'; DROP TABLE instance; --", "%_\\", "ключ", "🫖", "a\nb", " ", "\u{0}"] {
        client.start_orchestration(id, "Echo", id).await.unwrap();
        assert_eq!(output(ended(&client, id).await), id);
    }
    runtime.shutdown(None).await;
}

/// An explicit child id with the reserved marker is an error of the call, with nothing recorded.
#[tokio::test]
async fn a_reserved_child_id_is_an_error_of_the_call() {
    async fn parent(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
        ctx.schedule_sub_orchestration_with_id("Echo", "sub::7", "x").await
    }
    async fn detaching(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
        ctx.schedule_orchestration("Echo", "a::sub::7", "x");
        Ok(String::new())
    }
    let file = File::new();
    let store = file.open().await;
    let orchestrations =
        OrchestrationRegistry::builder().register("Parent", parent).register("Detaching", detaching).build();
    let runtime = node(&store, Arc::new(ActivityRegistry::default()), orchestrations, quick_options()).await;
    let client = Client::new(store);

    client.start_orchestration("parent", "Parent", "").await.unwrap();
    let details = failure(ended(&client, "parent").await);
    let text = "sub-orchestration instance id 'sub::7' starts with the reserved marker 'sub::'";
    assert!(details.display_message().starts_with(text), "{details:?}");
    assert_eq!(client.read_execution_history("parent", 1).await.unwrap().len(), 2, "started, failed");

    client.start_orchestration("detaching", "Detaching", "").await.unwrap();
    let details = failure(ended(&client, "detaching").await);
    let text = "orchestration panicked: detached orchestration instance id 'a::sub::7' uses the reserved";
    assert!(details.display_message().starts_with(text), "{details:?}");
    runtime.shutdown(None).await;
}
