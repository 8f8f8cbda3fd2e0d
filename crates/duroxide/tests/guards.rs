//! The cost of work for the store, counted in statements and commits, which do not depend on the load of the machine.
//!
//! Each number is a guard: it was measured, and is raised only with a reason. Events between two counts can
//! only add to them (a fetch that comes too late for a hand-over costs a transaction more), so the cheapest of several
//! rounds counts.
//!
//! Guards in other suites: history reads of a turn on a cached execution (`history_reads`), polls of a fan-in
//! child (`duroxide-core`), statements of a claim, a commit and a due timer (`duroxide-sqlite`, `plans` and `timers`).

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::Provider,
    runtime::{Runtime, registry::ActivityRegistry},
};
use duroxide_core::{Clock, Timestamp, WorkItem};
use duroxide_provider::{NodeAnnouncement, OrchestrationFetch, TagFilter, WorkFetch};
use duroxide_sqlite::{SqliteEngine, SqliteOptions, StatementTrace};
use duroxide_store::{Idle, StoreBuilder, StoreDriver};

use fixture::{File, ended, final_snapshot, node, output};

/// One activity, alone: start, first turn, activity, last turn.
const COMMITS_PER_HELLO: usize = 4;
/// The same, with all reads of a client that waits for the end, and with polls for changes by other processes, of
/// which a slow machine makes some more.
const STATEMENTS_PER_HELLO: usize = 64;
/// The first and the last turn.
const TURNS_PER_HELLO: usize = 2;
/// The notification of the end has the status that a read would return, if the process started the instance itself.
const STATUS_READS_PER_HELLO: usize = 0;
/// One more activity of a running orchestration: it is claimed and acknowledged, and its result is a turn.
const STATEMENTS_PER_ACTIVITY: usize = 35;
const COMMITS_PER_ACTIVITY: usize = 2;
/// A node that waits for work on a file that other processes may write: heartbeats, and polls for their changes, which are
/// rare where the system reports writes. It also reports the six writes of this node in a minute, each followed by nine polls.
const STATEMENTS_PER_IDLE_MINUTE: usize = if cfg!(target_os = "linux") { 195 } else { 345 };

/// A store on a file whose statements are kept. It has no readers of its own, so reads are kept too.
struct Traced {
    store: Arc<dyn Provider>,
    trace: Arc<StatementTrace>,
    _file: File,
}

/// The statements and commits since the last count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    statements: usize,
    commits: usize,
    status_reads: usize,
}

impl Traced {
    fn new() -> Self {
        let file = File::new();
        let (builder, trace) = traced_store(&file);
        let store = builder.start().unwrap();
        Self { store: Arc::new(store), trace: trace.recv().unwrap(), _file: file }
    }

    async fn node(&self) -> Arc<Runtime> {
        let activities = ActivityRegistry::builder()
            .register(
                "Greet",
                |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) },
            )
            .build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("Hello", |ctx: OrchestrationContext, name: String| async move {
                ctx.schedule_activity("Greet", name).await
            })
            .register("Sequence", |ctx: OrchestrationContext, count: String| async move {
                for n in 0..count.parse::<usize>().unwrap() {
                    ctx.schedule_activity("Greet", n.to_string()).await?;
                }
                Ok(count)
            })
            .build();
        node(&self.store, activities, orchestrations, RuntimeOptions::default()).await
    }

    /// Runs an instance to its end.
    async fn run(&self, instance: &str, orchestration: &str, input: &str) -> Cost {
        let client = Client::new(Arc::clone(&self.store));
        self.trace.clear();
        client.start_orchestration(instance, orchestration, input).await.unwrap();
        output(ended(&client, instance).await);
        let statements = self.trace.statements();
        let status_reads = statements.iter().filter(|sql| sql.contains("JOIN custom_status")).count();
        Cost { statements: statements.len(), commits: self.trace.commits(), status_reads }
    }

    /// Runs many instances of one activity at once to their end, and returns the statements of that.
    async fn hellos(&self, round: usize, many: usize) -> Vec<String> {
        let client = Client::new(Arc::clone(&self.store));
        self.trace.clear();
        let hellos = (0..many).map(|n| {
            let (client, instance) = (client.clone(), format!("hello-{round}-{n}"));
            tokio::spawn(async move {
                client.start_orchestration(&instance, "Hello", "you").await.unwrap();
                output(ended(&client, &instance).await)
            })
        });
        for hello in hellos.collect::<Vec<_>>() {
            assert_eq!(hello.await.unwrap(), "Hello, you!");
        }
        self.trace.statements()
    }
}

/// A store on this file, and where its trace comes from when it is opened.
fn traced_store(file: &File) -> (StoreBuilder, mpsc::Receiver<Arc<StatementTrace>>) {
    let (tell, trace) = mpsc::channel();
    let url = file.url();
    let builder = StoreBuilder::opening(move || {
        let mut engine = SqliteEngine::open(&url, SqliteOptions::default())?;
        tell.send(engine.trace_statements()).unwrap();
        Ok(engine)
    });
    (builder, trace)
}

/// The cheapest of each.
fn cheapest(costs: &[Cost]) -> Cost {
    Cost {
        statements: costs.iter().map(|cost| cost.statements).min().unwrap(),
        commits: costs.iter().map(|cost| cost.commits).min().unwrap(),
        status_reads: costs.iter().map(|cost| cost.status_reads).min().unwrap(),
    }
}

/// 23.2, B20: a one-activity workflow is four transactions, and the statements in them do not creep up.
#[tokio::test(flavor = "multi_thread")]
async fn a_hello_costs_four_commits_and_a_fixed_number_of_statements() {
    let traced = Traced::new();
    let runtime = traced.node().await;
    let mut costs = Vec::new();
    for n in 0..30 {
        costs.push(traced.run(&format!("hello-{n}"), "Hello", "you").await);
    }
    let cost = cheapest(&costs);
    assert!(cost.commits <= COMMITS_PER_HELLO, "{cost:?} of {costs:?}");
    assert!(cost.statements <= STATEMENTS_PER_HELLO, "{cost:?} of {costs:?}");
    // On a busy machine a client may read before it is notified.
    costs.sort_unstable_by_key(|cost| cost.status_reads);
    assert_eq!(costs[costs.len() / 2].status_reads, STATUS_READS_PER_HELLO, "{costs:?}");
    final_snapshot(runtime).await;
}

/// B22: the same for many instances at once, whose ends are committed together.
#[tokio::test(flavor = "multi_thread")]
async fn many_waiting_clients_read_no_status() {
    const MANY: usize = 100;
    let traced = Traced::new();
    let runtime = traced.node().await;
    let mut reads = Vec::new();
    for round in 0..5 {
        let statements = traced.hellos(round, MANY).await;
        reads.push(statements.iter().filter(|sql| sql.contains("JOIN custom_status")).count());
    }
    // On a machine that is busy for seconds some clients read again.
    assert!(reads.contains(&(STATUS_READS_PER_HELLO * MANY)), "{reads:?} reads of {MANY}");
    final_snapshot(runtime).await;
}

/// Whether a statement locks an instance and does not commit a round of it, which writes the execution too.
fn writes_a_lock(sql: &str) -> bool {
    sql.starts_with("UPDATE instance SET") && sql.contains("lock_token =") && !sql.contains("execution_id =")
}

/// A claim that is given back unread costs the store as much as one that is of use, twice: of many instances at once each
/// turn is claimed once.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_each_turn_is_claimed_once() {
    const MANY: usize = 400;
    const ROUNDS_MAX: usize = 30;
    let traced = Traced::new();
    let runtime = traced.node().await;
    let mut claims = Vec::new();
    // A machine that is busy for long lets some go back that were not begun in time, but not in every round.
    while claims.last() != Some(&(TURNS_PER_HELLO * MANY)) {
        assert!(claims.len() < ROUNDS_MAX, "claims of {MANY} instances: {claims:?}");
        let statements = traced.hellos(claims.len(), MANY).await;
        claims.push(statements.iter().filter(|sql| writes_a_lock(sql)).count());
    }
    final_snapshot(runtime).await;
}

/// B21: a turn late in a long history costs the same as an early one, and reads no event.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_costs_a_fixed_number_of_statements_whatever_the_history() {
    const SHORT: usize = 5;
    const LONG: usize = 105;
    let traced = Traced::new();
    let runtime = traced.node().await;
    let (mut short, mut long, mut history_reads) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..5 {
        short.push(traced.run(&format!("short-{n}"), "Sequence", &SHORT.to_string()).await);
        long.push(traced.run(&format!("long-{n}"), "Sequence", &LONG.to_string()).await);
        let statements = traced.trace.statements();
        history_reads.push(statements.iter().filter(|sql| sql.contains("data FROM history WHERE")).count());
    }
    assert!(history_reads.contains(&0), "histories were read: {history_reads:?}");
    let (short, long) = (cheapest(&short), cheapest(&long));
    let statements = (long.statements - short.statements).div_ceil(LONG - SHORT);
    let commits = (long.commits - short.commits).div_ceil(LONG - SHORT);
    assert!(statements <= STATEMENTS_PER_ACTIVITY, "{statements} statements: {long:?} after {short:?}");
    assert!(commits <= COMMITS_PER_ACTIVITY, "{commits} commits: {long:?} after {short:?}");
    final_snapshot(runtime).await;
}

/// Time that moves only when the test says so.
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

fn poll<F: Future + ?Sized>(call: &mut Pin<&mut F>) -> Poll<F::Output> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs a store until `end` by its clock.
fn run_until(store: &mut StoreDriver, clock: &ManualClock, end: Timestamp) {
    while clock.now() < end {
        let next = match store.run() {
            Idle::Until(next) | Idle::Gathering(next) => next.min(end),
            Idle::UntilRequest => end,
            Idle::Closed => panic!("the store is open"),
        };
        clock.0.store(next.as_micros(), Ordering::SeqCst);
    }
}

/// D9: while its time stands still a store does not poll for changes by other processes; the system notifies it.
#[cfg(target_os = "linux")]
#[test]
fn a_waiting_store_is_notified_of_work_from_another_process() {
    let file = File::new();
    let clock = Arc::new(ManualClock(AtomicU64::new(1_000_000_000_000)));
    let on_file = || {
        let (builder, _trace) = traced_store(&file);
        builder.with_clock(Arc::clone(&clock) as Arc<dyn Clock>).stepped().unwrap()
    };
    let ((provider, mut store), (other, mut other_store)) = (on_file(), on_file());
    let request = OrchestrationFetch::new(Duration::from_secs(60), Duration::from_secs(60));
    let mut wait = pin!(provider.fetch_orchestration_items(&request));
    assert!(poll(&mut wait).is_pending());
    run_until(&mut store, &clock, clock.now().saturating_add(Duration::from_secs(3)));
    store.run();
    let start = WorkItem::StartOrchestration {
        instance: "order".to_owned(),
        orchestration: "Hello".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    let mut enqueue = pin!(other.enqueue_for_orchestrator(start, None));
    assert!(poll(&mut enqueue).is_pending());
    other_store.run();
    let received = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(1));
        store.run();
        poll(&mut wait)
    });
    let claims = received.take(30_000).find_map(|answer| match answer {
        Poll::Ready(claims) => Some(claims.unwrap()),
        Poll::Pending => None,
    });
    assert_eq!(claims.expect("nobody told")[0].instance, "order");
}

/// A minute in which nothing happens, in virtual time: a node waits for instances and for activities.
#[test]
fn an_idle_minute_costs_a_fixed_number_of_statements() {
    const MINUTE: Duration = Duration::from_secs(60);
    let file = File::new();
    let (builder, trace) = traced_store(&file);
    let clock = Arc::new(ManualClock(AtomicU64::new(1_000_000_000_000)));
    let (provider, mut store) = builder.with_clock(Arc::clone(&clock) as Arc<dyn Clock>).stepped().unwrap();
    let trace = trace.recv().unwrap();
    let announcement = NodeAnnouncement { name: "node-1".to_owned(), ..NodeAnnouncement::default() };
    let mut join = pin!(provider.join_node(&announcement));
    assert!(poll(&mut join).is_pending());
    store.run();
    let Poll::Ready(Ok(membership)) = poll(&mut join) else { panic!("the node has not joined") };

    let tags = TagFilter::default();
    let (instances, activities) =
        (OrchestrationFetch::new(MINUTE, 3 * MINUTE), WorkFetch::new(MINUTE, 3 * MINUTE, &tags));
    let mut waits =
        (pin!(provider.fetch_orchestration_items(&instances)), pin!(provider.fetch_work_items(&activities)));
    assert!(poll(&mut waits.0).is_pending() && poll(&mut waits.1).is_pending());
    run_until(&mut store, &clock, clock.now().saturating_add(MINUTE));
    trace.clear();
    run_until(&mut store, &clock, clock.now().saturating_add(MINUTE));
    assert!(poll(&mut waits.0).is_pending() && poll(&mut waits.1).is_pending());
    let statements = trace.statements();
    assert!(statements.len() <= STATEMENTS_PER_IDLE_MINUTE, "{} statements", statements.len());
    drop(membership);
}
