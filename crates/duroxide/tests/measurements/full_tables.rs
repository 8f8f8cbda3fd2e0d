//! The cost of what a store has done and of what it is to do later: a million finished instances, and a million timers.

use std::time::{Duration, Instant};

use duroxide::providers::postgres::{PostgresOptions, PostgresProvider, SchemaName};
use postgres_server::{Server, copies_of};

use crate::hello_load::{HelloLoad, SETTINGS, run_one_of_each};

const COPIES: u64 = 1_000_000;
/// The stores take turns, so that a slow minute of the machine hits both.
const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_secs(3);
const PART: Duration = Duration::from_secs(6);
/// The share of the speed on empty tables that must be left.
const SHARE_MIN: f64 = 0.9;

/// Full tables cost nothing but the deeper indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn a_million_instances_and_a_million_timers_leave_nearly_all_of_the_speed() {
    let Some(server) = Server::own() else { return };
    server.configure(SETTINGS);
    server.restart_immediately();
    let (empty, full) = (options(&server, "empty_tables"), options(&server, "full_tables"));
    let originals = run_one_of_each(PostgresProvider::open(full.clone()).await.unwrap()).await;
    fill(&server, &full, originals).await;
    let (mut normal, mut beside) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        normal.push(rate(&empty).await);
        beside.push(rate(&full).await);
        println!(
            "round {round}: {:.0} instances/s, full tables: {:.0}",
            normal[round - 1],
            beside[round - 1]
        );
    }
    let share = median(beside) / median(normal);
    println!("full tables leave {:.0} % of the speed", share * 100.0);
    assert!(share >= SHARE_MIN, "{:.0} % of the speed on empty tables", share * 100.0);
}

fn options(server: &Server, schema: &str) -> PostgresOptions {
    let mut options = PostgresOptions::new(&server.socket_url()).unwrap();
    options.schema = SchemaName::new(schema).unwrap();
    options
}

async fn fill(server: &Server, options: &PostgresOptions, originals: [&str; 2]) {
    let begin = Instant::now();
    let (admin, connection) =
        tokio_postgres::connect(&server.socket_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for (part, original) in originals.into_iter().enumerate() {
        let first = (part as u64 + 1) * 10 * COPIES;
        admin.batch_execute(&copies_of(options.schema.as_str(), original, first, COPIES)).await.unwrap();
    }
    // What autovacuum does with new rows is not the question.
    for statement in ["VACUUM", "CHECKPOINT"] {
        admin.batch_execute(statement).await.unwrap();
    }
    println!("{COPIES} copies of {originals:?} were made in {:.0} s", begin.elapsed().as_secs_f64());
}

async fn rate(options: &PostgresOptions) -> f64 {
    let load = HelloLoad::start(PostgresProvider::open(options.clone()).await.unwrap()).await;
    load.rate(WARM_UP).await;
    let rate = load.rate(PART).await;
    load.stop().await;
    rate
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}
