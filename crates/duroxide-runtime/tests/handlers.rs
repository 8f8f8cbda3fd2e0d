//! Which handler version runs, its context, and the calls it may make.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use duroxide_core::{EventKind, OrchestrationContext};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationRegistryBuilder, Runtime,
    RuntimeOptions, VersionPolicy,
};
use duroxide_store::MemoryProvider;
use semver::Version;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const WAIT_MAX: Duration = Duration::from_secs(30);

/// A node on a store of its own, and a client of it.
struct World {
    runtime: Arc<Runtime>,
    client: Client,
}

impl World {
    /// Every turn replays, so recorded events must be enough.
    async fn new(
        activities: impl Into<ActivityRegistry>,
        orchestrations: impl Into<OrchestrationRegistry>,
    ) -> Self {
        let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        let client = Client::new(Arc::clone(&store));
        let options = RuntimeOptions { execution_cache_size: 0, ..Default::default() };
        let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;
        Self { runtime, client }
    }

    async fn run<Out: DeserializeOwned>(&self, instance: &str, orchestration: &str, input: &str) -> Out {
        self.client.start_orchestration(instance, orchestration, input).await.unwrap();
        self.output(instance).await
    }

    async fn output<Out: DeserializeOwned>(&self, instance: &str) -> Out {
        self.client.wait_for_orchestration_typed(instance, WAIT_MAX).await.unwrap().unwrap()
    }

    /// Waits until an instance reports by its custom status that it waits for an event.
    async fn listening(&self, instance: &str) {
        self.client.wait_for_status_change(instance, 0, Duration::from_millis(5), WAIT_MAX).await.unwrap();
    }

    async fn version_of(&self, instance: &str) -> String {
        self.runtime.get_orchestration_descriptor(instance).await.unwrap().version
    }
}

/// Waits for `go`, then returns its own version.
async fn tells_version(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let go = ctx.schedule_wait("go");
    ctx.set_custom_status("listening");
    go.await;
    Ok(ctx.orchestration_version())
}

fn three_versions() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
        .register("Order", tells_version)
        .register_versioned("Order", "1.5.0", tells_version)
        .register_versioned("Order", "2.0.0", tells_version)
}

/// 18.1
#[tokio::test]
async fn a_policy_counts_for_new_executions_only() {
    let orchestrations = three_versions().build();
    orchestrations.set_version_policy("Order", VersionPolicy::Exact(Version::new(1, 5, 0)));
    let world = World::new(ActivityRegistry::default(), orchestrations.clone()).await;
    world.client.start_orchestration("early", "Order", "").await.unwrap();
    world.listening("early").await;

    orchestrations.set_version_policy("Order", VersionPolicy::Latest);
    world.client.start_orchestration("late", "Order", "").await.unwrap();
    world.client.start_orchestration_versioned("exact", "Order", "1.0.0", "").await.unwrap();
    for instance in ["late", "exact"] {
        world.listening(instance).await;
    }
    for (instance, version) in [("early", "1.5.0"), ("late", "2.0.0"), ("exact", "1.0.0")] {
        world.client.raise_event(instance, "go", "").await.unwrap();
        assert_eq!(world.output::<String>(instance).await, version);
        assert_eq!(world.version_of(instance).await, version);
    }
    world.runtime.shutdown(None).await;
}

/// A17.5
#[tokio::test]
async fn shared_registries_are_accepted() {
    let orchestrations =
        OrchestrationRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build();
    let world = World::new(Arc::new(ActivityRegistry::default()), Arc::new(orchestrations)).await;
    assert_eq!(world.run::<String>("echo", "Echo", "apples").await, "apples");
    world.runtime.shutdown(None).await;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Basket {
    fruit: String,
    count: u32,
}

#[tokio::test]
async fn values_go_all_the_way_in_and_out() {
    let activities = ActivityRegistry::builder()
        .register_typed("Double", |_ctx, basket: Basket| async move {
            Ok(Basket { count: basket.count * 2, ..basket })
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Order", |ctx: OrchestrationContext, basket: Basket| async move {
            ctx.schedule_activity_typed::<Basket, Basket>("Double", &basket).await
        })
        .build();
    let world = World::new(activities, orchestrations).await;
    let basket = Basket { fruit: "apples".to_owned(), count: 21 };
    world.client.start_orchestration_typed("order", "Order", basket.clone()).await.unwrap();
    assert_eq!(world.output::<Basket>("order").await, Basket { count: 42, ..basket });
    world.runtime.shutdown(None).await;
}

/// 7.6
#[tokio::test]
async fn an_activity_knows_who_called_it_and_reaches_the_store() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let look = move |ctx: ActivityContext, _input: String| {
        let noted = Arc::clone(&noted);
        async move {
            let status = ctx.get_client().get_orchestration_status(ctx.instance_id()).await;
            noted.lock().unwrap().push((
                ctx.instance_id().to_owned(),
                ctx.execution_id(),
                format!("{}@{}", ctx.orchestration_name(), ctx.orchestration_version()),
                ctx.activity_name().to_owned(),
                ctx.worker_id().starts_with("work-"),
                ctx.is_cancelled(),
                status.is_ok(),
            ));
            Ok(String::new())
        }
    };
    let activities = ActivityRegistry::builder().register("Look", look).build();
    let orchestrations = OrchestrationRegistry::builder()
        .register_versioned("Order", "3.1.0", |ctx, input| async move {
            ctx.schedule_activity("Look", input).await
        })
        .build();
    let world = World::new(activities, orchestrations).await;
    world.run::<String>("order", "Order", "").await;
    world.runtime.shutdown(None).await;
    let expected = ("order".to_owned(), 1, "Order@3.1.0".to_owned(), "Look".to_owned(), true, false, true);
    assert_eq!(*seen.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn guids_and_times_are_recorded_once_and_replayed() {
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Ask", |ctx: OrchestrationContext, _: String| async move {
            let (first, second) = (ctx.new_guid().await?, ctx.new_guid().await?);
            let now = ctx.utc_now().await?;
            // The code is replayed after every step, so a value that is not recorded would differ here.
            ctx.schedule_timer(Duration::from_millis(1)).await;
            Ok((first, second, now))
        })
        .build();
    let before = SystemTime::now() - Duration::from_millis(1);
    let world = World::new(ActivityRegistry::default(), orchestrations).await;
    let (first, second, now) = world.run::<(String, String, SystemTime)>("ask", "Ask", "").await;
    assert_eq!(BTreeSet::from([&first, &second]).len(), 2);
    for guid in [&first, &second] {
        assert_eq!(uuid::Uuid::parse_str(guid).unwrap().get_version_num(), 4);
        assert_eq!(guid.len(), 36, "hyphenated");
    }
    assert!(before <= now && now <= SystemTime::now());

    let history = world.client.read_execution_history("ask", 1).await.unwrap();
    let recorded: Vec<_> = history
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::ActivityCompleted { result } => Some(result),
            _ => None,
        })
        .collect();
    assert_eq!(recorded[..2], [first, second]);
    world.runtime.shutdown(None).await;
}

/// 11.5
#[tokio::test]
async fn an_orchestration_reads_the_values_of_another_instance() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Stock", |ctx: OrchestrationContext, _input| async move {
            ctx.set_kv_value("fruit", "apples");
            ctx.set_kv_value_typed("count", &3_u32);
            Ok(String::new())
        })
        .register_typed("Order", |ctx: OrchestrationContext, _: String| async move {
            let fruit = ctx.get_kv_value_from_instance("stock", "fruit").await?;
            let count = ctx.get_kv_value_from_instance_typed::<u32>("stock", "count").await?;
            let missing = ctx.get_kv_value_from_instance("stock", "pears").await?;
            let nobody = ctx.get_kv_value_from_instance("nobody", "fruit").await?;
            Ok((fruit, count, missing, nobody))
        })
        .build();
    let world = World::new(ActivityRegistry::default(), orchestrations).await;
    world.run::<String>("stock", "Stock", "").await;
    type Seen = (Option<String>, Option<u32>, Option<String>, Option<String>);
    let seen = world.run::<Seen>("order", "Order", "").await;
    assert_eq!(seen, (Some("apples".to_owned()), Some(3), None, None));
    world.runtime.shutdown(None).await;
}
