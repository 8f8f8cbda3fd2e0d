//! The typed surface: traits that can be implemented by hand, calls, errors, handles, the builder.

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use duroxide::{
    Activity, ActivityContext, CallError, Client, ClientError, DecodeError, DurableFuture, ErrorDetails,
    Handle, Key, Orchestration, OrchestrationContext, OrchestrationRegistry, RetryOptions, RetryPolicy,
    RuntimeOptions,
    providers::Provider,
    runtime::{Runtime, registry::ActivityRegistry},
    typed::{
        ActivityCall, ActivityCode, ActivityRegistryBuilder, ActivityService, BuildError, ChildCall,
        FrozenError, Handlers, Once, OrchestrationCode, Outcome, Retried, RuntimeBuilder, ServiceActivity,
        TypedStatus,
    },
};

use crate::bounds;

enum Charge {}

impl Activity for Charge {
    const NAME: &'static str = "Charge";
    type Input = u64;
    type Output = String;
    type Error = String;
}

impl ActivityCode for Charge {
    async fn run(_ctx: ActivityContext, cents: u64) -> Result<String, String> {
        Ok(cents.to_string())
    }
}

struct Service;

impl ServiceActivity<Service> for Charge {
    async fn run(_service: Arc<Service>, ctx: ActivityContext, cents: u64) -> Result<String, String> {
        let key: String = ctx.idempotency_key();
        Ok(format!("{key} {cents}"))
    }
}

impl ActivityService for Service {
    fn register(self: Arc<Self>, builder: ActivityRegistryBuilder) -> ActivityRegistryBuilder {
        builder.service_activity::<Self, Charge>(self)
    }
}

enum Order {}

impl Orchestration for Order {
    const NAME: &'static str = "Order";
    const VERSION: Option<&'static str> = Some("1.2.0");
    type Input = (String, u32);
    type Output = ();
    type Error = String;
}

impl OrchestrationCode for Order {
    async fn run(ctx: OrchestrationContext, (item, _): (String, u32)) -> Result<(), String> {
        calls(&ctx, item).await
    }
}

async fn calls(ctx: &OrchestrationContext, item: String) -> Result<(), String> {
    let call: ActivityCall<Charge> = ctx.activity::<Charge>(7);
    let call: ActivityCall<Charge, Once> = call.tag("gpu").session("s").attempt_timeout(Duration::ZERO);
    let _: DurableFuture<Result<String, CallError<String>>> = call.start();
    let call: ActivityCall<Charge, Retried> = ctx.activity::<Charge>(7).timeout(Duration::ZERO);
    let call: ActivityCall<Charge, Retried> =
        call.retry(RetryPolicy::new(2)).retry_if(|error: &String| error.is_empty());
    let call = call.retry(RetryOptions::default()).tag("gpu").session("s").attempt_timeout(Duration::ZERO);
    let _: Result<String, CallError<String>> = call.start().await;
    let _: Result<String, CallError<String>> = ctx.activity::<Charge>(7).await;

    let child: ChildCall<Order> = ctx.child::<Order>((item.clone(), 1)).id("child").version("1.2.0");
    let _: DurableFuture<Result<(), CallError<String>>> = child.start();
    ctx.child::<Order>((item.clone(), 1)).await?;
    ctx.detach::<Order>("detached", (item.clone(), 1));

    let _: DurableFuture<Result<u8, DecodeError>> = ctx.event::<u8>("event");
    let _: DurableFuture<Result<u8, DecodeError>> = ctx.queue("queue");
    const KEY: Key<u8> = Key::new("key");
    let _: &str = KEY.name();
    ctx.set_status(&7);
    ctx.set_value(KEY, &7);
    let _: Option<u8> = ctx.value(KEY)?;
    ctx.clear_value(KEY);
    ctx.continue_as::<Order>((item, 2)).await
}

fn errors(error: CallError<String>, details: ErrorDetails) -> String {
    let _: Option<&String> = error.failed();
    let error: CallError<usize> = error.map_failed(|text| text.len());
    let _: CallError<String> = CallError::from_details(details);
    match error {
        CallError::Failed(length) => length.to_string(),
        CallError::Untyped(text) | CallError::Panicked(text) | CallError::Encode(text) => text,
        CallError::Cancelled { reason } => reason,
        CallError::Decode(error) => error.into(),
        CallError::Poisoned(details) | CallError::System(details) => details.display_message(),
        other => other.to_string(),
    }
}

async fn clients(client: &Client) -> Result<(), ClientError> {
    let handle: Handle<Order> = client.start::<Order>("id", (String::new(), 1)).await?;
    let _: Handle<Order> = client.start_or_get::<Order>("id", (String::new(), 1)).await?;
    let _: Result<(), CallError<String>> = client.start_and_wait::<Order>("id", (String::new(), 1)).await?;
    let _: Handle<Order> = client.handle("id");
    let _: &str = handle.id();
    let _: Result<(), CallError<String>> = handle.result().await?;
    let _: Result<(), CallError<String>> = handle.result_within(Duration::ZERO).await?;
    match handle.status().await? {
        TypedStatus::NotFound | TypedStatus::Running | TypedStatus::Completed(()) => {}
        TypedStatus::Failed(error) => drop::<CallError<String>>(error),
        _ => {}
    }
    let _: Option<u8> = handle.custom_status().await?;
    let _: Option<u8> = handle.wait_until(|status: &u8| *status > 1, Duration::ZERO).await?;
    let _: Option<u8> = handle.value(Key::new("key")).await?;
    handle.raise("event", "text").await?;
    handle.enqueue("queue", &7).await?;
    handle.clone().cancel("reason").await
}

async fn runtimes(store: Arc<dyn Provider>, path: &Path) -> Result<Arc<Runtime>, BuildError> {
    let _: Result<(), FrozenError> =
        Handlers::new().activity::<Charge>().and(Handlers::default()).check_frozen(path);
    let handlers = Handlers::new()
        .activities(ActivityRegistry::default())
        .orchestrations(OrchestrationRegistry::default())
        .orchestration::<Order>();
    let _: Result<(ActivityRegistry, OrchestrationRegistry), BuildError> = Handlers::new().build();
    let builder: RuntimeBuilder = Runtime::builder(store)
        .handlers(handlers)
        .service(Arc::new(Service))
        .activity::<Charge>()
        .orchestration::<Order>()
        .activities(ActivityRegistry::builder().activity::<Charge>().service(Arc::new(Service)).build())
        .orchestrations(OrchestrationRegistry::builder().orchestration::<Order>().build())
        .options(RuntimeOptions::default());
    builder.build().await
}

fn sides<T, E>() -> Option<(T, E)>
where
    Result<T, E>: Outcome<Output = T, Error = E>,
{
    None
}

#[test]
fn calls_and_errors_move_between_threads() {
    bounds::send::<ActivityCall<Charge>>();
    bounds::send::<ActivityCall<Charge, Retried>>();
    bounds::send::<ChildCall<Order>>();
    bounds::send::<Handle<Order>>();
    bounds::sync::<Handle<Order>>();
    bounds::clone::<Handle<Order>>();
    bounds::value::<CallError<String>>();
    bounds::value::<DecodeError>();
    bounds::serde::<CallError<String>>();
    bounds::serde::<DecodeError>();
    bounds::error::<CallError<String>>();
    bounds::error::<DecodeError>();
    bounds::error::<BuildError>();
    bounds::error::<FrozenError>();
    fn is_future<F: Future + Unpin>() {}
    is_future::<ActivityCall<Charge>>();
    is_future::<ActivityCall<Charge, Retried>>();
    is_future::<ChildCall<Order>>();
}
