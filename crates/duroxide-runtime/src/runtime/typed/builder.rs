//! [`RuntimeBuilder`]: registers handlers and starts a node.

use std::{fmt, sync::Arc};

use duroxide_core::typed::OrchestrationCode;
use duroxide_provider::Provider;

use super::{ActivityCode, ActivityService, BuildError, Handlers};
use crate::{ActivityRegistry, OrchestrationRegistry, Runtime, RuntimeOptions};

/// Registers handlers and starts a node: see [`Runtime::builder`].
#[must_use = "nothing runs until `build` is awaited"]
pub struct RuntimeBuilder {
    store: Arc<dyn Provider>,
    handlers: Handlers,
    options: RuntimeOptions,
}

impl Runtime {
    /// A builder of a node on a store.
    pub fn builder(store: Arc<dyn Provider>) -> RuntimeBuilder {
        RuntimeBuilder { store, handlers: Handlers::new(), options: RuntimeOptions::default() }
    }
}

impl RuntimeBuilder {
    /// Registers a typed activity.
    pub fn activity<A: ActivityCode>(mut self) -> Self {
        self.handlers = self.handlers.activity::<A>();
        self
    }

    /// Registers all activities of a service.
    pub fn service<S: ActivityService>(mut self, service: Arc<S>) -> Self {
        self.handlers = self.handlers.service(service);
        self
    }

    /// Registers a typed orchestration.
    pub fn orchestration<O: OrchestrationCode>(mut self) -> Self {
        self.handlers = self.handlers.orchestration::<O>();
        self
    }

    /// Registers all activities of a registry, such as those registered by name.
    pub fn activities(mut self, registry: impl Into<ActivityRegistry>) -> Self {
        self.handlers = self.handlers.activities(registry);
        self
    }

    /// Registers all orchestrations of a registry, such as those registered by name.
    pub fn orchestrations(mut self, registry: impl Into<OrchestrationRegistry>) -> Self {
        self.handlers = self.handlers.orchestrations(registry);
        self
    }

    /// Registers these handlers.
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = self.handlers.and(handlers);
        self
    }

    /// Sets the options of the node.
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = options;
        self
    }

    /// Starts the node.
    ///
    /// # Errors
    /// As [`Handlers::build`]. Nothing is started then.
    ///
    /// # Panics
    /// As [`Runtime::start_with_options`].
    pub async fn build(self) -> Result<Arc<Runtime>, BuildError> {
        let Self { store, handlers, options } = self;
        let (activities, orchestrations) = handlers.build()?;
        Ok(Runtime::start_with_options(store, activities, orchestrations, options).await)
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("store", &self.store.name())
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}
