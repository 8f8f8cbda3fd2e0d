//! Names, versions and what can be registered together.

use std::sync::Arc;

use duroxide::{Activity, Orchestration, OrchestrationRegistry, prelude::*, typed::OrchestrationCode};

use super::store;

#[duroxide::activity]
async fn ping(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::activity(name = "ping")]
async fn another_ping(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration]
async fn order(_ctx: OrchestrationContext) -> Result<u32, String> {
    Ok(1)
}

#[duroxide::orchestration(name = "order", version = "2.0.0")]
async fn order_v2(_ctx: OrchestrationContext) -> Result<u32, String> {
    Ok(2)
}

/// Declared here, run elsewhere.
#[duroxide::orchestration(name = "order", version = "1.0.0")]
async fn order_v1(ctx: OrchestrationContext) -> Result<u32, String>;

#[test]
fn names_and_versions_are_those_of_the_attribute() {
    assert_eq!((ping::NAME, another_ping::NAME), ("ping", "ping"));
    assert_eq!((order::NAME, order::VERSION), ("order", None));
    assert_eq!((order_v2::NAME, order_v2::VERSION), ("order", Some("2.0.0")));
    assert_eq!(order_v1::VERSION, Some("1.0.0"));
}

#[tokio::test]
async fn two_handlers_of_one_name_are_an_error() {
    let (store, _) = store().await;
    let error = Runtime::builder(store.clone())
        .activity::<ping>()
        .activity::<another_ping>()
        .orchestration::<order>()
        .orchestration::<order_v2>()
        .orchestration::<order>()
        .build()
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "duplicate activity registration: ping@1.0.0; duplicate orchestration registration: order@1.0.0"
    );
    let by_name = ActivityRegistry::builder().register("ping", |_, input| async move { Ok(input) }).build();
    let error =
        Runtime::builder(store.clone()).activity::<ping>().activities(by_name).build().await.unwrap_err();
    assert_eq!(error.to_string(), "duplicate activity in merge: ping@1.0.0");
    let error = Runtime::builder(store).orchestration::<Misversioned>().build().await.unwrap_err();
    assert!(
        error.to_string().starts_with("version 'two' of orchestration m is not a semantic version"),
        "{error}"
    );
}

/// Implemented by hand.
enum Misversioned {}

impl Orchestration for Misversioned {
    const NAME: &'static str = "m";
    const VERSION: Option<&'static str> = Some("two");
    type Input = ();
    type Output = ();
    type Error = String;
}

impl OrchestrationCode for Misversioned {
    async fn run(_ctx: OrchestrationContext, (): ()) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn a_version_starts_and_calls_exactly_itself() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .orchestration::<order_v2>()
        .orchestration::<order>()
        .orchestrations(
            OrchestrationRegistry::builder().register("other", |_, input| async move { Ok(input) }).build(),
        )
        .build()
        .await
        .unwrap();
    assert_eq!(client.start_and_wait::<order_v1>("v1", ()).await.unwrap(), Ok(1));
    assert_eq!(client.start_and_wait::<order_v2>("v2", ()).await.unwrap(), Ok(2));
    assert_eq!(client.start_and_wait::<order>("latest", ()).await.unwrap(), Ok(2), "the policy decides");
    runtime.shutdown(None).await;
}

struct Pool<T>(T);

#[duroxide::activities]
impl<T: Clone + Into<u32> + Send + Sync + 'static> Pool<T> {
    #[activity(name = "Pool.size")]
    async fn size(self: Arc<Self>, _ctx: ActivityContext, factor: u32) -> Result<u32, String> {
        Ok(self.0.clone().into() * factor)
    }

    async fn borrow(self: Arc<Self>, _ctx: ActivityContext) -> Result<(), String> {
        Ok(())
    }
}

#[duroxide::orchestration]
async fn asks_pool(ctx: OrchestrationContext) -> Result<u32, String> {
    ctx.activity::<borrow>(()).await?;
    Ok(ctx.activity::<size>(3).await?)
}

#[tokio::test]
async fn a_service_has_state_and_may_be_generic() {
    assert_eq!((size::NAME, borrow::NAME), ("Pool.size", "borrow"));
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .service(Arc::new(Pool(5_u16)))
        .orchestration::<asks_pool>()
        .build()
        .await
        .unwrap();
    assert_eq!(client.start_and_wait::<asks_pool>("p", ()).await.unwrap(), Ok(15));
    runtime.shutdown(None).await;
}

/// The attribute leaves the functions as they are.
#[tokio::test]
async fn an_orchestration_is_still_a_function() {
    let ctx = OrchestrationContext::new(Vec::new(), 1, "i".into(), "order".into(), "1.0.0".into(), None);
    assert_eq!(order(ctx).await, Ok(1));
}
