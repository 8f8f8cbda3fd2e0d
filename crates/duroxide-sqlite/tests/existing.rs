//! Opening an existing store: nothing is made, nothing is upgraded, and a reader changes nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{fs, path::Path, time::Duration};

use duroxide_core::WorkItem;
use duroxide_provider::{NodeAnnouncement, Provider};
use duroxide_sqlite::{SqliteError, SqliteProvider};
use rusqlite::Connection;

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn message(instance: &str) -> WorkItem {
    WorkItem::QueueMessage {
        instance: instance.to_owned(),
        name: "orders".to_owned(),
        data: "teapot".to_owned(),
    }
}

/// Both ways to open a store refuse this one, and do not change the file.
async fn refused(path: &Path) -> SqliteError {
    let before = fs::read(path).ok();
    let error = SqliteProvider::open_read_only(&url(path)).await.unwrap_err();
    let same = SqliteProvider::open_existing(&url(path), None).await.unwrap_err();
    assert_eq!(error, same);
    assert_eq!(fs::read(path).ok(), before, "the file was changed");
    assert!(!error.retryable, "{error}");
    error
}

#[tokio::test]
async fn a_missing_store_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.db");
    assert!(refused(&path).await.message.contains("no such file"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let error = SqliteProvider::open_read_only("sqlite::memory:").await.unwrap_err();
    assert!(error.message.contains("name a file"), "{error}");
}

#[tokio::test]
async fn an_empty_file_does_not_become_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.db");
    fs::write(&path, "").unwrap();
    assert!(refused(&path).await.message.contains("it is empty"));
}

#[tokio::test]
async fn an_older_store_is_not_upgraded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("older.db");
    drop(SqliteProvider::new(&url(&path), None).await.unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 3).unwrap();
    let error = refused(&path).await;
    assert!(error.message.contains("older duroxide (schema 3"), "{error}");
}

#[tokio::test]
async fn a_reader_sees_what_others_write_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.db");
    let writer = SqliteProvider::new(&url(&path), None).await.unwrap();
    let reader = SqliteProvider::open_read_only(&url(&path)).await.unwrap();
    let admin = reader.as_management_capability().unwrap();
    assert_eq!(admin.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    writer.enqueue_for_orchestrator(message("a"), None).await.unwrap();
    assert_eq!(admin.get_queue_depths().await.unwrap().orchestrator_queue, 1);

    let error = reader.enqueue_for_orchestrator(message("b"), None).await.unwrap_err();
    assert!(error.message.contains("reading only") && !error.retryable, "{error}");
    let error = reader.join_node(&NodeAnnouncement::default()).await.unwrap_err();
    assert!(error.message.contains("reading only"), "{error}");
    assert_eq!(reader.snapshot().await.unwrap(), writer.snapshot().await.unwrap());
}

#[tokio::test]
async fn an_existing_store_is_opened_for_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orders.db");
    drop(SqliteProvider::new(&url(&path), None).await.unwrap());
    let store = SqliteProvider::open_existing(&url(&path), None).await.unwrap();
    store.enqueue_for_orchestrator(message("a"), Some(Duration::from_secs(60))).await.unwrap();
    assert_eq!(store.snapshot().await.unwrap().instances.len(), 1);
}
