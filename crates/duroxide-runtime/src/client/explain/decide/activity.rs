//! The state of an activity that the code waits for.

use duroxide_core::OpenCall;
use duroxide_provider::{NodeCapability, QueuedActivityInfo, QueuedWork};

use super::Deciding;
use crate::client::explain::{ActivityState, Finding};

/// Whether it is an activity that no node carries out.
pub(super) fn is_stuck(finding: &Finding) -> bool {
    let Finding::Activity { state, .. } = finding else { return false };
    match state {
        ActivityState::NoNode { .. } | ActivityState::Hidden { .. } => true,
        ActivityState::Running { .. }
        | ActivityState::Waiting
        | ActivityState::SessionHeld { .. }
        | ActivityState::StopRequested
        | ActivityState::NotQueued
        | ActivityState::Unknown => false,
    }
}

impl Deciding<'_> {
    pub(super) fn activity(&self, call: &OpenCall<'_>, name: &str) -> Finding {
        let queued = self.facts.work.as_ref().and_then(|work| self.queued(work, call.event_id));
        let state = match (&self.facts.work, queued) {
            (Some(work), Some(queued)) => self.state(work, queued),
            (Some(work), None) if work.activities_total == work.activities.len() as u64 => {
                ActivityState::NotQueued
            }
            // The store does not show activities, or has more than it shows.
            (_, None) | (None, Some(_)) => ActivityState::Unknown,
        };
        let node = queued.and_then(|queued| queued.lock.as_ref()).and_then(|lock| lock.node.as_deref());
        Finding::Activity {
            name: name.to_owned(),
            activity_id: call.event_id,
            attempt: queued.map(|queued| queued.attempts).unwrap_or_default(),
            max_attempts: self.nodes.max_attempts(node),
            since_ms: call.since_ms,
            state,
        }
    }

    fn queued<'w>(&self, work: &'w QueuedWork, activity_id: u64) -> Option<&'w QueuedActivityInfo> {
        let id = (self.facts.info.current_execution_id, activity_id);
        work.activities.iter().find(|queued| (queued.execution_id, queued.activity_id) == id)
    }

    fn state(&self, work: &QueuedWork, queued: &QueuedActivityInfo) -> ActivityState {
        if queued.stop_requested {
            return ActivityState::StopRequested;
        }
        if let Some(lock) = &queued.lock {
            return ActivityState::Running { node: lock.node.clone(), lease_ends_ms: lock.until_ms };
        }
        let tag = queued.tag.as_deref();
        // That nodes took it and gave it back is more specific than a missing handler.
        if let Some(until_ms) = queued.hidden_until_ms.filter(|until| *until > work.now_ms) {
            let lacks = |node: &NodeCapability| node.tags.matches(tag) && !node.has_activity(&queued.name);
            return ActivityState::Hidden { until_ms, lacking_nodes: self.nodes.lacking(lacks) };
        }
        match self.nodes.lack_for_activity(&queued.name, tag) {
            Some(missing) => ActivityState::NoNode { missing },
            None => session_held(work, queued).unwrap_or(ActivityState::Waiting),
        }
    }
}

/// The worker that alone can take an activity of a session.
fn session_held(work: &QueuedWork, queued: &QueuedActivityInfo) -> Option<ActivityState> {
    let session = queued.session_id.as_deref()?;
    let lease = work.sessions.iter().find(|lease| lease.session_id == session)?;
    Some(ActivityState::SessionHeld {
        session: session.to_owned(),
        owner: lease.owner.clone(),
        lease_ends_ms: lease.until_ms,
    })
}
