//! A server that restarts, and processes that do not come back at the same time.

use std::{collections::BTreeSet, time::Instant};

use duroxide::Client;
use postgres_server::Server;

use crate::{
    faults::link::Link,
    fixture::{ended, output, until},
    schema::Schema,
    takeover::{
        LEASE, TAKEN_OVER_WITHIN,
        slow::{self, OTHER, SLOW},
    },
};

/// A dead node without a grace period is found within so many checks.
const CHECKS: usize = 4;

/// Waits until a process with nodes has checked so often for dead ones.
async fn nodes_are_checked(schema: &Schema) {
    const CHECKED_AT: &str = "SELECT query_start::text FROM pg_stat_activity
        WHERE application_name = $1 AND query LIKE '%AS listeners%'";
    let admin = schema.admin().await;
    let mut checked_at: BTreeSet<String> = BTreeSet::new();
    until("nodes are checked", async || {
        let rows = admin.query(CHECKED_AT, &[&schema.name()]).await.unwrap();
        checked_at.extend(rows.iter().map(|row| row.get(0)));
        checked_at.len() >= CHECKS
    })
    .await;
}

/// 24.7, D10: a restart ends the locks of all nodes. A node that needs longer to reconnect is alive, and keeps its claims.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_late_after_a_restart_is_not_taken_over() {
    let Some(server) = Server::own() else { return };
    let schema = Schema::on(&server, &server.tcp_url());
    let client = Client::new(schema.open_named("client").await);
    let link = Link::to(server.address().port).await;
    schema.reach_by(&link.url());
    let _late = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;
    schema.reach_by(&server.tcp_url());
    let _other = slow::start(&schema, OTHER, LEASE);
    schema.reach_nodes(2).await;

    link.fall_silent();
    tokio::task::block_in_place(|| server.restart_immediately());
    nodes_are_checked(&schema).await;
    link.speak_again();
    the_late_one_ends_its_claims(&schema, &client).await;
}

async fn the_late_one_ends_its_claims(schema: &Schema, client: &Client) {
    slow::let_it_end(schema);
    slow::has_ended(schema).await;
    for instance in ["calls", "blocks"] {
        assert_eq!(output(ended(client, instance).await), SLOW, "{instance}");
    }
    let begun = schema.notes().lines();
    assert!(!begun.iter().any(|line| line.contains(OTHER)), "{begun:?}");
}

/// Longer than a test waits: after a restart nodes are spared for this time.
const SPARED: &str = "connect_timeout=600";

/// 24.7, D10: a process that is started after the restart has lost nothing, and spares the node as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_started_after_a_restart_does_not_take_over_a_late_node() {
    let Some(server) = Server::own() else { return };
    let schema = Schema::on(&server, &server.tcp_url());
    let client = Client::new(schema.open_named("client").await);
    let link = Link::to(server.address().port).await;
    schema.reach_by(&link.url());
    let _late = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;

    link.fall_silent();
    tokio::task::block_in_place(|| server.restart_immediately());
    schema.reach_by(&format!("{} {SPARED}", server.tcp_url()));
    let _other = slow::start(&schema, OTHER, LEASE);
    nodes_are_checked(&schema).await;
    link.speak_again();
    the_late_one_ends_its_claims(&schema, &client).await;
}

/// 24.7: a node that died with the server is spared for as long as if it were late, and not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_come_back_after_a_restart_is_taken_over() {
    let Some(server) = Server::own() else { return };
    let schema = Schema::on(&server, &server.tcp_url());
    let client = Client::new(schema.open_named("client").await);
    let dead = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;
    // A client ends no dead nodes, and nobody else is there.
    dead.kill();
    tokio::task::block_in_place(|| server.restart_immediately());
    schema.reach_by(&format!("{} connect_timeout=1", server.tcp_url()));
    let _other = slow::start(&schema, OTHER, LEASE);
    slow::taken_over(&client).await;
    let uptime = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8";
    let uptime: f64 = schema.admin().await.query_one(uptime, &[]).await.unwrap().get(0);
    assert!(uptime > 6.0, "spared for {uptime} s");
}

/// 24.7: a node that has joined since the restart is taken over at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_soon_after_a_restart_is_taken_over_at_once() {
    let Some(server) = Server::own() else { return };
    let url = format!("{} {SPARED}", server.tcp_url());
    let schema = Schema::on(&server, &url);
    drop(schema.open().await);
    tokio::task::block_in_place(|| server.restart_immediately());
    let client = Client::new(schema.open_named("client").await);
    let dead = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;
    let _other = slow::start(&schema, OTHER, LEASE);
    schema.reach_nodes(2).await;
    dead.kill();
    let killed_at = Instant::now();
    slow::taken_over(&client).await;
    let taken_over = killed_at.elapsed();
    println!("taken over {taken_over:?} after the kill");
    assert!(taken_over < TAKEN_OVER_WITHIN, "{taken_over:?}");
}
