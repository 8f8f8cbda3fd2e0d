//! The provider over SQLite: its public calls, and several providers on one file.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{path::Path, time::Duration};

use duroxide_core::WorkItem;
use duroxide_provider::{NodeAnnouncement, Provider, TagFilter};
use duroxide_sqlite::{SqliteError, SqliteOptions, SqliteProvider, SqliteSynchronous};

const LEASE: Duration = Duration::from_secs(5);
/// Longer than any of these tests may take; the awaited signals come at once.
const LONG: Duration = Duration::from_secs(60);

async fn open(path: &Path) -> SqliteProvider {
    SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap()
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Pay".to_owned(),
        input: "secret".to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "order-1".to_owned(),
        execution_id: 1,
        id,
        name: "Charge".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

/// A13: name, version, management, and that it is `Send + Sync`.
#[tokio::test]
async fn a_provider_has_a_name_and_a_version() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let provider = SqliteProvider::new_in_memory().await.unwrap();
    shared(&provider);
    assert_eq!((provider.name(), provider.version()), ("sqlite", env!("CARGO_PKG_VERSION")));
    assert!(provider.as_management_capability().is_some());
    assert!(provider.commits_rounds() && provider.serves_batches());
}

/// A17.6
#[test]
fn options_are_safe_by_default() {
    let options = SqliteOptions::default();
    assert_eq!(options.synchronous, SqliteSynchronous::Full);
    assert_eq!(options.orphan_message_ttl, Duration::from_secs(60));
}

/// Two stores in memory are two stores.
#[tokio::test]
async fn stores_in_memory_are_private() {
    let one = SqliteProvider::new_in_memory_with_options(None).await.unwrap();
    let other = SqliteProvider::new("sqlite::memory:", None).await.unwrap();
    one.enqueue_for_orchestrator(start("order-1"), None).await.unwrap();
    assert!(other.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none());
    assert!(one.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_some());
}

/// A provider that was dropped has let the file go, and another finds everything in it.
#[tokio::test]
async fn a_dropped_provider_leaves_a_file_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let provider = open(&path).await;
    provider.enqueue_for_orchestrator(start("order-1"), None).await.unwrap();
    drop(provider);
    assert!(!directory.path().join("store.db-wal").exists(), "the last connection folds the log in");

    let provider = open(&path).await;
    let (item, _, attempts) =
        provider.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().unwrap();
    assert_eq!((item.instance.as_str(), item.version.as_str(), attempts), ("order-1", "unknown", 1));
}

/// Two providers on one file never claim the same item, and a fetch that waits in one is woken by the other's commit.
#[tokio::test]
async fn two_providers_on_one_file_share_locks_and_wake_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let one = open(&path).await;
    let other = open(&path).await;
    let tags = TagFilter::default_only();

    let waiting = other.fetch_orchestration_item(LEASE, LONG, None);
    let sending = one.enqueue_for_orchestrator(start("order-1"), None);
    let (fetched, sent) = tokio::join!(waiting, sending);
    sent.unwrap();
    assert_eq!(fetched.unwrap().unwrap().0.instance, "order-1");
    assert!(one.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none());

    let waiting = other.fetch_work_item(LEASE, LONG, None, &tags);
    let sending = one.enqueue_for_worker(activity(2));
    let (fetched, sent) = tokio::join!(waiting, sending);
    sent.unwrap();
    let (item, token, _) = fetched.unwrap().unwrap();
    assert_eq!(item, activity(2));
    one.ack_work_item(&token, None).await.unwrap();
    assert!(other.renew_work_item_lock(&token, LEASE).await.unwrap_err().is_lock_lost());
}

/// After a checkpoint the file alone holds everything.
#[tokio::test]
async fn a_checkpoint_moves_the_log_into_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let provider = open(&path).await;
    provider.enqueue_for_orchestrator(start("order-1"), None).await.unwrap();
    provider.checkpoint().await.unwrap();
    let copy = directory.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let copied = open(&copy).await;
    assert!(copied.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_some());

    SqliteProvider::new_in_memory().await.unwrap().checkpoint().await.unwrap();
}

/// A dump names queued and locked items, and shows no payload.
#[tokio::test]
async fn a_dump_shows_the_queues_without_payloads() {
    let provider = SqliteProvider::new_in_memory().await.unwrap();
    provider.enqueue_for_orchestrator(start("order-1"), None).await.unwrap();
    provider.enqueue_for_worker(activity(2)).await.unwrap();
    provider.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().unwrap();
    let dump = provider.debug_dump().await;
    for text in ["1 instances", "order-1", "locked until", "1 attempts", "activity 2"] {
        assert!(dump.contains(text), "{text} is not in:\n{dump}");
    }
    assert!(!dump.contains("secret"), "{dump}");
}

/// A store that cannot be opened is a typed error that names the remedy.
#[tokio::test]
async fn a_store_that_cannot_be_opened_is_a_clear_error() {
    fn error<E: std::error::Error + Send + Sync + 'static>(error: E) -> String {
        error.to_string()
    }
    let refused: SqliteError = SqliteProvider::new("postgres://x", None).await.unwrap_err();
    assert_eq!(refused.operation, "open");
    assert!(!refused.is_retryable());
    assert!(error(refused).contains("expected sqlite:path"));
}

fn named(name: &str) -> NodeAnnouncement {
    NodeAnnouncement { name: name.to_owned(), ..NodeAnnouncement::default() }
}

fn node_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.contains("-node-")).collect()
}

/// D10: the nodes of one file find each other however its path was spelled.
#[cfg(unix)]
#[tokio::test]
async fn the_files_of_nodes_are_next_to_the_real_file() {
    let (real, links) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, link) = (real.path().join("store.db"), links.path().join("link.db"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let by_link = open(&link).await;
    let by_path = open(&path).await;
    let by_uri = SqliteProvider::new(&format!("sqlite:file://{}", link.display()), None).await.unwrap();
    let mut held = Vec::new();
    for (provider, name) in [(&by_link, "a"), (&by_path, "b"), (&by_uri, "c")] {
        held.push(provider.join_node(&named(name)).await.unwrap());
    }
    let mut found = node_files(real.path());
    found.sort();
    assert_eq!(found, ["store.db-node-a", "store.db-node-b", "store.db-node-c"]);
    assert!(node_files(links.path()).is_empty());
}

/// Another process holds the write lock for longer than anyone waits, so that the node can neither join nor be ended.
#[tokio::test]
async fn a_node_that_could_not_join_a_locked_store_joins_when_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let provider = open(&path).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = provider.join_node(&named("own")).await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    assert_eq!(node_files(folder.path()).len(), 1, "its lock shows that it is there");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(provider.join_node(&named("own")).await.unwrap().is_some());
    drop(provider);
}
