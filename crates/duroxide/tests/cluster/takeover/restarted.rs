//! A server that restarts, and processes that do not come back at the same time.

use std::collections::BTreeSet;

use duroxide::Client;
use postgres_server::Server;

use crate::{
    faults::link::Link,
    fixture::{ended, output, until},
    schema::Schema,
    takeover::{
        LEASE,
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
    slow::let_it_end(&schema);
    slow::has_ended(&schema).await;
    for instance in ["calls", "blocks"] {
        assert_eq!(output(ended(&client, instance).await), SLOW, "{instance}");
    }
    let begun = schema.notes().lines();
    assert!(!begun.iter().any(|line| line.contains(OTHER)), "{begun:?}");
}
