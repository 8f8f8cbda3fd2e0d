use std::{collections::HashMap, sync::Mutex};

use crate::env::lock;

/// Executions remembered; beyond it the memory starts over.
const REMEMBERED_MAX: usize = 8_192;

/// Name and handler version of executions whose turns ran here. Activities are told both, and must not read a
/// history for them (semantics 7.6).
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    known: Mutex<HashMap<(String, u64), (String, String)>>,
}

impl Descriptors {
    pub(crate) fn remember(&self, instance: &str, execution_id: u64, name: &str, version: &str) {
        let mut known = lock(&self.known);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert((instance.to_owned(), execution_id), (name.to_owned(), version.to_owned()));
    }

    pub(crate) fn find(&self, instance: &str, execution_id: u64) -> Option<(String, String)> {
        lock(&self.known).get(&(instance.to_owned(), execution_id)).cloned()
    }

    /// An execution that has ended schedules nothing more.
    pub(crate) fn forget(&self, instance: &str, execution_id: u64) {
        lock(&self.known).remove(&(instance.to_owned(), execution_id));
    }
}
