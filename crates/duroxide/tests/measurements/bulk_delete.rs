//! The delay of an orchestration by a bulk delete of long histories that runs meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::InstanceFilter, runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, ended, node, output};

const INSTANCES: usize = 70;
const EVENTS: u32 = 80_000;
/// The time that the delete may add to the 99th percentile of hellos. The slowest one may have met a busy disk.
const COST_MAX: Duration = Duration::from_millis(50);

async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.schedule_activity("Greet", name).await
}

/// How long each of a row of hellos took, sorted.
struct Latencies(Vec<Duration>);

impl Latencies {
    /// One hello after the other, until it is enough.
    async fn of(client: &Client, prefix: &str, mut enough: impl FnMut(usize) -> bool) -> Self {
        let mut all = Vec::new();
        while !enough(all.len()) {
            let (id, begin) = (format!("{prefix}-{}", all.len()), Instant::now());
            client.start_orchestration(&id, "Hello", "you").await.unwrap();
            assert_eq!(output(ended(client, &id).await), "you");
            all.push(begin.elapsed());
        }
        all.sort_unstable();
        Self(all)
    }

    fn at(&self, percent: usize) -> Duration {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or_default()
    }

    fn report(&self, when: &str) {
        let ms = |percent| self.at(percent).as_secs_f64() * 1_000.0;
        let count = self.0.len();
        println!(
            "{count} hellos {when}: median {:.1} ms, p99 {:.1} ms, slowest {:.1} ms, over {COST_MAX:?}: {}",
            ms(50),
            ms(99),
            ms(100),
            self.0.iter().filter(|took| **took > COST_MAX).count()
        );
    }
}

/// Ended instances with long histories, written directly, because turns with so many events would take too long.
async fn long_histories(file: &File, client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..INSTANCES {
        let id = format!("long-{number}");
        client.start_orchestration(&id, "Hello", "you").await.unwrap();
        ended(client, &id).await;
        ids.push(id);
    }
    const SQL: &str = "WITH RECURSIVE n(id) AS (SELECT 100 UNION ALL SELECT id + 1 FROM n WHERE id < 99 + ?1)
                       INSERT INTO history (instance, execution_id, event_id, data)
                       SELECT instance.id, 1, n.id, first.data FROM instance, n
                       JOIN history AS first
                         ON first.instance = instance.id AND first.execution_id = 1 AND first.event_id = 1";
    let inserted = file.connect().execute(SQL, [EVENTS]).expect("the tables are there");
    assert_eq!(inserted, EVENTS as usize * INSTANCES);
    ids
}

/// Deletes 70 instances with 5.6 million events while hellos run one after the other. The client has its own connection, as
/// another process has.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_hello_during_a_bulk_delete() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
    let greet = |_: ActivityContext, name: String| async move { Ok(name) };
    let activities = ActivityRegistry::builder().register("Greet", greet).build();
    let runtime = node(&store, activities, orchestrations, RuntimeOptions::default()).await;
    let client = Client::new(file.open().await);
    let ids = long_histories(&file, &client).await;

    let before = Latencies::of(&client, "before", |count| count >= 500).await;
    before.report("before the delete");
    let begin = Instant::now();
    let deleting = {
        let client = Client::new(Arc::clone(&store));
        let filter = InstanceFilter { instance_ids: Some(ids), ..InstanceFilter::default() };
        tokio::spawn(async move { client.delete_instance_bulk(filter).await.unwrap() })
    };
    let during = Latencies::of(&client, "during", |_| deleting.is_finished()).await;
    let took = begin.elapsed();
    during.report("during the delete");
    let deleted = deleting.await.unwrap();
    println!("{} events deleted in {:.1} s", deleted.events_deleted, took.as_secs_f64());
    assert_eq!(deleted.instances_deleted, INSTANCES as u64);
    runtime.shutdown(None).await;

    let cost = during.at(99).saturating_sub(before.at(99));
    assert!(cost < COST_MAX, "a hello took {cost:?} longer");
}
