//! What a store costs and says while nothing happens.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide_postgres::PostgresProvider;
use duroxide_provider::{NodeAnnouncement, Provider, testing::items};
use fixture::fresh_options;
use postgres_server::Server;

const NODES: usize = 10;

#[tokio::test]
async fn a_healthy_store_shows_its_tables_and_how_long_work_waits() {
    let Some(server) = postgres_server::server() else { return };
    let store = PostgresProvider::open(fresh_options(server)).await.unwrap();
    let health = store.health().await.unwrap();
    assert!(
        health.tables.iter().any(|table| table.name == "instance" && table.index_bytes > 0),
        "{health:?}"
    );
    assert_eq!((health.oldest_ready_instance, health.oldest_ready_activity), (None, None));
    assert_eq!(health.overdue, None);

    store.enqueue_for_orchestrator(items::start("a"), None).await.unwrap();
    let first = store.health().await.unwrap().oldest_ready_instance.unwrap();
    let second = store.health().await.unwrap().oldest_ready_instance.unwrap();
    assert!(first < second && second < Duration::from_secs(600), "{first:?} {second:?}");
}

/// Statements in the server's log behind a place, and how many of them look for dead nodes.
fn statements(server: &Server, behind: usize) -> (usize, usize) {
    let log = std::fs::read(server.log()).unwrap();
    let log = String::from_utf8_lossy(log.get(behind..).unwrap_or_default()).into_owned();
    let is_statement = |line: &&str| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ");
    (log.lines().filter(is_statement).count(), log.matches("AS listeners").count())
}

/// Ten nodes with nothing to do take turns in looking whether one of them is gone: each makes less than one query a second.
#[tokio::test]
async fn ten_idle_nodes_make_fewer_than_one_query_per_second_each() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let options = fresh_options(&server);
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let store = Arc::new(PostgresProvider::open(options.clone()).await.unwrap());
        let announcement = NodeAnnouncement { name: format!("node-{number}"), ..NodeAnnouncement::default() };
        let membership = store.join_node(&announcement).await.unwrap().unwrap();
        let waiting = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                let hour = Duration::from_secs(3_600);
                store.fetch_orchestration_item(Duration::from_secs(30), hour, None).await
            }
        });
        nodes.push((store, membership, waiting));
    }
    // Each has looked once or more, and knows of the others.
    reach_looks(&server, 0, 3 * NODES).await;
    let (behind, begin) = (std::fs::read(server.log()).unwrap().len(), Instant::now());
    reach_looks(&server, behind, 2 * NODES).await;
    let (all, _) = statements(&server, behind);
    let each = all as f64 / begin.elapsed().as_secs_f64() / NODES as f64;
    println!("{all} statements in {:?}, {each:.2} per second and node", begin.elapsed());
    assert!(each < 1.0, "{each:.2} statements per second and node");
    nodes.iter().for_each(|(_, _, waiting)| waiting.abort());
}

/// Waits until nodes have looked so often. Nobody tells of a line in a log.
async fn reach_looks(server: &Server, behind: usize, looks: usize) {
    while statements(server, behind).1 < looks {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
