//! The load of idle nodes on the server.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::{Runtime, registry::ActivityRegistry},
};
use futures_util::{StreamExt as _, stream};
use postgres_server::Server;

use crate::{
    fixture::{node, within},
    schema::Schema,
};

/// Each thing that an idle node does falls into it, the search for work that no node can take once.
const WINDOW: Duration = Duration::from_secs(62);
/// How long instances may take to begin to wait.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A node with the options that users have.
async fn idle_node(schema: &Schema) -> Arc<Runtime> {
    let store = schema.open().await;
    let waits = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Echo", "").await?;
        let timer = ctx.schedule_timer(Duration::from_secs(3_600));
        ctx.select2(ctx.schedule_wait("go"), timer).await;
        Ok(String::new())
    };
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let orchestrations = OrchestrationRegistry::builder().register("Waits", waits).build();
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    node(&store, activities, orchestrations, RuntimeOptions::default()).await
}

/// The requests of connections to a server, by its log.
#[derive(Clone, Copy)]
struct Asked {
    /// Single statements, and those between a `BEGIN` and its `COMMIT` together.
    transactions: usize,
    statements: usize,
}

fn asked(server: &Server) -> Asked {
    let log = std::fs::read(server.log()).unwrap();
    let mut asked = Asked { transactions: 0, statements: 0 };
    let mut inside = BTreeSet::new();
    for line in String::from_utf8_lossy(&log).lines() {
        let Some((connection, statement)) = line.split_once(" LOG:  ") else { continue };
        if !statement.starts_with("execute ") && !statement.starts_with("statement: ") {
            continue;
        }
        asked.statements += 1;
        asked.transactions += usize::from(!inside.contains(connection));
        match statement {
            begin if begin.contains(": BEGIN") => _ = inside.insert(connection.to_owned()),
            end if end.contains(": COMMIT") || end.contains(": ROLLBACK") => _ = inside.remove(connection),
            _ => {}
        }
    }
    asked
}

/// Counts the requests of this many idle runtimes while this many instances wait. Each has a store of its own, like a process.
/// Returns the transactions and the statements of one node in a second.
async fn sent_by_idle_runtimes(nodes: usize, instances: usize) -> Option<(f64, f64)> {
    let server = Server::own()?;
    server.configure("log_statement = 'all'\nlog_line_prefix = '%c '\nmax_connections = 100");
    tokio::task::block_in_place(|| server.restart_immediately());
    let schema = Schema::on(&server, &server.tcp_url());
    let client = Client::new(schema.open_named("client").await);
    let mut running = Vec::new();
    for _ in 0..nodes {
        running.push(idle_node(&schema).await);
    }
    let start = |number| client.start_orchestration(format!("i-{number}"), "Waits", "");
    stream::iter(0..instances)
        .map(start)
        .buffer_unordered(64)
        .for_each(|started| async { started.unwrap() })
        .await;
    let admin = schema.admin().await;
    let waiting =
        format!("SELECT count(*) FROM {}.history WHERE data LIKE '%\"ExternalSubscribed\"%'", schema.name());
    let count = async || admin.query_one(&waiting, &[]).await.unwrap().get::<_, i64>(0);
    within(WAIT_MAX, "all instances wait", async || count().await == instances as i64).await;
    drop(client);
    schema.reach_nodes(nodes).await;
    let (before, begin) = (asked(&server), Instant::now());
    tokio::time::sleep(WINDOW).await;
    let (after, seconds) = (asked(&server), begin.elapsed().as_secs_f64());
    let each = |made: usize| made as f64 / seconds / nodes as f64;
    let transactions = each(after.transactions - before.transactions);
    let statements = each(after.statements - before.statements);
    println!("{transactions:.2} transactions and {statements:.2} statements per second and node");
    for node in running {
        node.shutdown(None).await;
    }
    Some((transactions, statements))
}

/// Ten nodes that wait for work, and waiting instances. Half of the requests of each node are checks for dead nodes; the
/// rest is a poll and a heartbeat, twice a minute each, and a search for work that no node can take, once a minute. Each of
/// these is a transaction of up to eight statements, which are sent together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_idle_runtimes_send_fewer_than_one_statement_per_second_each() {
    let Some((_, statements)) = sent_by_idle_runtimes(10, 5).await else { return };
    assert!(statements < 1.0, "{statements:.2} statements per second and node");
}

/// A single process checks for dead nodes once in ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_idle_runtime_sends_fewer_than_one_statement_per_second() {
    let Some((_, statements)) = sent_by_idle_runtimes(1, 5).await else { return };
    assert!(statements < 1.0, "{statements:.2} statements per second and node");
}

/// Two to four processes check more often each, so that a dead one is found in time. Waiting instances cost nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_idle_runtimes_send_fewer_than_one_transaction_per_second_each_while_10_000_instances_wait() {
    let Some((transactions, statements)) = sent_by_idle_runtimes(3, 10_000).await else { return };
    assert!(transactions < 1.0, "{transactions:.2} transactions per second and node");
    // 0.7 of the checks, and 0.5 of everything else.
    assert!(statements < 1.5, "{statements:.2} statements per second and node");
}
