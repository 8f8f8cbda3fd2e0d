//! A node that was ended although its process lives.

use std::time::Duration;

use duroxide::{Client, OrchestrationRegistry, runtime::registry::ActivityRegistry};

use crate::{
    faults::link::Link,
    fixture::{ended, node, output, quick_options, until},
    schema::Schema,
    takeover::slow::{self, OTHER, SLOW},
};

/// Longer than any wait of a test: items that are taken over earlier did not wait for a lease.
const LEASE: Duration = Duration::from_secs(600);

/// The number of the lock by which a node shows that it lives.
const KEY: &str = "hashtextextended('duroxide node {s} ' || $1::text, 0)";
const IS_KEY: &str = "locktype = 'advisory' AND objsubid = 1
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('duroxide node {s} ' || $1::text, 0)";

/// 24.7, D10: its session connection ends, and before it has another one, another process ends the node and deletes its row. As soon
/// as its lock is free the node takes it again, and has its row and its number back, so that its claims do not outlive it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_taken_for_dead_joins_again() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open().await;
    let orchestrations =
        OrchestrationRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    let (operator, other) = (schema.admin().await, schema.admin().await);
    let name = schema.name();
    let sql = |text: &str| text.replace("{s}", name);
    let row = operator.query_one(&sql("SELECT id, name FROM {s}.node"), &[]).await.unwrap();
    let (id, node): (i64, String) = (row.get(0), row.get(1));

    // A process that waits for the lock gets it as soon as it ends, before the node can have it again.
    let lock = sql(&format!("SELECT pg_advisory_lock({KEY})"));
    let waiting = tokio::spawn({
        let node = node.clone();
        async move {
            other.query(&lock, &[&node]).await.unwrap();
            other
        }
    });
    let is_waited_for = sql(&format!("SELECT 1 FROM pg_locks WHERE NOT granted AND {IS_KEY}"));
    until("somebody waits for the lock", async || {
        !operator.query(&is_waited_for, &[&node]).await.unwrap().is_empty()
    })
    .await;
    let end_session =
        sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE granted AND {IS_KEY}"));
    assert_eq!(operator.query(&end_session, &[&node]).await.unwrap().len(), 1, "the session connection");
    let other = waiting.await.unwrap();
    other.batch_execute(&sql("DELETE FROM {s}.node; DELETE FROM {s}.node_lock")).await.unwrap();
    other.query(&sql(&format!("SELECT pg_advisory_unlock({KEY})")), &[&node]).await.unwrap();

    let is_back = sql(&format!(
        "SELECT 1 FROM {{s}}.node JOIN {{s}}.node_lock USING (name) WHERE id = $2 AND name = $1
            AND EXISTS (SELECT 1 FROM pg_locks WHERE granted AND {IS_KEY})"
    ));
    until("the node is back under its number", async || {
        !operator.query(&is_back, &[&node, &id]).await.unwrap().is_empty()
    })
    .await;
    let client = Client::new(store);
    client.start_orchestration("i", "Echo", "works").await.unwrap();
    assert_eq!(output(ended(&client, "i").await), "works");
    runtime.shutdown(None).await;
}

/// The connections of an unreachable process that the server has ended.
enum Ended {
    /// All its connections.
    All,
    /// Its session connection. The writer connection is open, and statements sent before arrive in the end.
    Session,
}

/// A process is cut off in the middle of an activity and of a turn, another one takes both over, and the first one is
/// reachable again.
async fn is_cut_off(ended: Ended) {
    let Some(server) = postgres_server::server() else { return };
    let schema = Schema::on(server, &server.tcp_url());
    let client = Client::new(schema.open_named("client").await);
    let link = Link::to(server.address().port).await;
    schema.reach_by(&link.url());
    let _cut_off = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;
    link.fall_silent();

    schema.reach_by(&server.tcp_url());
    let admin = schema.admin().await;
    let of_process = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
    let of_locks = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'";
    let chosen = match ended {
        Ended::All => of_process.to_owned(),
        Ended::Session => format!("{of_process} INTERSECT {of_locks}"),
    };
    let end = format!("SELECT pg_terminate_backend(pid, 10000) FROM ({chosen}) AS chosen");
    assert!(!admin.query(&end, &[&schema.name()]).await.unwrap().is_empty());
    let _other = slow::start(&schema, OTHER, LEASE);
    slow::taken_over(&client).await;

    slow::let_it_end(&schema);
    slow::has_ended(&schema).await;
    link.speak_again();
    slow::assert_refused(&schema, &client).await;
}

/// D10, I09, 16.1: the server ends the connections of an unreachable process, so another one takes over at once. The
/// first one does not notice; its later commits are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_cut_off_and_taken_over_cannot_commit() {
    is_cut_off(Ended::All).await;
}

/// D10, I09, 16.1: a commit that reaches the server only after the takeover is refused, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_arrives_after_the_takeover_is_refused() {
    is_cut_off(Ended::Session).await;
}
