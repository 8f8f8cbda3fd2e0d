//! Why the messages of an instance are not processed.

use duroxide_core::WorkItem;
use duroxide_provider::{InstanceNeeds, QueuedWork};

use super::Deciding;
use crate::client::explain::{Finding, gather::Message};

impl Deciding<'_> {
    /// Reasons that hold up the instance itself, and not a call of its code.
    pub(super) fn own_work(&self) -> Vec<Finding> {
        let Some(work) = &self.facts.work else { return self.start_queued().into_iter().collect() };
        let start_queued = self.start_queued();
        let mut findings = Vec::new();
        if let Some(lock) = &work.lock {
            findings.push(Finding::TurnRunning {
                node: lock.node.clone(),
                lease_ends_ms: lock.until_ms,
                attempt: work.attempts,
            });
        } else if let Some(since_ms) = work.ready_since_ms {
            match self.nodes.lack_for_instance(&work.needs) {
                Some(missing) => findings.push(Finding::NoNode { missing }),
                None if start_queued.is_some() => {}
                None => findings.push(Finding::Ready { since_ms, attempts: work.attempts }),
            }
        } else if let Some(until_ms) = self.hidden_until(work) {
            findings
                .extend(self.nodes.lack_for_instance(&work.needs).map(|missing| Finding::NoNode { missing }));
            findings.push(Finding::Hidden { until_ms, lacking_nodes: self.lacking_nodes(&work.needs) });
        }
        findings.extend(start_queued);
        findings
    }

    /// The start of an instance that no node has begun, or of its next execution.
    fn start_queued(&self) -> Option<Finding> {
        // A start of an instance that runs is a second one, which changes nothing.
        let begins = |item: &WorkItem| match self.is_pending() {
            true => matches!(item, WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. }),
            false => matches!(item, WorkItem::ContinueAsNew { .. }),
        };
        let starts = self.messages.iter().filter(|message| begins(&message.item));
        let queued = starts.map(|start| start.enqueued_at_ms).min();
        let since_ms = queued.or_else(|| self.is_pending().then_some(self.facts.info.created_at))?;
        Some(Finding::StartQueued { since_ms })
    }

    /// When the messages are shown again that a node gave back. A timer that is not due was not given back.
    fn hidden_until(&self, work: &QueuedWork) -> Option<u64> {
        let hidden = |message: &Message| {
            let visible_at = message.visible_at_ms.filter(|at| *at > work.now_ms)?;
            if let WorkItem::TimerFired { fire_at_ms, .. } = message.item
                && fire_at_ms >= visible_at
            {
                return None;
            }
            Some(visible_at)
        };
        self.messages.iter().filter_map(hidden).min()
    }

    fn lacking_nodes(&self, needs: &InstanceNeeds) -> Vec<String> {
        let Some(name) = needs.name.as_deref() else { return Vec::new() };
        self.nodes.lacking(|node| {
            !node.replay_versions.is_empty() && !node.has_orchestration(name, needs.version.as_deref())
        })
    }
}
