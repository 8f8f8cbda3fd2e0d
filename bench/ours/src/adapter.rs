//! How this implementation's stores are opened. Another store is one more name and one more arm.

use std::{path::Path, sync::Arc};

use duroxide::providers::{
    Provider,
    sqlite::{SqliteOptions, SqliteProvider, SqliteSynchronous},
};
use duroxide_store::MemoryProvider;

/// Who is measured.
pub const IMPLEMENTATION: &str = "ours";

/// The stores that can be chosen; the first one is the default.
pub const STORES: &[&str] = &["full", "normal", "memory"];

/// Opens a store; those on disk use `file`, which may exist already.
pub async fn open(store: &str, file: &Path) -> Result<Arc<dyn Provider>, String> {
    match store {
        "full" => sqlite(file, SqliteSynchronous::Full).await,
        "normal" => sqlite(file, SqliteSynchronous::Normal).await,
        "memory" => Ok(Arc::new(MemoryProvider::new())),
        other => Err(format!("there is no store {other}")),
    }
}

/// What `synchronous` is. Opening sets it and fails if it does not read back as it was set, so the name is the proof.
pub fn synchronous(store: &str) -> &'static str {
    match store {
        "full" => "FULL (read back when opened)",
        "normal" => "NORMAL (read back when opened)",
        _ => "none",
    }
}

async fn sqlite(file: &Path, synchronous: SqliteSynchronous) -> Result<Arc<dyn Provider>, String> {
    let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
    let url = format!("sqlite:{}", file.display());
    match SqliteProvider::new(&url, Some(options)).await {
        Ok(provider) => Ok(Arc::new(provider)),
        Err(error) => Err(format!("cannot open {url}: {error}")),
    }
}
