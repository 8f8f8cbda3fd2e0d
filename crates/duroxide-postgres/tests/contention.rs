//! Many nodes that fetch, renew, commit and acknowledge at once.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use duroxide_postgres::{PostgresOptions, PostgresProvider};
use duroxide_provider::{
    OrchestrationFetch, Provider, invariant,
    store::{Batch, Done, Fault, Op, StoreEngine, StoreReader},
    testing::{Turn, items, scenario::LEASE},
};
use fixture::{Node, ack, commit, fresh_options, ids, send, sql::Admin, start};

const NODES: usize = 6;
const INSTANCES: usize = 60;
/// The number of activities of each instance, one after the other.
const ACTIVITIES: u64 = 3;

/// Counters of all nodes together.
#[derive(Default)]
struct Total {
    ended: AtomicUsize,
    lost_races: AtomicUsize,
    deadlocks: AtomicUsize,
}

impl Total {
    /// Carries out a batch, and repeats it while other transactions conflict.
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
/// instances that other nodes hold, and claims again.
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

/// 24.2: locks are taken in one order, so no deadlock occurs.
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

/// 24.2: batches that send to the same instances, each in another order.
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

/// An event is raised for an instance that waits while another transaction writes the instance's row. The event goes by the row
/// that the other transaction leaves: the instance still waits and is woken, or another event has woken it, and one claim takes
/// both events.
#[test]
fn an_event_that_waits_for_the_row_of_its_instance_wakes_it_as_it_is_then() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let schema = &options.schema;
    let (mut node, mut sender) = (Node::open(&options, 1), Node::open(&options, 2));
    // The first transaction of a node reads the intake.
    sender.run(Vec::new());
    for (id, wakes_too) in [("still-waiting", false), ("woken-meanwhile", true)] {
        node.run(vec![start(id)]);
        let claimed = node.claim(1).0.remove(0);
        node.run(vec![commit(&claimed, Turn::first(id))]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (sender, other) = (&mut sender, &mut node);
        std::thread::scope(|scope| {
            runtime.block_on(async {
                let admin = Admin::connect(server).await;
                admin.run("BEGIN").await;
                admin
                    .run(&format!("UPDATE {schema}.instance SET updated_at = updated_at WHERE id = '{id}'"))
                    .await;
                let raising = scope.spawn(|| sender.raise(id));
                wait_for_blocked(&admin, 1).await;
                let waking = wakes_too.then(|| scope.spawn(|| other.raise(id)));
                wait_for_blocked(&admin, 1 + usize::from(wakes_too)).await;
                admin.run("COMMIT").await;
                raising.join().unwrap();
                waking.into_iter().for_each(|waking| _ = waking.join().unwrap());
            });
        });
        let claimed = node.claim(2).0;
        let messages: Vec<usize> = claimed.iter().map(|claim| claim.messages.len()).collect();
        assert_eq!(messages, [1 + usize::from(wakes_too)], "{id}");
    }
    let violations = invariant::check(&node.engine.snapshot().unwrap());
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Waits until this many statements wait for other transactions.
async fn wait_for_blocked(admin: &Admin, statements: usize) {
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))
        OR EXISTS (SELECT 1 FROM unnest(pg_blocking_pids(pid)) AS of (pid)
            WHERE pg_backend_pid() = ANY (pg_blocking_pids(of.pid)))";
    loop {
        // In a transaction, the first look at the statistics would be repeated for ever.
        admin.run("SELECT pg_stat_clear_snapshot()").await;
        let count: i64 = admin.client().query_one(blocked, &[]).await.unwrap().get(0);
        if count >= statements as i64 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a node has locked this row.
async fn wait_for_locked(admin: &Admin, lock: &str) {
    let look = format!("{lock} SKIP LOCKED");
    while !admin.client().query(&look, &[]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// 24.4: a provider's transaction that the database ends because of deadlocks is repeated: its caller does not notice, and nothing is
/// doubled. The operator's deadlock_timeout is longer than that of the provider's connection, so the provider always loses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_ends_by_deadlocks_is_repeated() {
    const DEADLOCKS: usize = 4;
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let schema = options.schema.to_string();
    let claiming = PostgresProvider::open(options.clone()).await.unwrap();
    for id in ["a", "b"] {
        claiming.enqueue_for_orchestrator(items::start(id), None).await.unwrap();
    }
    let claims = claiming.fetch_orchestration_items(&OrchestrationFetch::new(LEASE, LEASE)).await.unwrap();
    assert_eq!(claims[0].instance, "a");

    let (admin, watcher) = (Admin::connect(server).await, Admin::connect(server).await);
    let lock = |id: &str| format!("SELECT 1 FROM {schema}.instance WHERE id = '{id}' FOR UPDATE");
    admin.run(&format!("SET deadlock_timeout = '1min'; BEGIN; {}; SAVEPOINT second", lock("b"))).await;
    // Another provider has none of the rows cached, so it locks them one after the other, in the order of their
    // numbers.
    let store = PostgresProvider::open(options).await.unwrap();
    let committing = tokio::spawn(async move {
        let mut round = Turn::first("a").round();
        round.orchestrator_items.push(items::raise("b", "from a"));
        (store.commit_round(&claims[0].lock_token, round).await, store)
    });
    for _ in 0..DEADLOCKS {
        // The provider holds the first row and waits for the second.
        wait_for_locked(&watcher, &lock("a")).await;
        // The operator gets the first row although it still holds the second: the provider's transaction was ended.
        admin.run(&lock("a")).await;
        assert!(!committing.is_finished(), "it is repeated");
        admin.run("ROLLBACK TO second").await;
    }
    admin.run("ROLLBACK").await;

    let (committed, store) = committing.await.unwrap();
    committed.unwrap();
    assert_eq!(store.read("a").await.unwrap().len(), 1);
    let snapshot = store.snapshot().await.unwrap();
    let b = snapshot.instances.iter().find(|instance| instance.instance == "b").unwrap();
    assert_eq!(b.messages.len(), 2, "its start and one event: {:?}", b.messages);
    let violations = invariant::check(&snapshot);
    assert!(violations.is_empty(), "{violations:#?}");
}
