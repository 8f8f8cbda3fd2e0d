//! How fast work goes on after crashes, and after it was given back for a missing handler.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, ErrorDetails, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
    runtime::{UnregisteredBackoffConfig, registry::ActivityRegistry},
};

use crate::fixture::{File, failure, node, notes::Notes, open_in, output, process::Process, within};

/// The duration of each activity.
const NAP: Duration = Duration::from_secs(3);
const SLOTS: usize = 65;
const LONG: Duration = Duration::from_secs(170);

/// As by default, but for the number of slots, and for a lease that a measurement can wait for.
fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: SLOTS,
        worker_concurrency: SLOTS,
        worker_lock_timeout: Duration::from_secs(2),
        ..RuntimeOptions::default()
    }
}

fn calls() -> OrchestrationRegistry {
    let call =
        |ctx: OrchestrationContext, who: String| async move { ctx.schedule_activity("Nap", who).await };
    OrchestrationRegistry::builder().register("Calls", call).build()
}

/// A worker process. Its activities nap; the activity `killer` kills the process, once the file `armed` exists.
pub async fn work(folder: &Path) {
    let (notes, armed) = (Notes::new(folder, "naps"), folder.join("armed"));
    let activities = ActivityRegistry::builder().register("Nap", move |_: ActivityContext, who: String| {
        let (notes, armed) = (notes.clone(), armed.clone());
        async move {
            if who == "killer" && armed.exists() {
                std::process::abort();
            }
            notes.add(&who);
            tokio::time::sleep(NAP).await;
            Ok(who)
        }
    });
    let store = open_in(folder).await;
    let _runtime = node(&store, activities.build(), calls(), options()).await;
    std::future::pending::<()>().await;
}

/// Instances of one nap each, on a file of their own.
struct Scene {
    file: File,
    client: Client,
    ids: Vec<String>,
}

impl Scene {
    async fn new(instances: usize) -> Self {
        let file = File::new();
        let client = Client::new(file.open().await);
        let ids: Vec<String> = (0..instances).map(|number| format!("innocent-{number}")).collect();
        for id in &ids {
            client.start_orchestration(id, "Calls", id.as_str()).await.unwrap();
        }
        Self { file, client, ids }
    }

    fn worker(&self) -> Process {
        Process::start("worker", self.file.folder(), "")
    }

    /// Lets processes begin all the naps, and kills them.
    async fn kill(&self, times: usize, naps: usize) {
        for run in 1..=times {
            let process = self.worker();
            Notes::new(self.file.folder(), "naps").reach(run * naps).await;
            process.kill();
        }
    }

    /// How long it takes until all have their result, with a new process whenever one has died.
    async fn finish(&self) -> Duration {
        let begin = Instant::now();
        let all = async {
            for id in &self.ids {
                let status = self.client.wait_for_orchestration(id, LONG).await.unwrap();
                assert_eq!(output(status), *id, "nobody fails but the killer");
            }
        };
        self.beside_workers(all).await;
        begin.elapsed()
    }

    async fn beside_workers<T>(&self, work: impl Future<Output = T>) -> T {
        let workers = async {
            loop {
                self.worker().ended().await;
            }
        };
        tokio::select! {
            done = work => done,
            () = workers => unreachable!(),
        }
    }
}

fn report(what: &str, took: Duration, normal: Duration) {
    println!("{what}: {:.2} s, normally {:.2} s", took.as_secs_f64(), normal.as_secs_f64());
    assert!(took <= 2 * normal, "more than twice the normal time");
}

/// 60 activities of 3 s after two `kill -9`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn activities_after_two_kills() {
    const ACTIVITIES: usize = 60;
    let normal = Scene::new(ACTIVITIES).await.finish().await;
    let scene = Scene::new(ACTIVITIES).await;
    scene.kill(2, ACTIVITIES).await;
    report("60 activities of 3 s after two kills", scene.finish().await, normal);
}

/// 64 innocent activities and one that kills its process, after two crashes during which all of them ran.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn innocents_with_a_killer_after_two_kills() {
    const INNOCENTS: usize = 64;
    let normal = Scene::new(INNOCENTS).await.finish().await;
    let scene = Scene::new(INNOCENTS).await;
    scene.client.start_orchestration("the-killer", "Calls", "killer").await.unwrap();
    scene.kill(2, INNOCENTS + 1).await;
    std::fs::write(scene.file.folder().join("armed"), "").unwrap();
    report("64 activities of 3 s beside a killer after two kills", scene.finish().await, normal);
    let killer = scene.client.wait_for_orchestration("the-killer", LONG);
    let status: OrchestrationStatus = scene.beside_workers(killer).await.unwrap();
    let details = failure(status);
    assert!(matches!(details, ErrorDetails::Poison { .. }), "{details:?}");
    println!("the killer: {}", details.display_message());
}

/// How many instances per second a node completes whose activities were given back so often before.
async fn rate_after(bounces: u32) -> f64 {
    const INSTANCES: usize = 500;
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    // Long enough for every activity to bounce before the first one comes back.
    let backoff = Duration::from_secs(1);
    let options = RuntimeOptions {
        max_attempts: 1_000,
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: backoff, max_delay: backoff },
        ..options()
    };
    // No node fetches the activities before.
    let worker_concurrency = if bounces == 0 { 0 } else { SLOTS };
    let before = RuntimeOptions { worker_concurrency, ..options.clone() };
    let without = node(&store, ActivityRegistry::default(), calls(), before).await;
    for number in 0..INSTANCES {
        client.start_orchestration(format!("i-{number}"), "Calls", "").await.unwrap();
    }
    within(LONG, "all have bounced", async || {
        let snapshot = file.snapshot();
        let attempts = snapshot.instances.iter().flat_map(|row| &row.activities).map(|row| row.attempt_count);
        attempts.filter(|count| *count >= bounces).count() == INSTANCES
    })
    .await;
    without.shutdown(None).await;
    // Nothing is hidden any more when the measurement begins.
    tokio::time::sleep(backoff).await;

    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities = ActivityRegistry::builder().register("Nap", echo).build();
    let begin = Instant::now();
    let with = node(&store, activities, calls(), options).await;
    for number in 0..INSTANCES {
        let status = client.wait_for_orchestration(&format!("i-{number}"), LONG).await.unwrap();
        assert_eq!(output(status), "");
    }
    let rate = INSTANCES as f64 / begin.elapsed().as_secs_f64();
    with.shutdown(None).await;
    rate
}

/// 500 instances whose activities were given back three times for a missing handler.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn instances_that_bounced_three_times() {
    let (normal, bounced) = (rate_after(0).await, rate_after(3).await);
    println!("500 instances after three bounces each: {bounced:.0} per second, normally {normal:.0}");
    assert!(bounced >= normal / 2.0, "less than half the normal rate");
}
