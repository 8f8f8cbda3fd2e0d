//! How long a fetch may wait, and which events end the wait.
//!
//! A provider may ignore the poll timeout and return at once. If it waits, a message that becomes visible must end the
//! wait.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide_provider::TagFilter;
use tokio::task::JoinHandle;

use crate::{
    factory::ProviderFactory,
    fixture::{Claim, Fixture, LONG_LEASE, now_ms},
    message::{activity, raised, start, timer_fired},
    round::first_round,
};

/// A poll timeout that a validation waits for.
const WAIT: Duration = Duration::from_millis(400);
/// A poll timeout that an event must end early.
const LONG_WAIT: Duration = Duration::from_secs(60);
/// The time that scheduling may add to a wait on a busy machine.
const SLACK: Duration = Duration::from_secs(5);
/// A busy machine can make any single call slow, so a call that must be quick gets several tries.
const TRIES: usize = 10;

async fn idle_claim(fixture: &Fixture, poll: Duration) -> Duration {
    let began = Instant::now();
    let fetched = fixture.provider.fetch_orchestration_item(LONG_LEASE, poll, None).await;
    assert!(fetched.expect("a fetch must not fail").is_none(), "an empty queue has nothing to fetch");
    began.elapsed()
}

async fn idle_work(fixture: &Fixture, poll: Duration) -> Duration {
    let began = Instant::now();
    let fetched = fixture.provider.fetch_work_item(LONG_LEASE, poll, None, &TagFilter::Any).await;
    assert!(fetched.expect("a fetch must not fail").is_none(), "an empty queue has nothing to fetch");
    began.elapsed()
}

fn assert_waited_or_returned_at_once(took: Duration, at_once: Duration) {
    assert!(
        took + Duration::from_millis(20) >= WAIT || took <= at_once,
        "a fetch with poll_timeout {WAIT:?} must wait that long, or not at all, but took {took:?}"
    );
}

/// With `poll_timeout` zero a fetch returns at once (A11).
pub async fn test_short_poll_returns_immediately<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        fastest = fastest.min(idle_claim(&fixture, Duration::ZERO).await);
    }
    let threshold = factory.short_poll_threshold();
    assert!(fastest <= threshold, "a fetch that must not wait took {fastest:?}, more than {threshold:?}");
}

/// If a fetch waits, it waits for the whole poll timeout (A11).
pub async fn test_long_poll_waits_for_timeout<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let took = idle_claim(&fixture, WAIT).await;
    assert_waited_or_returned_at_once(took, factory.short_poll_threshold());
}

/// No fetch waits longer than its poll timeout (A11).
pub async fn test_fetch_respects_timeout_upper_bound<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for took in [idle_claim(&fixture, WAIT).await, idle_work(&fixture, WAIT).await] {
        assert!(took <= WAIT + SLACK, "a fetch with poll_timeout {WAIT:?} must not take {took:?}");
    }
}

/// With `poll_timeout` zero a fetch of an activity returns at once (A11).
pub async fn test_short_poll_work_item_returns_immediately<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        fastest = fastest.min(idle_work(&fixture, Duration::ZERO).await);
    }
    let threshold = factory.short_poll_threshold();
    assert!(fastest <= threshold, "a fetch that must not wait took {fastest:?}, more than {threshold:?}");
}

/// If a fetch of activities waits, it waits for the whole poll timeout (A11).
pub async fn test_long_poll_work_item_waits_for_timeout<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let took = idle_work(&fixture, WAIT).await;
    assert_waited_or_returned_at_once(took, factory.short_poll_threshold());
}

/// Whether a fetch of orchestrations waits at all.
async fn waits(fixture: &Fixture) -> bool {
    idle_claim(fixture, WAIT).await + Duration::from_millis(20) >= WAIT
}

/// Whether a fetch of activities waits at all.
async fn waits_for_work(fixture: &Fixture) -> bool {
    idle_work(fixture, WAIT).await + Duration::from_millis(20) >= WAIT
}

/// Starts a fetch that waits, in a task of its own.
fn waiting_claim(fixture: &Arc<Fixture>) -> JoinHandle<Option<Claim>> {
    let fixture = Arc::clone(fixture);
    tokio::spawn(async move { fixture.claim_within(LONG_WAIT).await })
}

/// Gives a spawned fetch time to reach the provider. If it does not reach it, the following check is weaker, not wrong.
async fn let_it_wait() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// A message ends the wait of a fetch (A11).
pub async fn test_long_poll_returns_when_a_message_arrives<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Arc::new(Fixture::new(factory).await);
    if !waits(&fixture).await {
        return;
    }
    let began = Instant::now();
    let waiting = waiting_claim(&fixture);
    let_it_wait().await;
    fixture.send(start("arrives")).await;
    let claim = waiting
        .await
        .expect("a fetch must not panic")
        .expect("a waiting fetch must be served when a message arrives");
    assert_eq!(claim.item.instance, "arrives", "the fetch must return what arrived");
    assert!(began.elapsed() < LONG_WAIT, "a message must end the wait before its timeout");
}

/// An activity ends the wait of a fetch (A11).
pub async fn test_long_poll_work_item_returns_when_an_activity_arrives<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Arc::new(Fixture::new(factory).await);
    if !waits_for_work(&fixture).await {
        return;
    }
    let waiting = {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move {
            fixture.provider.fetch_work_item(LONG_LEASE, LONG_WAIT, None, &TagFilter::DefaultOnly).await
        })
    };
    let_it_wait().await;
    fixture.schedule(activity("arrives", 1, 2)).await;
    let fetched = waiting.await.expect("a fetch must not panic").expect("a fetch must not fail");
    let (item, _, attempts) = fetched.expect("a waiting fetch must be served when an activity arrives");
    assert_eq!((item, attempts), (activity("arrives", 1, 2), 1), "the fetch must return what arrived");
}

/// A timer that comes due ends the wait of a fetch (14.1, I14).
pub async fn test_long_poll_returns_when_a_timer_is_due<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Arc::new(Fixture::new(factory).await);
    if !waits(&fixture).await {
        return;
    }
    let fire_at_ms = now_ms() + 500;
    let mut round = first_round("timed");
    round.orchestrator_items = vec![timer_fired("timed", 2, fire_at_ms)];
    fixture.running_with("timed", round).await;
    let claim = fixture.claim_within(LONG_WAIT).await.expect("a timer that comes due must end the wait");
    assert_eq!(claim.item.messages, [timer_fired("timed", 2, fire_at_ms)], "the fetch must return the timer");
    assert!(now_ms() + 2 >= fire_at_ms, "a timer must not fire before its time");
}

/// The end of a lease ends the wait of a fetch (16.1).
pub async fn test_long_poll_returns_when_a_lease_ends<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Arc::new(Fixture::new(factory).await);
    if !waits(&fixture).await {
        return;
    }
    fixture.send(start("leased")).await;
    let lost = fixture.claim_for(fixture.lease).await;
    let taken = fixture.claim_within(LONG_WAIT).await.expect("a lease that ends must end the wait");
    lost.times.assert_kept_for(fixture.lease, taken.times);
    assert_eq!(taken.attempts, 2, "a lease that ended counts as an attempt");
}

/// A fetch whose future was dropped locks nothing afterwards (A11).
pub async fn test_dropped_fetch_locks_nothing<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Arc::new(Fixture::new(factory).await);
    fixture.running("free").await;
    for _ in 0..3 {
        let waiting = waiting_claim(&fixture);
        let_it_wait().await;
        waiting.abort();
        let _ = waiting.await;
    }
    fixture.send(raised("free", "wake")).await;
    let claim = fixture.claim_instance("free").await;
    assert_eq!(claim.attempts, 1, "a dropped fetch must not count as an attempt");
}
