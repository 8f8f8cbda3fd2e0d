//! [`FsProvider`] and its options.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use duroxide_peek_lock::{MemoryOptions, PeekLockProvider};
use duroxide_provider::{ProviderError, store::StoreSnapshot};
use duroxide_store::impl_provider_by_delegation;
use tokio::sync::oneshot;

use crate::{FsError, store::FsStore};

/// Options of a [`FsProvider`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsOptions {
    /// Whether every change is synced to the disk before its call returns. Without it an acknowledged call survives the end
    /// of the process, but not a power failure.
    pub sync: bool,
    /// How long a message waits for an instance that was never started, before it becomes a dead letter.
    pub orphan_message_ttl: Duration,
}

impl Default for FsOptions {
    fn default() -> Self {
        Self { sync: true, orphan_message_ttl: MemoryOptions::default().orphan_message_ttl }
    }
}

impl FsOptions {
    /// Sets [`Self::sync`].
    #[must_use]
    pub fn with_sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Sets [`Self::orphan_message_ttl`].
    #[must_use]
    pub fn with_orphan_message_ttl(mut self, ttl: Duration) -> Self {
        self.orphan_message_ttl = ttl;
        self
    }
}

/// A provider on a folder of plain files, for one process at a time.
#[derive(Debug)]
pub struct FsProvider {
    store: PeekLockProvider,
    folder: PathBuf,
}

impl_provider_by_delegation!(FsProvider, store);

impl FsProvider {
    /// Opens the store in a folder, creates the folder if it is missing, and finishes a round that a crash interrupted.
    ///
    /// # Errors
    /// [`FsError::InUse`] if the store is open elsewhere, [`FsError::NotAStore`] if the folder has other content,
    /// [`FsError::Damaged`] if a file cannot be decoded.
    pub async fn open(folder: impl AsRef<Path>, options: Option<FsOptions>) -> Result<Self, FsError> {
        let (folder, options) = (folder.as_ref().to_owned(), options.unwrap_or_default());
        let (sender, opened) = oneshot::channel();
        let open = move || drop(sender.send(Self::open_now(folder, &options)));
        let no_thread = |error: std::io::Error| FsError::Store { message: error.to_string() };
        thread::Builder::new().name("duroxide-fs-open".to_owned()).spawn(open).map_err(no_thread)?;
        let ended = |_| FsError::Store { message: "the thread that opens the store ended".to_owned() };
        opened.await.map_err(ended)?
    }

    fn open_now(folder: PathBuf, options: &FsOptions) -> Result<Self, FsError> {
        let store = FsStore::open(&folder, options.sync)?;
        let rules = MemoryOptions { orphan_message_ttl: options.orphan_message_ttl };
        let store = PeekLockProvider::open(store, rules, "fs", env!("CARGO_PKG_VERSION"))?;
        Ok(Self { store, folder })
    }

    /// The folder of the store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the files again, after they were changed by hand. A change to an instance whose turn is running may be lost.
    ///
    /// # Errors
    /// If a file is damaged.
    pub async fn reload(&self) -> Result<(), ProviderError> {
        self.store.reload().await
    }

    /// Everything in the store, for invariant checks and comparisons.
    ///
    /// # Errors
    /// If the store has ended.
    pub async fn snapshot(&self) -> Result<StoreSnapshot, ProviderError> {
        self.store.snapshot().await
    }
}
