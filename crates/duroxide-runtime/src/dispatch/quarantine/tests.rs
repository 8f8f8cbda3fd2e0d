//! Tests of the quarantine.

use duroxide_provider::NodeId;
use futures_util::FutureExt;

use super::*;
use crate::env::RealEnv;

const MAX_ATTEMPTS: u32 = 10;
const SLOTS: usize = 64;

fn at(millis: u64) -> Moment {
    Moment::new(Duration::from_millis(millis))
}

/// An item that was only lost in crashes, never abandoned.
fn lost(lost: u32) -> ClaimRecord {
    ClaimRecord {
        kind: LockKind::Activity,
        attempt_count: lost + 1,
        max_attempts: MAX_ATTEMPTS,
        losses: Some(Losses { lost, blamed: 0 }),
        slots: SLOTS,
    }
}

fn blamed(times: u32) -> ClaimRecord {
    ClaimRecord { losses: Some(Losses { lost: times + 2, blamed: times }), ..lost(times + 2) }
}

/// S1.33: a crash differs from a counted abandon.
#[test]
fn an_abandoned_claim_is_no_suspect() {
    for attempt_count in 1..=MAX_ATTEMPTS {
        assert_eq!(ClaimRecord { attempt_count, ..lost(0) }.concurrency(), None);
    }
    assert_eq!(ClaimRecord { attempt_count: 5, ..lost(1) }.concurrency(), None);
}

/// S1.33, S1.36: after two crashes all run again at once; then each crash halves the group, down to one.
#[test]
fn each_further_loss_halves_the_group() {
    let groups: Vec<_> = (0..=10).map(|losses| lost(losses).concurrency()).collect();
    let group = |size| Some(Concurrency::Group(size));
    let expected = [
        None,
        None,
        group(64),
        group(64),
        group(32),
        group(16),
        group(8),
        group(4),
        group(2),
        Some(Concurrency::Alone),
        None,
    ];
    assert_eq!(groups, expected, "the last one is beyond `max_attempts`, and its code does not run");
}

/// Few attempts are used up sooner than the losses halve the group.
#[test]
fn the_last_attempt_is_made_alone_and_the_one_before_by_two() {
    let few = |losses| ClaimRecord { max_attempts: 4, ..lost(losses) }.concurrency();
    assert_eq!([few(1), few(2), few(3)], [None, Some(Concurrency::Group(2)), Some(Concurrency::Alone)]);
    assert_eq!(ClaimRecord { max_attempts: 2, ..lost(1) }.concurrency(), Some(Concurrency::Alone));
    assert_eq!(ClaimRecord { max_attempts: 1, ..lost(0) }.concurrency(), None, "it was never lost");
}

/// If the store does not count losses, every earlier claim counts as lost. That isolates a crashing item, too, and
/// slows down no item before the fifth attempt.
#[test]
fn where_losses_are_unknown_earlier_attempts_stand_for_them() {
    let unknown = |attempt_count| ClaimRecord { attempt_count, losses: None, ..lost(0) }.concurrency();
    assert_eq!([unknown(2), unknown(4)], [None, Some(Concurrency::Group(SLOTS))]);
    assert_eq!([unknown(5), unknown(10)], [Some(Concurrency::Group(SLOTS / 2)), Some(Concurrency::Alone)]);
}

#[test]
fn suspects_with_fewer_losses_go_first() {
    let mut state = State::default();
    let mut try_run =
        |losses| state.try_run(LockKind::Activity, lost(losses).concurrency().unwrap(), at(0)).is_some();
    assert!((0..20).all(|_| try_run(4)));
    assert!(!try_run(5), "no more than 16 of those");
    assert!((20..32).all(|_| try_run(4)));
    assert!(!try_run(4));
    assert!(try_run(3));
}

#[test]
fn the_queues_have_groups_of_their_own() {
    let mut state = State::default();
    let two = Concurrency::Group(2);
    assert!((0..2).all(|_| state.try_run(LockKind::Activity, two, at(0)).is_some()));
    assert!(state.try_run(LockKind::Activity, two, at(0)).is_none());
    assert!(state.try_run(LockKind::Instance, two, at(0)).is_some());
}

/// S1.33, S1.36
#[test]
fn a_blamed_item_runs_while_no_other_suspect_does() {
    let mut state = State::default();
    let (concurrency, group) = (blamed(1).concurrency().unwrap(), lost(2).concurrency().unwrap());
    assert_eq!(concurrency, Concurrency::Alone);
    let innocent = state.try_run(LockKind::Instance, group, at(0)).unwrap();
    assert!(state.try_run(LockKind::Activity, concurrency, at(10)).is_none());
    state.running.remove(&innocent);
    assert!(state.try_run(LockKind::Activity, concurrency, at(20)).is_some());
    assert!(state.try_run(LockKind::Instance, group, at(30)).is_none());
}

#[test]
fn long_running_code_does_not_block_suspects() {
    let mut state = State::default();
    state.try_run(LockKind::Activity, Concurrency::Alone, at(0)).unwrap();
    let minute = TRUSTED_AFTER.as_millis() as u64;
    assert!(state.try_run(LockKind::Activity, Concurrency::Alone, at(minute - 1)).is_none());
    assert!(state.try_run(LockKind::Activity, Concurrency::Alone, at(minute)).is_some());
}

#[test]
fn suspects_start_one_after_the_other() {
    let mut state = State::default();
    assert_eq!(state.start(1, at(0)), Ok(()));
    let unpolled = at(UNPOLLED_MAX.as_millis() as u64);
    assert_eq!(state.start(2, at(10)), Err(unpolled));
    assert_eq!(state.start(2, unpolled), Ok(()), "nobody waits forever for a busy thread");
    assert!(state.is_starting(2) && !state.is_starting(1));
}

/// Records the notes that were written.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<Option<ClaimToken>>>);

impl NodeMembership for Notes {
    fn node(&self) -> NodeId {
        NodeId(1)
    }

    fn note_starting(&self, claim: Option<&ClaimToken>) {
        lock(&self.0).push(claim.cloned());
    }
}

fn env() -> Arc<dyn Env> {
    Arc::new(RealEnv::new(1))
}

/// S1.33: the note names a claim only during its first poll.
#[tokio::test]
async fn the_note_names_the_suspect_whose_code_is_polled_for_the_first_time() {
    let quarantine = Arc::new(Quarantine::default());
    let notes = Arc::new(Notes::default());
    let noted = || lock(&notes.0).clone();
    let weak: Weak<Notes> = Arc::downgrade(&notes);
    quarantine.note_in(weak);
    let suspect = quarantine.register("t", lost(2)).unwrap();
    let mut permit = suspect.run_permit(&env()).await.unwrap();
    assert!(noted().is_empty(), "its code has not begun");

    let token = Some(ClaimToken::Activity("t".to_owned()));
    let polls = Mutex::new(0);
    let code = poll_fn(|cx| {
        *lock(&polls) += 1;
        if *lock(&polls) == 1 {
            assert_eq!(noted(), std::slice::from_ref(&token));
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        assert_eq!(noted(), [token.clone(), None]);
        std::task::Poll::Ready(())
    });
    started(permit.starting(), code).await;
    assert_eq!(noted().len(), 2);
}

#[tokio::test]
async fn the_next_suspect_starts_when_the_first_poll_of_the_one_before_is_over() {
    let (quarantine, env) = (Arc::new(Quarantine::default()), env());
    let [first, second] = ["a", "b"].map(|token| quarantine.register(token, lost(2)).unwrap());
    let mut permit = first.run_permit(&env).await.unwrap();
    let mut waiting = Box::pin(second.run_permit(&env));
    assert!(waiting.as_mut().now_or_never().is_none());
    started(permit.starting(), async {}).await;
    assert!(waiting.as_mut().now_or_never().flatten().is_some());
}

/// A withdrawn turn or a dropped task does not delay the next suspect.
#[tokio::test]
async fn a_suspect_that_never_starts_lets_the_next_one_start() {
    let (quarantine, env) = (Arc::new(Quarantine::default()), env());
    let [first, second] = ["a", "b"].map(|token| quarantine.register(token, lost(2)).unwrap());
    drop(first.run_permit(&env).await.unwrap());
    assert!(second.run_permit(&env).now_or_never().flatten().is_some());
}

#[tokio::test]
async fn the_one_that_runs_alone_waits_until_the_others_are_given_back() {
    let quarantine = Arc::new(Quarantine::default());
    let [_killer, bystander] = ["a", "b"].map(|token| quarantine.register(token, blamed(1)).unwrap());
    assert!(quarantine.wait_until_alone().now_or_never().is_none());
    let waiting = tokio::spawn({
        let quarantine = Arc::clone(&quarantine);
        async move { quarantine.wait_until_alone().await }
    });
    tokio::task::yield_now().await;
    drop(bystander);
    waiting.await.unwrap();
}
