//! Order, visibility and keys of messages.

use std::time::Duration;

use duroxide_core::WorkItem;

use crate::{
    PruneOptions, Round,
    store::{
        Answer, InstanceFetch, MessageRow, Op, PreparedRound, StoredStart,
        bounds::{CLAIM_BYTES_MAX, CLAIM_MESSAGES_MAX},
    },
    testing::{Scenario, Turn, items::*, scenario::batch_fetch},
};

fn data(items: &[WorkItem]) -> Vec<String> {
    let text = |item: &WorkItem| match item {
        WorkItem::ExternalRaised { data, .. } | WorkItem::QueueMessage { data, .. } => data.clone(),
        WorkItem::TimerFired { id, .. } => format!("timer {id}"),
        other => other.kind().to_owned(),
    };
    items.iter().map(text).collect()
}

/// 2.1
pub fn messages_come_in_the_order_in_which_they_became_visible(mut s: Scenario) {
    s.running("a");
    let now = s.now_ms();
    s.send(&timer("a", 9, now + 1_500));
    s.send(&timer("a", 8, now + 2));
    s.send(&timer("a", 7, now + 1));
    s.send(&raise("a", "at once"));
    s.pass(Duration::from_secs(1));
    s.send(&raise("a", "later"));
    s.send(&timer("a", 6, now));
    s.send_later(&queue("a", "delayed"), Duration::from_millis(600));
    s.pass(Duration::from_secs(1));
    s.send(&queue("a", "last"));
    let in_order = ["at once", "timer 7", "timer 8", "later", "timer 6", "timer 9", "delayed", "last"];
    let claim = s.claim().unwrap();
    assert_eq!(data(&claim.messages), in_order);
    s.abandon(&claim, None, true).unwrap();
    let bounded = s.claim_all(&batch_fetch(1)).items.pop().unwrap();
    assert_eq!(data(&bounded.messages), in_order);
    s.commit(&bounded, Turn::later(&bounded)).unwrap();
    assert!(s.attempts("a").is_empty(), "the lock held them all, whatever their order");
}

/// 2.1, D12
pub fn an_abandon_with_delay_changes_no_order(mut s: Scenario) {
    s.running("a");
    let now = s.now_ms();
    s.send(&timer("a", 7, now + 500));
    s.pass(Duration::from_secs(1));
    s.send(&raise("a", "first"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(2)), false).unwrap();
    s.send(&timer("a", 8, now + 2_000));
    s.pass(Duration::from_secs(2));
    s.send(&raise("a", "second"));
    assert_eq!(data(&s.claim().unwrap().messages), ["timer 7", "first", "timer 8", "second"]);
}

/// 2.1, I15
pub fn a_clock_set_back_changes_no_order_of_immediate_messages(mut s: Scenario) {
    s.running("a");
    s.send(&timer("a", 7, s.now_ms() + 500));
    s.pass(Duration::from_secs(1));
    s.send(&queue("a", "1"));
    s.turn_back(Duration::from_millis(600));
    s.send(&queue("a", "2"));
    s.pass(Duration::from_millis(100));
    assert_eq!(data(&s.claim().unwrap().messages), ["timer 7", "1", "2"]);
}

/// 14.1, I14
pub fn a_timer_is_invisible_until_it_is_due(mut s: Scenario) {
    s.running("a");
    let fire_at = s.now_ms() + 500;
    s.send(&timer("a", 2, fire_at));
    s.pass(Duration::from_micros(499_999));
    assert!(s.claim().is_none());
    s.pass(Duration::from_micros(1));
    assert_eq!(data(&s.claim().unwrap().messages), ["timer 2"]);
}

/// A11: `enqueue_for_orchestrator` with a delay
pub fn a_delayed_message_is_invisible_until_its_time(mut s: Scenario) {
    s.send_later(&start("a"), Duration::from_secs(3));
    s.pass(Duration::from_millis(2_999));
    assert!(s.claim().is_none());
    s.pass(Duration::from_millis(1));
    assert!(s.claim().is_some());
}

/// D11: a queue position is a number, never a time.
pub fn a_clock_set_back_hides_no_immediate_message(mut s: Scenario) {
    s.pass(Duration::from_secs(86_400));
    s.send(&start("a"));
    s.turn_back(Duration::from_secs(86_400));
    assert!(s.claim().is_some());
}

/// D12
pub fn the_instance_that_waits_longest_is_claimed_first(mut s: Scenario) {
    for id in ["c", "a", "b"] {
        s.send(&start(id));
    }
    let order: Vec<_> = s.claim_all(&batch_fetch(5)).items.into_iter().map(|claim| claim.instance).collect();
    assert_eq!(order, ["c", "a", "b"]);
}

/// D12: no instance starves.
pub fn an_instance_with_messages_left_after_a_commit_goes_to_the_back(mut s: Scenario) {
    s.running("busy");
    s.send(&raise("busy", "1"));
    let claim = s.claim().unwrap();
    s.send(&raise("busy", "2"));
    s.send(&start("other"));
    s.commit(&claim, Turn::later(&claim)).unwrap();
    assert_eq!(s.claim().unwrap().instance, "other");
    assert_eq!(s.claim().unwrap().instance, "busy");
}

/// D7, D12: also if its lease had ended and it stood in line again.
pub fn an_instance_with_messages_left_after_a_late_commit_goes_to_the_back(mut s: Scenario) {
    s.running("busy");
    s.send(&raise("busy", "1"));
    let claim = s.claim().unwrap();
    let handed_in = s.now();
    s.pass_lease();
    s.send(&raise("busy", "2"));
    s.send(&start("other"));
    let round = PreparedRound::new(&claim.lock_token, &Turn::later(&claim).round()).unwrap();
    s.apply_handed_in(&Op::CommitRound(Box::new(round)), handed_in).unwrap();
    assert_eq!(s.claim().unwrap().instance, "other");
    assert_eq!(s.claim().unwrap().instance, "busy");
}

/// B1, 16.11
pub fn a_stray_message_does_not_block_and_joins_a_later_start(mut s: Scenario) {
    s.send(&cancel("ghost"));
    s.send(&raise("ghost", "1"));
    s.send(&start("healthy"));
    assert_eq!(s.claim().unwrap().instance, "healthy");
    assert!(s.claim().is_none());
    assert_eq!(s.attempts("ghost"), [0, 0]);
    s.send(&start("ghost"));
    let claim = s.claim().unwrap();
    assert_eq!(data(&claim.messages), ["CancelInstance", "1", "StartOrchestration"]);
    assert_eq!((claim.orchestration_name.as_str(), claim.version.as_str()), (ORDER, "unknown"));
}

/// D12: a mailbox that waits for its start has no ready number, so the start gives it the next one.
pub fn a_stray_that_is_started_goes_to_the_back(mut s: Scenario) {
    s.send(&queue("ghost", "1"));
    s.send(&start("first"));
    s.send(&start("ghost"));
    assert_eq!(s.claim().unwrap().instance, "first");
    assert_eq!(data(&s.claim().unwrap().messages), ["1", "StartOrchestration"]);
}

/// 16.11: an instance without history is only returned together with its start.
pub fn messages_wait_for_a_hidden_start(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(90)), false).unwrap();
    s.send(&queue("a", "q"));
    s.send(&raise("a", "e"));
    s.pass(Duration::from_secs(80));
    assert!(s.claim().is_none());
    assert!(s.dead_letters().is_empty(), "with a queued start they wait longer than orphans");
    s.pass(Duration::from_secs(10));
    assert_eq!(data(&s.claim().unwrap().messages), ["StartOrchestration", "q", "e"]);
}

/// 16.11: acknowledged messages are never dropped.
pub fn stray_queue_messages_become_dead_letters_at_the_next_claim(mut s: Scenario) {
    let large = "x".repeat(10_000);
    for (instance, data) in [("ghost", "1"), ("spirit", large.as_str()), ("ghost", "2")] {
        s.send(&queue(instance, data));
        s.pass(Duration::from_millis(1));
    }
    let claimed = s.claim_all(&batch_fetch(1));
    assert!(claimed.items.is_empty());
    let told: Vec<_> = claimed.dead_letters.iter().map(|note| (note.id, note.instance.as_deref())).collect();
    assert_eq!(told, [(1, Some("ghost")), (2, Some("ghost")), (3, Some("spirit"))]);
    assert!(s.instance("ghost").is_none() && s.instance("spirit").is_none());
    let letters = s.dead_letters();
    for (letter, item) in
        letters.iter().zip([queue("ghost", "1"), queue("ghost", "2"), queue("spirit", &large)])
    {
        assert_eq!(serde_json::from_str::<WorkItem>(&letter.payload).unwrap(), item);
        assert_eq!((letter.reason.as_str(), letter.attempt_count), ("no such instance", 0));
    }
    s.send(&start("ghost"));
    assert_eq!(s.claim().unwrap().messages.len(), 1, "a start that comes later does not see them");
    assert!(s.claim_all(&batch_fetch(1)).dead_letters.is_empty(), "each becomes one dead letter");
}

/// 16.11
pub fn queue_messages_among_other_messages_wait_for_the_start(mut s: Scenario) {
    s.send(&queue("ghost", "q"));
    s.send(&raise("ghost", "e"));
    assert!(s.claim_all(&batch_fetch(1)).dead_letters.is_empty());
    s.send(&start("ghost"));
    assert_eq!(data(&s.claim().unwrap().messages), ["q", "e", "StartOrchestration"]);
}

/// D4
pub fn a_batch_is_bounded_in_messages_and_takes_a_start_from_any_place(mut s: Scenario) {
    for n in 0..=CLAIM_MESSAGES_MAX {
        s.send_unchecked(&raise("a", &n.to_string()));
    }
    s.send(&start("a"));
    let bounded = s.claim_all(&batch_fetch(1)).items.pop().unwrap();
    assert_eq!(bounded.messages.len(), CLAIM_MESSAGES_MAX + 1);
    assert_eq!(bounded.messages.last().unwrap().kind(), "StartOrchestration");
    s.abandon(&bounded, None, true).unwrap();
    let whole = s.claim_all(&InstanceFetch { whole_mailbox: true, ..batch_fetch(1) }).items.pop().unwrap();
    assert_eq!(whole.messages.len(), CLAIM_MESSAGES_MAX + 2);
}

/// D4, 8.6
pub fn a_bounded_batch_takes_a_successor_from_any_place(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").continue_as_new(), &start("a"));
    for n in 0..CLAIM_MESSAGES_MAX {
        s.send_unchecked(&raise("a", &n.to_string()));
    }
    s.send(&continue_as_new("a", None));
    s.send(&start("a"));
    let claim = s.claim_all(&batch_fetch(1)).items.pop().unwrap();
    assert_eq!(claim.messages.len(), CLAIM_MESSAGES_MAX + 2);
    let last: Vec<_> = claim.messages[CLAIM_MESSAGES_MAX..].iter().map(WorkItem::kind).collect();
    assert_eq!(last, ["ContinueAsNew", "StartOrchestration"]);
}

/// D4
pub fn a_batch_is_bounded_in_bytes_and_takes_at_least_one(mut s: Scenario) {
    s.running("a");
    let huge = "x".repeat(CLAIM_BYTES_MAX);
    s.send_unchecked(&raise("a", &huge));
    s.send_unchecked(&raise("a", "small"));
    let claim = s.claim_all(&batch_fetch(1)).items.pop().unwrap();
    assert_eq!(claim.messages.len(), 1);
    s.commit(&claim, Turn::later(&claim)).unwrap();
    assert_eq!(data(&s.claim().unwrap().messages), ["small"]);
}

/// D4: two messages that fill a batch to the byte go together, and one byte more is the next batch's.
pub fn a_batch_holds_exactly_so_many_bytes(mut s: Scenario) {
    let text = |item: &WorkItem| serde_json::to_string(item).unwrap().len();
    let rest = CLAIM_BYTES_MAX - text(&raise("a", "")) - text(&raise("a", "small"));
    for (instance, bytes, messages) in [("a", rest, 2), ("b", rest + 1, 1)] {
        s.running(instance);
        s.send_unchecked(&raise(instance, &"x".repeat(bytes)));
        s.send_unchecked(&raise(instance, "small"));
        let claim = s.claim_all(&batch_fetch(1)).items.pop().unwrap();
        assert_eq!(claim.messages.len(), messages, "{bytes}");
    }
}

/// I15, D12
pub fn a_queue_message_waits_behind_an_older_hidden_one(mut s: Scenario) {
    s.running("a");
    s.send(&queue("a", "1"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(5)), false).unwrap();
    s.send(&queue("a", "2"));
    assert!(s.claim().is_none());
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    assert_eq!(data(&claim.messages), ["e"], "an event need not wait");
    s.commit_round(&claim, Round { execution_id: 1, ..Round::default() }).unwrap();
    s.pass(Duration::from_secs(5));
    assert_eq!(data(&s.claim().unwrap().messages), ["1", "2"]);
}

/// S4.7, 16.14
pub fn an_item_with_a_key_is_queued_once(mut s: Scenario) {
    s.running("a");
    let child = |result: bool| match result {
        true => WorkItem::SubOrchCompleted {
            parent_instance: "a".to_owned(),
            parent_execution_id: 1,
            parent_id: 4,
            result: "ok".to_owned(),
        },
        false => WorkItem::SubOrchFailed {
            parent_instance: "a".to_owned(),
            parent_execution_id: 1,
            parent_id: 4,
            details: refused(),
        },
    };
    let once = [
        completed("a", 2),
        failed("a", 2),
        timer("a", 3, 0),
        child(true),
        child(false),
        continue_as_new("a", None),
        child_start("a", "p", 1, 2),
        wake_up("a", 2),
    ];
    for item in once.iter().chain(&once) {
        s.send(item);
    }
    assert_eq!(s.instance("a").unwrap().messages.len(), once.len());
}

/// 16.14
pub fn a_key_is_free_again_once_its_item_is_consumed(mut s: Scenario) {
    s.running("a");
    s.send(&completed("a", 2));
    let claim = s.claim().unwrap();
    s.send(&completed("a", 2));
    assert_eq!(s.attempts("a").len(), 1, "a locked item is still queued");
    s.commit(&claim, Turn::later(&claim)).unwrap();
    s.send(&completed("a", 2));
    assert_eq!(s.attempts("a").len(), 1);
}

/// 16.14, C15
pub fn items_of_clients_are_never_deduplicated(mut s: Scenario) {
    for item in [start("a"), raise("a", "1"), queue("a", "1"), cancel("a")] {
        s.send(&item);
        s.send(&item);
    }
    assert_eq!(s.claim().unwrap().messages.len(), 8);
}

/// 20.1: the store decides whether a start creates its instance, regardless of messages that wait for it and of its
/// status.
pub fn a_start_if_new_is_queued_once(mut s: Scenario) {
    let start_if_new = |s: &mut Scenario, instance: &str| {
        let row = MessageRow::start(start(instance)).unwrap();
        s.apply(&Op::StartIfNew(row)).unwrap()
    };
    assert!(matches!(start_if_new(&mut s, "a"), Answer::Begun));
    let Answer::Found(StoredStart::Queued(queued)) = start_if_new(&mut s, "a") else {
        panic!("it is queued")
    };
    assert_eq!(serde_json::from_str::<WorkItem>(&queued).unwrap(), start("a"));
    let claim = s.claim().unwrap();
    assert_eq!(claim.messages.len(), 1);
    assert!(matches!(start_if_new(&mut s, "a"), Answer::Found(StoredStart::Queued(_))), "its turn runs");
    s.commit(&claim, Turn::first("a").complete("done")).unwrap();
    let Answer::Found(StoredStart::Recorded(event)) = start_if_new(&mut s, "a") else {
        panic!("it has ended")
    };
    assert!(event.contains("OrchestrationStarted"), "{event}");
    assert!(s.claim().is_none(), "nothing was queued");

    s.send(&raise("b", "before the start"));
    assert!(matches!(start_if_new(&mut s, "b"), Answer::Done), "a stray message makes no instance");
    assert_eq!(s.claim().unwrap().messages.len(), 2);
    s.send_later(&start("c"), Duration::from_secs(5));
    assert!(
        matches!(start_if_new(&mut s, "c"), Answer::Found(StoredStart::Queued(_))),
        "a hidden start counts"
    );
    s.force_delete("a");
    assert!(matches!(start_if_new(&mut s, "a"), Answer::Begun));
}

/// 19.3: the input of a pruned execution is unknown.
pub fn how_a_pruned_execution_was_started_is_unknown(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").continue_with(Turn::start_of("a", 2)), &start("a"));
    let options = PruneOptions::default();
    let pruned = s.prune(&Op::Prune { instance: "a".to_owned(), options }).unwrap();
    assert_eq!(pruned.executions_deleted, 1);
    let row = MessageRow::start(start("a")).unwrap();
    assert!(matches!(s.apply(&Op::StartIfNew(row)).unwrap(), Answer::Found(StoredStart::Unknown)));
}

/// 15.3, I20: starts, timers and messages of the runtime do not count, and other messages are not refused.
pub fn a_full_mailbox_takes_no_more_messages_of_clients(mut s: Scenario) {
    let at = s.now_ms() + 60_000;
    s.run_first_turn(Turn::first("a").activity().timer(at), &start("a"));
    let is_full = |s: &mut Scenario, item: WorkItem, max: u64| {
        let row = MessageRow { mailbox_max: Some(max), ..MessageRow::new(item, None).unwrap() };
        matches!(s.apply(&Op::EnqueueMessage(row)).unwrap(), Answer::MailboxFull)
    };
    assert!(!is_full(&mut s, raise("a", "1"), 2));
    let work = s.work().unwrap();
    s.ack(&work, Some(&completed("a", 2))).unwrap();
    assert!(!is_full(&mut s, queue("a", "2"), 2));
    let before = s.snapshot();
    assert!(is_full(&mut s, raise("a", "3"), 2));
    assert!(is_full(&mut s, queue("a", "3"), 1));
    assert_eq!(s.snapshot(), before, "nothing was queued");
    s.send(&raise("a", "without a limit"));
    assert!(!is_full(&mut s, raise("unknown", "1"), 1), "a mailbox of its own");
    assert!(is_full(&mut s, raise("unknown", "2"), 1));
    let claim = s.claim().unwrap();
    assert!(is_full(&mut s, raise("a", "taken, and not committed"), 3));
    s.commit(&claim, Turn::later(&claim).completed(2)).unwrap();
    assert!(!is_full(&mut s, raise("a", "consumed"), 1));
}
