//! The sweeper: finds work that no node can take, reports it, and ends it if the options allow.
//!
//! Nodes announce their capabilities when they join. Work that no node can take is never fetched, so it is charged no
//! attempts and never becomes poison (S3.48).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide_provider::{
    MissingCapability, OrchestrationFetch, ScheduledActivityIdentifier, StrandedWork, TagFilter, WorkFetch,
};
use tracing::{debug, warn};

use super::Node;
use crate::{
    RuntimeOptions,
    dispatch::{
        activity::ActivityWork,
        decide::StrandedEnd,
        locks::LockKind,
        provider_call,
        queue::{ClaimedActivity, ClaimedInstance, SlotGuard},
        turn::InstanceWork,
    },
    env::Moment,
};

/// The pause between two sweeps, unless the options ask for more frequent ones.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest pause between two sweeps.
const SWEEP_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// The longest pause if the sweeper has to end cancelled instances.
const CANCEL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of items read from each queue, oldest first.
const STRANDED_MAX: u32 = 1_000;

/// Sweeps while the node runs. A node that has not joined skips the sweep, because the store does not know its capabilities.
pub(crate) async fn run(node: Arc<Node>) {
    let mut sweeper = Sweeper::new(&node.options);
    loop {
        node.env.sleep(sweeper.interval).await;
        let Some(admin) = node.store.as_management_capability() else { return };
        if node.membership.node().is_none() {
            continue;
        }
        match provider_call("list_stranded_work", admin.list_stranded_work(STRANDED_MAX)).await {
            Ok(found) => {
                count(&node, &found);
                for (work, action) in sweeper.decide(found, node.env.moment()) {
                    carry_out(&node, work, action).await;
                }
            }
            Err(error) => debug!(target: "duroxide::runtime", %error, "stranded work could not be read"),
        }
    }
}

fn count(node: &Node, found: &[StrandedWork]) {
    for reason in ["version", "orchestration", "activity", "tag"] {
        let items = found.iter().filter(|work| work.missing.label() == reason).count();
        node.metrics.update_stranded_items(reason, items as u64);
    }
}

// ---- deciding -----------------------------------------------------------------------------------------------------

/// The stranded work that the sweeper has seen, and its settings.
struct Sweeper {
    interval: Duration,
    end_after: Option<Duration>,
    cancels: bool,
    seen: BTreeMap<Key, FirstSeen>,
}

/// The instance, and for an activity its execution and event id.
type Key = (String, Option<(u64, u64)>);

#[derive(Debug, Clone, Copy)]
struct FirstSeen {
    /// When the work was first seen stranded without interruption.
    since: Moment,
    reported: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SweepAction {
    Report,
    End,
    Cancel,
}

impl Sweeper {
    fn new(options: &RuntimeOptions) -> Self {
        let asked = options.sweep_unsupported_after.map_or(SWEEP_INTERVAL, |after| after / 4);
        let at_most = if options.cancel_only_fallback { CANCEL_INTERVAL } else { SWEEP_INTERVAL };
        Self {
            interval: asked.clamp(SWEEP_INTERVAL_MIN, at_most),
            end_after: options.sweep_unsupported_after,
            cancels: options.cancel_only_fallback,
            seen: BTreeMap::new(),
        }
    }

    fn decide(&mut self, found: Vec<StrandedWork>, now: Moment) -> Vec<(StrandedWork, SweepAction)> {
        let before = std::mem::take(&mut self.seen);
        let mut actions = Vec::new();
        for work in found {
            let key = key_of(&work);
            let first_seen = before.get(&key).copied();
            let action = self.action(&work, first_seen, now);
            let since = first_seen.map_or(now, |first_seen| first_seen.since);
            let reported = first_seen.is_some_and(|first_seen| first_seen.reported) || action.is_some();
            self.seen.insert(key, FirstSeen { since, reported });
            actions.extend(action.map(|action| (work, action)));
        }
        actions
    }

    /// Work that is seen for the first time is not reported, because nodes come and go during a deployment.
    fn action(&self, work: &StrandedWork, first_seen: Option<FirstSeen>, now: Moment) -> Option<SweepAction> {
        if self.cancels && work.cancel_requested && work.activity.is_none() {
            return Some(SweepAction::Cancel);
        }
        let first_seen = first_seen?;
        if !first_seen.reported {
            // Even if the time to end it is over: work is always reported before it is ended.
            return Some(SweepAction::Report);
        }
        self.end_after.filter(|after| now.since(first_seen.since) >= *after).map(|_| SweepAction::End)
    }
}

fn key_of(work: &StrandedWork) -> Key {
    let activity = work.activity.as_ref().map(|activity| (activity.execution_id, activity.activity_id));
    (work.instance.clone(), activity)
}

// ---- acting -------------------------------------------------------------------------------------------------------

async fn carry_out(node: &Arc<Node>, work: StrandedWork, action: SweepAction) {
    let StrandedWork { instance, activity, missing, .. } = work;
    match (action, activity) {
        (SweepAction::Report, activity) => warn!(
            target: "duroxide::runtime",
            instance, activity_id = activity.map(|activity| activity.activity_id), missing = %missing,
            "no node can take this work"
        ),
        (SweepAction::End, Some(activity)) => end_activity(node, &activity, &missing).await,
        (SweepAction::End, None) => end_instance(node, &instance, StrandedEnd::Unsupported { missing }).await,
        (SweepAction::Cancel, _) => end_instance(node, &instance, StrandedEnd::Cancelled).await,
    }
}

/// Claims the instance regardless of filters and ends it. Does nothing if another worker has claimed it meanwhile.
async fn end_instance(node: &Arc<Node>, instance: &str, stranded_end: StrandedEnd) {
    let request = OrchestrationFetch::new(node.options.orchestrator_lock_timeout, Duration::ZERO)
        .with_only(instance)
        .with_node(node.membership.node());
    let fetched =
        provider_call("fetch_orchestration_items", node.store.fetch_orchestration_items(&request)).await;
    for claim in fetched.unwrap_or_default() {
        node.locks.insert(&claim.lock_token, LockKind::Instance);
        if claim.instance != instance {
            node.abandon(LockKind::Instance, &claim.lock_token, None, true).await;
            continue;
        }
        let claimed = ClaimedInstance::new(node, claim);
        let (received, slot) = (node.env.moment(), SlotGuard::detached(&node.env));
        if let Some(slot) = slot {
            InstanceWork::new(Arc::clone(node), claimed, received, slot).end_stranded(&stranded_end).await;
        }
    }
}

/// Claims the activity regardless of tags and sessions and fails it.
async fn end_activity(node: &Arc<Node>, activity: &ScheduledActivityIdentifier, missing: &MissingCapability) {
    let request = WorkFetch::new(node.options.worker_lock_timeout, Duration::ZERO, &TagFilter::None)
        .with_only(activity)
        .with_node(node.membership.node());
    let fetched = provider_call("fetch_work_items", node.store.fetch_work_items(&request)).await;
    for claim in fetched.unwrap_or_default() {
        node.locks.insert(&claim.lock_token, LockKind::Activity);
        let claimed = ClaimedActivity::new(node, claim);
        let (received, slot) = (node.env.moment(), SlotGuard::detached(&node.env));
        if let Some(slot) = slot {
            ActivityWork::new(Arc::clone(node), claimed, received, slot).fail_stranded(missing).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(minutes: u32) -> Moment {
        Moment::new(MINUTE * minutes)
    }

    fn sweeper(end_after: Option<Duration>) -> Sweeper {
        Sweeper::new(&RuntimeOptions { sweep_unsupported_after: end_after, ..RuntimeOptions::default() })
    }

    fn work(instance: &str) -> StrandedWork {
        StrandedWork {
            instance: instance.to_owned(),
            activity: None,
            missing: MissingCapability::Activity { name: "pack".to_owned() },
            cancel_requested: false,
        }
    }

    fn actions(sweeper: &mut Sweeper, found: &[&str], minutes: u32) -> Vec<(String, SweepAction)> {
        let found = found.iter().map(|instance| work(instance)).collect();
        let decided = sweeper.decide(found, at(minutes));
        decided.into_iter().map(|(work, action)| (work.instance, action)).collect()
    }

    /// S3.48: without a time limit, stranded work is reported once and stays.
    #[test]
    fn stranded_work_is_reported_once_when_it_stays() {
        let mut sweeper = sweeper(None);
        assert!(actions(&mut sweeper, &["a"], 0).is_empty(), "nodes come and go");
        assert_eq!(actions(&mut sweeper, &["a", "b"], 1), [("a".to_owned(), SweepAction::Report)]);
        assert_eq!(actions(&mut sweeper, &["a", "b"], 2), [("b".to_owned(), SweepAction::Report)]);
        assert!(actions(&mut sweeper, &["a", "b"], 1_000).is_empty());
    }

    /// S3.48: with a time limit, it is ended when it has been stranded for that long without interruption.
    #[test]
    fn stranded_work_is_ended_after_its_time() {
        let mut sweeper = sweeper(Some(10 * MINUTE));
        assert!(actions(&mut sweeper, &["a"], 0).is_empty());
        assert_eq!(actions(&mut sweeper, &["a"], 1), [("a".to_owned(), SweepAction::Report)]);
        assert!(actions(&mut sweeper, &["a"], 9).is_empty());
        assert_eq!(actions(&mut sweeper, &["a"], 10), [("a".to_owned(), SweepAction::End)]);

        assert!(actions(&mut sweeper, &[], 11).is_empty(), "a node came");
        assert!(actions(&mut sweeper, &["a"], 12).is_empty(), "and went");
        assert_eq!(actions(&mut sweeper, &["a"], 21), [("a".to_owned(), SweepAction::Report)]);
        assert_eq!(actions(&mut sweeper, &["a"], 22), [("a".to_owned(), SweepAction::End)]);
    }

    /// S3.48: however late the next sweep is.
    #[test]
    fn nothing_is_ended_that_was_not_reported() {
        let mut sweeper = sweeper(Some(MINUTE));
        assert!(actions(&mut sweeper, &["a"], 0).is_empty());
        assert_eq!(actions(&mut sweeper, &["a"], 5), [("a".to_owned(), SweepAction::Report)]);
        assert_eq!(actions(&mut sweeper, &["a"], 6), [("a".to_owned(), SweepAction::End)]);
    }

    /// S2.16
    #[test]
    fn a_cancellation_is_carried_out_at_once_if_that_is_allowed() {
        let cancelled = StrandedWork { cancel_requested: true, ..work("a") };
        let options = RuntimeOptions { cancel_only_fallback: true, ..RuntimeOptions::default() };
        let decided = Sweeper::new(&options).decide(vec![cancelled.clone()], at(0));
        assert_eq!(decided, [(cancelled.clone(), SweepAction::Cancel)]);
        assert!(sweeper(None).decide(vec![cancelled], at(0)).is_empty());
    }

    #[test]
    fn the_sweeper_sweeps_as_often_as_needed_and_no_more() {
        assert_eq!(sweeper(None).interval, SWEEP_INTERVAL);
        assert_eq!(sweeper(Some(60 * MINUTE)).interval, SWEEP_INTERVAL);
        assert_eq!(sweeper(Some(MINUTE)).interval, Duration::from_secs(15));
        assert_eq!(sweeper(Some(Duration::ZERO)).interval, SWEEP_INTERVAL_MIN);
    }
}
