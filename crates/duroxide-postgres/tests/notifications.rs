//! Whom a transaction notifies.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::time::Duration;

use duroxide_postgres::PostgresProvider;
use duroxide_provider::{Provider, testing::items};
use fixture::fresh_options;
use futures_util::future::join_all;
use postgres_server::Server;

const STARTS: usize = 200;

/// What the server's log says behind a place.
struct Log<'a> {
    server: &'a Server,
    behind: usize,
}

impl<'a> Log<'a> {
    fn from_now(server: &'a Server) -> Self {
        Self { server, behind: std::fs::read(server.log()).unwrap().len() }
    }

    fn count(&self, is_counted: impl Fn(&&str) -> bool) -> usize {
        let log = std::fs::read(self.server.log()).unwrap();
        let log = log.get(self.behind..).unwrap_or_default();
        String::from_utf8_lossy(log).lines().filter(is_counted).count()
    }

    /// How many statements have written instances.
    fn writes(&self) -> usize {
        self.count(|line| line.contains("LOG:  execute ") && line.contains("WITH part_0"))
    }

    /// How many statements have notified of work. A process that begins to listen says hello.
    fn notifications(&self, schema: &str) -> usize {
        let channel = format!("parameters: $1 = '{schema}', $2 = '");
        self.count(|line| line.contains(&channel) && !line.contains("'hello "))
    }
}

async fn start(store: &PostgresProvider, prefix: &str, count: usize) {
    let starts =
        (0..count).map(|n| store.enqueue_for_orchestrator(items::start(&format!("{prefix}-{n}")), None));
    join_all(starts).await.into_iter().for_each(Result::unwrap);
}

/// One notification tells of all that a transaction leaves to be claimed, and a node that is alone sends none.
#[tokio::test]
async fn a_transaction_notifies_once_and_only_if_another_node_may_wait() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let options = fresh_options(&server);
    let schema = options.schema.to_string();

    let alone = Log::from_now(&server);
    let one = PostgresProvider::open(options.clone()).await.unwrap();
    start(&one, "alone", STARTS).await;
    assert!(alone.writes() > 0);
    assert_eq!(alone.notifications(&schema), 0);

    let _other = PostgresProvider::open(options).await.unwrap();
    // The first hears of the other while it goes on.
    for round in 0.. {
        start(&one, &format!("meanwhile-{round}"), 1).await;
        if alone.notifications(&schema) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let together = Log::from_now(&server);
    start(&one, "together", STARTS).await;
    let (notifications, writes) = (together.notifications(&schema), together.writes());
    assert!(writes < STARTS, "{writes} transactions for {STARTS} starts");
    assert!((1..=writes).contains(&notifications), "{notifications} of {writes} transactions");
}
