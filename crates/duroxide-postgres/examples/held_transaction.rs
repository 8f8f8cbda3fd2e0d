//! Measures what a transaction that somebody leaves open costs: as long as it is open, no dead row can be removed, in any table.
//!
//! ```text
//! cargo xtask measure held_transaction --seconds 600
//! ```
//!
//! Batches of one-activity instances run straight on the engine, for a while without and for `seconds` with an open
//! transaction. Fails if the last tenth with it is slower than 70 % of what is normal.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a measurement")]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use duroxide_provider::testing::Turn;
use fixture::{Node, ack, commit, ids, sql::Admin, start};
use postgres_server::Server;

/// Instances of one batch.
const SIZE: usize = 64;
/// What is left of the normal speed, at least.
const SHARE_MIN: f64 = 0.7;

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let Some(server) = Server::own() else { return ExitCode::SUCCESS };
    let options = fixture::fresh_options(&server);
    let mut node = Node::open(&options, 1);
    node.engine = node.engine.hearing_of_ready();
    let mut tours = 0;
    run_for(&mut node, Duration::from_secs(2), &mut tours);
    let normal = run_for(&mut node, Duration::from_secs((seconds / 10).max(5)), &mut tours);
    println!("normal: {normal:.0} instances/s");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let held = runtime.block_on(Admin::connect(&server));
    runtime.block_on(held.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()"));
    let mut share = 0.0;
    for tenth in 1..=10 {
        let rate = run_for(&mut node, Duration::from_secs_f64(seconds as f64 / 10.0), &mut tours);
        share = rate / normal;
        println!("held for {} s: {rate:.0} instances/s, {:.0} %", seconds * tenth / 10, share * 100.0);
    }
    runtime.block_on(held.run("COMMIT"));
    if share >= SHARE_MIN { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs batches for a time, and returns how many instances per second ended.
fn run_for(node: &mut Node, time: Duration, tours: &mut usize) -> f64 {
    let (begin, first) = (Instant::now(), *tours);
    while begin.elapsed() < time {
        tour(node, *tours);
        *tours += 1;
    }
    ((*tours - first) * SIZE) as f64 / begin.elapsed().as_secs_f64()
}

/// What is left ready by one batch is claimed by the next one, so that claims read the lists.
fn tour(node: &mut Node, number: usize) {
    node.run(ids(&format!("tour-{number}"), SIZE).iter().map(|id| start(id)).collect());
    let claimed = node.claim(SIZE).0;
    assert_eq!(claimed.len(), SIZE);
    node.run(claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity())).collect());
    let work = node.work(SIZE).0;
    assert_eq!(work.len(), SIZE);
    node.run(work.iter().map(ack).collect());
    let claimed = node.claim(SIZE).0;
    let ends = claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
    node.run(ends.collect());
}
