//! Queues: order, visibility, peek and lock, and messages for unknown instances.

use std::time::{Duration, Instant};

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE, assert_permanent, assert_refused, now_ms},
    message::{activity, activity_completed, cancel, queue_message, raised, start, timer_fired},
    round::first_round,
};

/// Activities are fetched in the order in which they were queued (S1.10).
pub async fn test_worker_queue_fifo_ordering<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for id in 2..7 {
        fixture.schedule(activity("fifo", 1, id)).await;
    }
    for id in 2..7 {
        let work = fixture.work().await;
        assert_eq!(work.item, activity("fifo", 1, id), "activities must be fetched in queue order");
    }
}

/// A fetched activity is locked, not removed: it is delivered again unless it is acked (S4.8, S4.10).
pub async fn test_worker_peek_lock_semantics<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("peeked", 1, 2)).await;
    let first = fixture.work().await;
    fixture.expect_no_work("a fetched activity is locked").await;
    fixture
        .provider
        .abandon_work_item(&first.token, None, false)
        .await
        .expect("a live lock can be abandoned");

    let second = fixture.work().await;
    assert_eq!(second.item, first.item, "an activity that was not acked must come again");
    fixture.provider.ack_work_item(&second.token, None).await.expect("a live activity must be ackable");
    fixture.expect_no_work("an acked activity is gone").await;
}

/// An ack removes the activity and queues its completion in one step, once (S4.1, S4.9, S4.15).
pub async fn test_worker_ack_atomicity<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("worked").await;
    fixture.schedule(activity("worked", 1, 2)).await;
    let work = fixture.work().await;
    fixture.expect_no_claim("before the ack there is no completion").await;

    let completion = activity_completed("worked", 1, 2);
    let wrong = fixture.provider.ack_work_item(&work.token, Some(raised("worked", "no completion"))).await;
    assert_permanent(wrong, "only ActivityCompleted and ActivityFailed are valid completions");
    let acked = fixture.provider.ack_work_item(&work.token, Some(completion.clone())).await;
    acked.expect("a live activity must be ackable, also after a refused ack");
    fixture.expect_no_work("an acked activity is gone").await;
    let repeated = fixture.provider.ack_work_item(&work.token, Some(completion.clone())).await;
    assert_permanent(repeated, "a second ack must fail");

    let claim = fixture.try_claim().await.expect("the completion must be visible with the ack");
    assert_eq!(claim.item.messages, [completion], "the completion must be queued exactly once");
}

/// A timer's message becomes visible at its time, not before (14.1, I14).
pub async fn test_timer_delayed_visibility<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let fire_at_ms = now_ms() + fixture.lease.as_millis() as u64;
    let mut round = first_round("timed");
    round.orchestrator_items = vec![timer_fired("timed", 2, fire_at_ms)];
    fixture.running_with("timed", round).await;
    fixture.send(raised("timed", "early")).await;

    let early = fixture.claim_instance("timed").await;
    assert!(
        early.item.messages.contains(&raised("timed", "early")),
        "a waiting timer must not hold others back"
    );
    if early.item.messages.len() == 1 {
        fixture.commit(&early, crate::round::turn_round(1, vec![])).await;
        let claim = fixture.claim_instance("timed").await;
        assert_eq!(claim.item.messages, [timer_fired("timed", 2, fire_at_ms)], "the timer must be delivered");
    }
    assert!(now_ms() + 2 >= fire_at_ms, "a timer must not be delivered before {fire_at_ms}");
}

/// When a lock is lost, the item is delivered again under a new token, and the old token is refused (16.1, I09).
pub async fn test_lost_lock_token_handling<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("lost", 1, 2)).await;
    let lost = fixture.work_for(fixture.lease).await;
    let taken = fixture.work_for(LONG_LEASE).await;
    lost.times.assert_kept_for(fixture.lease, taken.times);
    assert_eq!(
        (&taken.item, taken.attempts),
        (&lost.item, 2),
        "the activity must come again, attempt counted"
    );
    assert_ne!(taken.token, lost.token, "the new lock must have a fresh token");

    let provider = &fixture.provider;
    assert_permanent(provider.ack_work_item(&lost.token, None).await, "an ack under a lost lock must fail");
    let renewed = provider.renew_work_item_lock(&lost.token, LONG_LEASE).await;
    assert_permanent(renewed, "a renewal under a lost lock must fail");
    provider.ack_work_item(&taken.token, None).await.expect("the new holder must not be affected");
}

/// A queued activity is visible at once; an activity in the orchestrator queue is refused (16.10, A11).
pub async fn test_worker_item_immediate_visibility<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("at-once", 1, 2)).await;
    let work = fixture.try_work().await.expect("a queued activity must be visible at once");
    assert_eq!(
        (work.item, work.attempts),
        (activity("at-once", 1, 2), 1),
        "it must be returned as it was queued"
    );

    let refused = fixture.provider.enqueue_for_orchestrator(activity("at-once", 1, 3), None).await;
    assert_refused(refused, "Invalid work item type", "an activity in the orchestrator queue");
}

/// A hidden activity does not hold back those behind it (S1.10, 16.9).
pub async fn test_worker_delayed_visibility_skips_future_items<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("skipped", 1, 2)).await;
    fixture.schedule(activity("skipped", 1, 3)).await;
    let hidden = fixture.work().await;
    let delay = fixture.lease;
    fixture
        .provider
        .abandon_work_item(&hidden.token, Some(delay), false)
        .await
        .expect("a live lock can be abandoned");

    let next = fixture.work().await;
    assert_eq!(next.item, activity("skipped", 1, 3), "an activity behind a hidden one must be fetched");
    let again = fixture.work().await;
    assert_eq!(again.item, activity("skipped", 1, 2), "the hidden activity must come when its delay is over");
    hidden.times.assert_kept_for(delay, again.times);
}

/// Queue messages for an unknown instance leave their queue at the next fetch, and block nothing. A provider with dead
/// letters keeps them there (16.11, B1).
pub async fn test_orphan_queue_messages_dropped<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(queue_message("ghost", "dropped")).await;
    fixture.expect_no_claim("messages for an unknown instance must not be fetched").await;
    fixture.send(start("healthy")).await;
    let healthy = fixture.claim_instance("healthy").await;
    fixture.commit(&healthy, first_round("healthy")).await;

    fixture.send(start("ghost")).await;
    let ghost = fixture.claim_instance("ghost").await;
    assert_eq!(
        ghost.item.messages,
        [start("ghost")],
        "queue messages sent before the start must not be seen"
    );
    if factory.orphan_message_ttl().is_some() {
        let letters = fixture.admin().list_dead_letters(None).await.expect("list_dead_letters must work");
        let [letter] = letters.as_slice() else {
            panic!("one dead letter must be kept, but there are {letters:?}")
        };
        assert_eq!((letter.instance_id.as_deref(), &*letter.reason), (Some("ghost"), "no such instance"));
        assert!(letter.payload.contains("dropped"), "nothing that was acknowledged may be lost: {letter:?}");
    }
}

/// Other messages for an unknown instance block nothing, and are delivered with a later start, in arrival order (16.11,
/// B1).
pub async fn test_messages_wait_for_their_start<F: ProviderFactory + ?Sized>(factory: &F) {
    let stranger = loop {
        let fixture = Fixture::new(factory).await;
        let sent = Instant::now();
        fixture.send(cancel("stranger")).await;
        fixture.send(raised("stranger", "early")).await;
        fixture.expect_no_claim("messages for an unknown instance must not be fetched").await;
        fixture.send(start("healthy")).await;
        fixture.claim_instance("healthy").await;
        fixture.send(start("stranger")).await;
        let claim = fixture.claim_instance("stranger").await;
        // If the start came too late, the messages are rightly dead letters, so try again.
        if factory.orphan_message_ttl().is_none_or(|ttl| sent.elapsed() < ttl) {
            break claim;
        }
    };
    assert_eq!(
        stranger.item.messages,
        [cancel("stranger"), raised("stranger", "early"), start("stranger")],
        "messages must join the start of their instance, in arrival order"
    );
    assert_eq!(stranger.attempts, 1, "waiting for a start is not an attempt");
}

/// An instance without history is fetched only together with its start (16.11, A11).
pub async fn test_hidden_start_is_waited_for<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send_later(start("later"), fixture.lease).await;
    fixture.send(raised("later", "early")).await;
    let delay_began = Instant::now();
    let claim = fixture.claim_instance("later").await;
    assert_eq!(
        claim.item.messages.len(),
        2,
        "messages of an instance without history must wait for its hidden start, but came alone after {:?}",
        delay_began.elapsed()
    );
    fixture.commit(&claim, first_round("later")).await;
    fixture.expect_no_claim("all messages are consumed").await;
}

/// The messages of a batch come in the order in which they became visible (2.1).
pub async fn test_messages_come_in_the_order_in_which_they_became_visible<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    fixture.running("ordered").await;
    fixture.send(raised("ordered", "locked")).await;
    let held = fixture.claim_instance("ordered").await;
    fixture.send_later(raised("ordered", "deadline"), fixture.lease).await;
    fixture.send(raised("ordered", "before")).await;
    tokio::time::sleep(fixture.lease + Duration::from_millis(10)).await;
    fixture.send(raised("ordered", "after")).await;
    // Both timers were overdue when they arrived, so they are ordered by arrival.
    fixture.send(timer_fired("ordered", 2, 2_000)).await;
    fixture.send(timer_fired("ordered", 3, 1_000)).await;
    fixture.abandon(&held, None, false).await;
    let claim = fixture.claim_instance("ordered").await;
    assert_eq!(
        claim.item.messages,
        [
            raised("ordered", "locked"),
            raised("ordered", "before"),
            raised("ordered", "deadline"),
            raised("ordered", "after"),
            timer_fired("ordered", 2, 2_000),
            timer_fired("ordered", 3, 1_000),
        ],
        "a batch must be ordered by the time at which each message became visible, then by arrival"
    );
}

/// A queue message that was abandoned with a delay is not overtaken by a younger one (I15, 16.9).
pub async fn test_delayed_queue_messages_keep_their_order<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("fifo").await;
    fixture.send(queue_message("fifo", "older")).await;
    let claim = fixture.claim_instance("fifo").await;
    fixture.send(queue_message("fifo", "younger")).await;
    fixture.abandon(&claim, Some(fixture.lease), false).await;

    let again = fixture.claim_instance("fifo").await;
    assert_eq!(
        again.item.messages,
        [queue_message("fifo", "older"), queue_message("fifo", "younger")],
        "queue messages must be delivered in the order in which they were sent"
    );
    claim.times.assert_kept_for(fixture.lease, again.times);
}
