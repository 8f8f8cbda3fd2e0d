//! How this implementation's stores are opened.

use std::{path::Path, sync::Arc};

use duroxide::{
    OrchestrationContext,
    providers::{Provider, sqlite::SqliteProvider},
};

use crate::bench;

/// The name of the measured implementation.
pub const IMPLEMENTATION: &str = "published";

/// The stores that can be chosen; the first one is the default.
pub const STORES: &[&str] = &["default", "memory"];

/// Opens a store; those on disk use `file`, which may exist already.
pub async fn open(store: &str, file: &Path) -> Result<Arc<dyn Provider>, String> {
    let opened = match store {
        "default" => {
            // It opens existing files only.
            std::fs::OpenOptions::new().create(true).append(true).open(file).map_err(|e| e.to_string())?;
            SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await
        }
        "memory" => SqliteProvider::new_in_memory().await,
        other => return Err(format!("there is no store {other}")),
    };
    match opened {
        Ok(provider) => Ok(Arc::new(provider)),
        Err(error) => Err(format!("cannot open the store {store}: {error}")),
    }
}

/// The value of `synchronous`. The public API neither sets nor shows it; count the syncs with `strace` instead.
pub fn synchronous(store: &str) -> &'static str {
    match store {
        "default" => "as it comes (not readable)",
        _ => "none",
    }
}

/// One more, in an activity: there are no steps that run in place.
pub async fn incremented_in_place(ctx: &OrchestrationContext, number: u64) -> Result<u64, String> {
    bench::incremented(ctx, number).await
}
