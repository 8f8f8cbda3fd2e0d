//! A node on PostgreSQL that is kept busy with instances of one activity.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, RuntimeOptions,
    providers::{Provider, postgres::PostgresProvider},
    runtime::Runtime,
};
use tokio::{task::JoinSet, time::sleep};

/// As in the benchmarks: the usual settings of a production server.
pub(crate) const SETTINGS: &str = "shared_buffers = 256MB\nmax_wal_size = 2GB";
const SLOTS: usize = 64;
/// Callers that each start an instance, wait for its end and start the next one.
const CALLERS: usize = 256;

#[duroxide::activity]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("Hello, {name}!"))
}

#[duroxide::orchestration]
async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(ctx.activity::<greet>(name).await?)
}

#[duroxide::orchestration]
async fn sleep_for_a_month(ctx: OrchestrationContext, _: ()) -> Result<(), String> {
    ctx.schedule_timer(Duration::from_secs(30 * 24 * 3_600)).await;
    Ok(())
}

/// A node and its callers.
pub(crate) struct HelloLoad {
    runtime: Arc<Runtime>,
    callers: JoinSet<()>,
    ended: Arc<AtomicU64>,
}

impl HelloLoad {
    pub(crate) async fn start(store: PostgresProvider) -> Self {
        let store: Arc<dyn Provider> = Arc::new(store);
        let runtime = node(&store).await;
        let ended = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        // Ids are not used twice, also by another load on the same store.
        let prefix = duroxide_store::random_nonce();
        for caller in 0..CALLERS {
            callers.spawn(call(
                Client::new(Arc::clone(&store)),
                format!("{prefix:x}-{caller}"),
                Arc::clone(&ended),
            ));
        }
        Self { runtime, callers, ended }
    }

    /// Instances that end per second, over a time.
    pub(crate) async fn rate(&self, time: Duration) -> f64 {
        let (begin, before) = (Instant::now(), self.ended.load(Ordering::Relaxed));
        sleep(time).await;
        (self.ended.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
    }

    pub(crate) async fn stop(mut self) {
        self.callers.shutdown().await;
        self.runtime.shutdown(None).await;
    }
}

/// Runs one instance to its end, and another one until it waits for a timer. Returns their ids.
pub(crate) async fn run_one_of_each(store: PostgresProvider) -> [&'static str; 2] {
    let store: Arc<dyn Provider> = Arc::new(store);
    let runtime = node(&store).await;
    let client = Client::new(Arc::clone(&store));
    let finished = client.start::<hello>("finished", "you".to_owned()).await.unwrap();
    assert_eq!(finished.result().await.unwrap().unwrap(), "Hello, you!");
    client.start::<sleep_for_a_month>("sleeper", ()).await.unwrap();
    while client.read_execution_history("sleeper", 1).await.map_or(0, |history| history.len()) < 2 {
        sleep(Duration::from_millis(10)).await;
    }
    runtime.shutdown(None).await;
    ["finished", "sleeper"]
}

async fn node(store: &Arc<dyn Provider>) -> Arc<Runtime> {
    let options = RuntimeOptions {
        orchestration_concurrency: SLOTS,
        worker_concurrency: SLOTS,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::builder(Arc::clone(store)).activity::<greet>();
    let runtime = runtime.orchestration::<hello>().orchestration::<sleep_for_a_month>();
    runtime.options(options).build().await.unwrap()
}

async fn call(client: Client, caller: String, ended: Arc<AtomicU64>) {
    for number in 0.. {
        let instance = client.start::<hello>(format!("{caller}-{number}"), "you".to_owned()).await.unwrap();
        assert_eq!(instance.result().await.unwrap().unwrap(), "Hello, you!");
        ended.fetch_add(1, Ordering::Relaxed);
    }
}
