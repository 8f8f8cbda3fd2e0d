//! S4.29: the conformance suite on plain files.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_conformance::{conformance_tests, provider_validations::ProviderFactory};
use duroxide_fs::{FsOptions, FsProvider};
use duroxide_provider::Provider;
use tempfile::TempDir;

const ORPHAN_MESSAGE_TTL: Duration = Duration::from_millis(300);
const NONSENSE: &str = r#"{"Nonsense":1}"#;

/// Opens a store in a new folder, and damages its files as an editor would.
#[derive(Default)]
struct FsFactory {
    stores: Mutex<Vec<(TempDir, Arc<FsProvider>)>>,
}

impl FsFactory {
    fn provider(&self) -> Arc<FsProvider> {
        Arc::clone(&self.stores.lock().unwrap().last().expect("a provider has been created").1)
    }

    fn folder(&self, instance: &str) -> PathBuf {
        self.provider().folder().join("instances").join(instance)
    }
}

#[async_trait]
impl ProviderFactory for FsFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let folder = tempfile::tempdir().unwrap();
        // Without syncs: slow transactions would lengthen the leases, and the suite waits for the end of leases.
        let options = FsOptions::default().with_sync(false).with_orphan_message_ttl(ORPHAN_MESSAGE_TTL);
        let provider = Arc::new(FsProvider::open(folder.path(), Some(options)).await.unwrap());
        self.stores.lock().unwrap().push((folder, Arc::clone(&provider)));
        provider
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(1_000)
    }

    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(500)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let path = self.folder(instance).join("history-1.jsonl");
        let events = fs::read_to_string(&path).unwrap().lines().count();
        fs::write(&path, format!("{NONSENSE}\n").repeat(events)).unwrap();
        self.provider().reload().await.unwrap();
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let snapshot = self.provider().snapshot().await.unwrap();
        let instance = snapshot.instances.iter().find(|stored| stored.instance == instance);
        instance.map_or(0, |stored| stored.messages.iter().map(|row| row.attempt_count).max().unwrap_or(0))
    }

    async fn insert_undecodable_rows(&self, instance: &str) -> bool {
        let folder = self.folder(instance);
        for queue in ["inbox", "activities"] {
            fs::create_dir_all(folder.join(queue)).unwrap();
            fs::write(folder.join(queue).join("00000000000001000000.json"), NONSENSE).unwrap();
        }
        if !folder.join("instance.json").exists() {
            let record = format!(
                r#"{{"instance":"{instance}","number":1000000,"name":null,"version":null,"parent":null,
                "created_at":0,"updated_at":0,"execution_id":1,"lock":null,"suspect":false,"ready":null,
                "custom_status":null,"kv":{{}},"kv_changes":{{}}}}"#
            );
            fs::write(folder.join("instance.json"), record).unwrap();
        }
        self.provider().reload().await.unwrap();
        true
    }

    fn orphan_message_ttl(&self) -> Option<Duration> {
        Some(ORPHAN_MESSAGE_TTL)
    }
}

conformance_tests!(FsFactory::default());
