//! A schema that several processes open, with a folder for their notes.

use std::{path::Path, sync::Arc};

use duroxide::providers::{
    Provider,
    postgres::{PostgresOptions, PostgresProvider, SchemaName},
};
use duroxide_postgres::PostgresEngine;
use duroxide_provider::store::{StoreReader as _, StoreSnapshot};
use postgres_server::Server;
use tempfile::TempDir;

use crate::fixture::{notes::Notes, until};

/// The file from which child processes read the address of the schema.
const PLACE: &str = "place";

/// Stands in front of the connection string of a pooler.
const POOLED: &str = "pooled ";

/// A schema of its own.
pub struct Schema {
    name: String,
    folder: TempDir,
    operators_url: String,
}

impl Schema {
    /// On the server of the test run. `None` if PostgreSQL is not installed.
    pub fn new() -> Option<Self> {
        let server = postgres_server::server()?;
        Some(Self::on(server, &server.tcp_url()))
    }

    /// On this server, which providers reach by this connection string.
    pub fn on(server: &Server, url: &str) -> Self {
        let folder = tempfile::tempdir().expect("the temporary folder is writable");
        let schema = Self { name: server.fresh_schema(), folder, operators_url: server.socket_url() };
        schema.reach_by(url);
        schema
    }

    /// From now on each process that opens the schema connects by this connection string.
    pub fn reach_by(&self, url: &str) {
        let place = format!("{}\n{url}", self.name);
        std::fs::write(self.folder().join(PLACE), place).expect("the folder is writable");
    }

    /// From now on each process that opens the schema connects through this transaction pooler only.
    pub fn reach_by_pooler(&self, url: &str) {
        self.reach_by(&format!("{POOLED}{url}"));
    }

    /// The name of the schema. Connections of its providers have it too.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection of the operator.
    pub async fn admin(&self) -> tokio_postgres::Client {
        self.try_admin().await.expect("the server takes connections")
    }

    /// A connection of the operator, if the server takes one more.
    pub async fn try_admin(&self) -> Option<tokio_postgres::Client> {
        let connected = tokio_postgres::connect(&self.operators_url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.ok()?;
        tokio::spawn(connection);
        Some(client)
    }

    /// Opens the schema with connections of another name.
    pub async fn open_named(&self, name: &str) -> Arc<dyn Provider> {
        let mut options = options_in(self.folder());
        options.config.application_name(name);
        self.open_with(&options).await
    }

    /// Opens this schema with other options.
    pub async fn open_with(&self, options: &PostgresOptions) -> Arc<dyn Provider> {
        let schema = SchemaName::new(&self.name).expect("a schema name");
        let options = PostgresOptions { schema, ..options.clone() };
        Arc::new(PostgresProvider::open(options).await.expect("the schema opens"))
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

    /// Waits until exactly this many nodes have joined.
    pub async fn reach_nodes(&self, count: usize) {
        let nodes = || self.read(|engine| engine.nodes().expect("the store can be read").len());
        until("the nodes are there", async || nodes() == count).await;
    }

    /// Waits until children have left this many notes.
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

pub fn options_in(folder: &Path) -> PostgresOptions {
    let place = std::fs::read_to_string(folder.join(PLACE)).expect("the folder names a schema");
    let (schema, url) = place.split_once('\n').expect("a name and a connection string");
    let options = match url.strip_prefix(POOLED) {
        Some(pooler) => PostgresOptions::behind_pooler(pooler, None),
        None => PostgresOptions::new(url),
    };
    let mut options = options.expect("a connection string");
    options.schema = SchemaName::new(schema).expect("a schema name");
    options.config.application_name(schema);
    options
}
