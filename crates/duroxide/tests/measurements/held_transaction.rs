//! The cost of a transaction that is left open on the PostgreSQL server: as long as it is open, no dead row can be removed,
//! in any table.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, RuntimeOptions,
    providers::{Provider, postgres::PostgresProvider},
    runtime::Runtime,
};
use postgres_server::Server;
use tokio::{task::JoinSet, time::sleep};

/// For how long the transaction is open, in seconds.
const SECONDS: &str = "DUROXIDE_MEASURE_SECONDS";
const SLOTS: usize = 64;
/// Callers that each start an instance, wait for its end and start the next one.
const CALLERS: usize = 256;
/// As in the benchmarks: the usual settings of a production server.
const SETTINGS: &str = "shared_buffers = 256MB\nmax_wal_size = 2GB";
/// The share of the normal speed that must be left.
const SHARE_MIN: f64 = 0.7;

#[duroxide::activity]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("Hello, {name}!"))
}

#[duroxide::orchestration]
async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(ctx.activity::<greet>(name).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn a_transaction_left_open_leaves_most_of_the_speed() {
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let part = Duration::from_secs_f64(f64::max(5.0, f64::from(seconds) / 10.0));
    let Some(server) = Server::own() else { return };
    server.configure(SETTINGS);
    server.restart_immediately();
    let store: Arc<dyn Provider> = Arc::new(PostgresProvider::new(&server.socket_url()).await.unwrap());
    let options = RuntimeOptions {
        orchestration_concurrency: SLOTS,
        worker_concurrency: SLOTS,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::builder(Arc::clone(&store)).activity::<greet>().orchestration::<hello>();
    let runtime = runtime.options(options).build().await.unwrap();
    let ended = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        callers.spawn(call(Client::new(Arc::clone(&store)), caller, Arc::clone(&ended)));
    }
    // A new server writes no checkpoints yet, and its tables are small: that is not normal.
    rate(&ended, part).await;
    let normal = rate(&ended, part).await;
    println!("normal: {normal:.0} instances/s");
    let (held, connection) =
        tokio_postgres::connect(&server.socket_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    held.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()").await.unwrap();
    let mut share = 0.0;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < f64::from(seconds) {
        let rate = rate(&ended, part).await;
        share = rate / normal;
        let held_for = begin.elapsed().as_secs();
        println!("held for {held_for} s: {rate:.0} instances/s, {:.0} %", share * 100.0);
    }
    held.batch_execute("COMMIT").await.unwrap();
    callers.shutdown().await;
    runtime.shutdown(None).await;
    assert!(share >= SHARE_MIN, "{:.0} % of the normal speed at the end", share * 100.0);
}

async fn call(client: Client, caller: usize, ended: Arc<AtomicU64>) {
    for number in 0.. {
        let instance = client.start::<hello>(format!("{caller}-{number}"), "you".to_owned()).await.unwrap();
        assert_eq!(instance.result().await.unwrap().unwrap(), "Hello, you!");
        ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Instances that end per second, over a time.
async fn rate(ended: &AtomicU64, time: Duration) -> f64 {
    let (begin, before) = (Instant::now(), ended.load(Ordering::Relaxed));
    sleep(time).await;
    (ended.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
}
