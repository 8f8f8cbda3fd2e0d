//! The cost and the notifications of an idle store.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod fixture;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide_postgres::{PostgresProvider, TableHealth};
use duroxide_provider::{
    NodeAnnouncement, OrchestrationClaim, Provider,
    testing::{Turn, items},
};
use fixture::{Node, commit, fresh_options, sql::Admin, start};
use postgres_server::Server;

const NODES: usize = 10;

#[tokio::test]
async fn a_healthy_store_shows_its_tables_and_how_long_work_waits() {
    let Some(server) = postgres_server::server() else { return };
    let store = PostgresProvider::open(fresh_options(server)).await.unwrap();
    let health = store.health().await.unwrap();
    assert!(
        health.tables.iter().any(|table| table.name == "instance" && table.index_bytes > 0),
        "{health:?}"
    );
    assert_eq!((health.oldest_ready_instance, health.oldest_ready_activity), (None, None));
    assert_eq!(health.overdue, None);

    store.enqueue_for_orchestrator(items::start("a"), None).await.unwrap();
    let first = store.health().await.unwrap().oldest_ready_instance.unwrap();
    let second = store.health().await.unwrap().oldest_ready_instance.unwrap();
    assert!(first < second && second < Duration::from_secs(600), "{first:?} {second:?}");
}

const HOUR: Duration = Duration::from_secs(3_600);

/// At least so long, and less than an hour more: the machine may be slow.
fn assert_about(what: &str, found: Option<Duration>, expected: Duration) {
    assert!(found.is_some_and(|found| found >= expected && found < expected + HOUR), "{what}: {found:?}");
}

/// Each age is that of the item it is named after. A timer waits since it is due, an activity since it was scheduled,
/// although its instance has changed since.
#[tokio::test]
async fn the_ages_are_those_of_the_waiting_items() {
    let Some(server) = Server::own() else { return };
    let options = fresh_options(&server);
    let (admin, schema) = (Admin::connect(&server).await, options.schema.to_string());
    let content = options.clone();
    let filled = std::thread::spawn(move || {
        let mut node = Node::open(&content, 1);
        node.run(vec![start("scheduled"), start("overdue")]);
        let claimed = node.claim(2).0;
        let turn = |claim: &OrchestrationClaim| commit(claim, Turn::first(&claim.instance).activity());
        node.run(vec![turn(&claimed[0])]);
        node.run(vec![start("fired")]);
    });
    let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let hours = |hours: u64| hours * 3_600_000_000;
    filled.join().unwrap();
    let store = PostgresProvider::open(options).await.unwrap();
    // Rows that other transactions have locked are not promoted.
    let age = format!(
        "BEGIN; UPDATE {schema}.message SET enqueued_at = {now} - {long}, due_at = {now} - {due} WHERE instance = (SELECT number
            FROM {schema}.instance WHERE id = 'fired');
        UPDATE {schema}.history SET data = jsonb_set(data::jsonb, '{{timestamp_ms}}', to_jsonb(({now} - {scheduled}) / 1000))::text;
        UPDATE {schema}.instance SET wait_until = {now} - {overdue}, look_at = {now} - {overdue} WHERE id = 'overdue'; COMMIT;
        BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM {schema}.instance WHERE id = 'overdue' FOR UPDATE",
        long = hours(9),
        due = hours(2),
        scheduled = hours(4),
        overdue = hours(6),
    );
    admin.run(&age).await;
    let began = Instant::now();
    let health = store.health().await.unwrap();
    assert_about("instance", health.oldest_ready_instance, 2 * HOUR);
    assert_about("activity", health.oldest_ready_activity, 4 * HOUR);
    assert_about("overdue", health.overdue, 6 * HOUR);
    let (open_for, health) = (began.elapsed(), store.health().await.unwrap());
    assert_about("transaction", health.oldest_transaction, open_for);
    admin.run("COMMIT").await;
}

/// Rows that callers have written and that nobody takes over, because the lock of the intake is held here.
#[tokio::test]
async fn the_intake_shows_how_many_rows_wait_and_for_how_long() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let (admin, schema) = (Admin::connect(server).await, options.schema.to_string());
    let store = PostgresProvider::open(options).await.unwrap();
    let waiting = async || {
        let health = store.health().await.unwrap();
        (health.intake_rows, health.oldest_intake)
    };
    assert_eq!(waiting().await, (0, None));
    let lock = format!("hashtextextended('duroxide intake {schema}', 0)");
    let insert = format!(
        "INSERT INTO {schema}.intake (kind, instance_id, name, data) SELECT 'start', 'i-' || n, 'hello', ''"
    );
    admin.run(&format!("SELECT pg_advisory_lock({lock}); {insert} FROM generate_series(1, 3) AS n")).await;
    let (rows, first) = waiting().await;
    assert_eq!(rows, 3);
    assert_about("intake", first, Duration::ZERO);
    assert!(waiting().await.1 > first, "it waits");

    let age = |hours: u64, row: u64| {
        format!(
            "UPDATE {schema}.intake SET inserted_at = inserted_at - {hours} * 3600000000 WHERE instance_id = 'i-{row}';"
        )
    };
    admin.run(&(age(2, 1) + &age(1, 2))).await;
    let (rows, oldest) = waiting().await;
    assert_eq!(rows, 3);
    assert_about("intake", oldest, 2 * HOUR);
    admin.run(&format!("{insert} FROM generate_series(4, 100100) AS n")).await;
    assert_eq!(waiting().await.0, 100_000, "more are not counted");

    admin.run(&format!("DELETE FROM {schema}.intake WHERE number > 3; SELECT pg_advisory_unlock({lock}), pg_notify('{schema}', 'intake')"))
        .await;
    let fetched = store.fetch_orchestration_item(HOUR, Duration::from_secs(60), None).await.unwrap();
    assert!(fetched.is_some(), "the rows are taken over");
    assert_eq!(waiting().await, (0, None));
}

/// Sizes and dead rows as the server counts them. It does so in the background, so they are waited for.
#[tokio::test]
async fn live_and_dead_rows_updates_and_vacuums_are_counted() {
    let Some(server) = Server::own() else { return };
    server.configure("autovacuum = off");
    server.restart_immediately();
    let options = fresh_options(&server);
    let store = PostgresProvider::open(options.clone()).await.unwrap();
    let schema = options.schema.to_string();
    let rows = format!(
        "INSERT INTO {schema}.kv SELECT n, 'key', 'value', 0 FROM generate_series(1, 100) AS n;
        UPDATE {schema}.kv SET value = 'other' WHERE instance <= 10; DELETE FROM {schema}.kv WHERE instance > 60"
    );
    // A connection reports its statistics at the latest when it ends.
    Admin::connect(&server).await.run(&rows).await;
    let reaches = async |is_counted: fn(&TableHealth) -> bool| loop {
        let health = store.health().await.unwrap();
        let table = health.tables.into_iter().find(|table| table.name == "kv").unwrap();
        if is_counted(&table) {
            break table;
        }
    };
    let table = reaches(|table| table.dead_rows == 50).await;
    assert_eq!((table.live_rows, table.updates, table.vacuumed), (60, 10, None), "{table:?}");
    assert!(
        table.hot_updates <= table.updates && table.table_bytes > 0 && table.index_bytes > 0,
        "{table:?}"
    );
    assert!((table.dead_share() - 50.0 / 110.0).abs() < 0.001, "{table:?}");
    Admin::connect(&server).await.run(&format!("VACUUM {schema}.kv")).await;
    let table = reaches(|table| table.dead_rows == 0).await;
    assert_about("vacuum", table.vacuumed, Duration::ZERO);
}

/// Statements in the server's log behind a place, and how many of them search dead nodes.
fn statements(server: &Server, behind: usize) -> (usize, usize) {
    let log = std::fs::read(server.log()).unwrap();
    let log = String::from_utf8_lossy(log.get(behind..).unwrap_or_default()).into_owned();
    let is_statement = |line: &&str| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ");
    (log.lines().filter(is_statement).count(), log.matches("AS listeners").count())
}

/// Ten idle nodes take turns in searching dead nodes: each sends less than one statement a second.
#[tokio::test]
async fn ten_idle_nodes_send_fewer_than_one_statement_per_second_each() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let options = fresh_options(&server);
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let store = Arc::new(PostgresProvider::open(options.clone()).await.unwrap());
        let announcement = NodeAnnouncement { name: format!("node-{number}"), ..NodeAnnouncement::default() };
        let membership = store.join_node(&announcement).await.unwrap().unwrap();
        let waiting = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                let hour = Duration::from_secs(3_600);
                store.fetch_orchestration_item(Duration::from_secs(30), hour, None).await
            }
        });
        nodes.push((store, membership, waiting));
    }
    // Each has checked once or more, and knows the others.
    reach_looks(&server, 0, 3 * NODES).await;
    let (behind, begin) = (std::fs::read(server.log()).unwrap().len(), Instant::now());
    reach_looks(&server, behind, 2 * NODES).await;
    let (all, _) = statements(&server, behind);
    let each = all as f64 / begin.elapsed().as_secs_f64() / NODES as f64;
    println!("{all} statements in {:?}, {each:.2} per second and node", begin.elapsed());
    assert!(each < 1.0, "{each:.2} statements per second and node");
    nodes.iter().for_each(|(_, _, waiting)| waiting.abort());
}

/// Waits until nodes have checked so often. A line in a log sends no signal, so this polls.
async fn reach_looks(server: &Server, behind: usize, looks: usize) {
    while statements(server, behind).1 < looks {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
