//! Files that are not a store of ours: refused with a clear error, and left as they were.

use std::fs;

use duroxide::providers::{ProviderError, sqlite::SqliteProvider};

/// Opening must fail with a permanent error that contains this text.
async fn refusal(url: &str) -> String {
    let error: ProviderError =
        SqliteProvider::new(url, None).await.map(drop).expect_err("it must be refused");
    assert!(!error.is_retryable(), "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    let text = "Dear Ada, this is not a database. ".repeat(100);
    fs::write(&path, &text).unwrap();

    let message = refusal(&format!("sqlite:{}", path.display())).await;

    assert!(message.contains("database"), "{message}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/such/folder/store.db");
    let message = refusal(&format!("sqlite:{}", path.display())).await;
    assert!(message.contains("open"), "{message}");
}

#[tokio::test]
async fn an_address_that_is_not_sqlite_is_a_clear_error() {
    for url in ["postgres://localhost/db", "", "sqlite:"] {
        let message = refusal(url).await;
        assert!(!message.is_empty());
    }
}

/// An empty file is a new store.
#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let file = tempfile::NamedTempFile::new().unwrap();
    SqliteProvider::new(&format!("sqlite:{}", file.path().display()), None).await.unwrap();
}
