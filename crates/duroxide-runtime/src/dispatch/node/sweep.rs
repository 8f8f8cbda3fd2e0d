//! The sweeper: finds work that no node can take, says so, and ends it if it was told to.
//!
//! Nodes announce what they can do when they join. Work that none of them can take is never fetched, so it counts no
//! attempts and nothing else ends it (S3.48).

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
        decide::Sentence,
        guarded,
        locks::LockKind,
        queue::{ClaimedActivity, ClaimedInstance, Seat},
        turn::InstanceWork,
    },
    env::Moment,
};

/// How often the sweeper looks, unless it has reason to look more often.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// The shortest pause between two looks.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// How often it looks for cancellations that only it can carry out.
const CANCEL_INTERVAL: Duration = Duration::from_secs(1);
/// How much of each queue it looks at: what has waited longest.
const STRANDED_MAX: u32 = 1_000;

/// Looks for stranded work for as long as the node runs. Only a node that has joined can tell what is stranded: the others
/// do not know of it, nor it of them.
pub(crate) async fn run(node: Arc<Node>) {
    let mut sweeper = Sweeper::new(&node.options);
    loop {
        node.env.sleep(sweeper.interval).await;
        let Some(admin) = node.store.as_management_capability() else { return };
        if node.membership.node().is_none() {
            continue;
        }
        match guarded("list_stranded_work", admin.list_stranded_work(STRANDED_MAX)).await {
            Ok(found) => {
                count(&node, &found);
                for (work, verdict) in sweeper.judge(found, node.env.moment()) {
                    carry_out(&node, work, verdict).await;
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

/// What the sweeper has seen, and what it does about it.
struct Sweeper {
    interval: Duration,
    end_after: Option<Duration>,
    cancels: bool,
    seen: BTreeMap<Key, Sighting>,
}

/// Which work it is: the instance, and if it is an activity its execution and number.
type Key = (String, Option<(u64, u64)>);

#[derive(Debug, Clone, Copy)]
struct Sighting {
    /// When it was first seen without a node that takes it. Whatever has been taken meanwhile starts anew.
    since: Moment,
    reported: bool,
}

/// What is to be done about stranded work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Report,
    End,
    Cancel,
}

impl Sweeper {
    fn new(options: &RuntimeOptions) -> Self {
        let asked = options.sweep_unsupported_after.map_or(LOOK_INTERVAL, |after| after / 4);
        let at_most = if options.cancel_only_fallback { CANCEL_INTERVAL } else { LOOK_INTERVAL };
        Self {
            interval: asked.clamp(LOOK_INTERVAL_MIN, at_most),
            end_after: options.sweep_unsupported_after,
            cancels: options.cancel_only_fallback,
            seen: BTreeMap::new(),
        }
    }

    fn judge(&mut self, found: Vec<StrandedWork>, now: Moment) -> Vec<(StrandedWork, Verdict)> {
        let before = std::mem::take(&mut self.seen);
        let mut verdicts = Vec::new();
        for work in found {
            let key = key_of(&work);
            let sighting = before.get(&key).copied();
            let verdict = self.verdict(&work, sighting, now);
            let since = sighting.map_or(now, |sighting| sighting.since);
            let reported = sighting.is_some_and(|sighting| sighting.reported) || verdict.is_some();
            self.seen.insert(key, Sighting { since, reported });
            verdicts.extend(verdict.map(|verdict| (work, verdict)));
        }
        verdicts
    }

    /// Nothing is said of what is seen for the first time: during a deployment nodes come and go.
    fn verdict(&self, work: &StrandedWork, sighting: Option<Sighting>, now: Moment) -> Option<Verdict> {
        if self.cancels && work.cancel_requested && work.activity.is_none() {
            return Some(Verdict::Cancel);
        }
        let sighting = sighting?;
        if !sighting.reported {
            // Also if its time is over already: nothing ends that was not reported.
            return Some(Verdict::Report);
        }
        self.end_after.filter(|after| now.since(sighting.since) >= *after).map(|_| Verdict::End)
    }
}

fn key_of(work: &StrandedWork) -> Key {
    let activity = work.activity.as_ref().map(|activity| (activity.execution_id, activity.activity_id));
    (work.instance.clone(), activity)
}

// ---- acting -------------------------------------------------------------------------------------------------------

async fn carry_out(node: &Arc<Node>, work: StrandedWork, verdict: Verdict) {
    let StrandedWork { instance, activity, missing, .. } = work;
    match (verdict, activity) {
        (Verdict::Report, activity) => warn!(
            target: "duroxide::runtime",
            instance, activity_id = activity.map(|activity| activity.activity_id), missing = %missing,
            "no node can take this work"
        ),
        (Verdict::End, Some(activity)) => end_activity(node, &activity, &missing).await,
        (Verdict::End, None) => end_instance(node, &instance, Sentence::Unsupported { missing }).await,
        (Verdict::Cancel, _) => end_instance(node, &instance, Sentence::Cancelled).await,
    }
}

/// Locks the instance, whatever filters say, and ends it. One that somebody has taken meanwhile is not to be had.
async fn end_instance(node: &Arc<Node>, instance: &str, sentence: Sentence) {
    let request = OrchestrationFetch::new(node.options.orchestrator_lock_timeout, Duration::ZERO)
        .with_only(instance)
        .with_node(node.membership.node());
    let fetched = guarded("fetch_orchestration_items", node.store.fetch_orchestration_items(&request)).await;
    for claim in fetched.unwrap_or_default() {
        node.held.hold(&claim.lock_token, LockKind::Instance);
        if claim.instance != instance {
            node.abandon(LockKind::Instance, &claim.lock_token, None, true).await;
            continue;
        }
        let claimed = ClaimedInstance::new(node, claim);
        let (received, seat) = (node.env.moment(), Seat::apart(&node.env));
        if let Some(seat) = seat {
            InstanceWork::new(Arc::clone(node), claimed, received, seat).end_stranded(&sentence).await;
        }
    }
}

/// Locks the activity, whatever tags and sessions say, and lets it fail.
async fn end_activity(node: &Arc<Node>, activity: &ScheduledActivityIdentifier, missing: &MissingCapability) {
    let request = WorkFetch::new(node.options.worker_lock_timeout, Duration::ZERO, &TagFilter::None)
        .with_only(activity)
        .with_node(node.membership.node());
    let fetched = guarded("fetch_work_items", node.store.fetch_work_items(&request)).await;
    for claim in fetched.unwrap_or_default() {
        node.held.hold(&claim.lock_token, LockKind::Activity);
        let claimed = ClaimedActivity::new(node, claim);
        let (received, seat) = (node.env.moment(), Seat::apart(&node.env));
        if let Some(seat) = seat {
            ActivityWork::new(Arc::clone(node), claimed, received, seat).fail_stranded(missing).await;
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

    fn verdicts(sweeper: &mut Sweeper, found: &[&str], minutes: u32) -> Vec<(String, Verdict)> {
        let found = found.iter().map(|instance| work(instance)).collect();
        let judged = sweeper.judge(found, at(minutes));
        judged.into_iter().map(|(work, verdict)| (work.instance, verdict)).collect()
    }

    /// S3.48: without a time, it is reported once and left alone.
    #[test]
    fn stranded_work_is_reported_once_when_it_stays() {
        let mut sweeper = sweeper(None);
        assert!(verdicts(&mut sweeper, &["a"], 0).is_empty(), "nodes come and go");
        assert_eq!(verdicts(&mut sweeper, &["a", "b"], 1), [("a".to_owned(), Verdict::Report)]);
        assert_eq!(verdicts(&mut sweeper, &["a", "b"], 2), [("b".to_owned(), Verdict::Report)]);
        assert!(verdicts(&mut sweeper, &["a", "b"], 1_000).is_empty());
    }

    /// S3.48: with one, it is ended when it has been stranded for that long without a break.
    #[test]
    fn stranded_work_is_ended_after_its_time() {
        let mut sweeper = sweeper(Some(10 * MINUTE));
        assert!(verdicts(&mut sweeper, &["a"], 0).is_empty());
        assert_eq!(verdicts(&mut sweeper, &["a"], 1), [("a".to_owned(), Verdict::Report)]);
        assert!(verdicts(&mut sweeper, &["a"], 9).is_empty());
        assert_eq!(verdicts(&mut sweeper, &["a"], 10), [("a".to_owned(), Verdict::End)]);

        assert!(verdicts(&mut sweeper, &[], 11).is_empty(), "a node came");
        assert!(verdicts(&mut sweeper, &["a"], 12).is_empty(), "and went");
        assert_eq!(verdicts(&mut sweeper, &["a"], 21), [("a".to_owned(), Verdict::Report)]);
        assert_eq!(verdicts(&mut sweeper, &["a"], 22), [("a".to_owned(), Verdict::End)]);
    }

    /// S3.48: however late the sweeper looks again.
    #[test]
    fn nothing_is_ended_that_was_not_reported() {
        let mut sweeper = sweeper(Some(MINUTE));
        assert!(verdicts(&mut sweeper, &["a"], 0).is_empty());
        assert_eq!(verdicts(&mut sweeper, &["a"], 5), [("a".to_owned(), Verdict::Report)]);
        assert_eq!(verdicts(&mut sweeper, &["a"], 6), [("a".to_owned(), Verdict::End)]);
    }

    /// S2.16
    #[test]
    fn a_cancellation_is_carried_out_at_once_if_that_is_allowed() {
        let cancelled = StrandedWork { cancel_requested: true, ..work("a") };
        let options = RuntimeOptions { cancel_only_fallback: true, ..RuntimeOptions::default() };
        let judged = Sweeper::new(&options).judge(vec![cancelled.clone()], at(0));
        assert_eq!(judged, [(cancelled.clone(), Verdict::Cancel)]);
        assert!(sweeper(None).judge(vec![cancelled], at(0)).is_empty());
    }

    #[test]
    fn it_looks_as_often_as_it_must_and_no_more() {
        assert_eq!(sweeper(None).interval, LOOK_INTERVAL);
        assert_eq!(sweeper(Some(60 * MINUTE)).interval, LOOK_INTERVAL);
        assert_eq!(sweeper(Some(MINUTE)).interval, Duration::from_secs(15));
        assert_eq!(sweeper(Some(Duration::ZERO)).interval, LOOK_INTERVAL_MIN);
    }
}
