//! Each operation that makes work ready wakes the fetch that waits for it. The store does not poll here (it is not shared),
//! and time moves only to the moments that the store itself asks for, so no poll hides a lost wake-up.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use duroxide_core::{Clock, WorkItem};
use duroxide_provider::{Provider, SessionFetchConfig, TagFilter, WorkFetch, store::FailureClass};
use duroxide_store::{Idle, StoreDriver, StoreOptions};

use crate::support::*;

const PAUSE: Duration = Duration::from_secs(5);

fn unshared() -> Fixture {
    fixture_with(StoreOptions { shared: false, ..StoreOptions::default() })
}

/// Runs the store, from one time it asks for to the next, until a call is answered. Returns how long that took.
fn wait_for<F: Future>(
    store: &mut StoreDriver,
    clock: &ManualClock,
    call: &mut Pin<&mut F>,
) -> (F::Output, Duration) {
    let began = clock.elapsed();
    for _ in 0..100 {
        let idle = store.run();
        if let Poll::Ready(answer) = poll(call) {
            return (answer, clock.elapsed() - began);
        }
        match idle {
            Idle::Until(at) | Idle::Gathering(at) => clock.advance(at.saturating_since(clock.now())),
            Idle::UntilRequest | Idle::Closed => panic!("nobody wakes the call"),
        }
    }
    panic!("the store asks for times without end");
}

/// A fetch waits, then `act` happens, and the fetch is to get an instance after `expected`.
fn wakes_for_an_instance<'a, F: Future<Output = ()> + 'a>(
    f: &'a mut Fixture,
    expected: Duration,
    act: impl FnOnce(&'a duroxide_store::StoreProvider) -> F,
) {
    let Fixture { provider, store, clock, .. } = f;
    let provider: &'a _ = provider;
    let mut fetch = pin!(fetch_instances(provider, 1));
    hand_in(&mut fetch);
    store.run();
    assert!(poll(&mut fetch).is_pending(), "nothing is ready yet");
    let mut act = pin!(act(provider));
    assert!(poll(&mut act).is_pending());
    let (claims, took) = wait_for(store, clock, &mut fetch);
    assert_eq!((claims.len(), took), (1, expected));
    answer(&mut act);
}

/// Like `wakes_for_an_instance`, for an activity.
fn wakes_for_an_activity<'a, F: Future<Output = ()> + 'a>(
    f: &'a mut Fixture,
    expected: Duration,
    act: impl FnOnce(&'a duroxide_store::StoreProvider) -> F,
) {
    let Fixture { provider, store, clock, .. } = f;
    let provider: &'a _ = provider;
    let mut fetch = pin!(fetch_activities(provider, 1));
    hand_in(&mut fetch);
    store.run();
    assert!(poll(&mut fetch).is_pending(), "nothing is ready yet");
    let mut act = pin!(act(provider));
    assert!(poll(&mut act).is_pending());
    let (claims, took) = wait_for(store, clock, &mut fetch);
    assert_eq!((claims.len(), took), (1, expected));
    answer(&mut act);
}

/// A store with an activity that a worker holds.
fn with_held_activity() -> (Fixture, String) {
    let mut f = unshared();
    let turn = claim_new(&mut f, "a");
    complete(&mut f.store, f.provider.commit_round(&turn.lock_token, first_round("a"))).unwrap();
    let work = complete(&mut f.store, fetch_activities(&f.provider, 1)).remove(0);
    (f, work.lock_token)
}

/// D4
#[test]
fn a_start_wakes_a_fetch_at_once_or_when_it_is_due() {
    for delay in [None, Some(PAUSE)] {
        wakes_for_an_instance(&mut unshared(), delay.unwrap_or_default(), async |provider| {
            provider.enqueue_for_orchestrator(start("a"), delay).await.unwrap();
        });
    }
}

#[test]
fn an_activity_wakes_a_fetch_when_a_client_or_a_round_queues_it() {
    wakes_for_an_activity(&mut unshared(), Duration::ZERO, async |provider| {
        provider.enqueue_for_worker(activity("a", 2)).await.unwrap();
    });
    let mut f = unshared();
    let turn = claim_new(&mut f, "a");
    wakes_for_an_activity(&mut f, Duration::ZERO, async move |provider| {
        provider.commit_round(&turn.lock_token, first_round("a")).await.unwrap();
    });
}

#[test]
fn a_completion_wakes_a_fetch() {
    let (mut f, token) = with_held_activity();
    wakes_for_an_instance(&mut f, Duration::ZERO, async move |provider| {
        provider.ack_work_item(&token, Some(completed("a", 2))).await.unwrap();
    });
}

#[test]
fn an_abandoned_item_wakes_a_fetch_at_once_or_after_its_delay() {
    for delay in [None, Some(PAUSE)] {
        for ignore_attempt in [false, true] {
            let mut f = unshared();
            let turn = claim_new(&mut f, "a");
            wakes_for_an_instance(&mut f, delay.unwrap_or_default(), async move |provider| {
                let token = &turn.lock_token;
                provider.abandon_orchestration_item(token, delay, ignore_attempt).await.unwrap();
            });
            let (mut f, token) = with_held_activity();
            wakes_for_an_activity(&mut f, delay.unwrap_or_default(), async move |provider| {
                provider.abandon_work_item(&token, delay, ignore_attempt).await.unwrap();
            });
        }
    }
}

/// 16.1: also if it was renewed in between.
#[test]
fn the_end_of_a_lease_wakes_a_fetch() {
    let mut f = unshared();
    let turn = claim_new(&mut f, "a");
    f.clock.advance(LOCK / 2);
    wakes_for_an_instance(&mut f, LOCK, async move |provider| {
        provider.renew_orchestration_item_lock(&turn.lock_token, LOCK).await.unwrap();
    });
    let (mut f, token) = with_held_activity();
    f.clock.advance(LOCK / 2);
    wakes_for_an_activity(&mut f, LOCK, async move |provider| {
        provider.renew_work_item_lock(&token, LOCK).await.unwrap();
    });
}

/// 13.1: an activity of a session waits for the session's lease, not for its own.
#[test]
fn the_end_of_a_session_wakes_a_fetch() {
    let f = unshared();
    let (provider, mut store, clock) = (f.provider, f.store, f.clock);
    let of_session = |id| match activity("a", id) {
        WorkItem::ActivityExecute { instance, execution_id, id, name, input, tag, .. } => {
            let session_id = Some("s".to_owned());
            WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag }
        }
        other => other,
    };
    let tags = TagFilter::default();
    let session = |owner: &str| SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LOCK };
    let (first, second) = (session("w1"), session("w2"));
    complete(&mut store, provider.enqueue_for_worker(of_session(2))).unwrap();
    let request = WorkFetch::new(LOCK * 9, LONG, &tags).with_session(Some(&first));
    assert_eq!(complete(&mut store, provider.fetch_work_items(&request)).unwrap().len(), 1);
    complete(&mut store, provider.enqueue_for_worker(of_session(3))).unwrap();
    let request = WorkFetch::new(LOCK, LONG, &tags).with_session(Some(&second));
    let mut fetch = pin!(provider.fetch_work_items(&request));
    hand_in(&mut fetch);
    let (claims, took) = wait_for(&mut store, &clock, &mut fetch);
    assert_eq!((claims.unwrap().len(), took), (1, LOCK));
}

/// Items that became ready in a commit whose answer was lost, or before a failed promotion, are found without a
/// request.
#[test]
fn a_failure_costs_a_fetch_no_more_than_the_pause_after_it() {
    let f = unshared();
    let (provider, mut store, clock, plan) = (f.provider, f.store, f.clock, f.plan);
    plan.fail_next(Point::AfterCommit, FailureClass::OutcomeUnknown);
    let lost = provider.enqueue_for_orchestrator(start("a"), None);
    complete(&mut store, lost).unwrap_err();
    clock.advance(Duration::from_secs(1));
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    let (claims, took) = wait_for(&mut store, &clock, &mut fetch);
    assert_eq!((claims.len(), took), (1, Duration::ZERO));

    complete(&mut store, provider.enqueue_for_orchestrator(start("b"), Some(PAUSE))).unwrap();
    plan.fail_next(Point::Promote, FailureClass::Retryable);
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    let (claims, took) = wait_for(&mut store, &clock, &mut fetch);
    assert_eq!((claims.len(), took), (1, PAUSE + Duration::from_secs(1)));
}

/// A fetch that got as much as it asked for has not emptied its queue, however many slots are free: the next one is served
/// at once.
#[test]
fn items_left_by_a_fetch_are_ready_for_the_next() {
    let mut f = unshared();
    for id in [2, 3] {
        complete(&mut f.store, f.provider.enqueue_for_worker(activity("a", id))).unwrap();
    }
    let tags = TagFilter::default();
    for _ in 0..2 {
        let request = WorkFetch::new(LOCK, LONG, &tags).with_max(1, 8);
        assert_eq!(complete(&mut f.store, f.provider.fetch_work_items(&request)).unwrap().len(), 1);
    }
}
