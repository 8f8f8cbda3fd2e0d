//! [`Registry`]: the handlers of a node, by name and version.

mod activities;
mod builder;
mod builtin;
mod orchestrations;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use duroxide_core::OrchestrationHandler;
use semver::Version;

use crate::ActivityHandler;

pub use builder::RegistryBuilder;
pub(crate) use builtin::with_builtins;

/// Orchestration handlers.
pub type OrchestrationRegistry = Registry<dyn OrchestrationHandler>;
/// Builds an [`OrchestrationRegistry`].
pub type OrchestrationRegistryBuilder = RegistryBuilder<dyn OrchestrationHandler>;
/// Activity handlers.
pub type ActivityRegistry = Registry<dyn ActivityHandler>;
/// Builds an [`ActivityRegistry`].
pub type ActivityRegistryBuilder = RegistryBuilder<dyn ActivityHandler>;

/// The version of a handler that was registered without one.
pub(crate) const DEFAULT_VERSION: Version = Version::new(1, 0, 0);

/// The version that a start without a version gets.
#[derive(Debug, Clone)]
pub enum VersionPolicy {
    /// The highest registered one.
    Latest,
    /// This one.
    Exact(Version),
}

type Handlers<H> = BTreeMap<String, BTreeMap<Version, Arc<H>>>;
type Policies = BTreeMap<String, VersionPolicy>;

/// Handlers by name and version.
///
/// Clones share handlers and version policies: a later change of a policy applies to every clone, including the one
/// that a running runtime holds.
///
/// ```
/// # use duroxide_runtime::{OrchestrationRegistry, VersionPolicy};
/// # use semver::Version;
/// let registry = OrchestrationRegistry::builder()
///     .register("Order", |_ctx, input| async move { Ok(input) })
///     .register_versioned("Order", "2.0.0", |_ctx, input| async move { Ok(input) })
///     .build();
/// assert_eq!(registry.resolve_version("Order"), Some(Version::new(2, 0, 0)));
///
/// registry.set_version_policy("Order", VersionPolicy::Exact(Version::new(1, 0, 0)));
/// assert_eq!(registry.resolve_version("Order"), Some(Version::new(1, 0, 0)));
/// ```
pub struct Registry<H: ?Sized> {
    handlers: Arc<Handlers<H>>,
    policies: Arc<RwLock<Policies>>,
}

impl<H: ?Sized> Registry<H> {
    /// An empty builder.
    pub fn builder() -> RegistryBuilder<H> {
        RegistryBuilder::default()
    }

    /// A builder that starts with the handlers and policies of `registry`.
    pub fn builder_from(registry: &Self) -> RegistryBuilder<H> {
        RegistryBuilder::new(Handlers::clone(&registry.handlers), registry.policies_now())
    }

    fn new(handlers: Handlers<H>, policies: Policies) -> Self {
        Self { handlers: Arc::new(handlers), policies: Arc::new(RwLock::new(policies)) }
    }

    /// All handlers, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &Version, &Arc<H>)> {
        let handlers = self.handlers.iter();
        handlers.flat_map(|(name, versions)| {
            versions.iter().map(move |(version, handler)| (name.as_str(), version, handler))
        })
    }

    /// The handler that the version policy of `name` chooses.
    pub fn resolve_handler(&self, name: &str) -> Option<(Version, Arc<H>)> {
        let found = self.by_policy(name);
        if found.is_none() {
            tracing::debug!(target: "duroxide::runtime::registry", name, "no handler for this name");
        }
        found.map(|(version, handler)| (version.clone(), Arc::clone(handler)))
    }

    /// The version that the version policy of `name` chooses.
    pub fn resolve_version(&self, name: &str) -> Option<Version> {
        self.resolve_handler(name).map(|(version, _)| version)
    }

    /// The handler of exactly this version.
    pub fn resolve_handler_exact(&self, name: &str, version: &Version) -> Option<Arc<H>> {
        let found = self.handlers.get(name).and_then(|versions| versions.get(version));
        if found.is_none() {
            tracing::debug!(target: "duroxide::runtime::registry", name, %version, "no handler of this version");
        }
        found.map(Arc::clone)
    }

    /// Sets the version that later starts without a version get.
    pub fn set_version_policy(&self, name: &str, policy: VersionPolicy) {
        // Plain map operations do not leave the map half written, so a panic elsewhere does not corrupt it.
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        policies.insert(name.to_owned(), policy);
    }

    /// All names, in order.
    pub fn list_names(&self) -> Vec<String> {
        self.handlers.keys().cloned().collect()
    }

    /// The versions of `name`, ascending.
    pub fn list_versions(&self, name: &str) -> Vec<Version> {
        self.handlers.get(name).map(|versions| versions.keys().cloned().collect()).unwrap_or_default()
    }

    /// Whether there is a handler of this name.
    pub fn has(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.handlers.len()
    }

    /// This registry with additional handlers. Version policies stay shared with this one.
    pub(crate) fn with_added<const N: usize>(&self, added: [(&str, Arc<H>); N]) -> Self {
        let mut handlers = Handlers::clone(&self.handlers);
        for (name, handler) in added {
            handlers.entry(name.to_owned()).or_default().insert(DEFAULT_VERSION, handler);
        }
        Self { handlers: Arc::new(handlers), policies: Arc::clone(&self.policies) }
    }

    fn by_policy(&self, name: &str) -> Option<(&Version, &Arc<H>)> {
        let versions = self.handlers.get(name)?;
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        match policies.get(name) {
            Some(VersionPolicy::Exact(version)) => versions.get_key_value(version),
            Some(VersionPolicy::Latest) | None => versions.last_key_value(),
        }
    }

    fn policies_now(&self) -> Policies {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<H: ?Sized> Clone for Registry<H> {
    fn clone(&self) -> Self {
        Self { handlers: Arc::clone(&self.handlers), policies: Arc::clone(&self.policies) }
    }
}

impl<H: ?Sized> Default for Registry<H> {
    fn default() -> Self {
        Self::new(Handlers::new(), Policies::new())
    }
}

impl<H: ?Sized> From<Arc<Self>> for Registry<H> {
    fn from(shared: Arc<Self>) -> Self {
        Self::clone(&shared)
    }
}

impl<H: ?Sized> fmt::Debug for Registry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions =
            self.handlers.iter().map(|(name, versions)| (name, versions.keys().collect::<Vec<_>>()));
        f.debug_map().entries(versions).finish()
    }
}
