//! The store of a cluster: a real one, without threads.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::{ProviderError, memory::MemoryEngine, store::StoreFailure};
use duroxide_store::{Idle, NodeLock, NodeLocks, StoreBuilder, StoreDriver, StoreOptions, StoreProvider};
use tokio::sync::Notify;

use super::time::{RARELY, VirtualTime};
use crate::dice::Dice;

/// Which store a cluster has.
#[derive(Debug, Clone)]
pub(super) enum StoreKind {
    Memory,
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "made by `ClusterBuilder::sqlite`"))]
    SqliteIn(PathBuf),
}

/// Opens a store. It answers no calls until [`drive`] runs.
pub(super) fn open(
    kind: &StoreKind,
    seed: u64,
    time: &VirtualTime,
) -> Result<(StoreProvider, StoreDriver, Arc<Notify>), ProviderError> {
    let builder = match kind {
        StoreKind::Memory => StoreBuilder::new(MemoryEngine::default()).named("memory", "test"),
        StoreKind::SqliteIn(folder) => sqlite(folder, seed),
    };
    let (mut nonces, requested) = (Dice::new(seed, 1), Arc::new(Notify::new()));
    let wake = Arc::clone(&requested);
    let (provider, driver) = builder
        .with_clock(Arc::new(time.clone()))
        .with_nonces(move || nonces.bits())
        .with_options(StoreOptions { shared: false, ..StoreOptions::default() })
        .with_node_locks(NeverExamined)
        .on_request(move || wake.notify_one())
        .stepped()?;
    Ok((provider, driver, requested))
}

/// Runs a store until its provider is dropped.
pub(super) async fn drive(mut driver: StoreDriver, requested: Arc<Notify>, time: VirtualTime) {
    loop {
        match driver.run() {
            Idle::Closed => return,
            Idle::UntilRequest => requested.notified().await,
            Idle::Until(until) | Idle::Gathering(until) => {
                tokio::select! {
                    biased;
                    () = requested.notified() => {}
                    () = sleep_until(&time, until) => {}
                }
            }
        }
    }
}

async fn sleep_until(time: &VirtualTime, until: Timestamp) {
    tokio::time::sleep(until.saturating_since(time.now())).await;
}

#[cfg(feature = "sqlite")]
fn sqlite(folder: &std::path::Path, seed: u64) -> StoreBuilder {
    let url = format!("sqlite:{}", free_path(folder, seed).display());
    StoreBuilder::opening(move || duroxide_sqlite::SqliteEngine::open(&url, Default::default()))
        .named("sqlite", "test")
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_folder: &std::path::Path, _seed: u64) -> StoreBuilder {
    StoreBuilder::new(MemoryEngine::default())
}

/// A path at which no file exists: several clusters may share a folder.
#[cfg(feature = "sqlite")]
fn free_path(folder: &std::path::Path, seed: u64) -> PathBuf {
    let paths = (0..u32::MAX).map(|number| folder.join(format!("cluster-{seed}-{number}.db")));
    paths.into_iter().find(|path| !path.exists()).unwrap_or_default()
}

/// Node locks that are never examined: all nodes are in this process, and the store learns of their end directly.
#[derive(Debug)]
struct NeverExamined;

impl NodeLocks for NeverExamined {
    fn hold(&self, _node: &str) -> Result<NodeLock, StoreFailure> {
        Ok(NodeLock::new(()))
    }

    fn take_over(&self, _node: &str) -> Option<NodeLock> {
        None
    }

    fn gone_nodes(&self) -> Option<Vec<(String, NodeLock)>> {
        Some(Vec::new())
    }

    fn look_interval(&self) -> Duration {
        RARELY
    }

    fn renew_interval(&self) -> Duration {
        RARELY
    }

    fn discard(&self, _node: &str, _lock: NodeLock) {}

    fn has_joining_node(&self, _joined: &BTreeSet<String>, _within: Duration) -> bool {
        false
    }
}
