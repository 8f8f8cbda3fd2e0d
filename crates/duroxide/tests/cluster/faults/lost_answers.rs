//! Commits that get lost between a process and the server, and commits whose answers do.

use std::{collections::BTreeMap, sync::Arc};

use duroxide::{
    Client, EventKind, OrchestrationContext, OrchestrationRegistry,
    runtime::{Runtime, registry::ActivityRegistry},
};
use postgres_server::Server;

use crate::{
    faults::proxy::{self, Counts},
    faults::{COPIES, Nodes, check, copy_completed},
    fixture::{ended, node, output, quick_options, until},
    mix,
    schema::Schema,
    sound::assert_finished,
};

const ANY: &[&[u8]] = &[proxy::BATCHES, proxy::EVENTS];

/// From now on each process that opens the schema connects through a proxy of its own, which cuts off commits of these
/// statements.
async fn behind_a_proxy(schema: &Schema, server: &Server, writes: &'static [&[u8]]) -> Arc<Counts> {
    let (port, counts) = proxy::start(server.address().port, writes).await;
    schema.reach_by(&format!("host=127.0.0.1 port={port} user=postgres dbname=postgres"));
    counts
}

#[track_caller]
fn assert_lost(counts: &Counts, each: usize) {
    let (answers, commits) = (counts.lost_answers(), counts.lost_commits());
    println!("{answers} answers and {commits} commits were lost");
    assert!(answers >= each && commits >= each, "{answers} answers and {commits} commits were lost");
}

/// Starts an instance of each kind. A start may be repeated until it is answered.
async fn start_copy(client: &Client, copy: usize) {
    for (kind, _) in mix::KINDS {
        let instance = format!("{kind}-{copy}");
        until("the start is answered", async || {
            client.start_orchestration(instance.clone(), kind, "x").await.is_ok()
        })
        .await;
    }
}

/// S4.16, 16.5: a commit whose answer is lost has happened, one that is lost itself has not. Both are checked before a retry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_a_commit_loses_and_doubles_nothing() {
    let Some(server) = postgres_server::server() else { return };
    let schema = Schema::on(server, &server.tcp_url());
    behind_a_proxy(&schema, server, ANY).await;
    let client = Client::new(schema.open().await);
    let counts = behind_a_proxy(&schema, server, ANY).await;
    let nodes = Nodes::start(&schema).await;
    // One after the other: the nodes put operations that wait at the same time into few transactions.
    for copy in 0..COPIES {
        start_copy(&client, copy).await;
        copy_completed(&client, copy).await;
    }
    schema.reach_by(&server.tcp_url());
    check(&schema, &client, nodes).await;
    assert_lost(&counts, 5);
}

const LISTENER: &str = "listener";
const LAST: &str = "last";
/// Enough for some of them to be cut off: after one that found its instance busy, the next ones take the general path.
const RAISES_MAX: usize = 500;
const LOST_MIN: usize = 3;

/// Waits for events until the last one.
async fn listens(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    while ctx.schedule_wait("go").await != LAST {}
    Ok(LAST.to_owned())
}

async fn listener(schema: &Schema) -> (Client, Arc<Runtime>) {
    let store = schema.open().await;
    let orchestrations = OrchestrationRegistry::builder().register("Listens", listens).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    client.start_orchestration(LISTENER, "Listens", "").await.unwrap();
    (client, runtime)
}

/// Waits until the listener waits for an event and has nothing else to do. Then the next event wakes it.
async fn listens_again(client: &Client) {
    until("it listens", async || {
        let history = client.read_execution_history(LISTENER, 1).await.unwrap();
        matches!(history.last().map(|event| &event.kind), Some(EventKind::ExternalSubscribed { .. }))
    })
    .await;
}

/// How often each text was received.
async fn messages_read(client: &Client) -> BTreeMap<String, usize> {
    let mut messages_read = BTreeMap::new();
    for event in client.read_execution_history(LISTENER, 1).await.unwrap() {
        if let EventKind::ExternalEvent { data, .. } = event.kind {
            *messages_read.entry(data).or_default() += 1;
        }
    }
    messages_read
}

/// S4.16: an event that wakes an instance by a statement of its own. If its caller got `Ok`, the event is stored once; if
/// the caller got an error, once or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_an_event_loses_and_doubles_none() {
    let Some(server) = postgres_server::server() else { return };
    let schema = Schema::on(server, &server.tcp_url());
    let (direct, runtime) = listener(&schema).await;
    let counts = behind_a_proxy(&schema, server, &[proxy::EVENTS]).await;
    let client = Client::new(schema.open().await);
    listens_again(&direct).await;
    let (mut taken, mut failed) = (Vec::new(), Vec::new());
    for number in 0..RAISES_MAX {
        if counts.lost_answers().min(counts.lost_commits()) >= LOST_MIN {
            break;
        }
        let data = format!("event {number}");
        match client.raise_event(LISTENER, "go", data.clone()).await {
            Ok(()) => {
                until("it is read", async || messages_read(&direct).await.contains_key(&data)).await;
                taken.push(data);
            }
            Err(_) => failed.push(data),
        }
        listens_again(&direct).await;
    }
    assert_lost(&counts, LOST_MIN);
    direct.raise_event(LISTENER, "go", LAST).await.unwrap();
    assert_eq!(output(ended(&direct, LISTENER).await), LAST);
    let messages_read = messages_read(&direct).await;
    let times = |data: &String| messages_read.get(data).copied().unwrap_or_default();
    assert!(failed.len() >= 2 * LOST_MIN, "{failed:?}");
    assert!(taken.iter().all(|data| times(data) == 1), "{taken:?}: {messages_read:?}");
    assert!(failed.iter().all(|data| times(data) <= 1), "{failed:?}: {messages_read:?}");
    let late = failed.iter().filter(|data| times(data) == 1).count();
    println!("of {} events that failed {late} are there", failed.len());
    runtime.shutdown(None).await;
    schema.reach_by(&server.tcp_url());
    assert_finished(&schema.snapshot());
}
