//! The rows that a commit stores.

use duroxide_core::EventKind;
use semver::Version;

use crate::{
    ExecutionMetadata, Round, VersionTriple,
    store::{Batch, Op, PreparedRound, Refusal, Submitted},
    testing::{Scenario, Turn, items::*},
};

/// The main path: start, activity, completion, end.
pub fn an_instance_runs_from_start_to_end(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").activity(), &start("a"));
    let work = s.work().unwrap();
    assert_eq!(work.item, activity("a", 2));
    s.ack(&work, Some(&completed("a", 2))).unwrap();
    let claim = s.claim().unwrap();
    assert_eq!(claim.messages, [completed("a", 2)]);
    assert_eq!((claim.orchestration_name.as_str(), claim.version.as_str()), (ORDER, VERSION));
    let position = claim.position.unwrap();
    assert_eq!((position.last_event_id, position.turns), (2, 1));
    s.commit(&claim, Turn::later(&claim).completed(2).complete("done")).unwrap();
    let row = s.instance("a").unwrap();
    assert_eq!(row.executions[0].status, "Completed");
    assert_eq!(row.executions[0].output.as_deref(), Some("done"));
    assert_eq!(row.executions[0].events.len(), 4);
    assert!(row.messages.is_empty() && row.activities.is_empty() && row.lock.is_none());
}

/// C16, I10, I09
pub fn a_round_with_a_known_event_id_changes_nothing(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    let before = s.snapshot();
    let repeated = Turn::after("a", 1, 0).event(None, EventKind::KeyValuesCleared).activity();
    let refusal = Refusal::DuplicateEvent { instance: "a".to_owned(), execution_id: 1, event_id: 1 };
    assert_eq!(s.commit(&claim, repeated.complete("x")), Err(refusal));
    let twice = Turn::later(&claim).status(None);
    let mut round = twice.round();
    round.history_delta.push(round.history_delta[0].clone());
    assert!(matches!(s.commit_round(&claim, round), Err(Refusal::DuplicateEvent { event_id: 2, .. })));
    assert_eq!(s.snapshot(), before);
    s.commit(&claim, Turn::later(&claim)).unwrap();
}

/// B18, 5.3, 14.2: after the inserts
pub fn a_round_deletes_the_calls_it_cancels_also_its_own(mut s: Scenario) {
    let at = s.now_ms() + 60_000;
    s.run_first_turn(Turn::first("a").activity().timer(at), &start("a"));
    let running = s.work().unwrap();
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    let turn = Turn::later(&claim)
        .event(Some(2), EventKind::ActivityCancelRequested { reason: "dropped_future".to_owned() })
        .cancel_activity(2)
        .cancel_timer(3)
        .activity()
        .cancel_activity(5)
        .timer(at)
        .cancel_timer(6)
        .event(Some(5), EventKind::ActivityCancelRequested { reason: "dropped_future".to_owned() });
    s.commit(&claim, turn).unwrap();
    let row = s.instance("a").unwrap();
    assert!(row.activities.is_empty() && row.messages.is_empty());
    assert_eq!(s.ack(&running, Some(&completed("a", 2))), Err(Refusal::WorkItemLockLost));
    assert_eq!(s.renew_work(&running), Err(Refusal::WorkItemLockLost));
}

/// A11
pub fn cancelling_unknown_work_is_no_error(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::first("a").cancel_activity(77).cancel_timer(78)).unwrap();
}

/// 8.1, 8.4
pub fn a_round_begins_the_next_execution(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").pinned(Version::new(1, 0, 0)), &start("a"));
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    let next = Turn::start_of("a", 2).version("2.0.0").pinned(Version::new(2, 0, 0));
    s.commit(&claim, Turn::later(&claim).continue_with(next)).unwrap();
    let row = s.instance("a").unwrap();
    assert_eq!(row.execution_id, 2);
    assert_eq!(row.version.as_deref(), Some("2.0.0"));
    let status: Vec<_> = row.executions.iter().map(|execution| execution.status.as_str()).collect();
    assert_eq!(status, ["ContinuedAsNew", "Running"]);
    let wake = s.claim().unwrap();
    assert_eq!((wake.execution_id, wake.messages.as_slice()), (2, [wake_up("a", 2)].as_slice()));
    assert_eq!(wake.position.unwrap().last_event_id, 1);
    assert_eq!(s.read().executions("a").unwrap(), [1, 2]);
}

/// A10: the status of a live execution reads `Running`.
pub fn a_status_of_running_ends_nothing(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    let mut round = Turn::first("a").set("k", "1").round();
    round.metadata.status = Some("Running".to_owned());
    s.commit_round(&claim, round).unwrap();
    assert_eq!(s.read().execution_info("a", 1).unwrap().unwrap().completed_at, None);
    assert!(s.instance("a").unwrap().kv.is_empty(), "nothing is merged yet");
}

/// 12.1
pub fn custom_status_counts_deltas(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").status(Some("1")).status(Some("2")), &start("a"));
    assert_eq!(s.read().custom_status("a").unwrap(), Some((Some("2".to_owned()), 1)));
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    let next = Turn::start_of("a", 2).status(Some("4"));
    s.commit(&claim, Turn::later(&claim).status(None).continue_with(next)).unwrap();
    assert_eq!(s.read().custom_status("a").unwrap(), Some((Some("4".to_owned()), 3)));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).status(None)).unwrap();
    assert_eq!(s.read().custom_status("a").unwrap(), Some((None, 4)));
    s.running("b");
    assert_eq!(s.read().custom_status("b").unwrap(), None);
}

/// 11.2
pub fn key_values_are_merged_when_the_execution_ends(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").set("k", "1").set("gone", "1"), &start("a"));
    assert!(s.read().load("a", 1).unwrap().kv.is_empty(), "the execution sees its own changes by replay");
    assert_eq!(s.read().kv_value("a", "k").unwrap().as_deref(), Some("1"));
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    let next = Turn::start_of("a", 2).set("k", "2").clear("gone");
    s.commit(&claim, Turn::later(&claim).continue_with(next)).unwrap();
    let left = s.read().load("a", 2).unwrap().kv;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["gone", "k"]);
    assert_eq!(
        s.read().kv_values("a").unwrap().into_iter().collect::<Vec<_>>(),
        [("k".to_owned(), "2".to_owned())]
    );
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).fail()).unwrap();
    let row = s.instance("a").unwrap();
    assert_eq!(row.kv.keys().collect::<Vec<_>>(), ["k"], "whatever the end");
    assert!(row.kv_changes.is_empty());
}

/// 11.2: "what earlier executions left"
pub fn a_later_execution_merges_open_changes_of_an_earlier_one(s: Scenario) {
    let mut s = s.without_invariants();
    s.run_first_turn(Turn::first("a").set("k", "1"), &start("a"));
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::start_of("a", 2)).unwrap();
    assert_eq!(s.read().load("a", 2).unwrap().kv.keys().collect::<Vec<_>>(), ["k"]);
}

/// S3.T8, S3.T9, S3.T45, S3.T46, 17.1
pub fn a_pin_is_stored_with_its_execution(mut s: Scenario) {
    let pin = |s: &mut Scenario| s.instance("a").unwrap().executions[0].pinned;
    s.run_first_turn(Turn::first("a").pinned(Version::new(1, 2, 3)), &start("a"));
    let stored = Some(VersionTriple { major: 1, minor: 2, patch: 3 });
    assert_eq!(pin(&mut s), stored);
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim)).unwrap();
    assert_eq!(pin(&mut s), stored, "a round that says nothing changes nothing");
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).pinned(Version::new(2, 0, 0))).unwrap();
    assert_eq!(pin(&mut s), Some(VersionTriple { major: 2, minor: 0, patch: 0 }));
}

/// A11
pub fn a_mailbox_becomes_an_instance_only_with_name_and_version(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.commit_round(&claim, Round { execution_id: 1, ..Round::default() }).unwrap();
    assert!(s.instance("a").is_none(), "a round that says nothing leaves nothing");
    s.running("b");
    assert_eq!(s.read().instances(None).unwrap(), ["b"]);
}

/// A11: `parent_instance_id` only at creation
pub fn a_parent_counts_only_at_creation(mut s: Scenario) {
    s.run_first_turn(Turn::first("p").child("c"), &start("p"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::first_of_child("c", "p", 1, 2)).unwrap();
    s.send(&raise("c", "e"));
    let claim = s.claim().unwrap();
    let metadata =
        ExecutionMetadata { parent_instance_id: Some("other".to_owned()), ..ExecutionMetadata::default() };
    let round = Round { metadata, ..Turn::later(&claim).round() };
    s.commit_round(&claim, round).unwrap();
    assert_eq!(s.instance("c").unwrap().parent.as_deref(), Some("p"));
    assert_eq!(s.read().children("p").unwrap(), ["c"]);
}

/// 16.11, A11
pub fn history_without_a_row_makes_an_instance_known(mut s: Scenario) {
    let events = Turn::first("a").round().history_delta;
    s.append("a", 1, &events).unwrap();
    assert_eq!(s.read().instances(None).unwrap(), ["a"]);
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    assert_eq!((claim.orchestration_name.as_str(), claim.version.as_str()), (ORDER, VERSION));
    assert_eq!(claim.execution_id, 1);
}

/// C16
pub fn appended_events_must_be_new(mut s: Scenario) {
    let events = Turn::first("a").set("k", "1").round().history_delta;
    s.append("a", 1, &events).unwrap();
    assert!(matches!(s.append("a", 1, &events), Err(Refusal::DuplicateEvent { event_id: 1, .. })));
    assert_eq!(s.read().history("a", None).unwrap().len(), 2);
    assert_eq!(s.read().kv_value("a", "k").unwrap().as_deref(), Some("1"));
}

/// 19.1
pub fn a_commit_after_a_delete_recreates_nothing(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").activity(), &start("a"));
    let work = s.work().unwrap();
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    assert_eq!(work.incarnation, claim.position.map(|position| position.incarnation));
    s.force_delete("a");
    assert_eq!(s.commit(&claim, Turn::later(&claim)), Err(Refusal::InvalidLockToken));
    assert_eq!(s.ack(&work, Some(&completed("a", 2))), Err(Refusal::WorkItemLockLost));
    assert!(s.snapshot().instances.is_empty());
    s.send(&start("a"));
    let again = s.claim().unwrap();
    assert_ne!(again.position.unwrap().incarnation, claim.position.unwrap().incarnation);
    assert_eq!(s.commit(&claim, Turn::later(&claim)), Err(Refusal::InvalidLockToken));
}

/// A client in another process waits for the end of an execution, a custom status or a value, and for nothing else.
pub fn the_rounds_that_a_client_can_wait_for_are_watched(mut s: Scenario) {
    let first = Turn::first;
    let turns = [
        ("waits", false, first("waits")),
        ("schedules", false, first("schedules").activity()),
        ("completes", true, first("completes").complete("done")),
        ("sets-status", true, first("sets-status").status(Some("half"))),
        ("sets-value", true, first("sets-value").set("k", "v")),
        ("continues", true, first("continues").continue_as_new()),
        ("goes-on", true, first("goes-on").continue_with(Turn::start_of("goes-on", 2))),
    ];
    for (instance, is_watched, turn) in turns {
        s.send(&start(instance));
        let claim = s.claim().unwrap();
        let round = PreparedRound::new(&claim.lock_token, &turn.round()).unwrap();
        let op = Op::CommitRound(Box::new(round));
        let done = s.transact(Batch { operations: vec![Submitted::now(&op)], ..Batch::default() });
        assert_eq!(done.is_watched, is_watched, "{instance}");
    }
}
