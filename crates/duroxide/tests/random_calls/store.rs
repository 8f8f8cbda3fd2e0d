//! A store of either kind, whose whole content can be read.

use std::{sync::Arc, time::Duration};

use duroxide::providers::{
    Provider,
    sqlite::{SqliteOptions, SqliteProvider},
};
use duroxide_provider::{memory::MemoryOptions, store::StoreSnapshot};
use duroxide_store::{MemoryProvider, SystemClock};

use crate::fixture::File;

/// Messages for instances that are never started soon become dead letters.
const ORPHAN_TTL: Duration = Duration::from_millis(100);

pub enum Store {
    Memory(Arc<MemoryProvider>),
    Sqlite(Arc<SqliteProvider>, File),
}

impl Store {
    pub fn memory() -> Self {
        let options = MemoryOptions { orphan_message_ttl: ORPHAN_TTL };
        Self::Memory(Arc::new(MemoryProvider::start(options, Arc::new(SystemClock)).unwrap()))
    }

    pub async fn sqlite() -> Self {
        let file = File::new();
        let options = SqliteOptions { orphan_message_ttl: ORPHAN_TTL, ..SqliteOptions::default() };
        let provider = SqliteProvider::new(&file.url(), Some(options)).await.unwrap();
        Self::Sqlite(Arc::new(provider), file)
    }

    pub fn provider(&self) -> Arc<dyn Provider> {
        match self {
            Self::Memory(provider) => provider.clone(),
            Self::Sqlite(provider, _) => provider.clone(),
        }
    }

    pub async fn snapshot(&self) -> StoreSnapshot {
        match self {
            Self::Memory(provider) => provider.snapshot().await.unwrap(),
            Self::Sqlite(_, file) => file.snapshot(),
        }
    }
}
