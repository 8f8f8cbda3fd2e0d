//! Files that are no store: a clear error, and not one byte of them is changed.

use std::{fs, path::Path};

use duroxide_sqlite::{SqliteEngine, SqliteError, SqliteOptions};
use rusqlite::Connection;

use crate::fixture::Store;

fn open(path: &Path) -> Result<SqliteEngine, SqliteError> {
    SqliteEngine::open(&format!("sqlite:{}", path.display()), SqliteOptions::default())
}

/// Opens a file that must be refused and not changed.
fn refused(path: &Path) -> SqliteError {
    let before = fs::read(path).unwrap();
    let error = open(path).unwrap_err();
    assert_eq!(fs::read(path).unwrap(), before, "the file was changed");
    assert!(!error.retryable, "{error}");
    assert!(error.message.contains(&path.display().to_string()), "{error}");
    error
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "not a database, but long enough to look at. ".repeat(100)).unwrap();
    assert!(refused(&path).message.contains("not a SQLite database"));
}

#[test]
fn another_programs_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE invoice (id INTEGER)").unwrap();
    conn.close().unwrap();
    assert!(refused(&path).message.contains("another program"));

    Connection::open(&path).unwrap().pragma_update(None, "application_id", 42).unwrap();
    assert!(refused(&path).message.contains("application_id 0x2a"));
}

/// Its write-ahead log is not folded into it either.
#[test]
fn another_programs_log_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE invoice (id INTEGER)").unwrap();
    // The copy is the state after a crash: the table is only in the log.
    let copy = directory.path().join("crashed.db");
    fs::copy(&path, &copy).unwrap();
    let log = directory.path().join("crashed.db-wal");
    fs::copy(directory.path().join("other.db-wal"), &log).unwrap();
    let before = fs::read(&log).unwrap();
    refused(&copy);
    assert_eq!(fs::read(&log).unwrap(), before);
}

#[test]
fn a_store_of_a_newer_schema_is_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    drop(Store::file(&path));
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let message = refused(&path).message;
    assert!(message.contains("newer duroxide (schema 99") && message.contains("upgrade"), "{message}");
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let error = open(&directory.path().join("missing/store.db")).unwrap_err();
    assert!(error.message.contains("missing does not exist; create it first"), "{error}");
    assert!(!error.retryable);
}

#[test]
fn a_directory_is_no_store() {
    let directory = tempfile::tempdir().unwrap();
    assert!(open(directory.path()).unwrap_err().message.contains("it is a directory"));
}

#[test]
fn a_missing_file_is_made_only_if_the_url_allows_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let url = format!("sqlite:{}?mode=rw", path.display());
    let error = SqliteEngine::open(&url, SqliteOptions::default()).unwrap_err();
    assert!(error.message.contains("no such file"), "{error}");
    assert!(!path.exists());
    open(&path).unwrap();
    SqliteEngine::open(&url, SqliteOptions::default()).unwrap();
}

/// The superuser ignores permissions, so the test does nothing then.
#[test]
fn a_read_only_file_is_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    drop(Store::file(&path));
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return;
    }
    assert!(refused(&path).message.contains("read-only; make the file"));
}

/// A file that was cut off is an error of the open or of the first read, never a panic.
#[test]
fn a_truncated_store_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.send(&crate::fixture::start("order-1"));
    drop(store);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = open(&path).map(|_| ()).unwrap_err();
    assert!(!error.retryable, "{error}");
}
