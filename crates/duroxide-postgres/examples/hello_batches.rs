//! Measures one-activity instances, driven straight on the engine in batches: start, claim, commit with an activity, claim
//! the activity, ack, claim, commit.
//!
//! ```text
//! cargo run --release -p duroxide-postgres --example hello_batches
//! ```
//!
//! It starts a throw-away server, or uses the one of `DUROXIDE_POSTGRES` (a connection string), where it makes a schema
//! `duroxide_hello_batches`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a measurement")]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::time::Instant;

use duroxide_postgres::{PostgresOptions, SchemaName};
use duroxide_provider::testing::Turn;
use fixture::{Node, ack, claims, commit, ids, start, works};

/// Instances that each row of the table runs.
const INSTANCES: usize = 4_000;

/// Runs some instances to their end, and returns how many batches that took.
type Tour = fn(&mut Node, &str, usize) -> u64;

fn main() {
    let Some(mut node) = open() else { return };
    one_step_in_each_batch(&mut node, "warm-up", 8);
    handing_over(&mut node, "warm-up-too", 8);
    println!("{:<24} {:>6} {:>12} {:>14} {:>12}", "way", "batch", "instances/s", "trips/batch", "ms/batch");
    let tours: [(&str, Tour); 2] =
        [("one step in each batch", one_step_in_each_batch), ("batches hand over", handing_over)];
    for (name, tour) in tours {
        for size in [1, 8, 64, 256] {
            measure(&mut node, name, size, tour);
        }
    }
}

fn open() -> Option<Node> {
    let options = match std::env::var("DUROXIDE_POSTGRES") {
        Ok(url) => {
            let mut options = PostgresOptions::new(&url).unwrap();
            options.schema = SchemaName::new("duroxide_hello_batches").unwrap();
            options
        }
        Err(_) => fixture::fresh_options(postgres_server::server()?),
    };
    Some(Node::open(&options, 1))
}

fn measure(node: &mut Node, name: &str, size: usize, tour: Tour) {
    let instances = if size == 1 { INSTANCES / 10 } else { INSTANCES };
    let (begin, trips) = (Instant::now(), node.engine.round_trips());
    let mut batches = 0;
    for n in 0..instances / size {
        batches += tour(node, &format!("{name}-{size}-{n}"), size);
    }
    let (seconds, trips) = (begin.elapsed().as_secs_f64(), node.engine.round_trips() - trips);
    let count = |number: u64| number as f64;
    println!(
        "{name:<24} {size:>6} {:>12.0} {:>14.2} {:>12.2}",
        (instances / size * size) as f64 / seconds,
        count(trips) / count(batches),
        seconds * 1_000.0 / count(batches),
    );
}

fn one_step_in_each_batch(node: &mut Node, prefix: &str, size: usize) -> u64 {
    node.run(ids(prefix, size).iter().map(|id| start(id)).collect());
    let claimed = node.claim(size).0;
    assert_eq!(claimed.len(), size);
    node.run(claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity())).collect());
    let work = node.work(size).0;
    node.run(work.iter().map(ack).collect());
    let claimed = node.claim(size).0;
    let ends = claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
    node.run(ends.collect());
    7
}

fn handing_over(node: &mut Node, prefix: &str, size: usize) -> u64 {
    let batch = node.batch(ids(prefix, size).iter().map(|id| start(id)).collect(), size, size);
    let claimed = claims(node.transact(&batch).0);
    assert_eq!(claimed.len(), size);
    let turns = claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity()));
    let batch = node.batch(turns.collect(), size, size);
    let work = works(node.transact(&batch).0);
    let batch = node.batch(work.iter().map(ack).collect(), size, size);
    let claimed = claims(node.transact(&batch).0);
    let ends = claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
    node.run(ends.collect());
    4
}
