//! The conformance suite on SQLite files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_conformance::{conformance_tests, provider_validations::ProviderFactory};
use duroxide_provider::Provider;
use duroxide_sqlite::{SqliteOptions, SqliteProvider};
use rusqlite::Connection;
use tempfile::TempDir;

const ORPHAN_MESSAGE_TTL: Duration = Duration::from_millis(300);

const CORRUPT_HISTORY: &str = "UPDATE history SET data = '{\"Nonsense\":1}'
    WHERE instance = (SELECT id FROM instance WHERE instance_id = ?1)";
/// A lock counts as an attempt of the messages that it holds.
const MAX_ATTEMPT_COUNT: &str =
    "SELECT coalesce(max(attempt_count + ((seq <= extent_up_to AND due_at <= extent_at
        AND hidden_until <= extent_at OR mark = extent_mark) IS TRUE)), 0)
    FROM message JOIN instance ON instance.id = message.instance WHERE instance_id = ?1";
/// Writes as an engine would, with texts that no engine writes. `?1` is the instance.
const INSERT_NONSENSE: [&str; 6] = [
    "INSERT INTO instance (id, instance_id, created_at, updated_at)
        SELECT next, ?1, 0, 0 FROM sequence WHERE true ON CONFLICT (instance_id) DO NOTHING",
    "INSERT OR IGNORE INTO lane (id, activity_name) SELECT 1000, 'Nonsense' WHERE ?1 <> ''",
    "INSERT INTO message (instance, due_at, seq, kind, enqueued_at, data)
        SELECT instance.id, 0, next + 1, 4, 9000000000000000, '{\"Nonsense\":1}'
        FROM instance, sequence WHERE instance_id = ?1",
    "INSERT INTO activity (id, instance, execution_id, activity_id, lane, ready, data)
        SELECT next + 2, instance.id, 1, 1000000, 1000, 1, '{\"Nonsense\":1}'
        FROM instance, sequence WHERE instance_id = ?1",
    // Due at once: the next promotion files the instance where it belongs.
    "UPDATE instance SET wake_at = 1 WHERE instance_id = ?1 AND ready IS NULL AND lock_token IS NULL",
    "UPDATE sequence SET next = next + 3 WHERE ?1 <> ''",
];

/// Opens a store in a new file, and damages it with statements of its own.
#[derive(Default)]
struct SqliteFactory {
    stores: Mutex<Vec<(TempDir, Arc<SqliteProvider>)>>,
}

impl SqliteFactory {
    fn path(&self) -> PathBuf {
        let stores = self.stores.lock().unwrap();
        stores.last().expect("a provider has been created").0.path().join("store.db")
    }

    fn connect(&self) -> Connection {
        let conn = Connection::open(self.path()).unwrap();
        conn.busy_timeout(Duration::from_secs(5)).unwrap();
        conn
    }
}

#[async_trait]
impl ProviderFactory for SqliteFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("store.db").display());
        let options = SqliteOptions { orphan_message_ttl: ORPHAN_MESSAGE_TTL, ..SqliteOptions::default() };
        let provider = Arc::new(SqliteProvider::new(&url, Some(options)).await.unwrap());
        self.stores.lock().unwrap().push((directory, Arc::clone(&provider)));
        provider
    }

    /// A store lengthens leases that end within four commits, so the disk may stall for a quarter of this.
    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        assert!(self.connect().execute(CORRUPT_HISTORY, [instance]).unwrap() > 0);
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.connect().query_row(MAX_ATTEMPT_COUNT, [instance], |row| row.get(0)).unwrap()
    }

    fn orphan_message_ttl(&self) -> Option<Duration> {
        Some(ORPHAN_MESSAGE_TTL)
    }

    async fn insert_undecodable_rows(&self, instance: &str) -> bool {
        let conn = self.connect();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        for sql in INSERT_NONSENSE {
            conn.execute(sql, [instance]).unwrap();
        }
        conn.execute_batch("COMMIT").unwrap();
        true
    }
}

conformance_tests!(SqliteFactory::default());
