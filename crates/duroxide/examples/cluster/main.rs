//! Three worker processes on one PostgreSQL schema. One is killed and one is upgraded while orders are open, and all orders
//! are done.
//!
//! The program starts itself as worker processes on the database that its argument names, or on a throw-away server. In the
//! end it counts the steps of each worker, and fails if a step was lost or recorded twice.
//!
//! ```text
//! cargo run --release --example cluster --features postgres [postgres://user@host/database]
//! ```

mod journal;
mod orders;
mod report;
mod worker;

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use duroxide::{
    prelude::*,
    providers::postgres::{PostgresOptions, SchemaName},
};
use futures_util::future::try_join_all;

use crate::{
    journal::Journal,
    orders::{NEW, OLD, STEPS},
    report::Report,
    worker::{Place, Worker},
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// How long to wait for anything before the run counts as failed.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Orders that ask for the old version, and for the new one.
const OLD_ORDERS: usize = 240;
const NEW_ORDERS: usize = 60;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.as_slice() {
        [name, build, folder] => worker::run(name, build, folder.as_ref()).await,
        [url] => on(url).await,
        _ => on_throw_away_server().await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn on_throw_away_server() -> Outcome {
    let missing =
        "PostgreSQL is not installed: install it, or name a database, as in postgres://user@host/database";
    let server = tokio::task::block_in_place(postgres_server::server).ok_or(missing)?;
    on(&server.tcp_url()).await
}

/// Everything happens in a schema of its own, which is dropped again.
async fn on(url: &str) -> Outcome {
    let schema = SchemaName::new(&format!("cluster_example_{}", std::process::id()))?;
    let folder = tempfile::tempdir()?;
    let place = Place::new(folder.path(), url, &schema)?;
    let result = run(&place).await;
    drop_schema(url, &schema).await?;
    result
}

async fn run(place: &Place) -> Outcome {
    let client = Client::new(place.open().await?);
    let (journal, began) = (Journal::new(place.folder()), Instant::now());
    let say = |what: String| println!("{:6.2} s  {what}", began.elapsed().as_secs_f64());
    let [anna, bela, cleo] = ["anna", "bela", "cleo"].map(|name| Worker::start(name, OLD, place));
    let (anna, bela, cleo) = (anna?, bela?, cleo?);
    start(&client, "old", OLD_ORDERS, OLD).await?;
    say(format!("anna, bela and cleo, build {OLD}, work on {OLD_ORDERS} orders of {STEPS} steps"));

    journal.reach(OLD_ORDERS * STEPS / 4).await?;
    bela.kill()?;
    say("bela was killed with SIGKILL".to_owned());

    start(&client, "new", NEW_ORDERS, NEW).await?;
    say(format!("{NEW_ORDERS} orders ask for version {NEW}, which no worker has"));
    journal.reach(OLD_ORDERS * STEPS / 2).await?;
    cleo.stop()?;
    let dora = Worker::start("dora", NEW, place)?;
    say(format!("cleo was shut down; dora, build {NEW}, takes its place"));

    let report = Report::collect(&client, &journal).await?;
    say("all orders are done".to_owned());
    anna.stop()?;
    dora.stop()?;
    println!("\n{report}");
    report.check()
}

/// Starts many orders at once; they share transactions.
async fn start(client: &Client, prefix: &str, orders: usize, version: &str) -> Outcome {
    let start = |order: usize| {
        client.start_orchestration_versioned(format!("{prefix}-{order}"), "Order", version, "tea")
    };
    try_join_all((0..orders).map(start)).await?;
    Ok(())
}

async fn drop_schema(url: &str, schema: &SchemaName) -> Outcome {
    let database = PostgresOptions::new(url)?.connect().await?;
    database.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await?;
    Ok(())
}
