//! [`Descriptors`]: names and handler versions of recent executions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::env::lock;

/// The number of remembered instances. All are forgotten when it is reached.
const REMEMBERED_MAX: usize = 8_192;
/// The number of remembered executions of an instance. One that has ended on another node is not forgotten here.
const EXECUTIONS_MAX: usize = 4;

/// Name and handler version of executions whose turns ran here. The contexts of activities have both, and must not read
/// a history for them (7.6).
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// The executions of each instance, mostly one: an ended execution is forgotten.
    known: Mutex<HashMap<String, Vec<Known>>>,
}

#[derive(Debug)]
struct Known {
    execution_id: u64,
    /// The number of the instance's row, if the store has one. An instance that was deleted and started again under the
    /// same id may run another orchestration.
    incarnation: Option<u64>,
    name: Arc<str>,
    version: Arc<str>,
}

impl Known {
    fn is(&self, incarnation: Option<u64>, name: &Arc<str>, version: &Arc<str>) -> bool {
        self.incarnation == incarnation && self.name == *name && self.version == *version
    }
}

impl Descriptors {
    /// Remembers an execution. Most calls are about one that is known: each turn makes one.
    pub(crate) fn remember(
        &self,
        instance: &str,
        execution_id: u64,
        incarnation: Option<u64>,
        name: &Arc<str>,
        version: &Arc<str>,
    ) {
        let mut known = lock(&self.known);
        let new =
            || Known { execution_id, incarnation, name: Arc::clone(name), version: Arc::clone(version) };
        if let Some(executions) = known.get_mut(instance) {
            match executions.iter_mut().find(|known| known.execution_id == execution_id) {
                Some(known) if known.is(incarnation, name, version) => {}
                Some(known) => *known = new(),
                None => {
                    if executions.len() == EXECUTIONS_MAX {
                        executions.remove(0);
                    }
                    executions.push(new());
                }
            }
            return;
        }
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(instance.to_owned(), vec![new()]);
    }

    /// Name and version of an execution of exactly this incarnation.
    pub(crate) fn find(
        &self,
        instance: &str,
        execution_id: u64,
        incarnation: Option<u64>,
    ) -> Option<(Arc<str>, Arc<str>)> {
        let known = lock(&self.known);
        let found = known.get(instance)?.iter().find(|known| known.execution_id == execution_id)?;
        (found.incarnation == incarnation).then(|| (Arc::clone(&found.name), Arc::clone(&found.version)))
    }

    /// The last known name of the execution, for metrics.
    pub(crate) fn last_name(&self, instance: &str, execution_id: u64) -> Option<Arc<str>> {
        let known = lock(&self.known);
        let found = known.get(instance)?.iter().find(|known| known.execution_id == execution_id)?;
        Some(Arc::clone(&found.name))
    }

    /// Forgets an execution that has ended, because it schedules nothing more.
    pub(crate) fn forget(&self, instance: &str, execution_id: u64) {
        let mut known = lock(&self.known);
        let Some(executions) = known.get_mut(instance) else { return };
        executions.retain(|known| known.execution_id != execution_id);
        if executions.is_empty() {
            known.remove(instance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remember(known: &Descriptors, instance: &str, execution_id: u64, incarnation: u64, name: &str) {
        known.remember(instance, execution_id, Some(incarnation), &name.into(), &"1.0.0".into());
    }

    fn name(known: &Descriptors, instance: &str, execution_id: u64, incarnation: u64) -> Option<Arc<str>> {
        let (name, version) = known.find(instance, execution_id, Some(incarnation))?;
        assert_eq!(*version, *"1.0.0");
        assert_eq!(known.last_name(instance, execution_id).as_deref(), Some(&*name));
        Some(name)
    }

    /// At the bound everything is known; the next one clears the rest.
    #[test]
    fn the_memory_starts_over_at_its_bound() {
        let known = Descriptors::default();
        let order: Option<Arc<str>> = Some("Order".into());
        (0..REMEMBERED_MAX).for_each(|n| remember(&known, &n.to_string(), 1, 7, "Order"));
        assert_eq!(name(&known, "0", 1, 7), order);
        assert_eq!(name(&known, &(REMEMBERED_MAX - 1).to_string(), 1, 7), order);
        remember(&known, &REMEMBERED_MAX.to_string(), 1, 7, "Order");
        assert_eq!(name(&known, "0", 1, 7), None);
        assert_eq!(name(&known, &REMEMBERED_MAX.to_string(), 1, 7), order);
    }

    /// An instance that was deleted and started again is another one, of the same id and execution.
    #[test]
    fn the_last_incarnation_counts() {
        let known = Descriptors::default();
        remember(&known, "a", 1, 7, "Order");
        remember(&known, "a", 1, 8, "Refund");
        assert_eq!(name(&known, "a", 1, 7), None);
        assert_eq!(name(&known, "a", 1, 8), Some("Refund".into()));
    }

    #[test]
    fn each_execution_is_remembered_until_it_is_forgotten_or_too_many_follow() {
        let known = Descriptors::default();
        let last = EXECUTIONS_MAX as u64 + 1;
        (1..=last).for_each(|execution| remember(&known, "a", execution, 7, &execution.to_string()));
        assert_eq!(name(&known, "a", 1, 7), None);
        assert_eq!(name(&known, "a", 2, 7), Some("2".into()));
        known.forget("a", 2);
        assert_eq!(name(&known, "a", 2, 7), None);
        assert_eq!(name(&known, "a", last, 7), Some(last.to_string().into()));
        (3..=last).for_each(|execution| known.forget("a", execution));
        assert!(lock(&known.known).is_empty(), "nothing is left of it");
    }
}
