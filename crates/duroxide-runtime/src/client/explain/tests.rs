//! Tests of the findings from facts, and of the sentences, without a store.

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::{AppErrorKind, ErrorDetails, Event, EventKind, PoisonMessageType, WorkItem};
use duroxide_provider::{
    DeadLetter, DeadLetterQueue, InstanceInfo, InstanceNeeds, JoinedNode, MissingCapability, NodeCapability,
    QueuedActivityInfo, QueuedMessageInfo, QueuedWork, SemverRange, TagFilter, VersionTriple, WorkLock,
};
use semver::Version;

use super::{Explanation, decide, gather::Facts};

/// 14:02:11 of a day, and three hours later.
const SINCE: u64 = 50_531_000;
const NOW: u64 = SINCE + 3 * 3_600_000;

fn node(name: &str) -> JoinedNode {
    let orchestrations = BTreeMap::from([("Order".to_owned(), BTreeSet::from([Version::new(1, 0, 0)]))]);
    let capability = NodeCapability {
        replay_versions: vec![SemverRange::new(Version::new(0, 1, 0), Version::new(0, 9, 0))],
        orchestrations,
        activities: BTreeSet::from(["Charge".to_owned()]),
        tags: TagFilter::DefaultOnly,
        asks_for_registered_only: false,
        max_attempts: Some(10),
    };
    JoinedNode { name: name.to_owned(), capability: Some(capability), started_at_ms: 0, seen_at_ms: NOW }
}

fn event(event_id: u64, source: Option<u64>, kind: EventKind) -> Event {
    let mut event = Event::with_event_id(event_id, "order-7", 1, source, kind);
    event.timestamp_ms = SINCE;
    event
}

fn started() -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Order".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(1, None, kind)
}

fn info(status: &str) -> InstanceInfo {
    InstanceInfo {
        instance_id: "order-7".to_owned(),
        orchestration_name: "Order".to_owned(),
        orchestration_version: "1.0.0".to_owned(),
        current_execution_id: 1,
        status: status.to_owned(),
        output: None,
        created_at: SINCE,
        updated_at: SINCE,
        parent_instance_id: None,
    }
}

fn work() -> QueuedWork {
    let mut work = QueuedWork::default();
    work.now_ms = NOW;
    work.needs = InstanceNeeds {
        name: Some("Order".to_owned()),
        version: Some("1.0.0".to_owned()),
        pinned: Some(VersionTriple { major: 0, minor: 5, patch: 0 }),
    };
    work
}

/// A running instance with these calls on two nodes that can do all of it.
fn running(calls: Vec<EventKind>) -> Facts {
    let calls = calls.into_iter().zip(2..).map(|(kind, event_id)| event(event_id, None, kind));
    Facts {
        info: info("Running"),
        end: None,
        history: Ok(std::iter::once(started()).chain(calls).collect()),
        work: Some(work()),
        nodes: vec![node("w1"), node("w2")],
        children: BTreeMap::new(),
        now_ms: NOW,
    }
}

fn ended(details: Option<ErrorDetails>) -> Facts {
    let kind = match details {
        Some(details) => EventKind::OrchestrationFailed { details },
        None => EventKind::OrchestrationCompleted { output: "done".to_owned() },
    };
    Facts { info: info("Ended"), end: Some(event(5, None, kind)), ..running(Vec::new()) }
}

fn wait(name: &str) -> EventKind {
    EventKind::ExternalSubscribed { name: name.to_owned() }
}

fn raised(name: &str) -> EventKind {
    EventKind::ExternalEvent { name: name.to_owned(), data: String::new() }
}

fn activity(name: &str) -> EventKind {
    EventKind::ActivityScheduled { name: name.to_owned(), input: String::new(), session_id: None, tag: None }
}

fn queued(name: &str) -> QueuedActivityInfo {
    QueuedActivityInfo {
        execution_id: 1,
        activity_id: 2,
        name: name.to_owned(),
        tag: None,
        session_id: None,
        attempts: 3,
        hidden_until_ms: None,
        lock: None,
        stop_requested: false,
    }
}

/// An instance that waits for this activity, which is queued like this.
fn with_activity(queued: QueuedActivityInfo) -> Facts {
    let mut facts = running(vec![activity(&queued.name)]);
    let work = facts.work.as_mut().unwrap();
    work.activities_total = 1;
    work.activities = vec![queued];
    facts
}

fn message(item: &WorkItem, visible_at_ms: Option<u64>) -> QueuedMessageInfo {
    let data = serde_json::to_string(item).unwrap();
    QueuedMessageInfo { data, enqueued_at_ms: SINCE, visible_at_ms, attempts: 0 }
}

fn with_message(mut facts: Facts, item: &WorkItem, visible_at_ms: Option<u64>) -> Facts {
    let work = facts.work.as_mut().unwrap();
    work.messages.push(message(item, visible_at_ms));
    work.messages_total += 1;
    if visible_at_ms.is_none_or(|at| at <= NOW) {
        work.ready_since_ms = Some(SINCE);
    }
    facts
}

fn raise(name: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: "order-7".to_owned(), name: name.to_owned(), data: String::new() }
}

fn start() -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "order-7".to_owned(),
        orchestration: "Order".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn lines(facts: Facts) -> Vec<String> {
    decide::explain(facts).lines()
}

#[test]
fn the_end_of_an_instance_is_explained() {
    assert_eq!(lines(ended(None)), ["completed at 14:02:11 UTC (3 h ago)"]);
    let failed = ErrorDetails::orchestration_failed("no stock");
    assert_eq!(lines(ended(Some(failed))), ["failed at 14:02:11 UTC (3 h ago): no stock"]);
    let cancelled = ErrorDetails::cancelled("enough");
    assert!(matches!(&cancelled, ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. }));
    assert_eq!(lines(ended(Some(cancelled))), ["was cancelled at 14:02:11 UTC (3 h ago): enough"]);
}

#[test]
fn poison_names_the_item_and_the_reason() {
    let poison = |message: &str| ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type: PoisonMessageType::Activity {
            instance: "order-7".to_owned(),
            execution_id: 1,
            activity_name: "Charge".to_owned(),
            activity_id: 2,
        },
        message: message.to_owned(),
    };
    let text = "failed at 14:02:11 UTC (3 h ago): poison: activity Charge#2 exceeded 11 attempts (max 10)";
    assert_eq!(lines(ended(Some(poison("{}")))), [text]);
    let reason =
        r#"{"ActivityExecute":{"poison_reason":"no handler on web-7-0123456789abcdef0123456789abcdef, w2"}}"#;
    assert_eq!(lines(ended(Some(poison(reason)))), [format!("{text}: no handler on web-7-012345, w2")]);
}

#[test]
fn a_misspelt_event_is_named() {
    let misspelt = running(vec![wait("Approval"), raised("approval"), raised("Shipped")]);
    let waits = "waits for event `Approval` since 14:02:11 UTC (3 h ago)";
    assert_eq!(lines(misspelt), [format!("{waits}; the last raised event was `approval`")]);
    assert_eq!(lines(running(vec![wait("Approval")])), [waits]);
    let early = running(vec![raised("Approval"), wait("Approval")]);
    assert_eq!(lines(early), [format!("{waits}; one was raised before it was awaited, and is lost")]);
}

#[test]
fn an_event_in_the_mailbox_counts_as_raised() {
    let facts = with_message(running(vec![wait("Approval")]), &raise("aproval"), None);
    let [ready, waits] = <[String; 2]>::try_from(lines(facts)).unwrap();
    assert_eq!(ready, "waits for a free slot of a node since 14:02:11 UTC (3 h ago)");
    assert!(waits.ends_with("the last raised event was `aproval`"), "{waits}");
    assert!(!waits.contains("UTC"), "the zone is said once: {waits}");
}

#[test]
fn an_unread_queue_is_named() {
    let read = EventKind::QueueSubscribed { name: "lines".to_owned() };
    let other = EventKind::QueueEventDelivered { name: "Lines".to_owned(), data: String::new() };
    let text =
        "waits for a message of queue `lines` since 14:02:11 UTC (3 h ago); messages wait in queue `Lines`";
    assert_eq!(lines(running(vec![read, other])), [text]);
}

#[test]
fn a_timer_is_shown_with_its_time_and_a_dropped_one_is_not() {
    let due = NOW + 3 * 3_600_000;
    let timer = || EventKind::TimerCreated { fire_at_ms: due };
    let fired =
        WorkItem::TimerFired { instance: "order-7".to_owned(), execution_id: 1, id: 2, fire_at_ms: due };
    let waiting = with_message(running(vec![timer()]), &fired, Some(due));
    assert_eq!(lines(waiting), ["timer due in 3 h, at 20:02:11 UTC"]);
    let lost_a_select = running(vec![timer()]);
    assert_eq!(lines(lost_a_select), ["waits for no call, and no message is queued for it"]);
    let untold = Facts { work: None, ..running(vec![timer()]) };
    assert_eq!(lines(untold), ["timer due in 3 h, at 20:02:11 UTC"], "the store does not tell");
}

#[test]
fn a_running_activity_has_a_node_an_attempt_and_a_lease() {
    let lock = Some(WorkLock { node: Some("w2".to_owned()), until_ms: NOW + 12_000 });
    let text = "activity `Charge` runs on node w2, attempt 3 of 10, lease ends in 12 s, scheduled at 14:02:11 UTC (3 h ago)";
    assert_eq!(lines(with_activity(QueuedActivityInfo { lock, ..queued("Charge") })), [text]);
}

#[test]
fn a_waiting_activity_names_its_reason() {
    let waiting =
        "activity `Charge` waits for a free worker slot since 14:02:11 UTC (3 h ago), fetched 3 times before";
    assert_eq!(lines(with_activity(queued("Charge"))), [waiting]);
    let hidden = QueuedActivityInfo { hidden_until_ms: Some(NOW + 5000), ..queued("Pack") };
    let text = "activity `Pack` is hidden until 17:02:16 UTC, because no handler is on w1, w2";
    assert_eq!(lines(with_activity(hidden)), [text]);
    let no_handler =
        "activity `Pack` waits since 14:02:11 UTC (3 h ago): no live node has a handler for activity `Pack`";
    assert_eq!(lines(with_activity(queued("Pack"))), [no_handler]);
    let tagged = QueuedActivityInfo { tag: Some("gpu".to_owned()), ..queued("Charge") };
    let text =
        "activity `Charge` waits since 14:02:11 UTC (3 h ago): no live node takes activities with tag `gpu`";
    assert_eq!(lines(with_activity(tagged)), [text]);
    let stopping = QueuedActivityInfo { stop_requested: true, ..queued("Charge") };
    let text = "activity `Charge` was asked to stop and has not ended, scheduled at 14:02:11 UTC (3 h ago)";
    assert_eq!(lines(with_activity(stopping)), [text]);
    let gone = "waits for activity `Charge` since 14:02:11 UTC (3 h ago), which is not queued: its result is on the way, or it \
                is a dead letter";
    assert_eq!(lines(running(vec![activity("Charge")])), [gone]);
    let untold = Facts { work: None, ..running(vec![activity("Charge")]) };
    assert_eq!(lines(untold), ["waits for activity `Charge` since 14:02:11 UTC (3 h ago)"]);
}

/// Calls that no node carries out come first, in any order of scheduling.
#[test]
fn stuck_activities_come_first_and_many_calls_are_cut_off() {
    let mut facts = with_activity(QueuedActivityInfo { activity_id: 3, ..queued("Pack") });
    facts.history.as_mut().unwrap().insert(1, event(2, None, wait("Approval")));
    facts.history.as_mut().unwrap()[2].event_id = 3;
    let told = lines(facts);
    assert!(told[0].contains("`Pack`") && told[1].contains("`Approval`"), "{told:?}");
    let many = (0..103).map(|n| wait(&format!("event-{n}"))).collect();
    let told = lines(running(many));
    assert_eq!((told.len(), told.last().unwrap().as_str()), (101, "waits for 3 more calls"));
}

#[test]
fn a_child_is_explained_too() {
    let call = EventKind::SubOrchestrationScheduled {
        name: "Ship".to_owned(),
        instance: "sub::2".to_owned(),
        input: String::new(),
    };
    let mut facts = running(vec![call.clone()]);
    let child = decide::explain(running(vec![wait("Truck")]));
    facts.children.insert("order-7::sub::2".to_owned(), child);
    let waits = "waits for child `order-7::sub::2` (Ship) since 14:02:11 UTC (3 h ago)";
    let text = format!("{waits}; the child: waits for event `Truck` since 14:02:11 (3 h ago)");
    assert_eq!(lines(facts), [text]);
    assert_eq!(lines(running(vec![call])), [waits]);
}

#[test]
fn a_start_without_a_node_says_both() {
    let pending = |nodes| {
        let facts = Facts { info: info("Pending"), history: Ok(Vec::new()), nodes, ..running(Vec::new()) };
        lines(with_message(facts, &start(), None))
    };
    let queued = "its start is queued since 14:02:11 UTC (3 h ago), and no node has begun it";
    assert_eq!(pending(Vec::new()), ["no live node runs orchestrations", queued]);
    assert_eq!(pending(vec![node("w1")]), [queued]);
    let silent = JoinedNode { seen_at_ms: NOW - 60_000, ..node("w1") };
    assert_eq!(
        pending(vec![silent]),
        ["no live node runs orchestrations", queued],
        "it said nothing for long"
    );
    let other = JoinedNode { capability: None, ..node("w1") };
    assert_eq!(pending(vec![other]), [queued], "nobody knows what it can do");
}

#[test]
fn a_missing_handler_or_version_is_named() {
    let needs = |name: &str, version: &str, minor| InstanceNeeds {
        name: Some(name.to_owned()),
        version: Some(version.to_owned()),
        pinned: Some(VersionTriple { major: 0, minor, patch: 0 }),
    };
    let first = |needs: InstanceNeeds| {
        let mut facts = with_message(running(Vec::new()), &raise("go"), None);
        facts.work.as_mut().unwrap().needs = needs;
        lines(facts).remove(0)
    };
    assert_eq!(first(needs("Order", "2.0.0", 5)), "no live node has handler `Order` 2.0.0");
    assert_eq!(first(needs("Bill", "1.0.0", 5)), "no live node has handler `Bill` 1.0.0");
    let pinned = "no live node replays version 0.20.0; they replay >=0.1.0, <=0.9.0";
    assert_eq!(first(needs("Order", "1.0.0", 20)), pinned);
}

#[test]
fn messages_that_were_given_back_are_hidden_and_say_by_whom() {
    let mut facts = with_message(running(Vec::new()), &raise("go"), Some(NOW + 5000));
    facts.work.as_mut().unwrap().needs.name = Some("Bill".to_owned());
    let text = "its messages are hidden until 17:02:16 UTC, because no handler is on w1, w2";
    assert_eq!(lines(facts), ["no live node has handler `Bill` 1.0.0", text]);
    let facts = with_message(running(Vec::new()), &raise("go"), Some(NOW + 5000));
    assert_eq!(lines(facts), ["its messages are hidden until 17:02:16 UTC: a node gave it back"]);
}

#[test]
fn a_turn_that_runs_has_a_node_and_an_attempt() {
    let mut facts = with_message(running(Vec::new()), &raise("go"), None);
    let work = facts.work.as_mut().unwrap();
    work.lock = Some(WorkLock { node: None, until_ms: NOW + 4000 });
    (work.attempts, work.ready_since_ms) = (2, None);
    assert_eq!(lines(facts), ["a turn of it runs, attempt 2, lease ends in 4 s"]);
}

#[test]
fn a_request_to_cancel_is_found_in_the_mailbox_and_in_the_history() {
    let text = "was asked to cancel at 14:02:11 UTC (3 h ago) and has not ended";
    let request = EventKind::OrchestrationCancelRequested { reason: "enough".to_owned() };
    assert_eq!(lines(running(vec![EventKind::CancellationSubscribed, request])), [text]);
    let cancel = WorkItem::CancelInstance { instance: "order-7".to_owned(), reason: "enough".to_owned() };
    let facts = with_message(running(vec![EventKind::CancellationSubscribed]), &cancel, None);
    let told = lines(facts);
    assert!(told[1].contains("was asked to cancel at 14:02:11"), "{told:?}");
    assert_eq!(told[2], "waits to be cancelled since 14:02:11 (3 h ago)");
}

#[test]
fn dead_letters_come_before_open_calls() {
    let mut facts = running(vec![wait("Approval")]);
    facts.work.as_mut().unwrap().dead_letters = vec![DeadLetter {
        id: "4".to_owned(),
        queue: DeadLetterQueue::Orchestrator,
        instance_id: Some("order-7".to_owned()),
        payload: "secret".to_owned(),
        reason: "undeserializable work item".to_owned(),
        attempt_count: 10,
        dead_lettered_at_ms: NOW,
    }];
    let told = lines(facts);
    assert_eq!(told[0], "dead letter 4 holds a message or an activity of it: undeserializable work item");
    assert!(told.iter().all(|line| !line.contains("secret")), "payloads are not shown: {told:?}");
}

#[test]
fn a_history_that_cannot_be_read_is_a_finding() {
    let facts = Facts { history: Err("event 3 is from the future".to_owned()), ..running(Vec::new()) };
    assert_eq!(lines(facts), ["its history cannot be read: event 3 is from the future"]);
}

#[test]
fn a_text_has_a_heading_and_json_has_the_fields() {
    let explanation = Explanation { execution_id: 2, ..decide::explain(running(vec![wait("Approval")])) };
    let text = "`order-7` (Order 1.0.0, execution 2) is Running\n- waits for event `Approval` since 14:02:11 UTC (3 h ago)";
    assert_eq!(explanation.to_string(), text);
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["findings"][0]["finding"], "event");
    assert_eq!(json["findings"][0]["since_ms"], SINCE);
    let missing = MissingCapability::Tag { tag: Some("gpu".to_owned()) };
    let none = super::Finding::NoNode { missing };
    assert_eq!(serde_json::to_value(&none).unwrap()["missing"]["kind"], "tag");
    assert_eq!(none.to_string(), "no live node takes activities with tag `gpu`");
    let alone = super::Finding::Timer { due_ms: SINCE, since_ms: 0 };
    assert_eq!(alone.to_string(), "timer due at 1970-01-01 14:02:11 UTC", "without a time of reading");
}
