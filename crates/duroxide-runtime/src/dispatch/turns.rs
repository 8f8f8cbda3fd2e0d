use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use crate::env::lock;

/// The instances whose turns run right now. A turn that is stuck at shutdown is named by it.
#[derive(Debug, Default)]
pub(crate) struct RunningTurns {
    instances: Mutex<(u64, BTreeMap<u64, String>)>,
}

/// A turn that runs; dropping it ends its entry. It lives on the turn's thread and holds nothing but a name.
pub(crate) struct RunningTurn {
    all: Arc<RunningTurns>,
    number: u64,
}

impl RunningTurns {
    pub(crate) fn enter(self: &Arc<Self>, instance: &str) -> RunningTurn {
        let mut instances = lock(&self.instances);
        instances.0 += 1;
        let number = instances.0;
        instances.1.insert(number, instance.to_owned());
        RunningTurn { all: Arc::clone(self), number }
    }

    pub(crate) fn instances(&self) -> Vec<String> {
        lock(&self.instances).1.values().cloned().collect()
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        lock(&self.all.instances).1.remove(&self.number);
    }
}
