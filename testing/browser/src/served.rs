//! [`Shop`]: a service with a console, on loopback, on a store with many instances.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use duroxide::{Client, providers::sqlite::SqliteProvider, runtime::Runtime};
use duroxide_ui::{Auth, Console, Role};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{crowd, shop};

/// The token of operators.
pub const OPERATOR: &str = "operators-0123456789";
/// The token of viewers.
pub const VIEWER: &str = "viewers-0123456789ab";
/// Longer than anything here takes.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A service with its own page and a console below `/ops/duroxide`, a node and a store.
#[derive(Debug)]
pub struct Shop {
    /// A client of the store.
    pub client: Client,
    /// The store.
    pub store: Arc<SqliteProvider>,
    /// The node.
    pub runtime: Arc<Runtime>,
    address: SocketAddr,
    server: JoinHandle<()>,
    _folder: TempDir,
}

impl Shop {
    /// Opens the shop on a new store with about `instances` copied instances.
    ///
    /// # Panics
    /// If anything fails.
    pub async fn open(instances: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.db");
        crowd::fill(&path, instances).await;
        let store = crowd::open(&path).await;
        let runtime =
            Runtime::start_with_store(store.clone(), shop::activities(), shop::orchestrations()).await;
        let client = Client::new(store.clone());
        let auth = Auth::token("ada", OPERATOR, Role::Operator).expect("long enough");
        let auth = auth.and_token("grace", VIEWER, Role::Viewer).expect("long enough");
        let console = Console::new(client.clone(), auth).router();
        let service = Router::new().nest("/ops/duroxide", console);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, service).await;
        });
        Self { client, store, runtime, address, server, _folder: folder }
    }

    /// The URL of a page of the console; of the console itself for an empty `page`.
    pub fn url(&self, page: &str) -> String {
        format!("http://{}/ops/duroxide{page}", self.address)
    }

    /// Where everything comes from.
    pub fn origin(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// An order that waits for its approval.
    ///
    /// # Panics
    /// If it does not get there.
    pub async fn waiting_order(&self, id: &str, input: &str) {
        self.client.start_orchestration(id, "Order", input).await.expect("starts");
        let waited = self.client.wait_for_status_change(id, 0, Duration::from_millis(10), TIMEOUT).await;
        waited.expect("waits for approval");
    }

    /// A payment that has failed.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn failed_payment(&self, id: &str, input: &str) {
        self.client.start_orchestration(id, "Payment", input).await.expect("starts");
        self.client.wait_for_orchestration(id, TIMEOUT).await.expect("ends");
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.server.abort();
    }
}
