//! Names, versions, and handlers that can be registered together.

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
async fn a_version_starts_exactly_itself() {
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

/// Two versions of one loop: the first continues as the second.
#[duroxide::orchestration(name = "looped", version = "1.0.0")]
async fn looped_v1(ctx: OrchestrationContext, n: u32) -> Result<String, String> {
    ctx.continue_as::<looped_v2>(format!("{n} from {}", ctx.orchestration_version())).await
}

#[duroxide::orchestration(name = "looped", version = "2.0.0")]
async fn looped_v2(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    Ok(format!("{text} to {}", ctx.orchestration_version()))
}

#[duroxide::orchestration(name = "looped", version = "3.0.0")]
async fn looped_v3(_ctx: OrchestrationContext, _text: String) -> Result<String, String> {
    Err("nobody asked for this version".to_owned())
}

#[duroxide::orchestration]
async fn parent(ctx: OrchestrationContext) -> Result<Vec<u32>, String> {
    ctx.detach::<order_v1>("detached", ());
    Ok(vec![
        ctx.child::<order_v1>(()).await?,
        ctx.child::<order_v2>(()).await?,
        ctx.child::<order>(()).await?,
        ctx.child::<order>(()).version("1.0.0").await?,
    ])
}

#[tokio::test]
async fn a_child_a_detached_instance_and_a_next_execution_have_the_version_of_their_type() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .orchestration::<order>()
        .orchestration::<order_v2>()
        .orchestration::<parent>()
        .orchestration::<looped_v1>()
        .orchestration::<looped_v2>()
        .orchestration::<looped_v3>()
        .build()
        .await
        .unwrap();
    assert_eq!(client.start_and_wait::<parent>("p", ()).await.unwrap(), Ok(vec![1, 2, 2, 1]));
    assert_eq!(client.handle::<order_v1>("detached").result().await.unwrap(), Ok(1));
    let looped = client.start_and_wait::<looped_v1>("l", 7).await.unwrap();
    assert_eq!(looped, Ok("7 from 1.0.0 to 2.0.0".to_owned()));
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
