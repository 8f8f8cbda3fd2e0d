//! Fetches that wait, and work that is handed over inside the transaction that makes it.

mod early_turns;

use std::{pin::pin, time::Duration};

use crate::support::*;
use duroxide_core::WorkItem;
use duroxide_provider::{
    OrchestrationFetch, Provider, ProviderAdmin, SessionFetchConfig, TagFilter, WorkFetch,
};
use duroxide_store::{Idle, StoreOptions};

/// D4: while fetches wait, an orchestration with one activity is four commits from start to end.
#[test]
fn a_one_activity_orchestration_is_four_commits() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let mut turn = pin!(fetch_instances(&provider, 4));
    let mut work = pin!(fetch_activities(&provider, 4));
    hand_in(&mut turn);
    hand_in(&mut work);
    store.run();
    let idle = plan.count(Point::Commit);

    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    let claim = answer(&mut turn).pop().unwrap();
    let mut turn = pin!(fetch_instances(&provider, 4));
    hand_in(&mut turn);
    complete(&mut store, provider.commit_round(&claim.lock_token, first_round("a"))).unwrap();

    let activity = answer(&mut work).pop().unwrap();
    let mut work = pin!(fetch_activities(&provider, 4));
    hand_in(&mut work);
    complete(&mut store, provider.ack_work_item(&activity.lock_token, Some(completed("a", 2)))).unwrap();

    let claim = answer(&mut turn).pop().unwrap();
    assert!(matches!(claim.messages[..], [WorkItem::ActivityCompleted { .. }]));
    complete(&mut store, provider.commit_round(&claim.lock_token, last_round("a"))).unwrap();

    assert_eq!(plan.count(Point::Commit) - idle, 4);
    let status = complete(&mut store, provider.read_status("a")).unwrap().unwrap();
    assert!(status.terminal_event.is_some());
}

/// I08: items claimed for one fetch are not ready for the next.
#[test]
fn two_waiting_fetches_never_get_the_same_item() {
    let Fixture { provider, mut store, .. } = fixture();
    let mut first = pin!(fetch_instances(&provider, 1));
    let mut second = pin!(fetch_instances(&provider, 1));
    hand_in(&mut first);
    hand_in(&mut second);
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert_eq!(answer(&mut first)[0].instance, "a");
    assert!(poll(&mut second).is_pending());

    complete(&mut store, provider.enqueue_for_orchestrator(start("b"), None)).unwrap();
    assert_eq!(answer(&mut second)[0].instance, "b");
}

#[test]
fn the_oldest_fetch_is_served_first() {
    let Fixture { provider, mut store, .. } = fixture();
    let mut calls: Vec<_> = (0..3).map(|_| Box::pin(fetch_instances(&provider, 1))).collect();
    for call in &mut calls {
        hand_in(&mut call.as_mut());
    }
    for instance in ["a", "b", "c"] {
        complete(&mut store, provider.enqueue_for_orchestrator(start(instance), None)).unwrap();
    }
    let got: Vec<_> = calls.iter_mut().map(|call| answer(&mut call.as_mut()).remove(0).instance).collect();
    assert_eq!(got, ["a", "b", "c"]);
}

#[test]
fn a_fetch_that_does_not_wait_still_asks_once() {
    let Fixture { provider, mut store, .. } = fixture();
    let fetch = || provider.fetch_orchestration_item(LOCK, Duration::ZERO, None);
    assert!(complete(&mut store, fetch()).unwrap().is_none());
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    let (item, _, attempt) = complete(&mut store, fetch()).unwrap().unwrap();
    assert_eq!((item.instance.as_str(), item.execution_id, attempt), ("a", 1, 1));
}

/// D4: the plain fetch takes all of an instance's messages, a batch fetch a bounded part of them.
#[test]
fn only_the_plain_fetch_takes_a_whole_mailbox() {
    let Fixture { provider, mut store, .. } = fixture();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    for n in 0..1_200 {
        let (name, data) = ("e".to_owned(), n.to_string());
        let raised = WorkItem::ExternalRaised { instance: "a".to_owned(), name, data };
        complete(&mut store, provider.enqueue_for_orchestrator(raised, None)).unwrap();
    }
    let claim = complete(&mut store, fetch_instances(&provider, 1)).remove(0);
    assert_eq!(claim.messages.len(), 1_000);
    complete(&mut store, provider.abandon_orchestration_item(&claim.lock_token, None, true)).unwrap();
    let fetch = provider.fetch_orchestration_item(LOCK, Duration::ZERO, None);
    let (item, _, _) = complete(&mut store, fetch).unwrap().unwrap();
    assert_eq!(item.messages.len(), 1_201);
}

#[test]
fn a_fetch_returns_empty_when_its_time_is_up_and_not_before() {
    let Fixture { provider, mut store, clock, .. } = fixture();
    let mut fetch = pin!(provider.fetch_orchestration_item(LOCK, Duration::from_secs(5), None));
    hand_in(&mut fetch);
    store.run();
    clock.advance(Duration::from_millis(4_999));
    store.run();
    assert!(poll(&mut fetch).is_pending());
    clock.advance(Duration::from_millis(1));
    store.run();
    assert!(answer(&mut fetch).unwrap().is_none());
}

#[test]
fn a_clock_set_back_does_not_make_a_fetch_wait_longer() {
    let Fixture { provider, mut store, clock, .. } = fixture();
    let mut fetch = pin!(provider.fetch_orchestration_item(LOCK, Duration::from_secs(5), None));
    hand_in(&mut fetch);
    store.run();
    clock.set_back(Duration::from_secs(600));
    store.run();
    clock.advance(Duration::from_secs(5));
    store.run();
    assert!(answer(&mut fetch).unwrap().is_none());
}

/// A timer that becomes due wakes the fetch that waits for it, without polls.
#[test]
fn a_delayed_message_wakes_the_store_when_it_is_due() {
    let mut f = fixture_with(StoreOptions { shared: false, ..StoreOptions::default() });
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, plan } = f;
    complete(&mut store, provider.commit_round(&claim.lock_token, first_round("a"))).unwrap();
    let delay = Duration::from_secs(10);
    complete(&mut store, provider.enqueue_for_orchestrator(completed("a", 2), Some(delay))).unwrap();
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    let due = clock_now(&clock).saturating_add(delay);
    assert_eq!(store.run(), Idle::Until(due));
    let before = plan.count(Point::Begin);

    clock.advance(delay);
    store.run();
    assert_eq!(answer(&mut fetch)[0].instance, "a");
    assert_eq!(plan.count(Point::Begin) - before, 1);
}

/// A lease that ends makes the item fetchable again, and that wakes a waiting fetch too.
#[test]
fn the_end_of_a_lease_wakes_the_store() {
    let mut f = fixture();
    claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, .. } = f;
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    store.run();
    clock.advance(LOCK);
    store.run();
    let claim = answer(&mut fetch).remove(0);
    assert_eq!((claim.instance.as_str(), claim.attempt_count), ("a", 2));
}

/// L2: with nothing to do, nothing is asked of the engine but whether another process wrote.
#[test]
fn an_idle_store_asks_nothing() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let mut turn = pin!(fetch_instances(&provider, 1));
    let mut work = pin!(fetch_activities(&provider, 1));
    hand_in(&mut turn);
    hand_in(&mut work);
    store.run();
    let asked = [Point::Begin, Point::NextWake, Point::Read].map(|point| plan.count(point));
    let looked = plan.count(Point::ChangedElsewhere);
    for _ in 0..100 {
        clock.advance(Duration::from_millis(10));
        assert_ne!(store.run(), Idle::Closed);
    }
    assert_eq!([Point::Begin, Point::NextWake, Point::Read].map(|point| plan.count(point)), asked);
    assert_eq!(plan.count(Point::ChangedElsewhere) - looked, 20, "every 50 ms");
    clock.advance(Duration::from_millis(50));
    store.run();
    let looked = plan.count(Point::ChangedElsewhere);
    for _ in 0..100 {
        clock.advance(Duration::from_millis(10));
        store.run();
    }
    assert_eq!(plan.count(Point::ChangedElsewhere) - looked, 5, "every 200 ms after a second");
}

#[test]
fn a_store_without_waiting_calls_sleeps_until_a_request() {
    let Fixture { provider, mut store, .. } = fixture();
    complete(&mut store, provider.get_queue_depths()).unwrap();
    assert_eq!(store.run(), Idle::UntilRequest);
}

/// The same filter found nothing and nothing happened since: the next fetch need not ask.
#[test]
fn a_fetch_after_an_empty_one_costs_no_claim() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let request = OrchestrationFetch::new(LOCK, Duration::ZERO).with_max(8, 8);
    complete(&mut store, provider.fetch_orchestration_items(&request)).unwrap();
    let claims = plan.count(Point::ClaimInstances);
    complete(&mut store, provider.fetch_orchestration_items(&request)).unwrap();
    assert_eq!(plan.count(Point::ClaimInstances), claims);

    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert_eq!(complete(&mut store, provider.fetch_orchestration_items(&request)).unwrap().len(), 1);
}

/// Another filter may pass items that the first did not.
#[test]
fn an_empty_fetch_says_nothing_about_other_filters() {
    let Fixture { provider, mut store, .. } = fixture();
    let elsewhere = duroxide_provider::HandlerCapability {
        supported_orchestrations: Some(std::collections::BTreeMap::new()),
        supported_activities: None,
    };
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    let narrow = OrchestrationFetch::new(LOCK, Duration::ZERO).with_handlers(Some(&elsewhere)).with_max(8, 8);
    assert!(complete(&mut store, provider.fetch_orchestration_items(&narrow)).unwrap().is_empty());
    let wide = OrchestrationFetch::new(LOCK, Duration::ZERO).with_max(8, 8);
    assert_eq!(complete(&mut store, provider.fetch_orchestration_items(&wide)).unwrap().len(), 1);
}

/// Of a fetch of activities, tag and session are part of the filter, too.
#[test]
fn an_empty_fetch_says_nothing_about_other_tags_or_session_owners() {
    let Fixture { provider, mut store, .. } = fixture();
    let mut tagged = activity("a", 2);
    let mut in_session = activity("a", 3);
    if let WorkItem::ActivityExecute { tag, .. } = &mut tagged {
        *tag = Some("gpu".to_owned());
    }
    if let WorkItem::ActivityExecute { session_id, .. } = &mut in_session {
        *session_id = Some("s".to_owned());
    }
    complete(&mut store, provider.enqueue_for_worker(tagged)).unwrap();
    complete(&mut store, provider.enqueue_for_worker(in_session)).unwrap();
    let owner = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LOCK };
    let mut count = |tags: &TagFilter, session| {
        let request = WorkFetch::new(LOCK, Duration::ZERO, tags).with_session(session).with_max(8, 8);
        complete(&mut store, provider.fetch_work_items(&request)).unwrap().len()
    };
    assert_eq!(count(&TagFilter::default_only(), None), 0);
    assert_eq!(count(&TagFilter::tags(["gpu"]), None), 1);
    assert_eq!(count(&TagFilter::default_only(), Some(&owner)), 1);
}

/// D4: a fetch whose future was dropped locks nothing from then on.
#[test]
fn a_dropped_fetch_is_passed_over() {
    let Fixture { provider, mut store, .. } = fixture();
    {
        let mut gone = pin!(fetch_instances(&provider, 1));
        hand_in(&mut gone);
        store.run();
    }
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert_eq!(answer(&mut fetch)[0].attempt_count, 1);
}

/// D4: a claim that its caller never saw is given back, attempt and all.
#[test]
fn a_reply_dropped_unread_releases_its_claim() {
    let Fixture { provider, mut store, .. } = fixture();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    complete(&mut store, provider.enqueue_for_worker(activity("a", 2))).unwrap();
    {
        let mut turn = pin!(fetch_instances(&provider, 1));
        let mut work = pin!(fetch_activities(&provider, 1));
        hand_in(&mut turn);
        hand_in(&mut work);
        store.run();
    }
    assert_eq!(complete(&mut store, fetch_instances(&provider, 1))[0].attempt_count, 1);
    assert_eq!(complete(&mut store, fetch_activities(&provider, 1))[0].attempt_count, 1);
}

/// The plain fetch loads history after its claim; dropped in between, it gives the claim back.
#[test]
fn a_plain_fetch_dropped_while_it_loads_releases_its_claim() {
    let Fixture { provider, mut store, .. } = fixture();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    {
        let mut fetch = pin!(provider.fetch_orchestration_item(LOCK, LONG, None));
        hand_in(&mut fetch);
        store.run();
        hand_in(&mut fetch);
    }
    assert_eq!(complete(&mut store, fetch_instances(&provider, 1))[0].attempt_count, 1);
}

/// D9: polls come every 50 ms, and every millisecond for a second after a change.
#[test]
fn a_change_by_another_process_makes_the_store_poll_more_often() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    store.run();
    let claims = plan.count(Point::ClaimInstances);
    plan.change_elsewhere();
    clock.advance(Duration::from_millis(50));
    let now = clock_now(&clock);
    assert_eq!(store.run(), Idle::Until(now.saturating_add(Duration::from_millis(1))));
    assert_eq!(plan.count(Point::ClaimInstances) - claims, 1);

    clock.advance(Duration::from_secs(1));
    let now = clock_now(&clock);
    assert_eq!(store.run(), Idle::Until(now.saturating_add(Duration::from_millis(50))));
}

/// D9: one read decides whether a claim is worth a transaction.
#[test]
fn a_change_by_another_process_that_made_nothing_ready_costs_no_transaction() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    store.run();
    let begins = plan.count(Point::Begin);
    plan.change_elsewhere_in_vain();
    clock.advance(Duration::from_millis(50));
    store.run();
    assert_eq!(plan.count(Point::Begin), begins);
}

/// A fetch that does not wait must see rows that another process committed before it.
#[test]
fn a_new_fetch_polls_for_changes_by_others_at_once() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let request = OrchestrationFetch::new(LOCK, Duration::ZERO).with_max(8, 8);
    complete(&mut store, provider.fetch_orchestration_items(&request)).unwrap();
    let claims = plan.count(Point::ClaimInstances);
    plan.change_elsewhere();
    complete(&mut store, provider.fetch_orchestration_items(&request)).unwrap();
    assert_eq!(plan.count(Point::ClaimInstances) - claims, 1);
}

fn clock_now(clock: &ManualClock) -> duroxide_core::Timestamp {
    duroxide_core::Clock::now(clock)
}
