//! Registers orchestrations.

use std::{future::Future, sync::Arc};

use duroxide_core::{FnOrchestration, OrchestrationContext, OrchestrationHandler, codec};
use semver::Version;
use serde::{Serialize, de::DeserializeOwned};

use super::{DEFAULT_VERSION, OrchestrationRegistry, OrchestrationRegistryBuilder, VersionPolicy};

// The bounds on `F` are repeated on each method, because only there do they let the compiler infer a closure's
// parameter types.
impl OrchestrationRegistryBuilder {
    /// Registers a handler as version 1.0.0.
    #[must_use]
    pub fn register<F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add(&name.into(), DEFAULT_VERSION, Arc::new(FnOrchestration(handler)));
        self
    }

    /// Registers a handler with typed input and output as version 1.0.0. Replaces an earlier one, which
    /// [`build_result`](Self::build_result) reports.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    #[must_use]
    pub fn register_typed<In, Out, F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let duplicate = |at| format!("duplicate orchestration registration: {at}");
        self.replace(&name.into(), DEFAULT_VERSION, typed(handler), duplicate);
        self
    }

    /// Registers a handler of a version.
    ///
    /// # Panics
    /// If `version` is not a semantic version, or lower than one registered before.
    #[must_use]
    pub fn register_versioned<F, Fut>(
        mut self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        handler: F,
    ) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let name = name.into();
        let version = self.next_version(&name, version.as_ref());
        self.add(&name, version, Arc::new(FnOrchestration(handler)));
        self
    }

    /// Registers a handler of a version, with typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    ///
    /// # Panics
    /// If `version` is not a semantic version, or lower than one registered before.
    #[must_use]
    pub fn register_versioned_typed<In, Out, F, Fut>(
        mut self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        handler: F,
    ) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let name = name.into();
        let version = self.next_version(&name, version.as_ref());
        self.add(&name, version, typed(handler));
        self
    }

    /// Adds all handlers of another registry.
    #[must_use]
    pub fn merge(self, other: OrchestrationRegistry) -> Self {
        self.merge_registry(other, "orchestration")
    }

    /// Registers many handlers of one type as version 1.0.0.
    #[must_use]
    pub fn register_all<F, Fut>(self, handlers: Vec<(&str, F)>) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(handlers, |builder, name, handler| builder.register(name, handler))
    }

    /// Sets the version that a start without a version gets.
    #[must_use]
    pub fn set_policy(mut self, name: impl Into<String>, policy: VersionPolicy) -> Self {
        self.set(name.into(), policy);
        self
    }

    pub(crate) fn add(&mut self, name: &str, version: Version, handler: Arc<dyn OrchestrationHandler>) {
        self.insert(name, version, handler, |at| format!("duplicate orchestration registration: {at}"));
    }

    #[expect(clippy::panic, reason = "the published contract of versioned registration")]
    fn next_version(&self, name: &str, text: &str) -> Version {
        let version = Version::parse(text).unwrap_or_else(|error| {
            panic!("version '{text}' of orchestration {name} is not a semantic version: {error}")
        });
        if let Some(latest) = self.latest(name).filter(|latest| version < **latest) {
            panic!(
                "non-monotonic orchestration version for {name}: {version} is not later than existing latest {latest}"
            );
        }
        version
    }
}

/// Wraps a handler of typed values as a handler of texts.
fn typed<In, Out, F, Fut>(handler: F) -> Arc<dyn OrchestrationHandler>
where
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send,
    F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = Result<Out, String>> + Send + 'static,
{
    Arc::new(FnOrchestration(move |ctx: OrchestrationContext, input: String| {
        let handler = handler.clone();
        async move {
            let input = codec::decode_at(&input, || {
                let (name, version) = (ctx.orchestration_name(), ctx.orchestration_version());
                format!("input of orchestration '{name}' {version} (instance '{}')", ctx.instance_id())
            })?;
            let output = handler(ctx, input).await?;
            codec::encode(&output)
        }
    }))
}
