//! What the database does for a fetch, a commit and an ack, as it says itself: plans of prepared statements, written by
//! `auto_explain` into the server's log.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod fixture;

use duroxide_core::Timestamp;
use duroxide_postgres::PostgresOptions;
use duroxide_provider::testing::Turn;
use fixture::{Node, ack, commit, fresh_options, ids, sql::Admin, start};
use postgres_server::Server;

const FUTURE_TIMERS: i64 = 100_000;
/// No step of a plan may touch more rows of a large table.
const ROWS_MAX: f64 = 200.0;
const LARGE: [&str; 4] = ["instance", "message", "execution", "history"];

/// Copies the rows of one instance that waits for a timer.
const COPY: &str = "
INSERT INTO {s}.instance SELECT (jsonb_populate_record(instance, jsonb_build_object(
    'number', 1000000 + n, 'id', 'copy-' || n, 'wait_until', wait_until + n))).*
    FROM {s}.instance, generate_series(1, {n}) AS n WHERE id = 'waits';
INSERT INTO {s}.execution SELECT (jsonb_populate_record(execution, jsonb_build_object('instance', 1000000 + n))).*
    FROM {s}.execution, generate_series(1, {n}) AS n WHERE instance = (SELECT number FROM {s}.instance WHERE id = 'waits');
INSERT INTO {s}.history SELECT (jsonb_populate_record(history, jsonb_build_object('instance', 1000000 + n))).*
    FROM {s}.history, generate_series(1, {n}) AS n WHERE instance = (SELECT number FROM {s}.instance WHERE id = 'waits');
INSERT INTO {s}.message SELECT (jsonb_populate_record(message, jsonb_build_object(
    'instance', 1000000 + n, 'number', 1000000 + n, 'due_at', due_at + n))).*
    FROM {s}.message, generate_series(1, {n}) AS n WHERE instance = (SELECT number FROM {s}.instance WHERE id = 'waits');
ALTER SEQUENCE {s}.number_block RESTART WITH 100000000;
ANALYZE;
";

/// A step of a plan that reads a table.
struct Step {
    table: String,
    line: String,
    is_whole_table: bool,
    /// Rows of one run, times the number of runs.
    rows: f64,
}

/// Reads a line such as `Index Scan using a on b  (cost=...) (actual time=0.1..0.2 rows=3 loops=2)`.
fn step(line: &str) -> Option<Step> {
    let (reads, costs) = line.split_once("  (cost=")?;
    let table = reads.split(" on ").nth(1)?.split_whitespace().next()?.to_owned();
    let number = |key: &str| -> Option<f64> {
        costs.split_once("(actual ")?.1.split(key).nth(1)?.split([' ', ')']).next()?.parse().ok()
    };
    let rows = number("rows=")? * number("loops=")?;
    Some(Step { table, line: line.trim().to_owned(), is_whole_table: reads.contains("Seq Scan"), rows })
}

/// A life of one instance and of a batch of instances, by a node that has prepared its statements long ago.
fn tour(node: &mut Node, prefix: &str, size: usize) {
    let ids = ids(prefix, size);
    node.run(ids.iter().map(|id| start(id)).collect());
    let claimed = node.claim(size).0;
    assert_eq!(claimed.len(), size);
    node.run(claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity())).collect());
    let work = node.work(size).0;
    node.run(work.iter().map(ack).collect());
    let claimed = node.claim(size).0;
    let turns = claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
    node.run(turns.collect());
}

fn run(server: &Server, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { Admin::connect(server).await.run(sql).await });
}

/// What the server wrote into its log while `act` ran.
fn logged(server: &Server, act: impl FnOnce()) -> String {
    let before = std::fs::read(server.log()).unwrap().len();
    act();
    String::from_utf8_lossy(&std::fs::read(server.log()).unwrap()[before..]).into_owned()
}

fn store_with_future_timers(server: &Server) -> PostgresOptions {
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    node.run(vec![start("waits")]);
    let claimed = node.claim(1).0;
    let due = node.at.as_millis() + 3_600_000;
    node.run(vec![commit(&claimed[0], Turn::first("waits").timer(due))]);
    assert!(node.at > Timestamp::ZERO);
    let copy = COPY.replace("{s}", options.schema.as_str()).replace("{n}", &FUTURE_TIMERS.to_string());
    run(server, &copy);
    options
}

/// A fetch reads what is due, and looks at nothing else, however much is due later. A statement that was prepared when the
/// tables were empty gets a generic plan after five runs; that one is looked at, too.
#[test]
fn timers_that_are_due_later_cost_a_fetch_nothing() {
    let Some(server) = Server::own() else { return };
    server.configure(
        "shared_preload_libraries = 'auto_explain'\nauto_explain.log_analyze = on\nauto_explain.log_timing = off
        auto_explain.log_min_duration = 0",
    );
    server.restart_immediately();
    let options = store_with_future_timers(&server);
    let mut node = Node::open(&options, 2);
    for warm_up in 0..8 {
        tour(&mut node, &format!("warm-up-{warm_up}"), 3);
    }
    let log = logged(&server, || {
        tour(&mut node, "one", 1);
        tour(&mut node, "many", 20);
    });
    let steps: Vec<Step> = log.lines().filter_map(step).collect();
    let large: Vec<&Step> = steps.iter().filter(|step| LARGE.contains(&step.table.as_str())).collect();
    assert!(large.len() > 20, "the plans are in the log: {log}");
    for step in large {
        assert!(!step.is_whole_table, "{}", step.line);
        assert!(step.rows <= ROWS_MAX, "{}", step.line);
    }
    for line in log.lines().filter(|line| line.contains("Rows Removed by")) {
        let rows: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(rows <= ROWS_MAX, "{line} in {log}");
    }
}
