//! [`Descriptors`]: names and handler versions of recent executions.

use std::{collections::HashMap, sync::Mutex};

use crate::env::lock;

/// The number of remembered executions. All are forgotten when it is reached.
const REMEMBERED_MAX: usize = 8_192;

/// Name and handler version of executions whose turns ran here. The contexts of activities have both, and must not read
/// a history for them (7.6).
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    known: Mutex<HashMap<(String, u64), Known>>,
}

#[derive(Debug)]
struct Known {
    /// The number of the instance's row, if the store has one. An instance that was deleted and started again under the
    /// same id may run another orchestration.
    incarnation: Option<u64>,
    name: String,
    version: String,
}

impl Descriptors {
    pub(crate) fn remember(
        &self,
        instance: &str,
        execution_id: u64,
        incarnation: Option<u64>,
        name: &str,
        version: &str,
    ) {
        let mut known = lock(&self.known);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        let entry = Known { incarnation, name: name.to_owned(), version: version.to_owned() };
        known.insert((instance.to_owned(), execution_id), entry);
    }

    /// Name and version of an execution of exactly this incarnation.
    pub(crate) fn find(
        &self,
        instance: &str,
        execution_id: u64,
        incarnation: Option<u64>,
    ) -> Option<(String, String)> {
        let known = lock(&self.known);
        let found = known.get(&(instance.to_owned(), execution_id))?;
        (found.incarnation == incarnation).then(|| (found.name.clone(), found.version.clone()))
    }

    /// The last known name of the execution, for metrics.
    pub(crate) fn last_name(&self, instance: &str, execution_id: u64) -> Option<String> {
        lock(&self.known).get(&(instance.to_owned(), execution_id)).map(|known| known.name.clone())
    }

    /// Forgets an execution that has ended, because it schedules nothing more.
    pub(crate) fn forget(&self, instance: &str, execution_id: u64) {
        lock(&self.known).remove(&(instance.to_owned(), execution_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the bound everything is known; the next one clears the rest.
    #[test]
    fn the_memory_starts_over_at_its_bound() {
        let known = Descriptors::default();
        let remember = |n: usize| known.remember(&n.to_string(), 1, None, "Order", "1.0.0");
        (0..REMEMBERED_MAX).for_each(remember);
        let order = Some(("Order".to_owned(), "1.0.0".to_owned()));
        assert_eq!(known.find("0", 1, None), order);
        assert_eq!(known.find(&(REMEMBERED_MAX - 1).to_string(), 1, None), order);
        remember(REMEMBERED_MAX);
        assert_eq!(known.find("0", 1, None), None);
        assert_eq!(known.find(&REMEMBERED_MAX.to_string(), 1, None), order);
    }
}
