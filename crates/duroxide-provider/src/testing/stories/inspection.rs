//! Reads for diagnosis: why an item is not processed.

use std::{collections::BTreeMap, time::Duration};

use semver::Version;

use crate::{
    HandlerCapability, InstanceCount, InstanceSummary, LaneSummary, QueuedWork, RouteSummary, SemverRange,
    SessionLease, SummaryRequest, TagFilter, WorkLock,
    store::{ActivityFetch, Answer, InstanceFetch, MessageKind, NodeRow, Op},
    testing::{
        Scenario, Turn,
        items::*,
        scenario::{LEASE, batch_fetch, work_fetch},
    },
};

fn work_of(s: &mut Scenario, instance: &str) -> QueuedWork {
    let now = s.now();
    s.read().queued_work(instance, now).unwrap().expect("something is queued")
}

fn join(s: &mut Scenario, name: &str) -> crate::NodeId {
    let row = NodeRow { name: name.to_owned(), session_owners: Vec::new(), capability: "{}".to_owned() };
    match s.apply(&Op::JoinNode(row)).unwrap() {
        Answer::Joined(node) => node,
        other => panic!("unexpected answer {other:?}"),
    }
}

/// The queued rows of one instance: needs, age, lock, and hidden rows.
pub fn the_queued_work_of_an_instance_is_shown(mut s: Scenario) {
    let (begin, node) = (s.now_ms(), join(&mut s, "w1"));
    s.send(&start_of("a", "Bill", Some("2.1.0")));
    s.pass(Duration::from_secs(1));
    s.send(&raise("a", "e"));
    let work = work_of(&mut s, "a");
    assert_eq!((work.now_ms, work.ready_since_ms, work.attempts), (begin + 1000, Some(begin), 0));
    assert_eq!((work.needs.name.as_deref(), work.needs.version.as_deref()), (Some("Bill"), Some("2.1.0")));
    assert_eq!((work.messages_total, work.messages.len(), work.lock), (2, 2, None));
    let [first, second] = [&work.messages[0], &work.messages[1]];
    assert!(first.data.contains("StartOrchestration") && second.data.contains("ExternalRaised"));
    assert_eq!(
        (first.enqueued_at_ms, second.enqueued_at_ms, first.visible_at_ms),
        (begin, begin + 1000, None)
    );

    let fetch = InstanceFetch { node: Some(node), ..batch_fetch(1) };
    let claim = s.claim_all(&fetch).items.pop().unwrap();
    let work = work_of(&mut s, "a");
    let lease = WorkLock { node: Some("w1".to_owned()), until_ms: begin + 1000 + LEASE.as_millis() as u64 };
    assert_eq!((work.lock, work.ready_since_ms, work.attempts), (Some(lease), None, 1));

    s.abandon(&claim, Some(Duration::from_secs(7)), false).unwrap();
    let work = work_of(&mut s, "a");
    assert_eq!((work.lock, work.ready_since_ms, work.attempts), (None, None, 0), "nothing is visible");
    assert_eq!(work.needs.name.as_deref(), Some("Bill"), "a hidden start says it too");
    let hidden = work.messages.iter().map(|message| (message.visible_at_ms, message.attempts));
    assert_eq!(hidden.collect::<Vec<_>>(), [(Some(begin + 8000), 1); 2]);
    s.pass(Duration::from_secs(7));
    s.promote();
    assert_eq!(work_of(&mut s, "a").ready_since_ms, Some(begin), "what was hidden is shown again");
}

/// A hidden start does not decide the needs of an instance as long as a claim asks for the handler of another one.
pub fn the_handler_that_a_claim_asks_for_is_shown(mut s: Scenario) {
    let needed = |s: &mut Scenario| work_of(s, "a").needs.name;
    s.send(&start_of("a", "Bill", None));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(7)), true).unwrap();
    assert_eq!(needed(&mut s).as_deref(), Some("Bill"), "nothing else can be claimed later");
    s.send(&start_of("a", "Pay", None));
    assert_eq!(needed(&mut s).as_deref(), Some("Pay"), "the start of Bill is hidden");
    s.pass(Duration::from_secs(7));
    s.promote();
    assert_eq!(needed(&mut s).as_deref(), Some("Pay"), "the instance was ready before Bill was visible");
    let work = work_of(&mut s, "a");
    assert_eq!((work.ready_since_ms.is_some(), work.messages.len()), (true, 2));
    assert!(s.claim_all(&batch_fetch_of("Bill")).items.is_empty());
    assert_eq!(s.claim_all(&batch_fetch_of("Pay")).items.len(), 1);
    assert_eq!(needed(&mut s).as_deref(), Some("Bill"), "the next claim finds both");
}

/// A fetch by a node that has one orchestration.
fn batch_fetch_of(orchestration: &str) -> InstanceFetch {
    let any = SemverRange::new(Version::new(0, 0, 0), Version::new(u64::MAX, 0, 0));
    let supported = BTreeMap::from([(orchestration.to_owned(), vec![any])]);
    let handlers =
        HandlerCapability { supported_orchestrations: Some(supported), supported_activities: None };
    InstanceFetch { handlers: Some(handlers), ..batch_fetch(1) }
}

/// A running instance needs the version that its execution is pinned to; its timers are due later, and its activities are
/// shown.
pub fn the_activities_and_timers_of_an_instance_are_shown(mut s: Scenario) {
    let begin = s.now_ms();
    s.run_first_turn(Turn::first("b").timer(begin + 5000), &start("b"));
    let turn = Turn::first("a").pinned(Version::new(0, 4, 2));
    let turn = turn.activity().routed_activity(Some("gpu"), None).routed_activity(None, Some("s"));
    s.run_first_turn(turn.timer(begin + 5000), &start("a"));
    let work = work_of(&mut s, "a");
    assert_eq!(work.needs.pinned.map(|pinned| pinned.to_string()).as_deref(), Some("0.4.2"));
    assert_eq!((work.messages_total, work.messages[0].visible_at_ms), (1, Some(begin + 5000)));
    assert_eq!((work.ready_since_ms, work.activities_total), (None, 3));
    let shown =
        work.activities.iter().map(|one| (one.activity_id, one.tag.as_deref(), one.session_id.as_deref()));
    assert_eq!(shown.collect::<Vec<_>>(), [(2, None, None), (3, Some("gpu"), None), (4, None, Some("s"))]);
    assert!(work.activities.iter().all(|one| one.lock.is_none() && one.hidden_until_ms.is_none()));

    let node = join(&mut s, "w1");
    let fetch = ActivityFetch { node: Some(node), ..work_fetch(1) };
    let mut claimed = s.work_all(&fetch);
    let held = s.tagged_work(TagFilter::Any).expect("the activity with the tag");
    s.abandon_work(&held, Some(Duration::from_secs(9)), true).unwrap();
    let work = work_of(&mut s, "a");
    let lease = Some(WorkLock { node: Some("w1".to_owned()), until_ms: begin + LEASE.as_millis() as u64 });
    let [running, hidden, _] = <[_; 3]>::try_from(work.activities).unwrap();
    assert_eq!((running.attempts, running.lock, running.hidden_until_ms), (1, lease, None));
    assert_eq!((hidden.attempts, hidden.lock, hidden.hidden_until_ms), (0, None, Some(begin + 9000)));
    s.ack(&claimed.items.pop().unwrap(), Some(&completed("a", 2))).unwrap();
    assert_eq!(work_of(&mut s, "a").activities_total, 2);

    s.pass(Duration::from_secs(5));
    s.promote();
    assert_eq!(work_of(&mut s, "b").ready_since_ms, Some(begin + 5000), "since the timer was due");
}

/// The holder of an activity's session is shown as long as the lease lasts.
pub fn the_holder_of_a_session_is_shown(mut s: Scenario) {
    let begin = s.now_ms();
    let turn = Turn::first("a").routed_activity(None, Some("s")).routed_activity(None, Some("s"));
    s.run_first_turn(turn.routed_activity(None, Some("other")), &start("a"));
    assert_eq!(work_of(&mut s, "a").sessions, [], "nobody holds a session");
    let held = s.session_work("w1").expect("the first activity of the session");
    let lease = SessionLease {
        session_id: "s".to_owned(),
        owner: "w1".to_owned(),
        until_ms: begin + LEASE.as_millis() as u64,
    };
    assert_eq!(work_of(&mut s, "a").sessions, vec![lease.clone()]);
    s.ack(&held, Some(&completed("a", 2))).unwrap();
    assert_eq!(work_of(&mut s, "a").sessions, [lease], "the other activity belongs to it too");
    s.pass(LEASE);
    s.promote();
    assert_eq!(work_of(&mut s, "a").sessions, [], "the lease has ended");
}

/// A long mailbox is cut off, and counted.
pub fn only_the_first_messages_of_a_long_mailbox_are_shown(mut s: Scenario) {
    s.running("a");
    s.running("b");
    for number in 0..QueuedWork::LIMIT + 2 {
        s.send(&raise("a", &number.to_string()));
    }
    let work = work_of(&mut s, "a");
    assert_eq!((work.messages.len(), work.messages_total), (QueuedWork::LIMIT, QueuedWork::LIMIT as u64 + 2));
    s.send(&raise("b", &"x".repeat(QueuedWork::BYTES_LIMIT)));
    s.send(&raise("b", "later"));
    let work = work_of(&mut s, "b");
    assert_eq!((work.messages.len(), work.messages_total), (1, 2), "a large message is the last one");
}

/// Dead letters are shown with their instance, whether there is one or not.
pub fn the_dead_letters_of_an_instance_are_shown(mut s: Scenario) {
    s.running("a");
    s.send(&queue("ghost", "m"));
    s.send(&raise("a", "go"));
    s.claim().unwrap();
    let letters = work_of(&mut s, "ghost").dead_letters;
    assert_eq!(letters, s.dead_letters());
    assert_eq!(letters[0].reason, "no such instance");
    assert_eq!(work_of(&mut s, "a").dead_letters, []);
    let now = s.now();
    assert_eq!(s.read().queued_work("unknown", now).unwrap(), None);
}

/// Instances are counted by name, version and status, and by when they began and ended.
pub fn instances_are_summarized(mut s: Scenario) {
    let begin = s.now_ms();
    s.running("old");
    s.pass(Duration::from_secs(10));
    s.run_first_turn(Turn::first("done").complete("yes"), &start("done"));
    s.run_first_turn(Turn::first("bad").version("2.0.0").fail(), &start("bad"));
    s.pass(Duration::from_secs(10));
    s.running("new");
    s.send(&raise("new", "go"));
    let claim = s.claim().unwrap();
    s.pass(Duration::from_secs(5));
    s.commit(&claim, Turn::later(&claim).complete("late")).unwrap();
    s.running("young");
    s.send(&start("pending"));
    s.send(&raise("ghost", "e"));
    let request = SummaryRequest { from_ms: begin + 10_000, bucket_ms: 10_000, buckets: 2 };
    let count = |version: &str, status: &str, count| InstanceCount {
        name: ORDER.to_owned(),
        version: version.to_owned(),
        status: status.to_owned(),
        count,
    };
    let expected = InstanceSummary {
        counts: vec![
            count(VERSION, "Completed", 2),
            count(VERSION, "Running", 2),
            count("2.0.0", "Failed", 1),
        ],
        started: vec![2, 2],
        completed: vec![1, 1],
        failed: vec![1, 0],
        oldest_running: Some(("old".to_owned(), begin)),
    };
    assert_eq!(s.read().instance_summary(&request).unwrap(), expected);
    let counts_only = s.read().instance_summary(&SummaryRequest::default()).unwrap();
    assert_eq!((counts_only.counts, counts_only.started), (expected.counts, Vec::new()));
    let without_length = SummaryRequest { bucket_ms: 0, ..request };
    assert_eq!(s.read().instance_summary(&without_length).unwrap().started, [0, 0]);
}

/// Waiting items are counted by their needs, with the age of the first.
pub fn queues_are_summarized(mut s: Scenario) {
    let begin = s.now_ms();
    let turn = Turn::first("a").activity().activity().activity().routed_activity(Some("gpu"), Some("s"));
    s.run_first_turn(turn, &start("a"));
    s.run_first_turn(Turn::first("sleeper").timer(begin + 60_000), &start("sleeper"));
    let running = s.work().unwrap();
    let hidden = s.work().unwrap();
    s.abandon_work(&hidden, Some(Duration::from_secs(30)), false).unwrap();
    s.pass(Duration::from_secs(2));
    s.send(&start_of("b", "Bill", None));
    s.pass(Duration::from_secs(1));
    s.send(&start_of("c", "Bill", None));
    s.send(&raise("a", "go"));
    let held = s.claim().unwrap();
    assert_eq!(held.instance, "b");
    s.send(&queue("stray", "m"));
    let now = s.now();
    let summary = s.read().queue_summary(now).unwrap();
    let route = |name: &str, version: Option<&str>, ready, locked, oldest: u64| RouteSummary {
        name: Some(name.to_owned()),
        version: version.map(str::to_owned),
        pinned: None,
        ready,
        locked,
        oldest_ready_ms: Some(begin + oldest),
    };
    let expected = [route("Bill", None, 1, 1, 3000), route(ORDER, Some(VERSION), 1, 0, 3000)];
    assert_eq!(summary.orchestrations, expected);
    let lane = |tag: Option<&str>, ready, running, delayed| LaneSummary {
        name: "Charge".to_owned(),
        tag: tag.map(str::to_owned),
        ready,
        running,
        delayed,
        oldest_ready_ms: Some(0),
    };
    let shown: Vec<LaneSummary> = summary
        .activities
        .iter()
        .cloned()
        .map(|lane| LaneSummary {
            name: "Charge".to_owned(),
            oldest_ready_ms: lane.oldest_ready_ms.map(|_| 0),
            ..lane
        })
        .collect();
    assert_eq!(shown, [lane(None, 1, 1, 1), lane(Some("gpu"), 1, 0, 0)]);
    assert_eq!((summary.now_ms, summary.next_timer_ms), (begin + 3000, Some(begin + 60_000)));
    // The sleeper, and the stray, whose messages become too old.
    assert_eq!(summary.waiting_timers, 2);

    s.ack(&running, Some(&completed("a", 2))).unwrap();
    s.commit(&held, Turn::first("b").complete("done")).unwrap();
    let now = s.now();
    let summary = s.read().queue_summary(now).unwrap();
    let held: u64 = summary.orchestrations.iter().map(|route| route.locked).sum();
    let running: u64 = summary.activities.iter().map(|lane| lane.running).sum();
    assert_eq!((held, running), (0, 0));
}

/// An undecodable message is shown with its stored text.
pub fn an_undecodable_message_is_shown(s: Scenario) {
    let mut s = s.without_invariants();
    s.running("a");
    s.apply_unchecked(&Op::EnqueueMessage(undecodable_message("a", MessageKind::Other)));
    assert_eq!(work_of(&mut s, "a").messages[0].data, NONSENSE);
}
