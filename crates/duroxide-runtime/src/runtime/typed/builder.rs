//! [`RuntimeBuilder`]: registers handlers and starts a node.

use std::{error::Error, fmt, sync::Arc};

use duroxide_core::typed::OrchestrationCode;
use duroxide_provider::Provider;

use super::{ActivityCode, ActivityService};
use crate::{
    ActivityRegistry, OrchestrationRegistry, Runtime, RuntimeOptions,
    registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder},
};

/// Registers handlers and starts a node: see [`Runtime::builder`].
#[must_use = "nothing runs until `build` is awaited"]
pub struct RuntimeBuilder {
    store: Arc<dyn Provider>,
    activities: ActivityRegistryBuilder,
    orchestrations: OrchestrationRegistryBuilder,
    options: RuntimeOptions,
}

/// Handlers that cannot be registered together: two of one name and version, a reserved name, a version that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError(String);

impl Runtime {
    /// A builder of a node on a store.
    pub fn builder(store: Arc<dyn Provider>) -> RuntimeBuilder {
        RuntimeBuilder {
            store,
            activities: ActivityRegistryBuilder::default(),
            orchestrations: OrchestrationRegistryBuilder::default(),
            options: RuntimeOptions::default(),
        }
    }
}

impl RuntimeBuilder {
    /// Registers a typed activity.
    pub fn activity<A: ActivityCode>(mut self) -> Self {
        self.activities = self.activities.activity::<A>();
        self
    }

    /// Registers all activities of a service.
    pub fn service<S: ActivityService>(mut self, service: Arc<S>) -> Self {
        self.activities = self.activities.service(service);
        self
    }

    /// Registers a typed orchestration.
    pub fn orchestration<O: OrchestrationCode>(mut self) -> Self {
        self.orchestrations = self.orchestrations.orchestration::<O>();
        self
    }

    /// Registers all activities of a registry, such as those registered by name.
    pub fn activities(mut self, registry: impl Into<ActivityRegistry>) -> Self {
        self.activities = self.activities.merge(registry.into());
        self
    }

    /// Registers all orchestrations of a registry, such as those registered by name.
    pub fn orchestrations(mut self, registry: impl Into<OrchestrationRegistry>) -> Self {
        self.orchestrations = self.orchestrations.merge(registry.into());
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
    /// If two handlers have the same name and version, or a name or version is not allowed. Nothing is started then.
    ///
    /// # Panics
    /// As [`Runtime::start_with_options`].
    pub async fn build(self) -> Result<Arc<Runtime>, BuildError> {
        let Self { store, activities, orchestrations, options } = self;
        let (activities, orchestrations) = match (activities.build_result(), orchestrations.build_result()) {
            (Ok(activities), Ok(orchestrations)) => (activities, orchestrations),
            (activities, orchestrations) => {
                let errors: Vec<String> =
                    [activities.err(), orchestrations.err()].into_iter().flatten().collect();
                return Err(BuildError(errors.join("; ")));
            }
        };
        Ok(Runtime::start_with_options(store, activities, orchestrations, options).await)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BuildError {}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("store", &self.store.name())
            .field("activities", &self.activities)
            .field("orchestrations", &self.orchestrations)
            .finish_non_exhaustive()
    }
}
