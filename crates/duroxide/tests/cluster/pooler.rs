//! PgBouncer in transaction mode between two nodes and the server: each transaction may have another connection.

use std::time::{Duration, Instant};

use duroxide::{
    Client,
    providers::postgres::{PostgresOptions, PostgresProvider, SchemaName},
};
use postgres_server::{Pooler, Server};

use crate::{
    faults::{COPIES, Nodes, check},
    fixture::until,
    mix,
    schema::Schema,
    sound::assert_finished,
    takeover::slow::{self, OTHER, SLOW},
};

const LEASE: Duration = Duration::from_secs(4);

/// Runs a mix of workflows through a pooler.
async fn runs_through_pooler(reaches_server: bool) {
    let Some(server) = postgres_server::server() else { return };
    let Some(pooler) = tokio::task::block_in_place(|| Pooler::start(server)) else { return };
    let schema = Schema::on(server, &server.tcp_url());
    let options = options(server, &pooler, reaches_server);
    let client = Client::new(schema.open_with(&options).await);
    mix::start(&client, COPIES).await;
    let nodes = Nodes::start_with(&schema, &options).await;
    assert_healthy(PostgresOptions { schema: SchemaName::new(schema.name()).unwrap(), ..options }).await;
    check(&schema, &client, nodes).await;
}

/// Each question has a connection of its own to the pooler, and transactions of others meet it on every connection to the server.
async fn assert_healthy(options: PostgresOptions) {
    let store = PostgresProvider::open(options).await.unwrap();
    for _ in 0..20 {
        let health = store.health().await.unwrap();
        assert!(health.tables.iter().any(|table| table.name == "instance"), "{health:?}");
    }
}

fn options(server: &Server, pooler: &Pooler, reaches_server: bool) -> PostgresOptions {
    let server = server.tcp_url();
    PostgresOptions::behind_pooler(&pooler.url(), reaches_server.then_some(&server)).unwrap()
}

/// Nothing but transactions: no notifications, no locks of nodes, no prepared statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_run_through_a_transaction_pooler() {
    runs_through_pooler(false).await;
}

/// The session connection bypasses the pooler, so other processes are notified of work and of the end of a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_run_through_a_transaction_pooler_with_a_session_to_the_server() {
    runs_through_pooler(true).await;
}

/// The remaining lease of a running activity, on the server's clock.
const LEFT: &str =
    "SELECT greatest(max(lock_until) - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0)
    FROM {s}.activity";

/// 24.8, D10: behind a pooler no process is notified of the end of another one, so its leases decide: its items are taken over
/// when they end, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_behind_a_pooler_keeps_its_work_until_its_leases_end() {
    let Some(server) = postgres_server::server() else { return };
    let Some(pooler) = tokio::task::block_in_place(|| Pooler::start(server)) else { return };
    let schema = Schema::on(server, &server.tcp_url());
    schema.reach_by_pooler(&pooler.url());
    let client = Client::new(schema.open().await);
    let admin = schema.admin().await;
    let killed = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;
    let _other = slow::start(&schema, OTHER, LEASE);
    schema.reach_nodes(2).await;
    killed.kill();
    let killed_at = Instant::now();
    let left: i64 = admin.query_one(&LEFT.replace("{s}", schema.name()), &[]).await.unwrap().get(0);
    let left = Duration::from_micros(left.try_into().unwrap());
    assert!(left > LEASE / 4, "the lease was over when the process was killed");
    let taken_over = format!("activity begins on {OTHER}, attempt 2");
    let notes = schema.notes();
    until("the activity is taken over", async || notes.count(&taken_over) == 1).await;
    println!("taken over after {:?}; the lease had {left:?} left", killed_at.elapsed());
    assert!(killed_at.elapsed() >= left, "taken over {:?} after the kill", killed_at.elapsed());
    slow::taken_over(&client).await;
    assert_finished(&schema.snapshot());
}
