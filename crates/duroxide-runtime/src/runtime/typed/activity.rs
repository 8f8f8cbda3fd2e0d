//! Activities together with their code, and how they are registered.

use std::{future::Future, marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use duroxide_core::typed::{Activity, HandlerShapes, decode, encode, encode_error, undecodable_input};

use crate::{ActivityContext, ActivityHandler, registry::ActivityRegistryBuilder};

/// An activity together with its code, to register at a node.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no code that a node could run",
    note = "an activity that is declared without a body is registered where it has one",
    note = "an activity of a service is registered with it: `.service(...)`"
)]
pub trait ActivityCode: Activity {
    /// Runs the activity.
    fn run(
        ctx: ActivityContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

/// An activity whose code needs the state of a service `S`, such as a connection pool.
pub trait ServiceActivity<S>: Activity {
    /// Runs the activity.
    fn run(
        service: Arc<S>,
        ctx: ActivityContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

/// State that activities share. `#[duroxide::activities]` on an `impl` block implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a service with activities",
    note = "put `#[duroxide::activities]` on the `impl` block that has its activities"
)]
pub trait ActivityService: Send + Sync + Sized + 'static {
    /// Registers all activities of this service.
    fn register(self: Arc<Self>, builder: ActivityRegistryBuilder) -> ActivityRegistryBuilder;
}

impl ActivityRegistryBuilder {
    /// Registers a typed activity under its name.
    #[must_use]
    pub fn activity<A: ActivityCode>(mut self) -> Self {
        self.add(A::NAME, Arc::new(Free::<A>(PhantomData)));
        self
    }

    /// Registers all activities of a service.
    #[must_use]
    pub fn service<S: ActivityService>(self, service: Arc<S>) -> Self {
        service.register(self)
    }

    /// Registers one activity of a service.
    #[must_use]
    pub fn service_activity<S: Send + Sync + 'static, A: ServiceActivity<S>>(
        mut self,
        service: Arc<S>,
    ) -> Self {
        self.add(A::NAME, Arc::new(OfService::<S, A>(service, PhantomData)));
        self
    }
}

/// A free function as a handler of texts.
struct Free<A>(PhantomData<fn() -> A>);

#[async_trait]
impl<A: ActivityCode> ActivityHandler for Free<A> {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        let input = decode_input::<A>(&ctx, &input)?;
        encode_result::<A>(A::run(ctx, input).await)
    }

    fn shapes(&self) -> Option<HandlerShapes> {
        Some(HandlerShapes::of_activity::<A>())
    }
}

/// A method of a service as a handler of texts.
struct OfService<S, A>(Arc<S>, PhantomData<fn() -> A>);

#[async_trait]
impl<S: Send + Sync + 'static, A: ServiceActivity<S>> ActivityHandler for OfService<S, A> {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        let input = decode_input::<A>(&ctx, &input)?;
        encode_result::<A>(A::run(Arc::clone(&self.0), ctx, input).await)
    }

    fn shapes(&self) -> Option<HandlerShapes> {
        Some(HandlerShapes::of_activity::<A>())
    }
}

fn decode_input<A: Activity>(ctx: &ActivityContext, input: &str) -> Result<A::Input, String> {
    let place = || format!("input of activity '{}' (instance '{}')", A::NAME, ctx.instance_id());
    decode(input, place).map_err(|error| undecodable_input(&error))
}

fn encode_result<A: Activity>(result: Result<A::Output, A::Error>) -> Result<String, String> {
    match result {
        Ok(output) => encode(&output),
        Err(error) => Err(encode_error(&error)),
    }
}
