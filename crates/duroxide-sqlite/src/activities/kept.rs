use std::{collections::HashMap, sync::Arc};

use duroxide_core::WorkItem;

use super::Activity;

/// Some megabytes. What is not kept is read.
const KEPT_MAX: usize = 8192;

/// Queued activities as the engine wrote them last: most are claimed and acknowledged within milliseconds.
///
/// As with instances, whoever writes a row says so here or makes it forgotten, and what others write, or what is rolled
/// back, makes everything forgotten. Which activities are ready is always read.
#[derive(Debug, Default)]
pub(crate) struct KeptActivities {
    by_id: HashMap<i64, KeptActivity>,
}

#[derive(Debug)]
pub(super) struct KeptActivity {
    pub(super) activity: Activity,
    /// What it is asked to do. Its claim takes that away.
    pub(super) item: Option<Arc<WorkItem>>,
}

impl KeptActivities {
    pub(super) fn keep(&mut self, activity: Activity, item: Option<Arc<WorkItem>>) {
        if self.by_id.len() < KEPT_MAX {
            self.by_id.insert(activity.id, KeptActivity { activity, item });
        }
    }

    pub(super) fn take(&mut self, id: i64) -> Option<KeptActivity> {
        self.by_id.remove(&id)
    }

    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
    }
}
