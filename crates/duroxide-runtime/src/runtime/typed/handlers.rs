//! [`Handlers`]: the activities and orchestrations of a program.

use std::{error::Error, fmt, sync::Arc};

use duroxide_core::typed::OrchestrationCode;

use super::{ActivityCode, ActivityService};
use crate::{
    ActivityRegistry, OrchestrationRegistry,
    registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder},
};

/// The activities and orchestrations of a program.
///
/// A function that returns them serves the program and its tests: [`RuntimeBuilder::handlers`] runs them,
/// [`check_frozen`](Self::check_frozen) compares them with their frozen shapes.
///
/// [`RuntimeBuilder::handlers`]: super::RuntimeBuilder::handlers
#[derive(Debug, Default)]
#[must_use = "handlers run when a runtime is built with them"]
pub struct Handlers {
    activities: ActivityRegistryBuilder,
    orchestrations: OrchestrationRegistryBuilder,
}

/// Handlers that cannot be registered together: two of one name and version, a reserved name, a version that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError(String);

impl Handlers {
    /// No handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a typed activity.
    pub fn activity<A: ActivityCode>(mut self) -> Self {
        self.activities = self.activities.activity::<A>();
        self
    }

    /// Adds all activities of a service.
    pub fn service<S: ActivityService>(mut self, service: Arc<S>) -> Self {
        self.activities = self.activities.service(service);
        self
    }

    /// Adds a typed orchestration.
    pub fn orchestration<O: OrchestrationCode>(mut self) -> Self {
        self.orchestrations = self.orchestrations.orchestration::<O>();
        self
    }

    /// Adds all activities of a registry, such as those registered by name.
    pub fn activities(mut self, registry: impl Into<ActivityRegistry>) -> Self {
        self.activities = self.activities.merge(registry.into());
        self
    }

    /// Adds all orchestrations of a registry, such as those registered by name.
    pub fn orchestrations(mut self, registry: impl Into<OrchestrationRegistry>) -> Self {
        self.orchestrations = self.orchestrations.merge(registry.into());
        self
    }

    /// Adds other handlers.
    pub fn and(mut self, other: Self) -> Self {
        self.activities = self.activities.and(other.activities, "activity");
        self.orchestrations = self.orchestrations.and(other.orchestrations, "orchestration");
        self
    }

    /// The registries of these handlers.
    ///
    /// # Errors
    /// If two handlers have the same name and version, or a name or version is not allowed.
    pub fn build(self) -> Result<(ActivityRegistry, OrchestrationRegistry), BuildError> {
        match (self.activities.build_result(), self.orchestrations.build_result()) {
            (Ok(activities), Ok(orchestrations)) => Ok((activities, orchestrations)),
            (activities, orchestrations) => {
                let errors: Vec<String> =
                    [activities.err(), orchestrations.err()].into_iter().flatten().collect();
                Err(BuildError(errors.join("; ")))
            }
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BuildError {}
