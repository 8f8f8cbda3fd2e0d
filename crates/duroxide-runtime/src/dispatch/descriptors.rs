use std::{collections::HashMap, sync::Mutex};

use crate::env::lock;

/// Executions remembered; beyond it the memory starts over.
const REMEMBERED_MAX: usize = 8_192;

/// Name and handler version of executions whose turns ran here. Activities are told both, and must not read a
/// history for them (semantics 7.6).
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    known: Mutex<HashMap<(String, u64), Known>>,
}

#[derive(Debug)]
struct Known {
    /// The number of the instance's row, where the store tells: an instance that was deleted and started again under
    /// the same id, by whichever node, may be another orchestration.
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

    /// The name that the instance had here last, for metrics.
    pub(crate) fn last_name(&self, instance: &str, execution_id: u64) -> Option<String> {
        lock(&self.known).get(&(instance.to_owned(), execution_id)).map(|known| known.name.clone())
    }

    /// An execution that has ended schedules nothing more.
    pub(crate) fn forget(&self, instance: &str, execution_id: u64) {
        lock(&self.known).remove(&(instance.to_owned(), execution_id));
    }
}
