//! Rows that no node can process.

use std::time::Duration;

use duroxide_core::WorkItem;

use crate::{
    DeadLetterQueue,
    store::{DeadLetterReason, MessageKind, Op, Refusal, bounds::ORPHAN_MESSAGE_TTL_DEFAULT},
    testing::{
        Scenario, Turn,
        items::*,
        scenario::{batch_fetch, work_fetch},
    },
};

const SECOND: Duration = Duration::from_secs(1);

/// B6, 16.10
pub fn an_undecodable_message_is_hidden_counted_and_becomes_a_dead_letter(mut s: Scenario) {
    s.apply(&Op::SetMaxAttempts(3)).unwrap();
    s.running("a");
    s.apply(&Op::EnqueueMessage(undecodable_message("a", MessageKind::Other))).unwrap();
    for attempt in 1..=3 {
        assert!(s.claim().is_none());
        assert_eq!(s.attempts("a"), [attempt]);
        assert!(s.claim().is_none(), "it is hidden now");
        assert_eq!(s.attempts("a"), [attempt]);
        s.pass(SECOND);
    }
    let notes = s.claim_all(&batch_fetch(1)).dead_letters;
    assert!(matches!(notes[0].reason, DeadLetterReason::Undeserializable { .. }));
    let letters = s.dead_letters();
    assert_eq!(letters[0].attempt_count, 4);
    assert_eq!(letters[0].payload, NONSENSE);
    assert_eq!(letters[0].queue, DeadLetterQueue::Orchestrator);
    assert_eq!(letters[0].instance_id.as_deref(), Some("a"));
    assert!(letters[0].reason.starts_with("undeserializable work item: "), "{}", letters[0].reason);
    assert!(s.attempts("a").is_empty());
}

/// B6, 16.10
pub fn an_undecodable_message_does_not_stop_its_batch(mut s: Scenario) {
    s.running("a");
    s.apply(&Op::EnqueueMessage(undecodable_message("a", MessageKind::Other))).unwrap();
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    assert_eq!(claim.messages, [raise("a", "e")]);
    s.commit(&claim, Turn::later(&claim)).unwrap();
    assert_eq!(s.attempts("a"), [1], "it was not deleted with the batch");
}

/// 16.10, 16.11
pub fn an_undecodable_start_leaves_the_others_uncounted(mut s: Scenario) {
    s.apply(&Op::SetMaxAttempts(0)).unwrap();
    s.apply(&Op::EnqueueMessage(undecodable_message("a", MessageKind::Start))).unwrap();
    s.send(&raise("a", "e"));
    s.send(&start("b"));
    let claimed = s.claim_all(&batch_fetch(2));
    assert_eq!(claimed.items.len(), 1);
    assert_eq!(claimed.items[0].instance, "b");
    assert_eq!(claimed.dead_letters.len(), 1);
    assert_eq!(s.attempts("a"), [0]);
    assert!(s.instance("a").unwrap().lock.is_none());
}

/// 16.10, 16.11: messages that a claim leaves without a start become dead letters at the next one.
pub fn messages_left_by_a_dead_start_become_dead_letters_with_the_next_claim(mut s: Scenario) {
    s.apply(&Op::SetMaxAttempts(0)).unwrap();
    s.apply(&Op::EnqueueMessage(undecodable_message("a", MessageKind::Start))).unwrap();
    s.send(&queue("a", "q"));
    s.send(&start("b"));
    let claimed = s.claim_all(&batch_fetch(1));
    assert_eq!(claimed.items[0].instance, "b");
    assert_eq!(claimed.dead_letters.len(), 1);
    assert_eq!(s.claim_all(&batch_fetch(1)).dead_letters.len(), 1);
    assert_eq!(s.dead_letters().len(), 2);
}

/// B6, 16.10
pub fn an_undecodable_activity_is_skipped_and_becomes_a_dead_letter(mut s: Scenario) {
    s.apply(&Op::SetMaxAttempts(1)).unwrap();
    s.apply(&Op::EnqueueActivity(undecodable_activity("a", 1))).unwrap();
    s.send(&activity("a", 2));
    assert_eq!(s.work().unwrap().item, activity("a", 2));
    assert_eq!(s.instance("a").unwrap().activities[0].attempt_count, 1);
    assert!(s.work().is_none());
    s.pass(SECOND);
    assert_eq!(s.work_all(&work_fetch(1)).dead_letters.len(), 1);
    let letter = s.dead_letters().remove(0);
    assert_eq!((letter.queue, letter.attempt_count), (DeadLetterQueue::Worker, 2));
}

/// 16.10: such rows never block.
pub fn an_undecodable_queue_message_holds_nothing_back(mut s: Scenario) {
    s.running("a");
    s.apply(&Op::EnqueueMessage(undecodable_message("a", MessageKind::Queue))).unwrap();
    assert!(s.claim().is_none());
    s.send(&queue("a", "1"));
    assert_eq!(s.claim().unwrap().messages, [queue("a", "1")]);
}

/// 16.11, B1
pub fn orphans_become_dead_letters_after_their_time(mut s: Scenario) {
    s.send(&cancel("ghost"));
    s.pass(SECOND);
    s.send(&raise("ghost", "1"));
    s.pass(ORPHAN_MESSAGE_TTL_DEFAULT - SECOND);
    let notes = s.claim_all(&batch_fetch(1)).dead_letters;
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].reason, DeadLetterReason::NoInstance);
    s.pass(SECOND);
    assert_eq!(s.next_wake(), Some(s.now()));
    assert!(s.claim().is_none());
    let letters = s.dead_letters();
    assert_eq!(letters.len(), 2);
    assert!(letters.iter().all(|letter| letter.reason == "no such instance" && letter.attempt_count == 0));
    assert!(s.instance("ghost").is_none());
}

/// 16.11: a delayed message waits from the time it is due.
pub fn a_delayed_orphan_becomes_a_dead_letter_after_its_due_time(mut s: Scenario) {
    let delay = ORPHAN_MESSAGE_TTL_DEFAULT * 2;
    s.send_later(&raise("ghost", "later"), delay);
    s.pass(delay);
    assert!(s.claim().is_none());
    assert!(s.dead_letters().is_empty());
    s.pass(ORPHAN_MESSAGE_TTL_DEFAULT);
    assert!(s.claim().is_none());
    assert_eq!(s.dead_letters().len(), 1);
}

/// 16.10, 16.12
pub fn a_retried_activity_goes_back_to_its_queue(mut s: Scenario) {
    s.apply(&Op::SetMaxAttempts(0)).unwrap();
    s.apply(&Op::EnqueueActivity(undecodable_activity("a", 1))).unwrap();
    assert!(s.work().is_none());
    let id = s.dead_letters().remove(0).id;
    s.apply(&Op::RetryDeadLetter { id }).unwrap();
    assert_eq!(s.instance("a").unwrap().activities[0].attempt_count, 0);
    assert!(s.work().is_none());
    assert_eq!(s.dead_letters()[0].attempt_count, 1, "it was tried again");
}

/// 16.12
pub fn a_retried_letter_goes_back_uncounted(mut s: Scenario) {
    s.send(&raise("ghost", "1"));
    s.pass(ORPHAN_MESSAGE_TTL_DEFAULT);
    s.claim_all(&batch_fetch(1));
    let id = s.dead_letters().remove(0).id;
    s.apply(&Op::RetryDeadLetter { id: id.clone() }).unwrap();
    assert!(s.dead_letters().is_empty());
    s.send(&start("ghost"));
    let claim = s.claim().unwrap();
    assert_eq!(claim.messages, [raise("ghost", "1"), start("ghost")]);
    assert_eq!(claim.attempt_count, 1);
    assert_eq!(
        s.apply(&Op::RetryDeadLetter { id: id.clone() }).unwrap_err(),
        Refusal::DeadLetterNotFound { id }
    );
}

/// 16.12
pub fn a_discarded_letter_is_gone(mut s: Scenario) {
    s.send(&cancel("ghost"));
    s.send(&raise("ghost", "1"));
    s.pass(ORPHAN_MESSAGE_TTL_DEFAULT);
    s.claim_all(&batch_fetch(1));
    let ids: Vec<_> = s.dead_letters().into_iter().map(|letter| letter.id).collect();
    s.apply(&Op::DiscardDeadLetter { id: ids[0].clone() }).unwrap();
    assert_eq!(s.dead_letters().len(), 1);
    assert_eq!(s.dead_letters()[0].id, ids[1]);
    assert!(s.apply(&Op::DiscardDeadLetter { id: ids[0].clone() }).is_err());
}

/// S1.25, 16.10
pub fn the_holder_of_an_activity_can_make_it_a_dead_letter(mut s: Scenario) {
    let unexpected: WorkItem = raise("a", "not an activity");
    let row = crate::store::ActivityRow {
        data: serde_json::to_string(&unexpected).unwrap(),
        ..undecodable_activity("a", 1)
    };
    s.apply(&Op::EnqueueActivity(row)).unwrap();
    let work = s.work().unwrap();
    assert_eq!(work.item, unexpected);
    let reason = "unexpected work item kind ExternalRaised".to_owned();
    let op = Op::DeadLetterActivity { token: work.lock_token, reason: reason.clone() };
    s.apply(&op).unwrap();
    assert_eq!(s.dead_letters()[0].reason, reason);
    assert!(s.instance("a").is_none());
    assert_eq!(s.apply(&op).unwrap_err(), Refusal::WorkItemLockLost);
}
