//! The cost of a transaction that is left open on the PostgreSQL server: as long as it is open, no dead row can be removed,
//! in any table.

use std::time::{Duration, Instant};

use duroxide::providers::postgres::PostgresProvider;
use postgres_server::Server;

use crate::hello_load::{HelloLoad, SETTINGS};

/// For how long the transaction is open, in seconds.
const SECONDS: &str = "DUROXIDE_MEASURE_SECONDS";
/// The share of the normal speed that must be left.
const SHARE_MIN: f64 = 0.7;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn a_transaction_left_open_leaves_most_of_the_speed() {
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let part = Duration::from_secs_f64(f64::max(5.0, f64::from(seconds) / 10.0));
    let Some(server) = Server::own() else { return };
    server.configure(SETTINGS);
    server.restart_immediately();
    let load = HelloLoad::start(PostgresProvider::new(&server.socket_url()).await.unwrap()).await;
    // A new server writes no checkpoints yet, and its tables are small: that is not normal.
    load.rate(part).await;
    let normal = load.rate(part).await;
    println!("normal: {normal:.0} instances/s");
    let (held, connection) =
        tokio_postgres::connect(&server.socket_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    held.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()").await.unwrap();
    let mut share = 0.0;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < f64::from(seconds) {
        let rate = load.rate(part).await;
        share = rate / normal;
        let held_for = begin.elapsed().as_secs();
        println!("held for {held_for} s: {rate:.0} instances/s, {:.0} %", share * 100.0);
    }
    held.batch_execute("COMMIT").await.unwrap();
    load.stop().await;
    assert!(share >= SHARE_MIN, "{:.0} % of the normal speed at the end", share * 100.0);
}
