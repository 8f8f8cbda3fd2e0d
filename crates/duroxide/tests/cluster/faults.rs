//! A database that loses connections, is restarted, or whose answers get lost, while two nodes work.

mod exhaustion;
mod failover;
pub mod link;
mod lost_answers;
pub mod proxy;

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duroxide::{
    Client, OrchestrationStatus,
    providers::{Provider, postgres::PostgresOptions},
    runtime::Runtime,
};
use postgres_server::Server;

use crate::{
    fixture::{node, until, within},
    kills::assert_ran_at_least_once,
    luck::Luck,
    mix,
    schema::{Schema, options_in},
    sound::assert_finished,
};

pub const COPIES: usize = 8;
const NODES: usize = 2;
/// Longer than the faults and the recovery of lost work take.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Nodes of this process on a schema, each with a provider of its own.
pub struct Nodes(Vec<(Arc<Runtime>, Arc<dyn Provider>)>);

impl Nodes {
    pub async fn start(schema: &Schema) -> Self {
        Self::start_with(schema, &options_in(schema.folder())).await
    }

    pub async fn start_with(schema: &Schema, options: &PostgresOptions) -> Self {
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            let store = schema.open_with(options).await;
            let activities = mix::activities(&schema.notes());
            let runtime = node(&store, activities, mix::orchestrations(), mix::options()).await;
            nodes.push((runtime, store));
        }
        Self(nodes)
    }

    async fn shut_down(self) {
        for (runtime, _store) in self.0 {
            runtime.shutdown(None).await;
        }
    }
}

/// Waits until one instance of each kind has completed. Failed calls are ignored.
pub async fn copy_completed(client: &Client, copy: usize) {
    for (kind, expected) in mix::KINDS {
        let instance = format!("{kind}-{copy}");
        within(WAIT_MAX, "the instance completes", async || {
            match client.get_orchestration_status(&instance).await {
                Ok(OrchestrationStatus::Completed { output, .. }) => {
                    assert_eq!(output, expected, "{instance}");
                    true
                }
                Ok(OrchestrationStatus::Failed { details, .. }) => panic!("{instance}: {details:?}"),
                _ => false,
            }
        })
        .await;
    }
}

/// Nothing was lost, nothing was doubled.
pub async fn check(schema: &Schema, client: &Client, nodes: Nodes) {
    check_copies(schema, client, nodes, COPIES).await;
}

async fn check_copies(schema: &Schema, client: &Client, nodes: Nodes, copies: usize) {
    for copy in 0..copies {
        copy_completed(client, copy).await;
    }
    nodes.shut_down().await;
    let snapshot = schema.snapshot();
    assert_finished(&snapshot);
    assert_ran_at_least_once(&snapshot, &schema.notes().lines(), copies);
}

/// S4.20, 23.2: `pg_terminate_backend` of connections that write, read or listen, at any moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_ended_at_any_moment_lose_nothing() {
    const ENDED_MIN: usize = 15;
    let Some(schema) = Schema::new() else { return };
    let client = Client::new(schema.open_named("client").await);
    let nodes = Nodes::start(&schema).await;
    let ended = AtomicUsize::new(0);
    let copies = tokio::select! {
        copies = work_until(&client, || ended.load(Ordering::Relaxed) >= ENDED_MIN) => copies,
        never = end_connections(&schema, &ended) => match never {},
    };
    println!("{ended:?} connections were ended during {copies} copies");
    check_copies(&schema, &client, nodes, copies).await;
}

/// Gives the nodes so much at a time until there were faults enough, however fast they are. Returns how many copies that were.
async fn work_until(client: &Client, enough: impl Fn() -> bool) -> usize {
    let mut copies = 0;
    while !enough() {
        for copy in copies..copies + COPIES {
            mix::start_copy(client, copy).await;
        }
        for copy in copies..copies + COPIES {
            copy_completed(client, copy).await;
        }
        copies += COPIES;
    }
    copies
}

/// Ends one connection of the nodes after the other, any of them.
async fn end_connections(schema: &Schema, ended: &AtomicUsize) -> Infallible {
    let admin = schema.admin().await;
    let mut luck = Luck::new(11);
    loop {
        tokio::time::sleep(Duration::from_millis(luck.below(12))).await;
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY pid";
        let alive = admin.query(sql, &[&schema.name()]).await.unwrap();
        if let Some(row) = alive.get(luck.below(8) as usize) {
            let pid: i32 = row.get(0);
            admin.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
            ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// S4.20: the server is killed and recovers, three times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_restarted_loses_nothing() {
    let Some(server) = Server::own() else { return };
    let schema = Schema::on(&server, &server.tcp_url());
    let client = Client::new(schema.open().await);
    mix::start(&client, COPIES).await;
    let nodes = Nodes::start(&schema).await;
    let notes = schema.notes();
    for restart in 1..=3 {
        let enough = restart * COPIES * 5;
        until("some work is done", async || notes.lines().len() >= enough).await;
        tokio::task::block_in_place(|| server.restart_immediately());
    }
    check(&schema, &client, nodes).await;
}
