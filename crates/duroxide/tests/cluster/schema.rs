//! A schema that several processes open, with a folder for their notes.

use std::{path::Path, sync::Arc};

use duroxide::providers::{
    Provider,
    postgres::{PostgresOptions, PostgresProvider, SchemaName},
};
use duroxide_postgres::PostgresEngine;
use duroxide_provider::store::{StoreReader as _, StoreSnapshot};
use tempfile::TempDir;

use crate::fixture::{notes::Notes, until};

/// The file that tells child processes where the schema is.
const PLACE: &str = "place";

/// A schema of its own on the server of the test run.
pub struct Schema {
    folder: TempDir,
}

impl Schema {
    /// `None` if PostgreSQL is not installed.
    pub fn new() -> Option<Self> {
        let server = postgres_server::server()?;
        let folder = tempfile::tempdir().expect("the temporary folder is writable");
        let place = format!("{}\n{}", server.fresh_schema(), server.tcp_url());
        std::fs::write(folder.path().join(PLACE), place).expect("the folder is writable");
        Some(Self { folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn notes(&self) -> Notes {
        notes_in(self.folder())
    }

    pub async fn open(&self) -> Arc<dyn Provider> {
        open_in(self.folder()).await
    }

    /// Everything in the store.
    pub fn snapshot(&self) -> StoreSnapshot {
        self.read(|engine| engine.snapshot().expect("the store can be read"))
    }

    /// Waits until exactly so many nodes are there.
    pub async fn reach_nodes(&self, count: usize) {
        let nodes = || self.read(|engine| engine.nodes().expect("the store can be read").len());
        until("the nodes are there", async || nodes() == count).await;
    }

    /// Waits until children have left so many notes.
    pub async fn reach_notes(&self, count: usize) {
        let notes = self.notes();
        until("there are so many notes", async || notes.lines().len() >= count).await;
    }

    /// An engine blocks, which no thread of an executor may.
    fn read<T: Send>(&self, read: impl FnOnce(&mut PostgresEngine) -> T + Send) -> T {
        let open = || PostgresEngine::open(options_in(self.folder())).expect("the schema opens");
        std::thread::scope(|scope| scope.spawn(|| read(&mut open())).join().expect("the read does not panic"))
    }
}

pub fn notes_in(folder: &Path) -> Notes {
    Notes::new(folder, "notes")
}

/// Opens the schema that a folder names, as another process does.
pub async fn open_in(folder: &Path) -> Arc<dyn Provider> {
    Arc::new(PostgresProvider::open(options_in(folder)).await.expect("the schema opens"))
}

fn options_in(folder: &Path) -> PostgresOptions {
    let place = std::fs::read_to_string(folder.join(PLACE)).expect("the folder names a schema");
    let (schema, url) = place.split_once('\n').expect("a name and a connection string");
    let mut options = PostgresOptions::new(url).expect("a connection string");
    options.schema = SchemaName::new(schema).expect("a schema name");
    options
}
