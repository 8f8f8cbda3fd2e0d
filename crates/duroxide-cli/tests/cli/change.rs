//! Commands that change instances.

use std::{sync::Arc, time::Duration};

use duroxide::{
    prelude::*,
    providers::sqlite::{SqliteOptions, SqliteProvider},
};

use crate::fixture::{LONG, Shop, until};

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_started_and_awaited() {
    let mut shop = Shop::open().await;
    shop.cli(&["start", "Echo", "new-1", "tea"]).printed(&["new-1: started"]);
    shop.cli(&["start", "Echo", "new-1", "tea"]).printed(&["exists already, with the same name and input"]);
    shop.cli(&["start", "Echo", "new-1", "coffee"]).ended(4, "with another name or input");
    shop.cli(&["start", "Echo", "new-2", "tea", "--wait"]).printed(&["new-2: completed: tea"]);
    let failed = shop.cli(&["start", "Fail", "new-3", "no tea", "--wait"]);
    failed.ended(1, "");
    assert!(failed.stdout.contains("failed: no tea"), "{failed:?}");
    shop.cli(&["start", "Inbox", "new-4", "--wait", "--timeout", "10ms"]).ended(1, "explain");
    shop.cli(&["start", "Echo", "new-5", "--handler-version", "1.x"]).ended(2, "not a semantic version");
    shop.cli(&["start", "Echo", "new-5", "--handler-version", "1.0.0", "--wait"]).printed(&["completed"]);
    let ran =
        shop.cli_with_input(&["start", "Echo", "new-6", "--file", "-", "--wait", "-o", "json"], "from stdin");
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["result"]["output"], "from stdin");
    shop.cli(&["start", "Echo", "new-7", "--file", "/no/such/file"]).ended(1, "cannot read the payload");
    assert_eq!(shop.cli(&["start", "Echo", "new-8", "-o", "ids"]).stdout, "new-8\n");
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_messages_reach_their_instances() {
    let mut shop = Shop::open().await;
    shop.cli(&["enqueue", "inbox-1", "mail", "a letter"]).printed(&["enqueued"]);
    let ended = shop.client.wait_for_orchestration("inbox-1", LONG).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Completed { output, .. } if output == "a letter"));

    let lost = shop.cli(&["raise", "waiting-1", "approval", "Bob"]);
    lost.printed(&["raised"]).ended(0, "waits for Approval: event approval is lost");
    let ran = shop.cli_with_input(&["raise", "-", "Approval", "Ada"], "waiting-1\nchild-1\n");
    assert_eq!(ran.stdout.matches("raised").count(), 2, "{ran:?}");
    assert_eq!(ran.stderr, "");
    for ended in ["waiting-1", "parent-1"] {
        let status = shop.client.wait_for_orchestration(ended, LONG).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Completed { .. }), "{status:?}");
    }
    shop.cli(&["raise", "waiting-1", "Approval"]).ended(4, "has ended");
    shop.cli(&["enqueue", "nobody", "mail"]).ended(3, "there is no instance");
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_cancelled_by_id_and_by_criteria() {
    let mut shop = Shop::open().await;
    shop.cli(&["cancel", "waiting-1", "--dry-run"]).printed(&["would be cancelled"]);
    shop.cli(&["cancel", "waiting-1", "--reason", "a test", "--yes"]).printed(&["cancellation requested"]);
    let ended = shop.client.wait_for_orchestration("waiting-1", LONG).await.unwrap();
    assert!(
        matches!(ended, OrchestrationStatus::Failed { details, .. } if details.to_string().contains("a test"))
    );
    shop.cli(&["cancel", "waiting-1", "--yes"]).ended(4, "has ended");
    let ran = shop.cli(&["cancel", "--name", "Parent", "--deadline", "1s", "--yes", "-o", "ids"]);
    assert_eq!(ran.printed(&[]).stdout, "parent-1\n");
    shop.client.wait_for_orchestration("child-1", LONG).await.unwrap();
    shop.cli(&["cancel", "--yes"]).ended(2, "no instances are named");
    shop.cli(&["cancel", "a", "--name", "b", "--yes"]).ended(2, "both ids and criteria");
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_deleted_with_consent() {
    let shop = Shop::closed().await;
    shop.cli(&["delete", "echo-1"]).ended(4, "add --yes");
    shop.cli(&["delete", "echo-1", "--dry-run"]).printed(&["would be deleted (Completed, 0 descendants)"]);
    shop.cli(&["delete", "waiting-1", "--dry-run"]).ended(4, "still running");
    shop.cli(&["delete", "parent-1", "--force", "--dry-run"]).printed(&["1 descendants"]);
    shop.cli(&["delete", "child-1", "--dry-run"]).ended(4, "child of 'parent-1'");
    assert_eq!(shop.cli(&["list", "-o", "ids"]).lines().len(), 8, "nothing is gone yet");

    shop.cli(&["delete", "echo-1", "--yes"]).printed(&["deleted: 1 instances, 2 events"]);
    shop.cli(&["delete", "echo-1", "--yes"]).ended(3, "there is no instance");
    shop.cli(&["delete", "waiting-1", "--yes"]).ended(4, "--force");
    shop.cli(&["delete", "child-1", "--yes"]).ended(4, "delete the root");
    shop.cli(&["delete", "parent-1", "--yes", "--force"]).printed(&["deleted: 2 instances"]);
    let json = shop.cli(&["delete", "--status", "completed", "--yes", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (json[0]["id"].as_str(), json[0]["result"]["executions"].as_u64()),
        (Some("count-1"), Some(4))
    );

    // An instance that no node has begun has nothing to delete.
    for command in [&["delete", "pending-1", "--yes", "--force"][..], &["delete", "pending-1", "--dry-run"]] {
        shop.cli(command).ended(4, "no node has begun instance 'pending-1'");
    }
    shop.cli(&["prune", "pending-1", "--keep-last", "1", "--yes"]).ended(4, "no node has begun");

    // An unknown id does not stop the others.
    let ran = shop.cli_with_input(&["delete", "-", "--yes", "-o", "ids"], "nobody\nfailed-1\n");
    ran.ended(3, "there is no instance 'nobody'");
    assert_eq!(ran.stdout, "failed-1\n");
    shop.cli_with_input(&["delete", "-", "--yes"], "").printed(&["nothing to do"]);
    let left = shop.cli(&["list", "-o", "ids"]);
    assert_eq!(left.lines().len(), 3, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_executions_are_pruned() {
    let shop = Shop::closed().await;
    shop.cli(&["prune", "count-1", "--yes"]).ended(2, "--keep-last");
    shop.cli(&["prune", "count-1", "--keep-last", "2"]).ended(4, "add --yes");
    shop.cli(&["prune", "count-1", "--keep-last", "2", "--dry-run"])
        .printed(&["3 executions before the current one"]);
    shop.cli(&["prune", "count-1", "--ended-before", "1h", "--yes"]).printed(&["removed 0 executions"]);
    shop.cli(&["prune", "count-1", "--keep-last", "2", "--yes"]).printed(&["removed 2 executions"]);
    assert_eq!(shop.json(&["show", "count-1"])["executions_total"], 2);
    shop.cli(&["prune", "nobody", "--keep-last", "2", "--yes"]).ended(3, "there is no instance");
}

/// A message for an instance that is never started becomes a dead letter.
async fn dead_letter(shop: &Shop, instance: &str) -> String {
    let options = SqliteOptions { orphan_message_ttl: Duration::from_millis(1), ..Default::default() };
    let store = Arc::new(SqliteProvider::new(&shop.url(), Some(options)).await.unwrap());
    let client = Client::new(store.clone());
    client.raise_event(instance, "Boo", "hello?").await.unwrap();
    let (activities, orchestrations) = crate::fixture::handlers();
    let runtime = Runtime::start_with_store(store, activities, orchestrations).await;
    until(async || !client.list_dead_letters(None).await.unwrap().is_empty()).await;
    runtime.shutdown(None).await;
    client.list_dead_letters(None).await.unwrap()[0].id.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_retried_and_discarded() {
    let shop = Shop::closed().await;
    shop.cli(&["dead-letters", "list"]).printed(&["no dead letters"]);
    let id = dead_letter(&shop, "ghost-1").await;
    shop.cli(&["dead-letters", "list"]).printed(&["ghost-1", "orchestrator", "no such instance", "hello?"]);
    shop.cli(&["dead-letters", "list", "--instance", "other"]).printed(&["no dead letters"]);
    assert_eq!(shop.json(&["dead-letters", "list"])[0]["instance"], "ghost-1");
    assert_eq!(shop.cli(&["dead-letters", "list", "-o", "ids"]).stdout, format!("{id}\n"));

    shop.cli(&["dead-letters", "retry", &id]).printed(&["is in its queue again"]);
    shop.cli(&["dead-letters", "retry", &id]).ended(3, "there is no dead letter");
    let id = dead_letter(&shop, "ghost-2").await;
    shop.cli(&["dead-letters", "discard", &id]).ended(4, "add --yes");
    shop.cli(&["dead-letters", "discard", &id, "--dry-run"])
        .printed(&["would be discarded: no such instance"]);
    shop.cli_with_input(&["dead-letters", "discard", "-", "--yes"], &id).printed(&["discarded"]);
    shop.cli(&["dead-letters", "discard", &id, "--yes"]).ended(3, "there is no dead letter");
    shop.cli(&["dead-letters", "discard", &id, "--dry-run"]).ended(3, "there is no dead letter");
}
