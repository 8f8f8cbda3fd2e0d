//! Sessions end to end: the worker of their activities, their number, and how they change owners (13).

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use duroxide::{
    ActivityContext, Client, ClientError, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    TagFilter,
    providers::{Provider, ProviderError},
    runtime::registry::ActivityRegistry,
};
use duroxide_store::MemoryProvider;
use fixture::{
    File, WAIT_MAX, ended,
    intercept::{Intercept, Intercepted},
    node, output, quick_options, until,
};
use tokio::sync::{Notify, watch};

/// The runs of activities: session, worker.
type Visits = Arc<Mutex<Vec<(String, String)>>>;

fn noting(visits: &Visits) -> ActivityRegistry {
    let visits = Arc::clone(visits);
    let visit = move |ctx: ActivityContext, input: String| {
        let visit = (ctx.session_id().unwrap_or("none").to_owned(), ctx.worker_id().to_owned());
        visits.lock().unwrap().push(visit);
        async move { Ok(input) }
    };
    ActivityRegistry::builder().register("Visit", visit).build()
}

fn workers_by_session(visits: &Visits) -> BTreeMap<String, BTreeSet<String>> {
    let mut workers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (session, worker) in visits.lock().unwrap().iter() {
        workers.entry(session.clone()).or_default().insert(worker.clone());
    }
    workers
}

/// Visits its session four times, each time twice at once.
async fn guest(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    for _ in 0..4 {
        let visit = || ctx.schedule_activity_on_session("Visit", "", session.clone());
        let (one, other) = ctx.join2(visit(), visit()).await;
        one.and(other)?;
    }
    Ok(session)
}

fn guests() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register("Guest", guest).build()
}

async fn all_stores() -> [(Arc<dyn Provider>, Option<File>); 2] {
    let file = File::new();
    [(Arc::new(MemoryProvider::new()), None), (file.open().await, Some(file))]
}

/// 13.1: with a name of its own, a node owns sessions as a whole, and any of its slots runs them.
#[tokio::test]
async fn a_session_stays_on_the_node_that_has_it() {
    for (store, _file) in all_stores().await {
        let visits = Visits::default();
        let mut nodes = Vec::new();
        for name in ["left", "right", "third"] {
            let options = RuntimeOptions {
                worker_node_id: Some(name.to_owned()),
                worker_concurrency: 3,
                ..quick_options()
            };
            nodes.push(node(&store, noting(&visits), guests(), options).await);
        }
        run_guests(&Client::new(store)).await;
        for node in nodes {
            node.shutdown(None).await;
        }
        let by_session = workers_by_session(&visits);
        assert_eq!(by_session.len(), 5);
        for (session, workers) in by_session {
            let nodes: BTreeSet<_> =
                workers.iter().filter_map(|worker| worker.splitn(3, '-').nth(2)).collect();
            assert_eq!(nodes.len(), 1, "session {session} was on {nodes:?}");
        }
        assert_eq!(visits.lock().unwrap().len(), 15 * 8, "each ran once");
    }
}

/// 13.1, 21.3: without a name, each slot owns its sessions.
#[tokio::test]
async fn without_a_node_name_a_session_stays_on_its_slot() {
    for (store, _file) in all_stores().await {
        let visits = Visits::default();
        let options = || RuntimeOptions { worker_concurrency: 3, ..quick_options() };
        let one = node(&store, noting(&visits), guests(), options()).await;
        let other = node(&store, noting(&visits), guests(), options()).await;
        run_guests(&Client::new(store)).await;
        one.shutdown(None).await;
        other.shutdown(None).await;
        for (session, workers) in workers_by_session(&visits) {
            assert_eq!(workers.len(), 1, "session {session} was on {workers:?}");
        }
        assert_eq!(visits.lock().unwrap().len(), 15 * 8, "each ran once");
    }
}

/// Three instances for each of five sessions.
async fn run_guests(client: &Client) {
    let guests: Vec<_> = (0..15).map(|n| (format!("guest-{n}"), format!("room-{}", n % 5))).collect();
    for (instance, session) in &guests {
        client.start_orchestration(instance, "Guest", session).await.unwrap();
    }
    for (instance, session) in &guests {
        assert_eq!(output(ended(client, instance).await), *session);
    }
}

/// Which sessions are inside at the same time, and a door that keeps them there.
#[derive(Default)]
struct House {
    inside: Mutex<BTreeMap<String, usize>>,
    most: Mutex<usize>,
    changed: Notify,
    open: watch::Sender<bool>,
}

impl House {
    async fn visit(&self, session: Option<String>) {
        let Some(session) = session else { return };
        {
            let mut inside = self.inside.lock().unwrap();
            *inside.entry(session.clone()).or_default() += 1;
            let mut most = self.most.lock().unwrap();
            *most = inside.len().max(*most);
        }
        self.changed.notify_waiters();
        self.open.subscribe().wait_for(|open| *open).await.expect("the house stands");
        let mut inside = self.inside.lock().unwrap();
        let count = inside.get_mut(&session).expect("it is inside");
        *count -= 1;
        if *count == 0 {
            inside.remove(&session);
        }
    }

    async fn holds(&self, sessions: usize) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.inside.lock().unwrap().len() == sessions {
                return;
            }
            changed.await;
        }
    }
}

/// 13.3: a node has no more sessions in flight than it may. At the limit it still takes activities without a session.
#[tokio::test]
async fn capacity_bounds_sessions_and_holds_up_nothing_else() {
    for (store, _file) in all_stores().await {
        let house = Arc::new(House::default());
        let activities = {
            let house = Arc::clone(&house);
            ActivityRegistry::builder().register("Visit", move |ctx: ActivityContext, input: String| {
                let (house, session) = (Arc::clone(&house), ctx.session_id().map(str::to_owned));
                async move {
                    house.visit(session).await;
                    Ok(input)
                }
            })
        };
        let orchestrations = OrchestrationRegistry::builder()
            .register("Guest", |ctx: OrchestrationContext, session: String| async move {
                ctx.schedule_activity_on_session("Visit", "", session).await
            })
            .register("Passer-by", |ctx: OrchestrationContext, _| async move {
                ctx.schedule_activity("Visit", "").await
            })
            .build();
        let options = RuntimeOptions {
            worker_node_id: Some("house".to_owned()),
            worker_concurrency: 6,
            max_sessions_per_runtime: 2,
            ..quick_options()
        };
        let runtime = node(&store, activities.build(), orchestrations, options).await;
        let client = Client::new(store);
        for n in 0..5 {
            client.start_orchestration(format!("guest-{n}"), "Guest", format!("room-{n}")).await.unwrap();
        }
        tokio::time::timeout(WAIT_MAX, house.holds(2)).await.expect("two sessions are let in");
        for n in 0..10 {
            client.start_orchestration(format!("passer-{n}"), "Passer-by", "").await.unwrap();
        }
        for n in 0..10 {
            ended(&client, &format!("passer-{n}")).await;
        }
        assert_eq!(house.inside.lock().unwrap().len(), 2, "nobody left and nobody else came in");
        house.open.send_replace(true);
        for n in 0..5 {
            output(ended(&client, &format!("guest-{n}")).await);
        }
        assert_eq!(*house.most.lock().unwrap(), 2);
        runtime.shutdown(None).await;
    }
}

/// First here, then, in the same session, on the node that takes this tag.
async fn mover(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    ctx.schedule_activity_on_session("Visit", "", session.clone()).await?;
    ctx.schedule_activity_on_session("Visit", "", session).with_tag("away").await
}

fn movers() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register("Mover", mover).build()
}

/// Renewed three times as often, so that a busy machine has a second to spare.
const LEASE: Duration = Duration::from_millis(1_500);
const IDLE: Duration = Duration::from_millis(2_000);

/// Leases that end soon, on a node of this name.
fn short_leases(name: &str, tags: TagFilter) -> RuntimeOptions {
    RuntimeOptions {
        worker_node_id: Some(name.to_owned()),
        worker_tag_filter: tags,
        worker_lock_timeout: Duration::from_millis(600),
        worker_lock_renewal_buffer: Duration::from_millis(300),
        session_lock_timeout: LEASE,
        session_lock_renewal_buffer: LEASE * 2 / 3,
        session_idle_timeout: IDLE,
        ..quick_options()
    }
}

/// 13.2: an unused session is not renewed for ever, although its owner lives. Until it is idle its owner keeps it.
async fn an_idle_session_is_released_to_others(store: Arc<dyn Provider>) {
    let visits = Visits::default();
    let began = Instant::now();
    let home = short_leases("home", TagFilter::DefaultOnly);
    let home = node(&store, noting(&visits), movers(), home).await;
    let away = short_leases("away", TagFilter::tags(["away"]));
    let away = node(&store, noting(&visits), movers(), away).await;
    let client = Client::new(store);
    client.start_orchestration("mover", "Mover", "room").await.unwrap();
    output(ended(&client, "mover").await);
    assert!(began.elapsed() >= IDLE, "it was not idle before");
    let workers: Vec<_> = visits.lock().unwrap().iter().map(|(_, worker)| worker.clone()).collect();
    assert!(matches!(&workers[..], [first, second] if first.ends_with("-home") && second.ends_with("-away")));
    home.shutdown(None).await;
    away.shutdown(None).await;
}

#[tokio::test]
async fn in_memory_an_idle_session_is_released_to_others() {
    an_idle_session_is_released_to_others(Arc::new(MemoryProvider::new())).await;
}

#[tokio::test]
async fn on_sqlite_an_idle_session_is_released_to_others() {
    let file = File::new();
    an_idle_session_is_released_to_others(file.open().await).await;
}

/// Cannot renew its sessions, like a node that lost its network.
#[derive(Default)]
struct Cut(AtomicBool);

#[async_trait]
impl Intercept for Cut {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        if method == "renew_session_lock" && self.0.load(Ordering::SeqCst) {
            return Err(ProviderError::retryable(method, "cut off"));
        }
        Ok(())
    }
}

/// 13.1, 13.2: when the lease of a session ends, another node takes it over, long before it would be idle.
async fn a_session_whose_lease_ended_is_taken_over(store: Arc<dyn Provider>) {
    let visits = Visits::default();
    let never_idle = |options: RuntimeOptions| RuntimeOptions {
        session_idle_timeout: Duration::from_secs(3_600),
        ..options
    };
    let intercepted = Intercepted::new(Arc::clone(&store), Cut::default());
    let through: Arc<dyn Provider> = intercepted.clone();
    let home = never_idle(short_leases("home", TagFilter::DefaultOnly));
    let home = node(&through, noting(&visits), movers(), home).await;
    let away = never_idle(short_leases("away", TagFilter::tags(["away"])));
    let away = node(&store, noting(&visits), movers(), away).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("mover", "Mover", "room").await.unwrap();

    // Longer than a lease, the session stays where it is.
    let settled = client.wait_for_orchestration("mover", LEASE * 3 / 2).await;
    assert!(matches!(settled, Err(ClientError::Timeout)), "the owner renews: {settled:?}");
    assert_eq!(visits.lock().unwrap().len(), 1);
    intercepted.intercept.0.store(true, Ordering::SeqCst);
    output(ended(&client, "mover").await);
    let last = visits.lock().unwrap().last().cloned().unwrap();
    assert!(last.1.ends_with("-away"), "{last:?}");
    home.shutdown(None).await;
    away.shutdown(None).await;
}

#[tokio::test]
async fn in_memory_a_session_whose_lease_ended_is_taken_over() {
    a_session_whose_lease_ended_is_taken_over(Arc::new(MemoryProvider::new())).await;
}

#[tokio::test]
async fn on_sqlite_a_session_whose_lease_ended_is_taken_over() {
    let file = File::new();
    a_session_whose_lease_ended_is_taken_over(file.open().await).await;
}

/// 13.2: sessions that ended without anything queued are removed by any node, at intervals; live ones stay.
#[tokio::test]
async fn sessions_that_ended_are_cleaned_up() {
    let file = File::new();
    let store = file.open().await;
    let options = RuntimeOptions {
        session_cleanup_interval: Duration::from_millis(50),
        ..short_leases("home", TagFilter::DefaultOnly)
    };
    let visits = Visits::default();
    let runtime = node(&store, noting(&visits), guests(), options).await;
    let client = Client::new(store);
    for n in 0..3 {
        client.start_orchestration(format!("guest-{n}"), "Guest", format!("room-{n}")).await.unwrap();
        output(ended(&client, &format!("guest-{n}")).await);
    }
    let rows = || -> u32 {
        let connection = file.connect();
        connection
            .query_row("SELECT count(*) FROM session", [], |row| row.get(0))
            .expect("the table is there")
    };
    assert!(rows() > 0, "the last session is not idle yet");
    until("ended sessions are removed", async || rows() == 0).await;
    client.start_orchestration("again", "Guest", "room-0").await.unwrap();
    output(ended(&client, "again").await);
    runtime.shutdown(None).await;
}
