//! Messages that no node can process become dead letters. They block nothing and are never deleted silently.
//!
//! A provider without dead letters lists none; most validations check nothing for it.

use std::time::{Duration, Instant};

use duroxide_core::WorkItem;
use duroxide_provider::{DeadLetter, DeadLetterQueue};

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, assert_permanent, assert_refused},
    message::{activity, cancel, raised, start},
    round::{first_round, turn_round},
};

const REASON: &str = "unexpected work item kind NotAnActivity";

async fn listed(fixture: &Fixture) -> Vec<DeadLetter> {
    fixture.admin().list_dead_letters(None).await.expect("list_dead_letters must work")
}

/// A fixture with one activity in the dead letters, if the provider supports dead letters.
async fn with_dead_activity<F: ProviderFactory + ?Sized>(factory: &F) -> Option<(Fixture, DeadLetter)> {
    let fixture = Fixture::new(factory).await;
    fixture.running("i").await;
    fixture.schedule(activity("i", 1, 2)).await;
    let work = fixture.work().await;
    let moved = fixture.provider.dead_letter_work_item(&work.token, REASON).await;
    moved.expect("dead_letter_work_item must accept a live lock");
    fixture.expect_no_work("the activity must not come again").await;
    let letter = listed(&fixture).await.into_iter().next()?;
    Some((fixture, letter))
}

/// Fetches until there are at least `count` dead letters. The fetches must return nothing.
async fn wait_for_letters(fixture: &Fixture, count: usize) -> Vec<DeadLetter> {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let letters = listed(fixture).await;
        if letters.len() >= count {
            return letters;
        }
        assert!(Instant::now() < give_up, "{count} dead letters must be there, but only {letters:?} are");
        fixture.expect_no_claim("what cannot be decoded must not be returned").await;
        fixture.expect_no_work("what cannot be decoded must not be returned").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An activity that became a dead letter is listed with its queue, payload, reason and attempts (16.10, 16.12, S1.25).
pub async fn test_dead_letter_is_listed<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some((fixture, letter)) = with_dead_activity(factory).await else { return };
    assert_eq!((&letter.queue, letter.instance_id.as_deref()), (&DeadLetterQueue::Worker, Some("i")));
    assert_eq!((letter.reason.as_str(), letter.attempt_count), (REASON, 1));
    let payload: WorkItem = serde_json::from_str(&letter.payload).expect("the payload is the stored text");
    assert_eq!(payload, activity("i", 1, 2));
    assert_eq!(listed(&fixture).await, [letter], "listing must not change anything");
    let limited = fixture.admin().list_dead_letters(Some(0)).await.expect("list_dead_letters must work");
    assert!(limited.is_empty(), "the limit must bound the list");
}

/// A dead letter has no lock any more: an ack and a second move are permanent errors (I09).
pub async fn test_dead_letter_needs_a_live_lock<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let moved = fixture.provider.dead_letter_work_item("bogus", REASON).await;
    assert_permanent(moved, "dead_letter_work_item under an unknown token must fail");
    fixture.schedule(activity("i", 1, 2)).await;
    let work = fixture.work().await;
    let moved = fixture.provider.dead_letter_work_item(&work.token, REASON).await;
    moved.expect("dead_letter_work_item must accept a live lock");
    let acked = fixture.provider.ack_work_item(&work.token, None).await;
    assert_permanent(acked, "the lock of an activity that became a dead letter is gone");
}

/// A retried dead letter is back in its queue, visible, with no attempts (16.12).
pub async fn test_dead_letter_retry<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some((fixture, letter)) = with_dead_activity(factory).await else { return };
    fixture.admin().retry_dead_letter(&letter.id).await.expect("a dead letter can be retried");
    let work = fixture.try_work().await.expect("a retried activity must be visible at once");
    assert_eq!((work.item, work.attempts), (activity("i", 1, 2), 1), "its count must start anew");
    assert!(listed(&fixture).await.is_empty(), "a retried dead letter is no longer listed");
}

/// A discarded dead letter is deleted; an unknown id is an error (16.12, A17.3).
pub async fn test_dead_letter_discard<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some((fixture, letter)) = with_dead_activity(factory).await else { return };
    fixture.admin().discard_dead_letter(&letter.id).await.expect("a dead letter can be discarded");
    assert!(listed(&fixture).await.is_empty(), "a discarded dead letter is no longer listed");
    fixture.expect_no_work("a discarded dead letter must not come back").await;
    let text = format!("Dead letter {} not found", letter.id);
    assert_refused(fixture.admin().discard_dead_letter(&letter.id).await, &text, "discarding it twice");
    assert_refused(fixture.admin().retry_dead_letter(&letter.id).await, &text, "retrying it after that");
}

/// Deleting an instance deletes its dead letters (16.12, 19.1).
pub async fn test_dead_letters_go_with_their_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some((fixture, _)) = with_dead_activity(factory).await else { return };
    fixture.admin().delete_instance("i", true).await.expect("force must delete it");
    assert!(listed(&fixture).await.is_empty(), "the dead letters of a deleted instance must be gone");
}

/// Rows that cannot be decoded block nothing, are left out of batches, and become dead letters after `max_attempts`
/// (16.10, S3.34, B6).
pub async fn test_undecodable_rows_become_dead_letters<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.provider.set_max_attempts(1);
    fixture.running("i").await;
    if !factory.insert_undecodable_rows("i").await {
        return;
    }
    fixture.send(raised("i", "readable")).await;
    fixture.schedule(activity("i", 1, 2)).await;
    let claim = fixture.claim_instance("i").await;
    assert_eq!(
        claim.item.messages,
        [raised("i", "readable")],
        "an undecodable row must be left out of the batch"
    );
    assert_eq!(fixture.work().await.item, activity("i", 1, 2), "an undecodable row must not block the queue");
    fixture.commit(&claim, turn_round(1, vec![])).await;

    let letters = wait_for_letters(&fixture, 2).await;
    for queue in [DeadLetterQueue::Orchestrator, DeadLetterQueue::Worker] {
        let letter = letters.iter().find(|letter| letter.queue == queue);
        let letter = letter.unwrap_or_else(|| panic!("the row of {queue:?} must not be deleted silently"));
        assert!(
            letter.reason.starts_with("undeserializable work item: "),
            "the reason is {:?}",
            letter.reason
        );
        assert_eq!(
            letter.attempt_count, 2,
            "it must become a dead letter when its count exceeds the maximum of 1"
        );
        assert_eq!(letter.instance_id.as_deref(), Some("i"));
    }
}

/// Messages for an instance that is never started become dead letters after a time. If they are retried when the
/// instance exists, they are delivered (16.11, 16.12, B1).
pub async fn test_messages_for_unknown_instance_become_dead_letters<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    if factory.orphan_message_ttl().is_none() {
        return;
    }
    let fixture = Fixture::new(factory).await;
    fixture.send(cancel("ghost")).await;
    fixture.send(raised("ghost", "early")).await;
    let letters = wait_for_letters(&fixture, 2).await;
    for letter in &letters {
        assert_eq!(
            (&letter.queue, letter.reason.as_str()),
            (&DeadLetterQueue::Orchestrator, "no such instance")
        );
        assert_eq!((letter.instance_id.as_deref(), letter.attempt_count), (Some("ghost"), 0));
    }
    fixture.send(start("ghost")).await;
    let claim = fixture.claim_instance("ghost").await;
    assert_eq!(claim.item.messages, [start("ghost")], "a dead letter must not come by itself");
    fixture.commit(&claim, first_round("ghost")).await;
    fixture.admin().retry_dead_letter(&letters[0].id).await.expect("a dead letter can be retried");
    let claim = fixture.claim_instance("ghost").await;
    assert_eq!(claim.item.messages, [cancel("ghost")], "a retried dead letter must be delivered");
    assert_eq!(claim.attempts, 1, "its count must start anew");
}
