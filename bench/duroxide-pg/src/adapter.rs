//! How this implementation's store is opened.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
};

use duroxide::{OrchestrationContext, providers::Provider};
use duroxide_pg::PostgresProvider;

use crate::bench;

/// The name of the measured implementation.
pub const IMPLEMENTATION: &str = "duroxide-pg";

/// The stores that can be chosen.
pub const STORES: &[&str] = &["postgres"];

/// Says where the database is, as a URL.
const POSTGRES_URL: &str = "DUROXIDE_BENCH_POSTGRES";

/// Opens a schema for each file: the same file is the same store.
pub async fn open(_store: &str, file: &Path) -> Result<Arc<dyn Provider>, String> {
    let url =
        std::env::var(POSTGRES_URL).map_err(|_| format!("{POSTGRES_URL} must say where the database is"))?;
    let mut hasher = DefaultHasher::new();
    file.hash(&mut hasher);
    let schema = format!("bench_{:016x}", hasher.finish());
    match PostgresProvider::new_with_schema(&url, Some(&schema)).await {
        Ok(provider) => Ok(Arc::new(provider)),
        Err(error) => Err(format!("cannot open {schema}: {error}")),
    }
}

/// The durability settings of the server.
pub fn synchronous(_store: &str) -> &'static str {
    "as the server is set"
}

/// One more, in an activity: there are no steps that run in place.
pub async fn incremented_in_place(ctx: &OrchestrationContext, number: u64) -> Result<u64, String> {
    bench::incremented(ctx, number).await
}
