//! How typed orchestrations are registered.

use std::{marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use duroxide_core::{
    OrchestrationContext, OrchestrationHandler,
    typed::{HandlerShapes, OrchestrationCode, decode, encode, encode_error, undecodable_input},
};
use semver::Version;

use crate::registry::{DEFAULT_VERSION, OrchestrationRegistryBuilder};

impl OrchestrationRegistryBuilder {
    /// Registers a typed orchestration under its name and version.
    #[must_use]
    pub fn orchestration<O: OrchestrationCode>(mut self) -> Self {
        match O::VERSION.map_or(Ok(DEFAULT_VERSION), Version::parse) {
            Ok(version) => self.add(O::NAME, version, Arc::new(Typed::<O>(PhantomData))),
            Err(error) => {
                let (name, version) = (O::NAME, O::VERSION.unwrap_or_default());
                self.refuse(format!(
                    "version '{version}' of orchestration {name} is not a semantic version: {error}"
                ));
            }
        }
        self
    }
}

/// A typed orchestration as a handler of texts.
struct Typed<O>(PhantomData<fn() -> O>);

#[async_trait]
impl<O: OrchestrationCode> OrchestrationHandler for Typed<O> {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        let place = || {
            let (version, instance) = (ctx.orchestration_version(), ctx.instance_id());
            format!("input of orchestration '{}' {version} (instance '{instance}')", O::NAME)
        };
        let input = decode(&input, place).map_err(|error| undecodable_input(&error))?;
        match O::run(ctx, input).await {
            Ok(output) => encode(&output),
            Err(error) => Err(encode_error(&error)),
        }
    }

    fn shapes(&self) -> Option<HandlerShapes> {
        Some(HandlerShapes::of_orchestration::<O>())
    }
}
