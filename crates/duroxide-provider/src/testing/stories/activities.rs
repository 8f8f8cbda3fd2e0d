//! The worker queue.

use std::{collections::BTreeSet, time::Duration};

use duroxide_core::WorkItem;

use crate::{
    HandlerCapability, TagFilter,
    store::{ActivityFetch, Refusal},
    testing::{
        Scenario, Turn,
        items::*,
        scenario::{LEASE, work_fetch},
    },
};

fn ids(work: &[crate::WorkClaim]) -> Vec<u64> {
    let id = |item: &WorkItem| match item {
        WorkItem::ActivityExecute { id, .. } => *id,
        _ => 0,
    };
    work.iter().map(|work| id(&work.item)).collect()
}

/// S1.10
pub fn the_lowest_activity_comes_first(mut s: Scenario) {
    for id in [5, 3, 4] {
        s.send(&activity("a", id));
    }
    assert_eq!(ids(&s.work_all(&work_fetch(2)).items), [5, 3]);
    assert_eq!(ids(&s.work_all(&work_fetch(2)).items), [4]);
}

/// S4.7, 16.14
pub fn an_activity_is_queued_once(mut s: Scenario) {
    s.send(&activity("a", 2));
    s.send(&activity("a", 2));
    let work = s.work().unwrap();
    s.send(&activity("a", 2));
    assert!(s.work().is_none());
    s.ack(&work, None).unwrap();
    s.send(&activity("a", 2));
    assert!(s.work().is_some());
}

/// An instance whose first turn scheduled activity 2 is asked to stop it, by a turn that a raised event caused.
fn stop(s: &mut Scenario) {
    s.send(&raise("a", "stop"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).stop_activity(2)).unwrap();
}

fn scheduled(s: &mut Scenario) {
    s.run_first_turn(Turn::first("a").activity(), &start("a"));
}

/// The messages that the instance gets of a stopped activity.
fn told(s: &mut Scenario) -> Vec<String> {
    let messages = s.claim().map(|claim| claim.messages).unwrap_or_default();
    let text = |message: &WorkItem| match message {
        WorkItem::ActivityFailed { id: 2, details, .. } => details.display_message(),
        other => other.kind().to_owned(),
    };
    messages.iter().map(text).collect()
}

/// 7.3
pub fn a_stop_ends_an_activity_that_was_not_claimed(mut s: Scenario) {
    scheduled(&mut s);
    stop(&mut s);
    assert!(s.instance("a").unwrap().activities.is_empty() && s.work().is_none());
    assert_eq!(told(&mut s), ["canceled: never started"]);
}

/// 7.3, 16.9: an attempt that was taken back may have begun the activity all the same.
pub fn a_stop_ends_an_activity_that_was_given_back(mut s: Scenario) {
    scheduled(&mut s);
    let work = s.work().unwrap();
    assert!(!work.claimed_before);
    s.abandon_work(&work, Some(LEASE), true).unwrap();
    stop(&mut s);
    assert!(s.instance("a").unwrap().activities.is_empty());
    assert_eq!(told(&mut s), ["canceled: interrupted"]);
    assert_eq!(s.ack(&work, Some(&completed("a", 2))), Err(Refusal::WorkItemLockLost));
}

/// 7.3: the lock stays, so the outcome is delivered as always, once.
pub fn the_holder_of_an_activity_learns_of_a_stop(mut s: Scenario) {
    scheduled(&mut s);
    let work = s.work().unwrap();
    assert_eq!(s.renew_work_is_stopped(&work), Ok(false));
    stop(&mut s);
    assert_eq!(s.renew_work_is_stopped(&work), Ok(true));
    assert!(s.claim().is_none(), "nothing is told before the activity ended");
    s.ack(&work, Some(&completed("a", 2))).unwrap();
    assert_eq!(told(&mut s), ["ActivityCompleted"]);
}

/// 7.3, 16.1: the next claim carries the request, so that it does not run again.
pub fn an_activity_whose_lease_ended_keeps_its_stop(mut s: Scenario) {
    scheduled(&mut s);
    let first = s.work().unwrap();
    stop(&mut s);
    s.pass_lease();
    let second = s.work().unwrap();
    assert!(second.stop_requested && second.claimed_before);
    assert_eq!(s.renew_work_is_stopped(&second), Ok(true));
    s.abandon_work(&second, None, true).unwrap();
    let third = s.work().unwrap();
    assert!(third.stop_requested && third.claimed_before, "an abandon forgets nothing");
    assert_eq!(s.ack(&first, None), Err(Refusal::WorkItemLockLost));
    s.ack(&third, Some(&failed("a", 2))).unwrap();
    assert_eq!(told(&mut s), ["refused"]);
}

/// 7.3: it has just ended, and its completion is on its way.
pub fn a_stop_of_a_missing_activity_changes_nothing(mut s: Scenario) {
    scheduled(&mut s);
    let work = s.work().unwrap();
    s.ack(&work, Some(&completed("a", 2))).unwrap();
    let claim = s.claim().unwrap();
    assert_eq!(claim.messages, [completed("a", 2)]);
    s.commit(&claim, Turn::later(&claim).completed(2).stop_activity(2)).unwrap();
    assert!(s.claim().is_none() && s.work().is_none());
}

/// S4.1
pub fn an_ack_deletes_the_row_and_queues_the_completion(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").activity(), &start("a"));
    let work = s.work().unwrap();
    s.ack(&work, Some(&completed("a", 2))).unwrap();
    assert!(s.instance("a").unwrap().activities.is_empty());
    assert_eq!(s.claim().unwrap().messages, [completed("a", 2)]);
    assert_eq!(s.ack(&work, Some(&completed("a", 2))), Err(Refusal::WorkItemLockLost));
}

/// A16: `ack_work_item_none_deletes_without_enqueue`
pub fn an_ack_without_completion_only_deletes(mut s: Scenario) {
    s.send(&activity("a", 2));
    let work = s.work().unwrap();
    s.ack(&work, None).unwrap();
    assert!(s.snapshot().instances.is_empty());
}

/// 16.1, I09
pub fn an_ended_activity_lease_is_redelivered_and_fenced(mut s: Scenario) {
    s.send(&activity("a", 2));
    let first = s.work().unwrap();
    assert_eq!(first.attempt_count, 1);
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(LEASE)));
    s.pass_lease();
    assert_eq!(s.ack(&first, None), Err(Refusal::WorkItemLockLost), "ended, though nobody took it");
    assert_eq!(s.renew_work(&first), Err(Refusal::WorkItemLockLost));
    let second = s.work().unwrap();
    assert_eq!(second.attempt_count, 2);
    assert_eq!(s.abandon_work(&first, None, true), Err(Refusal::WorkItemLockLost));
    s.ack(&second, None).unwrap();
}

/// 16.3
pub fn a_renewed_activity_is_not_redelivered(mut s: Scenario) {
    s.send(&activity("a", 2));
    let work = s.work().unwrap();
    s.pass(LEASE - Duration::from_millis(1));
    s.renew_work(&work).unwrap();
    s.pass(LEASE - Duration::from_millis(1));
    assert!(s.work().is_none());
    s.ack(&work, None).unwrap();
}

/// A16: `abandon_work_item_with_delay`, 16.2
pub fn an_abandoned_activity_is_hidden_and_keeps_its_place(mut s: Scenario) {
    s.send(&activity("a", 2));
    s.send(&activity("a", 3));
    let work = s.work().unwrap();
    s.abandon_work(&work, Some(Duration::from_secs(5)), false).unwrap();
    let other = s.work().unwrap();
    assert_eq!(other.item, activity("a", 3));
    s.abandon_work(&other, None, true).unwrap();
    s.pass(Duration::from_secs(5));
    let again = s.work().unwrap();
    assert_eq!((again.item, again.attempt_count), (activity("a", 2), 2));
    assert_eq!(s.work().unwrap().attempt_count, 1, "an ignored attempt does not count");
}

/// 13.4
pub fn tags_route_activities(mut s: Scenario) {
    s.send(&routed_activity("a", 1, Some("gpu"), None));
    s.send(&routed_activity("a", 2, Some("cpu"), None));
    s.send(&activity("a", 3));
    assert!(s.tagged_work(TagFilter::none()).is_none());
    assert!(s.tagged_work(TagFilter::tags(["tpu"])).is_none());
    let mut take = |filter| ids(&s.tagged_work(filter).into_iter().collect::<Vec<_>>());
    assert_eq!(take(TagFilter::default_only()), [3]);
    assert_eq!(take(TagFilter::default_and(["cpu"])), [2]);
    assert_eq!(take(TagFilter::any()), [1]);
}

/// 17.7
pub fn handlers_route_activities(mut s: Scenario) {
    s.send(&activity("a", 1));
    let with = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let handlers =
            HandlerCapability { supported_activities: Some(names), supported_orchestrations: None };
        ActivityFetch { handlers: Some(handlers), ..work_fetch(1) }
    };
    assert!(s.work_all(&with(&["ship"])).items.is_empty());
    assert_eq!(s.work_all(&with(&["ship", "charge"])).items.len(), 1);
}

/// D5
pub fn attempted_activities_are_claimed_only_into_free_slots(mut s: Scenario) {
    s.send(&activity("a", 1));
    let work = s.work().unwrap();
    s.abandon_work(&work, None, false).unwrap();
    s.send(&activity("a", 2));
    let with_slots = |free_slots| ActivityFetch { free_slots, ..work_fetch(2) };
    assert!(s.work_all(&with_slots(0)).items.is_empty());
    assert_eq!(ids(&s.work_all(&with_slots(1)).items), [1, 2]);
}

/// A11: a store does not check whether the instance exists.
pub fn an_activity_of_an_unknown_instance_is_delivered(mut s: Scenario) {
    s.send(&activity("nobody", 1));
    let work = s.work().unwrap();
    s.ack(&work, Some(&completed("nobody", 1))).unwrap();
    assert!(s.claim().is_none());
    assert!(s.read().instances(None).unwrap().is_empty());
}
