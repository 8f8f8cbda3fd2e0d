//! [`RegistryBuilder`]: collects handlers and reports errors.

use std::{collections::btree_map::Entry, fmt, sync::Arc};

use semver::Version;

use super::{Handlers, Policies, Registry, VersionPolicy};

/// Collects handlers. Errors are collected too, and reported by [`Self::build_result`].
pub struct RegistryBuilder<H: ?Sized> {
    handlers: Handlers<H>,
    policies: Policies,
    errors: Vec<String>,
}

impl<H: ?Sized> RegistryBuilder<H> {
    pub(super) fn new(handlers: Handlers<H>, policies: Policies) -> Self {
        Self { handlers, policies, errors: Vec::new() }
    }

    /// Builds the registry and ignores errors: the first registration of a name and version wins, unless
    /// `register_typed` has replaced an orchestration.
    pub fn build(self) -> Registry<H> {
        Registry::new(self.handlers, self.policies)
    }

    /// Builds the registry, if there were no errors.
    ///
    /// # Errors
    /// All errors, joined with `"; "`.
    pub fn build_result(self) -> Result<Registry<H>, String> {
        if self.errors.is_empty() { Ok(self.build()) } else { Err(self.errors.join("; ")) }
    }

    /// Adds all handlers of `other`, and its policies for names that have none here. An existing name and version wins,
    /// with the error `duplicate {error_prefix} in merge: {name}@{version}`.
    #[must_use]
    pub fn merge_registry(mut self, other: Registry<H>, error_prefix: &str) -> Self {
        for (name, versions) in other.handlers.iter() {
            for (version, handler) in versions {
                self.insert(name, version.clone(), Arc::clone(handler), |at| {
                    format!("duplicate {error_prefix} in merge: {at}")
                });
            }
        }
        for (name, policy) in other.policies_now() {
            self.policies.entry(name).or_insert(policy);
        }
        self
    }

    /// Adds the handlers and errors of another builder.
    pub(crate) fn and(mut self, mut other: Self, error_prefix: &str) -> Self {
        self.errors.append(&mut other.errors);
        self.merge_registry(other.build(), error_prefix)
    }

    /// Registers many handlers of one type with the given method.
    #[must_use]
    pub fn register_all_handlers<F: Clone>(
        self,
        handlers: Vec<(&str, F)>,
        register: impl Fn(Self, &str, F) -> Self,
    ) -> Self {
        handlers.into_iter().fold(self, |builder, (name, handler)| register(builder, name, handler))
    }

    /// Adds a handler. If its name and version are taken, keeps the old one and records the error that `duplicate`
    /// returns.
    pub(super) fn insert(
        &mut self,
        name: &str,
        version: Version,
        handler: Arc<H>,
        duplicate: impl FnOnce(String) -> String,
    ) {
        match self.handlers.entry(name.to_owned()).or_default().entry(version) {
            Entry::Vacant(free) => {
                free.insert(handler);
            }
            Entry::Occupied(taken) => self.errors.push(duplicate(format!("{name}@{}", taken.key()))),
        }
    }

    /// Adds a handler. If its name and version are taken, replaces the old one and records the error that `duplicate`
    /// returns.
    pub(super) fn replace(
        &mut self,
        name: &str,
        version: Version,
        handler: Arc<H>,
        duplicate: impl FnOnce(String) -> String,
    ) {
        let at = format!("{name}@{version}");
        if self.handlers.entry(name.to_owned()).or_default().insert(version, handler).is_some() {
            self.errors.push(duplicate(at));
        }
    }

    pub(super) fn latest(&self, name: &str) -> Option<&Version> {
        self.handlers.get(name)?.last_key_value().map(|(version, _)| version)
    }

    pub(super) fn set(&mut self, name: String, policy: VersionPolicy) {
        self.policies.insert(name, policy);
    }

    pub(crate) fn refuse(&mut self, error: String) {
        self.errors.push(error);
    }
}

impl<H: ?Sized> Default for RegistryBuilder<H> {
    fn default() -> Self {
        Self::new(Handlers::new(), Policies::new())
    }
}

impl<H: ?Sized> fmt::Debug for RegistryBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder")
            .field("names", &self.handlers.keys().collect::<Vec<_>>())
            .field("errors", &self.errors)
            .finish()
    }
}
