//! A standby that becomes the primary while two nodes work.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use duroxide::{Client, Event, OrchestrationStatus};
use postgres_server::Server;

use crate::{
    faults::link::Link,
    faults::{COPIES, Nodes, check},
    fixture::{until, within},
    mix,
    schema::Schema,
};

/// Nodes give up a server that does not answer, and find the other one. Each try has two seconds for each host.
const MOVED_WITHIN: Duration = Duration::from_secs(40);

/// A primary that answers a commit when its standby has it. A client with both hosts in its connection string finds the one
/// that accepts writes.
struct Pair {
    primary: Server,
    standby: Server,
    schema: Schema,
    /// The way to the primary.
    link: Link,
}

impl Pair {
    async fn start() -> Option<Self> {
        let primary = Server::own()?;
        let standby = tokio::task::block_in_place(|| primary.synchronous_standby());
        let link = Link::to(primary.address().port).await;
        let url = format!(
            "host=127.0.0.1,127.0.0.1 port={},{} user=postgres dbname=postgres connect_timeout=2 \
             target_session_attrs=read-write",
            link.port,
            standby.address().port
        );
        let schema = Schema::on(&primary, &url);
        let admin = schema.admin().await;
        let is_synchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
        let follows = async || !admin.query(is_synchronous, &[]).await.unwrap().is_empty();
        until("the standby follows", follows).await;
        Some(Self { primary, standby, schema, link })
    }
}

/// The answers of clients about completed instances, with the history that they read then.
type Told = BTreeMap<String, (OrchestrationStatus, Vec<Event>)>;

/// A client that asks for all instances again and again, and remembers those that had completed.
struct Witness {
    told: Arc<Mutex<Told>>,
    asking: tokio::task::JoinHandle<()>,
}

impl Witness {
    async fn start(schema: &Schema) -> Self {
        let (told, client) = (Arc::new(Mutex::new(Told::new())), Client::new(schema.open().await));
        let asking = tokio::spawn({
            let told = Arc::clone(&told);
            async move {
                loop {
                    ask(&client, &told).await;
                }
            }
        });
        Self { told, asking }
    }

    fn count(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    /// Each earlier answer still holds, unchanged.
    async fn agrees_with(self, client: &Client) {
        self.asking.abort();
        let told = self.told.lock().unwrap().clone();
        for (instance, (status, history)) in told {
            assert_eq!(client.get_orchestration_status(&instance).await.unwrap(), status, "{instance}");
            let execution = history.last().map_or(1, |event| event.execution_id);
            let stored = client.read_execution_history(&instance, execution).await.unwrap();
            assert_eq!(stored, history, "{instance}");
        }
    }
}

/// Asks once for each instance that is not known to have completed. Failed calls are ignored.
async fn ask(client: &Client, told: &Mutex<Told>) {
    for instance in (0..COPIES).flat_map(|copy| mix::KINDS.map(|(kind, _)| format!("{kind}-{copy}"))) {
        if told.lock().unwrap().contains_key(&instance) {
            continue;
        }
        let Ok(status @ OrchestrationStatus::Completed { .. }) =
            client.get_orchestration_status(&instance).await
        else {
            continue;
        };
        let Ok(executions) = client.list_executions(&instance).await else { continue };
        let last = executions.last().copied().unwrap_or(1);
        if let Ok(history) = client.read_execution_history(&instance, last).await {
            told.lock().unwrap().insert(instance, (status, history));
        }
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// S4.20: the primary is killed, the standby is promoted, and nodes with both hosts in their connection string go on there:
/// answered calls are stored, nothing is doubled, and no operator helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_has_everything_that_was_answered() {
    let Some(Pair { primary, standby, schema, link: _link }) = Pair::start().await else { return };
    let client = Client::new(schema.open().await);
    mix::start(&client, COPIES).await;
    let witness = Witness::start(&schema).await;
    let nodes = Nodes::start(&schema).await;
    let notes = schema.notes();
    until("some work is done", async || notes.lines().len() >= COPIES * 8 && witness.count() >= 3).await;
    tokio::task::block_in_place(|| {
        primary.stop_immediately();
        standby.promote();
    });
    let told = witness.count();
    println!("{told} instances had completed");
    assert!(told < COPIES * mix::KINDS.len(), "nothing was left to do");
    check(&schema, &client, nodes).await;
    witness.agrees_with(&client).await;
}

/// The primary hangs: it accepts connections and never answers. The standby is promoted, and the connections to the primary
/// are ended, as in fencing. Nodes do not wait for it when they connect again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_leave_a_primary_that_hangs() {
    let Some(Pair { primary, standby, schema, link }) = Pair::start().await else { return };
    let client = Client::new(schema.open().await);
    mix::start(&client, COPIES).await;
    let witness = Witness::start(&schema).await;
    let nodes = Nodes::start(&schema).await;
    let notes = schema.notes();
    until("some work is done", async || notes.lines().len() >= COPIES * 8 && witness.count() >= 3).await;
    let frozen = tokio::task::block_in_place(|| primary.freeze());
    let (before, told) = (notes.lines().len(), witness.count());
    assert!(told < COPIES * mix::KINDS.len(), "nothing was left to do");
    tokio::task::block_in_place(|| standby.promote());
    link.cut();
    let cut_at = Instant::now();
    within(MOVED_WITHIN, "a node works on the standby", async || notes.lines().len() >= before + 8).await;
    println!("{told} instances had completed; nodes moved in {:?}", cut_at.elapsed());
    check(&schema, &client, nodes).await;
    witness.agrees_with(&client).await;
    drop(frozen);
}
