//! How this implementation's stores are opened. Another store is one more name and one more arm.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
};

use duroxide::{
    OrchestrationContext,
    providers::{
        Provider,
        postgres::{PostgresOptions, PostgresProvider, SchemaName},
        sqlite::{SqliteOptions, SqliteProvider, SqliteSynchronous},
    },
};
use duroxide_store::MemoryProvider;

/// The name of the measured implementation.
pub const IMPLEMENTATION: &str = "ours";

/// The stores that can be chosen; the first one is the default.
pub const STORES: &[&str] = &["full", "normal", "memory", "postgres"];

/// Says where the database of the store `postgres` is.
const POSTGRES_URL: &str = "DUROXIDE_BENCH_POSTGRES";

/// Opens a store; those on disk use `file`, which may exist already.
pub async fn open(store: &str, file: &Path) -> Result<Arc<dyn Provider>, String> {
    match store {
        "full" => sqlite(file, SqliteSynchronous::Full).await,
        "normal" => sqlite(file, SqliteSynchronous::Normal).await,
        "memory" => Ok(Arc::new(MemoryProvider::new())),
        "postgres" => postgres(file).await,
        other => Err(format!("there is no store {other}")),
    }
}

/// The value of `synchronous`. Opening sets it and fails if it reads back another value, so the name is the proof.
pub fn synchronous(store: &str) -> &'static str {
    match store {
        "full" => "FULL (read back when opened)",
        "normal" => "NORMAL (read back when opened)",
        "postgres" => "as the server is set",
        _ => "none",
    }
}

/// One more, in a step that runs in place.
pub async fn incremented_in_place(ctx: &OrchestrationContext, number: u64) -> Result<u64, String> {
    Ok(ctx.step("increment", move || async move { Ok::<_, String>(number + 1) }).await?)
}

async fn sqlite(file: &Path, synchronous: SqliteSynchronous) -> Result<Arc<dyn Provider>, String> {
    let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
    let url = format!("sqlite:{}", file.display());
    match SqliteProvider::new(&url, Some(options)).await {
        Ok(provider) => Ok(Arc::new(provider)),
        Err(error) => Err(format!("cannot open {url}: {error}")),
    }
}

/// A schema for each file: the same file is the same store.
async fn postgres(file: &Path) -> Result<Arc<dyn Provider>, String> {
    let url =
        std::env::var(POSTGRES_URL).map_err(|_| format!("{POSTGRES_URL} must say where the database is"))?;
    let mut hasher = DefaultHasher::new();
    file.hash(&mut hasher);
    let mut options = PostgresOptions::new(&url).map_err(|error| error.to_string())?;
    options.schema =
        SchemaName::new(&format!("bench_{:016x}", hasher.finish())).map_err(|error| error.to_string())?;
    match PostgresProvider::open(options).await {
        Ok(provider) => Ok(Arc::new(provider)),
        Err(error) => Err(error.to_string()),
    }
}
