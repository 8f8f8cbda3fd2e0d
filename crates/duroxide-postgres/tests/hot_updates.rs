//! Columns that change with every turn are in no index: most updates of an instance write none (heap-only tuples).
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod fixture;

use std::{sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_postgres::{PostgresOptions, PostgresProvider};
use duroxide_provider::{
    Provider,
    store::{InstanceFetch, StoreEngine as _, StoreReader as _},
    testing::{Turn, items, scenario},
};
use fixture::{Node, ack, commit, fresh_options, ids, sql::Admin, start};
use postgres_server::Server;
use tokio_postgres::Row;

/// A lease whose end a test waits for. On a busy machine the steps before its end take a while.
const SHORT: Duration = Duration::from_secs(4);

/// Runs a question of the operator.
fn asked(server: &Server, sql: &str) -> Row {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { Admin::connect(server).await.client().query_one(sql, &[]).await.unwrap() })
}

/// A life of instances, of which each step is a transaction: ready, claimed, waiting, ready, claimed, ended.
fn tour(node: &mut Node, prefix: &str, size: usize) {
    node.run(ids(prefix, size).iter().map(|id| start(id)).collect());
    let claimed = node.claim(size).0;
    node.run(claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity())).collect());
    let work = node.work(size).0;
    node.run(work.iter().map(ack).collect());
    let claimed = node.claim(size).0;
    assert_eq!(claimed.len(), size);
    let turns = claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
    node.run(turns.collect());
}

/// Of the five updates of an instance only the last one changes an indexed column.
#[test]
fn most_updates_of_an_instance_write_no_index() {
    let Some(server) = Server::own() else { return };
    let options = fresh_options(&server);
    let mut node = Node::open(&options, 1);
    let tours = 40;
    for number in 0..tours {
        tour(&mut node, &format!("tour-{number}"), 20);
    }
    // Sessions report their statistics at the latest when they end.
    drop(node);
    let counts = format!(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
        WHERE schemaname = '{}' AND relname = 'instance'",
        options.schema
    );
    let (mut updates, mut hot) = (0, 0);
    while updates < tours * 20 * 5 {
        let row = asked(&server, &counts);
        (updates, hot) = (row.get::<_, i64>(0), row.get::<_, i64>(1));
    }
    println!("{hot} of {updates} updates wrote no index");
    assert!(hot * 2 > updates, "{hot} of {updates} updates wrote no index");
}

/// A node with an instance that waits for an activity, while its first lease, which was short, has not ended.
fn waiting(options: &PostgresOptions, id: &str) -> Node {
    let mut node = Node::open(options, 1);
    node.run(vec![start(id)]);
    let claimed = node.claim_with(short_lease());
    node.run(vec![commit(&claimed[0], Turn::first(id).activity())]);
    node
}

fn short_lease() -> InstanceFetch {
    InstanceFetch { lock_timeout: SHORT, ..scenario::batch_fetch(1) }
}

/// `look_at` of an instance, and its revision.
fn look(server: &Server, options: &PostgresOptions) -> (Option<i64>, i64) {
    let row = asked(server, &format!("SELECT look_at, revision FROM {}.instance", options.schema));
    (row.get(0), row.get(1))
}

/// The end of the first lease stays in the index while the instance waits for something else. Then the instance is read once,
/// which changes only `look_at`, and not again.
#[test]
fn an_instance_that_waits_beyond_its_first_lease_is_read_once() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = waiting(&options, "waits");
    let lease_end = node.at.saturating_add(SHORT);
    let (look_at, revision) = look(server, &options);
    assert!(look_at.is_some(), "the lease has not ended");
    while node.at <= lease_end {
        node.run(Vec::new());
    }
    assert_eq!(look(server, &options), (None, revision), "it waits for nothing that has a time");
    let mut batch = node.batch(Vec::new(), 0, 0);
    batch.promote = false;
    node.transact(&batch);
    assert_eq!(node.engine.next_wake(Timestamp::ZERO).unwrap(), None, "nobody looks at it again");
    assert!(node.engine.snapshot().is_ok());
}

/// An abandoned lease is found by the end of an earlier one, which the index still has, and no later than it ends.
#[test]
fn a_later_lease_is_found_when_it_ends() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = waiting(&options, "left");
    let work = node.work(1).0;
    node.run(vec![ack(&work[0])]);
    assert_eq!(node.claim_with(short_lease()).len(), 1);
    let mut other = Node::open(&options, 2);
    let again = loop {
        let again = other.claim(1).0;
        if !again.is_empty() {
            break again;
        }
    };
    assert_eq!(again[0].attempt_count, 2, "the lease that ended counts");
    assert!(other.engine.snapshot().is_ok());
}

/// Takes the schema back to version 3, rows included.
fn downgrade(schema: &str) -> String {
    format!(
        "ALTER TABLE {schema}.instance DROP COLUMN look_at, DROP COLUMN ended;
        DROP TABLE {schema}.ready_instance;
        CREATE INDEX instance_ready ON {schema}.instance (route, ready_number) WHERE ready_number IS NOT NULL AND NOT is_stray;
        CREATE INDEX instance_wait ON {schema}.instance (wait_until, number) WHERE wait_until IS NOT NULL;
        CREATE INDEX instance_status ON {schema}.instance (status, number) WHERE known;
        ALTER SEQUENCE {schema}.numbers RENAME TO number_blocks;
        ALTER TABLE {schema}.intake DROP COLUMN inserted_at;
        UPDATE {schema}.meta SET schema_version = 3"
    )
}

/// Instances that are ready, leased, waiting for a timer and ended go on in a schema that is upgraded.
#[test]
fn a_schema_with_running_instances_is_upgraded() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    tour(&mut node, "ended", 2);
    node.run(vec![start("timer"), start("leased")]);
    let claimed = node.claim_with(InstanceFetch { max: 2, free_slots: 2, ..short_lease() });
    assert_eq!(claimed.len(), 2);
    let timer = claimed.iter().find(|claim| claim.instance == "timer").unwrap();
    let due = node.at.as_millis() + 200;
    node.run(vec![commit(timer, Turn::first("timer").timer(due)), start("ready")]);
    let before = node.engine.snapshot().unwrap();
    let schema = options.schema.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { Admin::connect(server).await.run(&downgrade(&schema)).await });

    let mut upgraded = Node::open(&options, 2);
    assert_eq!(upgraded.engine.snapshot().unwrap().instances, before.instances);
    let mut found = Vec::new();
    while found.len() < 3 {
        found.extend(upgraded.claim(1).0.into_iter().map(|claim| claim.instance));
    }
    found.sort();
    assert_eq!(found, ["leased", "ready", "timer"]);
}

/// A node that works from its cache reads no list, but reads the first ready rows now and then. The dead entries of
/// claimed rows are not read each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_works_from_its_cache_moves_the_beginning_of_its_lists() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let store = Arc::new(PostgresProvider::open(fresh_options(&server)).await.unwrap());
    let lease = Duration::from_secs(30);
    let mut begins = Vec::new();
    for number in 0.. {
        store.enqueue_for_orchestrator(items::start(&format!("i-{number}")), None).await.unwrap();
        let wait = Duration::from_secs(10);
        assert!(store.fetch_orchestration_item(lease, wait, None).await.unwrap().is_some());
        begins = looks(&server);
        if begins.last().is_some_and(|begin| *begin > 0) && begins.len() > 2 {
            break;
        }
        assert!(begins.len() < 20, "every look begins at the beginning: {begins:?}");
    }
    println!("looks began at {begins:?}");
}

/// Where reads of the first ready instance began, of those that compare a cache with the store.
fn looks(server: &Server) -> Vec<i64> {
    let log = String::from_utf8_lossy(&std::fs::read(server.log()).unwrap()).into_owned();
    let mut begins = Vec::new();
    for look in log.split("AS has_others").skip(1) {
        let Some(detail) = look.split("$1 = '").nth(1) else { continue };
        begins.extend(detail.split('\'').next().and_then(|begin| begin.parse::<i64>().ok()));
    }
    begins
}
