//! Many nodes that fetch, renew, commit and acknowledge at once.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::sync::atomic::{AtomicUsize, Ordering};

use duroxide_postgres::PostgresOptions;
use duroxide_provider::{
    invariant,
    store::{Batch, Done, Fault, Op, StoreEngine, StoreReader},
    testing::{Turn, items, scenario::LEASE},
};
use fixture::{Node, ack, commit, fresh_options, ids, send, start};

const NODES: usize = 6;
const INSTANCES: usize = 60;
/// Each instance runs so many activities, one after the other.
const ACTIVITIES: u64 = 3;

/// What all nodes have done together.
#[derive(Default)]
struct Total {
    ended: AtomicUsize,
    lost_races: AtomicUsize,
    deadlocks: AtomicUsize,
}

impl Total {
    /// Carries out a batch, again and again while others are in the way.
    fn transact(&self, node: &mut Node, batch: &Batch<'_>) -> Done {
        loop {
            match node.engine.transact(batch) {
                Ok(done) => return done,
                Err(Fault::LostRace(failure)) => {
                    let is_deadlock = failure.message.contains("40P01");
                    let count = if is_deadlock { &self.deadlocks } else { &self.lost_races };
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Err(fault) => unreachable!("{fault:?}"),
            }
        }
    }
}

/// Works until all instances have ended: each batch renews, commits and acknowledges what the last one claimed, sends to
/// instances that others hold, and claims again.
fn work(options: &PostgresOptions, number: usize, total: &Total) {
    let mut node = Node::open(options, number as u128 + 1);
    let mut ops: Vec<Op> = Vec::new();
    while total.ended.load(Ordering::Relaxed) < INSTANCES {
        let batch = node.batch(std::mem::take(&mut ops), 10, 10);
        let done = total.transact(&mut node, &batch);
        for answer in &done.answers {
            assert!(answer.is_ok(), "{answer:?}");
        }
        let turns: Vec<_> = done.instances.into_iter().flatten().flat_map(|claimed| claimed.items).collect();
        let works: Vec<_> = done.activities.into_iter().flatten().flat_map(|claimed| claimed.items).collect();
        for claim in &turns {
            ops.push(Op::RenewInstance { token: claim.lock_token.clone(), extend_for: LEASE });
        }
        for work in &works {
            ops.push(Op::RenewActivity { token: work.lock_token.clone(), extend_for: LEASE });
        }
        // In the opposite order of the claims, so that batches do not agree on one by chance.
        for claim in turns.iter().rev() {
            let position = claim.position.map_or(0, |position| position.last_event_id);
            let turn = match position {
                0 => Turn::first(&claim.instance).activity(),
                last if last < 2 * ACTIVITIES => Turn::later(claim).completed(last).activity(),
                last => {
                    total.ended.fetch_add(1, Ordering::Relaxed);
                    Turn::later(claim).completed(last).complete("done")
                }
            };
            ops.push(commit(claim, turn));
        }
        ops.extend(works.iter().rev().map(ack));
    }
    let batch = node.batch(ops, 0, 0);
    total.transact(&mut node, &batch);
}

/// Locks are taken in one order, so nobody waits for each other in a circle.
#[test]
fn renewals_fetches_commits_and_acks_of_many_nodes_do_not_deadlock() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut first = Node::open(&options, 99);
    first.run(ids("i", INSTANCES).iter().map(|id| start(id)).collect());
    let total = Total::default();
    std::thread::scope(|scope| {
        for number in 0..NODES {
            let (options, total) = (&options, &total);
            scope.spawn(move || work(options, number, total));
        }
    });
    println!("{} races were lost", total.lost_races.load(Ordering::Relaxed));
    assert_eq!(total.deadlocks.load(Ordering::Relaxed), 0, "deadlocks");
    let snapshot = first.engine.snapshot().unwrap();
    let violations = invariant::check(&snapshot);
    assert!(violations.is_empty(), "{violations:#?}");
    for instance in &snapshot.instances {
        assert_eq!(instance.executions[0].status, "Completed", "{}", instance.instance);
        assert_eq!(instance.executions[0].events.len() as u64, 2 + 2 * ACTIVITIES, "{}", instance.instance);
    }
}

/// Batches that send to the same instances, each in another order.
#[test]
fn messages_to_the_same_instances_in_any_order_do_not_deadlock() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let names = ids("i", 20);
    let mut first = Node::open(&options, 99);
    first.run(names.iter().map(|id| start(id)).collect());
    let total = Total::default();
    std::thread::scope(|scope| {
        for number in 0..NODES {
            let (options, total, names) = (&options, &total, &names);
            scope.spawn(move || {
                let mut node = Node::open(options, number as u128 + 1);
                for round in 0..15 {
                    let mut order: Vec<&String> = names.iter().collect();
                    order.rotate_left((number * 7 + round) % names.len());
                    if number % 2 == 0 {
                        order.reverse();
                    }
                    let ops = order.iter().map(|id| send(items::raise(id, "go"))).collect();
                    let batch = node.batch(ops, 0, 0);
                    total.transact(&mut node, &batch);
                }
            });
        }
    });
    assert_eq!(total.deadlocks.load(Ordering::Relaxed), 0, "deadlocks");
    let snapshot = first.engine.snapshot().unwrap();
    assert!(snapshot.instances.iter().all(|instance| instance.messages.len() == 1 + NODES * 15));
}
