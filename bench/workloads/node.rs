//! A store, a runtime on it, and a client.

use std::{path::Path, sync::Arc};

use duroxide::{Client, runtime::Runtime};

use super::{handlers, setting::Setting};
use crate::adapter;

/// The node of this process: an open store with a runtime on it.
pub struct Node {
    pub client: Client,
    runtime: Arc<Runtime>,
}

impl Node {
    /// Opens the store and starts a runtime that knows all handlers.
    pub async fn start(setting: &Setting, file: &Path) -> Result<Self, String> {
        let store = adapter::open(&setting.store, file).await?;
        let client = Client::new(store.clone());
        let runtime = Runtime::start_with_options(
            store,
            handlers::activities(),
            handlers::orchestrations(),
            setting.runtime_options(),
        )
        .await;
        Ok(Self { client, runtime })
    }

    /// Stops the runtime; its unfinished work is left for the next one.
    pub async fn stop(self) {
        self.runtime.shutdown(Some(1_000)).await;
    }
}
