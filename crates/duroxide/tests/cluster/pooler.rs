//! PgBouncer in transaction mode between two nodes and the server: each transaction may have another connection.

use duroxide::{Client, providers::postgres::PostgresOptions};
use postgres_server::{Pooler, Server};

use crate::{
    faults::{COPIES, Nodes, check},
    mix,
    schema::Schema,
};

/// Runs a mix of workflows through a pooler.
async fn runs_through_pooler(reaches_server: bool) {
    let Some(server) = postgres_server::server() else { return };
    let Some(pooler) = tokio::task::block_in_place(|| Pooler::start(server)) else { return };
    let schema = Schema::on(server, &server.tcp_url());
    let options = options(server, &pooler, reaches_server);
    let client = Client::new(schema.open_with(&options).await);
    mix::start(&client, COPIES).await;
    let nodes = Nodes::start_with(&schema, &options).await;
    check(&schema, &client, nodes).await;
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

/// The session connection passes by the pooler, so others hear of work and of the end of a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_run_through_a_transaction_pooler_with_a_session_to_the_server() {
    runs_through_pooler(true).await;
}
