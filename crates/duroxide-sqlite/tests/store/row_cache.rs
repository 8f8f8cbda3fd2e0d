//! Rows in the row cache are never older than the stored ones.

use duroxide_core::WorkItem;
use duroxide_provider::{
    Round, ScheduledActivityIdentifier,
    store::{
        ActivityFetch, ActivityRow, Answer, InstanceFetch, MessageRow, Op, Refusal, StoreReader,
        TransactionSteps,
    },
};

use crate::fixture::{LEASE, Store, activity, first_round, one_activity, one_instance, raise, start};

/// A store on a file, and another process on the same.
fn two_processes() -> (tempfile::TempDir, Store, Store) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let (one, other) = (Store::file(&path), Store::file(&path));
    (directory, one, other)
}

/// I05: the token of a lock that ended and was taken over opens nothing.
#[test]
fn a_lock_that_another_process_took_over_is_lost() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    other.pass(LEASE);
    let takeover = other.claim().unwrap();
    let refused = one.commit(&claim.lock_token, first_round("order-1"));
    assert!(matches!(refused, Err(Refusal::InvalidLockToken)), "{refused:?}");
    assert!(other.commit(&takeover.lock_token, first_round("order-1")).is_ok());
}

#[test]
fn an_instance_that_another_process_deleted_stays_gone() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    one.commit(&claim.lock_token, first_round("order-1")).unwrap();
    one.send(&raise("order-1", "1"));
    let claim = one.claim().unwrap();
    let delete = Op::DeleteInstances { ids: vec!["order-1".to_owned()], force: true };
    assert!(matches!(other.apply(&delete), Answer::Deleted(result) if result.instances_deleted == 1));
    let refused = one.commit(&claim.lock_token, first_round("order-1"));
    assert!(matches!(refused, Err(Refusal::InvalidLockToken)), "{refused:?}");
    assert_eq!(one.event_ids("order-1"), Vec::<u64>::new());
}

/// A message that another process sent while a turn ran is left to the next.
#[test]
fn a_message_of_another_process_is_not_forgotten() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    other.send(&raise("order-1", "1"));
    one.commit(&claim.lock_token, first_round("order-1")).unwrap();
    assert_eq!(one.claim().unwrap().messages, [raise("order-1", "1")]);
}

/// A message that another process took away is not claimed from memory.
#[test]
fn a_message_that_another_process_consumed_is_not_claimed_again() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    one.commit(&claim.lock_token, first_round("order-1")).unwrap();
    one.send(&raise("order-1", "1"));
    let claim = other.claim().unwrap();
    other.commit(&claim.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
    other.send(&raise("order-1", "2"));
    assert_eq!(one.claim().unwrap().messages, [raise("order-1", "2")]);
}

/// I05, for activities: neither a takeover nor a cancellation leaves a token that is worth anything.
#[test]
fn an_activity_that_another_process_took_over_is_lost() {
    let (_directory, mut one, mut other) = two_processes();
    one.queue(&activity("order-1", 1));
    let work = one.claim_work().unwrap();
    other.pass(LEASE);
    let takeover = other.claim_work().unwrap();
    assert_eq!(takeover.attempt_count, 2);
    let ack = |token: &str| Op::AckActivity { token: token.to_owned(), completion: None };
    let refused = one.try_apply(&ack(&work.lock_token));
    assert!(matches!(refused, Err(Refusal::WorkItemLockLost)), "{refused:?}");
    other.apply(&ack(&takeover.lock_token));
}

#[test]
fn a_cancelled_activity_is_lost_to_its_holder() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.queue(&activity("order-1", 1));
    let work = store.claim_work().unwrap();
    let cancelled =
        ScheduledActivityIdentifier { instance: "order-1".to_owned(), execution_id: 1, activity_id: 1 };
    let round = Round { cancelled_activities: vec![cancelled], ..first_round("order-1") };
    store.commit(&claim.lock_token, round).unwrap();
    let refused = store.try_apply(&Op::AckActivity { token: work.lock_token, completion: None });
    assert!(matches!(refused, Err(Refusal::WorkItemLockLost)), "{refused:?}");
}

#[test]
fn rolled_back_rows_are_not_cached() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    store.engine.steps().begin(store.now).unwrap();
    let claim = store.engine.steps().claim_instances(&one_instance(), 7).unwrap().items.remove(0);
    store.engine.steps().rollback();
    let refused = store.commit(&claim.lock_token, first_round("order-1"));
    assert!(matches!(refused, Err(Refusal::InvalidLockToken)), "{refused:?}");
    assert_eq!(store.engine.snapshot().unwrap().instances[0].messages[0].attempt_count, 0);
    assert!(store.claim().is_some());
}

/// The first turn of a parent, which starts a child.
fn calls(parent: &str, child: &str) -> Round {
    Round { worker_items: Vec::new(), orchestrator_items: vec![start(child)], ..first_round(parent) }
}

/// The only turn of a child, which sends its result to the parent.
fn returns(child: &str, result: &WorkItem) -> Round {
    Round { worker_items: Vec::new(), orchestrator_items: vec![result.clone()], ..first_round(child) }
}

fn result_for(parent: &str) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: parent.to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "done".to_owned(),
    }
}

fn claim_child_of(store: &mut Store, parent: &str, child: &str) -> String {
    store.send(&start(parent));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, calls(parent, child)).unwrap();
    let claim = store.claim().unwrap();
    assert_eq!(claim.instance, child);
    claim.lock_token
}

/// The result of a child goes to its parent, whose row number is known and not read.
#[test]
fn a_cached_parent_is_not_read_when_its_child_ends() {
    let mut store = Store::in_memory();
    let token = claim_child_of(&mut store, "order-1", "child-1");
    let trace = store.engine.trace_statements();
    trace.clear();
    store.commit(&token, returns("child-1", &result_for("order-1"))).unwrap();
    let statements = trace.statements();
    let mut of_the_commit = statements.iter().take_while(|sql| sql.as_str() != "COMMIT");
    assert!(!of_the_commit.any(|sql| sql.contains("FROM instance")), "{statements:#?}");
    let claim = store.claim().unwrap();
    assert_eq!((claim.instance.as_str(), claim.messages), ("order-1", vec![result_for("order-1")]));
}

/// The result of a child goes to the instance of the parent's id, even if that is a newer one than the caller.
#[test]
fn a_parent_that_was_deleted_and_started_again_gets_the_result() {
    let mut store = Store::in_memory();
    let token = claim_child_of(&mut store, "order-1", "child-1");
    store.apply(&Op::DeleteInstances { ids: vec!["order-1".to_owned()], force: true });
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    store.commit(&token, returns("child-1", &result_for("order-1"))).unwrap();
    let claim = store.claim().unwrap();
    assert_eq!((claim.instance.as_str(), claim.messages), ("order-1", vec![result_for("order-1")]));
}

// ---- the messages that waited together, under one lock ------------------------------------------------------------

/// A running instance in whose mailbox this many messages wait.
fn with_waiting(store: &mut Store, messages: usize) {
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    (0..messages).for_each(|n| store.send(&raise("order-1", &n.to_string())));
}

/// How often each message was fetched, and whether the lock holds it.
fn mailbox(store: &mut Store) -> Vec<(u32, bool)> {
    let instance = store.engine.snapshot().unwrap().instances.remove(0);
    instance.messages.iter().map(|message| (message.attempt_count, message.locked)).collect()
}

#[test]
fn a_lock_holds_all_that_waited_and_nothing_that_comes_later() {
    let mut store = Store::in_memory();
    with_waiting(&mut store, 3);
    let claim = store.claim().unwrap();
    assert_eq!(claim.messages, ["0", "1", "2"].map(|n| raise("order-1", n)));
    store.send(&raise("order-1", "late"));
    assert_eq!(mailbox(&mut store), [(1, true), (1, true), (1, true), (0, false)]);
    store.commit(&claim.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
    assert_eq!(mailbox(&mut store), [(0, false)]);
    store.send(&raise("order-1", "later"));
    let claim = store.claim().unwrap();
    assert_eq!(claim.messages, ["late", "later"].map(|n| raise("order-1", n)));
    store.commit(&claim.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
    assert_eq!(mailbox(&mut store), []);
    assert!(store.claim().is_none());
}

/// Up to 256 waiting messages of an instance are kept in memory; one more, and they are read. Either way the turn gets all of
/// them, in order and once.
#[test]
fn a_mailbox_at_the_bound_of_the_cache_and_beyond_is_claimed_whole() {
    for messages in [255, 256, 257, 258, 600] {
        let mut store = Store::in_memory();
        with_waiting(&mut store, messages);
        let claim = store.claim().unwrap();
        let expected: Vec<_> = (0..messages).map(|n| raise("order-1", &n.to_string())).collect();
        assert_eq!(claim.messages, expected, "{messages}");
        assert_eq!(mailbox(&mut store), vec![(1, true); messages], "{messages}");
        store.send(&raise("order-1", "late"));
        store.commit(&claim.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
        assert_eq!(store.claim().unwrap().messages, [raise("order-1", "late")], "{messages}");
    }
}

/// The cache of instances and activities is bounded; rows beyond the bound are read, and lose nothing.
#[test]
fn instances_beyond_the_bound_of_the_cache_are_read() {
    const BEYOND: usize = 8_192 + 3;
    let mut store = Store::in_memory();
    store.engine.steps().begin(store.now).unwrap();
    for n in 0..BEYOND {
        let instance = n.to_string();
        let started = Op::EnqueueMessage(MessageRow::new(start(&instance), None).unwrap());
        store.engine.steps().apply(&started, store.now).unwrap();
        let queued = Op::EnqueueActivity(ActivityRow::new(activity(&instance, 2)).unwrap());
        store.engine.steps().apply(&queued, store.now).unwrap();
    }
    store.engine.steps().commit().unwrap();
    for n in [0, 8_191, 8_192, 8_194] {
        store.send(&raise(&n.to_string(), "e"));
    }
    let fetch = InstanceFetch { max: BEYOND + 1, ..one_instance() };
    let claimed = store.claim_with(&fetch).items;
    assert_eq!(claimed.len(), BEYOND);
    for (n, claim) in claimed.iter().enumerate() {
        assert_eq!(claim.instance, n.to_string());
        let messages = if [0, 8_191, 8_192, 8_194].contains(&n) { 2 } else { 1 };
        assert_eq!(claim.messages.len(), messages, "{n}");
    }
    let works = store.claim_work_with(&ActivityFetch { max: BEYOND + 1, ..one_activity() }).items;
    assert_eq!(works.len(), BEYOND);
    for work in [&works[0], &works[8_191], &works[8_192], &works[BEYOND - 1]] {
        store.apply(&Op::AckActivity { token: work.lock_token.clone(), completion: None });
    }
}

/// B1, I04: the attempt of a lock is counted when the lock is lost, whichever node takes it over.
#[test]
fn a_lost_lock_counts_for_all_that_it_held() {
    let (_directory, mut one, mut other) = two_processes();
    with_waiting(&mut one, 2);
    let lost = one.claim().unwrap();
    one.send(&raise("order-1", "late"));
    one.pass(LEASE);
    let again = one.claim().unwrap();
    assert_eq!((again.messages.len(), again.attempt_count), (3, 2));
    assert_eq!(mailbox(&mut one), [(2, true), (2, true), (1, true)]);
    assert!(one.commit(&lost.lock_token, Round { execution_id: 1, ..Round::default() }).is_err());

    other.pass(LEASE + LEASE);
    let taken_over = other.claim().unwrap();
    assert_eq!((taken_over.messages.len(), taken_over.attempt_count), (3, 3));
    assert_eq!(mailbox(&mut other), [(3, true), (3, true), (2, true)]);
    other.commit(&taken_over.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
    assert_eq!(mailbox(&mut one), []);
}

#[test]
fn a_lock_gives_back_all_that_it_held_and_nothing_else() {
    for (ignore_attempt, counted) in [(false, 1), (true, 0)] {
        let mut store = Store::in_memory();
        with_waiting(&mut store, 2);
        let token = store.claim().unwrap().lock_token;
        store.send(&raise("order-1", "late"));
        store.apply(&Op::AbandonInstance { token, delay: Some(LEASE), ignore_attempt });
        assert_eq!(mailbox(&mut store), [(counted, false), (counted, false), (0, false)]);
        assert_eq!(store.claim().unwrap().messages, [raise("order-1", "late")], "the others are hidden");

        store.pass(LEASE);
        let claim = store.claim().unwrap();
        assert_eq!((claim.messages.len(), claim.attempt_count), (3, 2.max(counted + 1)));
        assert_eq!(mailbox(&mut store), [(counted + 1, true), (counted + 1, true), (2, true)]);
    }
}

/// Messages with a due time come after those without: a lock of the whole mailbox must not include them.
#[test]
fn a_message_that_becomes_due_is_not_held_by_a_lock_before_it() {
    let mut store = Store::in_memory();
    with_waiting(&mut store, 2);
    let claim = store.claim().unwrap();
    store.apply(&Op::EnqueueMessage(MessageRow::new(raise("order-1", "due"), Some(LEASE / 2)).unwrap()));
    store.pass(LEASE / 2);
    store.commit(&claim.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
    assert_eq!(mailbox(&mut store), [(0, false)]);
    assert_eq!(store.claim().unwrap().messages, [raise("order-1", "due")]);
}
