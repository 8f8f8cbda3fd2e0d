//! Instances that make no progress, each for another reason, and their explanations by [`Client::explain`].

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod nobody_can;
mod waiting;

use std::{sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, BackoffStrategy, Client, ClientError, Explanation, Finding, OrchestrationContext,
    OrchestrationRegistry, RetryPolicy, RuntimeOptions,
    providers::Provider,
    runtime::{Runtime, UnregisteredBackoffConfig, registry::ActivityRegistry},
};
use fixture::{File, node, quick_options, until};

/// Makes two tests of each story: one on SQLite, one on PostgreSQL.
macro_rules! stories {
    ($($story:ident,)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::Stage::on_sqlite().await).await;
            })*
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test]
            async fn $story() {
                if let Some(stage) = crate::Stage::on_postgres().await {
                    super::$story(stage).await;
                }
            })*
        }
    };
}
pub(crate) use stories;

/// A store, and a client on it.
struct Stage {
    _file: Option<File>,
    store: Arc<dyn Provider>,
    client: Client,
}

impl Stage {
    async fn on_sqlite() -> Self {
        let file = File::new();
        let store = file.open().await;
        Self { _file: Some(file), client: Client::new(Arc::clone(&store)), store }
    }

    /// `None` if PostgreSQL is not installed.
    #[cfg(feature = "postgres")]
    async fn on_postgres() -> Option<Self> {
        use duroxide::providers::postgres::{PostgresOptions, PostgresProvider, SchemaName};
        let server = postgres_server::server()?;
        let mut options = PostgresOptions::new(&server.socket_url()).unwrap();
        options.schema = SchemaName::new(&server.fresh_schema()).unwrap();
        let store: Arc<dyn Provider> = Arc::new(PostgresProvider::open(options).await.unwrap());
        Some(Self { _file: None, client: Client::new(Arc::clone(&store)), store })
    }

    async fn node(&self, options: RuntimeOptions) -> Arc<Runtime> {
        node(&self.store, activities(), orchestrations(), options).await
    }

    /// The short name of the only node.
    async fn node_name(&self) -> String {
        let [node] = <[_; 1]>::try_from(self.client.list_nodes().await.unwrap()).unwrap();
        node.short_name().to_owned()
    }

    /// Explains until no turn runs and a line says this; the lines.
    ///
    /// An explanation reads the locks before the history, so one that is made while a turn commits may show both the
    /// turn and what the instance waits for after it.
    async fn explained(&self, instance: &str, text: &str) -> Vec<String> {
        let mut last = Vec::new();
        until(text, async || {
            let explanation = self.client.explain(instance).await.unwrap();
            last = explanation.lines();
            let in_turn = |finding: &Finding| matches!(finding, Finding::TurnRunning { .. });
            !explanation.findings.iter().any(in_turn) && last.iter().any(|line| line.contains(text))
        })
        .await;
        last
    }
}

fn activities() -> ActivityRegistry {
    let endless = |ctx: ActivityContext, _input: String| async move {
        ctx.cancelled().await;
        Err("cancelled".to_owned())
    };
    let refuse =
        |_: ActivityContext, _: String| async { Err::<String, _>("the bank did not answer".to_owned()) };
    ActivityRegistry::builder().register("Charge", endless).register("Refuse", refuse).build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Approved", |ctx: OrchestrationContext, _| async move {
            Ok(ctx.schedule_wait("Approval").await)
        })
        .register("Slept", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(3600)).await;
            Ok(String::new())
        })
        .register("Retried", |ctx: OrchestrationContext, _| async move {
            let pause = BackoffStrategy::Fixed { delay: Duration::from_secs(900) };
            ctx.schedule_activity_with_retry("Refuse", "42", RetryPolicy::new(5).with_backoff(pause)).await
        })
        .register("Charged", |ctx: OrchestrationContext, name| async move {
            ctx.schedule_activity(name, "42").await
        })
        .register("Rendered", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Charge", "42").with_tag("gpu").await
        })
        .register("Loaded", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity_on_session("Charge", "42", "cart-7").await
        })
        .register("Delegated", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration("Approved", "").await
        })
        .build()
}

/// A node that gives work without a handler back for a minute.
fn patient() -> RuntimeOptions {
    let minute = Duration::from_secs(60);
    RuntimeOptions {
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: minute, max_delay: minute },
        ..quick_options()
    }
}

stories![an_explanation_names_its_instance,];

/// The fields of the answer other than its findings.
async fn an_explanation_names_its_instance(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    stage.explained("order-1", "waits for event").await;
    let Explanation { instance, name, version, execution_id, status, .. } =
        stage.client.explain("order-1").await.unwrap();
    assert_eq!((instance.as_str(), name.as_str(), version.as_str()), ("order-1", "Approved", "1.0.0"));
    assert_eq!((execution_id, status.as_str()), (1, "Running"));
    let unknown = stage.client.explain("order-2").await.unwrap_err();
    assert!(matches!(unknown, ClientError::InstanceNotFound { instance_id } if instance_id == "order-2"));
    runtime.shutdown(None).await;
}
