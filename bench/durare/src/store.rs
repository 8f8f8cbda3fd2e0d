//! How durare's stores are opened.

use std::sync::Arc;

use durare::{PostgresProvider, SqliteProvider, StateProvider};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use crate::{scratch::Scratch, text};

/// Says where the database is, as a URL.
const POSTGRES_URL: &str = "DUROXIDE_BENCH_POSTGRES";

/// The connections that durare opens by itself.
const CONNECTIONS: u32 = 5;

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Store {
    /// A schema of its own in a PostgreSQL database.
    Postgres,
    /// SQLite as durare opens it.
    Normal,
    /// SQLite as durare opens it, but every commit is synced.
    Full,
}

impl Store {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Normal => "normal",
            Self::Full => "full",
        }
    }

    pub(crate) fn synchronous(self) -> &'static str {
        match self {
            Self::Postgres => "as the server is set",
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
        }
    }

    pub(crate) async fn open(self, scratch: &Scratch) -> Result<Arc<dyn StateProvider>, String> {
        Ok(match self {
            Self::Postgres => {
                let url = std::env::var(POSTGRES_URL).map_err(|_| format!("{POSTGRES_URL} is not set"))?;
                let schema = format!("durare_{}", std::process::id());
                Arc::new(PostgresProvider::connect_with_schema(&url, &schema).await.map_err(text)?)
            }
            Self::Normal => {
                let url = format!("sqlite://{}", scratch.file().display());
                Arc::new(SqliteProvider::connect(&url).await.map_err(text)?)
            }
            Self::Full => {
                let options = SqliteConnectOptions::new()
                    .filename(scratch.file())
                    .create_if_missing(true)
                    .foreign_keys(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full);
                let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options);
                Arc::new(SqliteProvider::from_pool(pool.await.map_err(text)?))
            }
        })
    }
}
