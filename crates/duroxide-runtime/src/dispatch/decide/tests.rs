//! The ordered checks of 2.2, case by case. They take and return values and call no provider (S0.21).

use std::sync::Arc;

use duroxide_core::{ErrorDetails, FnOrchestration, PoisonMessageType};
use duroxide_provider::NodeCapability;
use semver::Version;

use super::{history::is_seed_only, messages::is_wake_up, *};

/// A node that has `order` in version 1.0.0.
struct OnlyOrder;

impl Handlers for OnlyOrder {
    fn find(&self, name: &str, version: Option<&str>) -> Option<(String, OrchestrationHandlerRef)> {
        let known = name == "order" && version.is_none_or(|version| version == "1.0.0");
        let handler = FnOrchestration(|_, input| async move { Ok(input) });
        known.then(|| ("1.0.0".to_owned(), Arc::new(handler) as OrchestrationHandlerRef))
    }
}

const MAX_ATTEMPTS: u32 = 3;

/// Asks for a decision about a claim of instance `o-1`, execution 1.
struct Ask {
    messages: Vec<WorkItem>,
    history: Vec<Event>,
    history_error: Option<&'static str>,
    attempt_count: u32,
    ended: bool,
    joined: Vec<JoinedNode>,
    cancel_only_fallback: bool,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            messages: vec![],
            history: vec![],
            history_error: None,
            attempt_count: 1,
            ended: false,
            joined: Vec::new(),
            cancel_only_fallback: false,
        }
    }
}

fn decide(ask: &Ask) -> Decision {
    let supported = [SemverRange::new(Version::new(0, 0, 0), Version::new(1, 9, 99))];
    let policy = Policy {
        max_attempts: MAX_ATTEMPTS,
        supported: &supported,
        handlers: &OnlyOrder,
        node: "node-1",
        joined: &ask.joined,
        cancel_only_fallback: ask.cancel_only_fallback,
    };
    let claim = Claimed {
        instance: "o-1",
        name: "order",
        execution_id: 1,
        messages: &ask.messages,
        attempt_count: ask.attempt_count,
        history: &ask.history,
        history_error: ask.history_error,
        ended: ask.ended,
    };
    super::decide(claim, &policy)
}

fn start(name: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "o-1".into(),
        orchestration: name.into(),
        input: "in".into(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn continue_as_new(name: &str, version: Option<&str>) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: "o-1".into(),
        orchestration: name.into(),
        input: "next".into(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![("q".into(), "unread".into())],
        initial_custom_status: None,
    }
}

fn raised() -> WorkItem {
    WorkItem::ExternalRaised { instance: "o-1".into(), name: "e".into(), data: "1".into() }
}

fn cancel() -> WorkItem {
    WorkItem::CancelInstance { instance: "o-1".into(), reason: "enough".into() }
}

fn event(event_id: u64, version: &str, kind: EventKind) -> Event {
    Event {
        event_id,
        source_event_id: None,
        instance_id: "o-1".into(),
        execution_id: 1,
        timestamp_ms: 0,
        duroxide_version: version.into(),
        kind,
    }
}

fn started_as(name: &str, pin: &str) -> Event {
    event(
        1,
        pin,
        EventKind::OrchestrationStarted {
            name: name.into(),
            version: "1.0.0".into(),
            input: "in".into(),
            parent_instance: Some("boss".into()),
            parent_id: Some(4),
            parent_execution_id: Some(2),
            carry_forward_events: None,
            initial_custom_status: None,
        },
    )
}

fn started() -> Event {
    started_as("order", "0.5.0")
}

fn completed() -> Event {
    event(2, "0.5.0", EventKind::OrchestrationCompleted { output: "done".into() })
}

fn continued() -> Event {
    event(2, "0.5.0", EventKind::OrchestrationContinuedAsNew { input: "next".into() })
}

fn ending(decision: Decision) -> Termination {
    match decision {
        Decision::End(termination) => termination,
        other => panic!("not an end: {other:?}"),
    }
}

fn unstarted(termination: &Termination) -> &Seed {
    match &termination.target {
        EndTarget::Unstarted(seed) => seed,
        other => panic!("not unstarted: {other:?}"),
    }
}

fn poison_details(termination: &Termination) -> &ErrorDetails {
    match &termination.ending {
        Ending::Failed(details @ ErrorDetails::Poison { .. }) => details,
        other => panic!("not poison: {other:?}"),
    }
}

#[test]
fn a_start_begins_an_instance_in_the_resolved_version() {
    let Decision::Run(run) =
        decide(&Ask { messages: vec![raised(), start("order", None)], ..Ask::default() })
    else {
        panic!("no turn runs")
    };
    let seed = run.seed.unwrap();
    assert_eq!((seed.name.as_str(), seed.version.as_str(), seed.execution_id), ("order", "1.0.0", 1));
}

#[test]
fn an_instance_with_history_goes_on_in_its_recorded_version() {
    // A second start never replaces handler, version or input (2.3).
    let messages = vec![start("other", Some("9.9.9"))];
    let Decision::Run(run) = decide(&Ask { messages, history: vec![started()], ..Ask::default() }) else {
        panic!("no turn runs")
    };
    assert!(run.seed.is_none());
    assert_eq!((run.name.as_str(), run.version.as_str()), ("order", "1.0.0"));
}

/// 2.3: in any order.
#[test]
fn a_continue_as_new_outranks_a_clients_start() {
    for messages in [
        vec![start("order", None), continue_as_new("order", None)],
        vec![continue_as_new("order", None), start("order", None)],
    ] {
        let ask = Ask { messages, history: vec![started(), continued()], ..Ask::default() };
        let Decision::Run(run) = decide(&ask) else { panic!("no turn runs") };
        let seed = run.seed.unwrap();
        assert_eq!((seed.input.as_str(), seed.execution_id), ("next", 2));
        assert_eq!(seed.carried.len(), 1);
    }
}

/// S0.1, S0.23, S0.24, S0.25, S0.33
#[test]
fn an_unregistered_name_or_version_bounces_and_writes_nothing() {
    for (name, version) in [("ghost", None), ("order", Some("2.0.0")), ("order", Some("not a version"))] {
        let decision = decide(&Ask { messages: vec![start(name, version)], ..Ask::default() });
        assert!(!decision.is_processable());
        let Decision::Abandon(reason) = decision else { panic!("not abandoned") };
        let version = version.map(str::to_owned);
        assert_eq!(reason, Unprocessable::UnregisteredOrchestration { name: name.into(), version });
    }
}

/// S0.23, S0.24: the reason why a turn cannot run is a value that can be read, stored and compared. Every other
/// decision can be processed here.
#[test]
fn why_a_claim_cannot_be_processed_is_one_value() {
    let unregistered = Unprocessable::UnregisteredOrchestration { name: "ghost".into(), version: None };
    let incompatible = Unprocessable::IncompatibleVersion {
        pinned: VersionTriple::from(&Version::new(2, 0, 0)),
        supported: ">=0.0.0, <=1.9.99".into(),
    };
    let undecodable = Unprocessable::UndecodableHistory { error: "no JSON".into() };
    let reasons = [
        (Ask { messages: vec![start("ghost", None)], ..Ask::default() }, unregistered),
        (
            Ask { messages: vec![raised()], history: vec![started_as("order", "2.0.0")], ..Ask::default() },
            incompatible,
        ),
        (Ask { messages: vec![raised()], history_error: Some("no JSON"), ..Ask::default() }, undecodable),
        (
            Ask { messages: vec![raised()], history: vec![started(), continued()], ..Ask::default() },
            Unprocessable::WaitingForSuccessor,
        ),
    ];
    for (ask, expected) in reasons {
        let decision = decide(&ask);
        assert!(!decision.is_processable(), "{expected:?}");
        let Decision::Abandon(reason) = &decision else { panic!("{decision:?}") };
        let kept = reason.clone();
        assert_eq!(kept, expected);
    }
    for processable in [
        Ask { messages: vec![start("order", None)], ..Ask::default() },
        Ask { messages: vec![start("order", None)], attempt_count: MAX_ATTEMPTS + 1, ..Ask::default() },
        Ask { messages: vec![raised()], history: vec![started(), completed()], ..Ask::default() },
        Ask { messages: vec![start("ghost", None), cancel()], ..Ask::default() },
    ] {
        let decision = decide(&processable);
        assert!(decision.is_processable(), "{decision:?}");
    }
}

/// 6.3: the one case in which an unregistered handler writes history.
#[test]
fn a_cancelled_instance_needs_no_handler_to_end() {
    let new = ending(decide(&Ask { messages: vec![start("ghost", None), cancel()], ..Ask::default() }));
    assert_eq!(unstarted(&new).version, "unknown");
    assert!(matches!(&new.ending, Ending::Cancelled { reason } if reason == "enough"));

    let asked = vec![start("ghost", Some("7.0.0")), cancel()];
    assert_eq!(unstarted(&ending(decide(&Ask { messages: asked, ..Ask::default() }))).version, "7.0.0");

    let history = vec![started_as("ghost", "0.5.0")];
    let running = ending(decide(&Ask { messages: vec![cancel()], history, ..Ask::default() }));
    assert_eq!(running.target, EndTarget::Stored);
    assert_eq!(running.cause, Cause::CancelledWithoutHandler);
}

/// 6.3, 2.10: a recorded cancellation counts too, with any next message.
#[test]
fn an_instance_with_a_stored_cancel_request_needs_no_handler_to_end() {
    let request = EventKind::OrchestrationCancelRequested { reason: "stored".into() };
    let history = vec![started_as("ghost", "0.5.0"), event(2, "0.5.0", request)];
    let ended = ending(decide(&Ask { messages: vec![raised()], history, ..Ask::default() }));
    assert_eq!((ended.target, ended.cause), (EndTarget::Stored, Cause::CancelledWithoutHandler));
    assert!(matches!(&ended.ending, Ending::Cancelled { reason } if reason == "stored"));
}

/// 6.3: code that asked for the first request cleans up on a node with its handler. The second request ends it here.
#[test]
fn an_instance_that_asked_for_requests_to_cancel_needs_its_handler() {
    let asked = vec![started_as("ghost", "0.5.0"), event(2, "0.5.0", EventKind::CancellationSubscribed)];
    let request = EventKind::OrchestrationCancelRequested { reason: "stored".into() };
    let told = [asked.clone(), vec![event(3, "0.5.0", request)]].concat();
    for (messages, history, is_ended) in [
        (vec![cancel()], asked.clone(), false),
        (vec![cancel(), cancel()], asked, true),
        (vec![raised()], told.clone(), false),
        (vec![cancel()], told, true),
    ] {
        let decision = decide(&Ask { messages, history, ..Ask::default() });
        assert_eq!(decision.is_processable(), is_ended, "{decision:?}");
        if is_ended {
            assert!(matches!(ending(decision).ending, Ending::Cancelled { reason } if reason == "enough"));
        }
    }
}

#[test]
fn messages_for_an_ended_instance_are_drained_whatever_else_is_wrong() {
    let history = vec![started(), completed()];
    for attempt_count in [1, MAX_ATTEMPTS + 1] {
        let ask = Ask { messages: vec![raised()], history: history.clone(), attempt_count, ..Ask::default() };
        assert!(matches!(decide(&ask), Decision::DropEnded));
    }
}

/// 8.6
#[test]
fn an_instance_that_waits_for_its_successor_keeps_its_messages() {
    for messages in [vec![raised()], vec![start("order", None)]] {
        let ask = Ask { messages, history: vec![started(), continued()], ..Ask::default() };
        assert!(matches!(decide(&ask), Decision::Abandon(Unprocessable::WaitingForSuccessor)));
    }
}

/// C4, S1.34: exactly `max_attempts` attempts are processed.
#[test]
fn the_attempt_after_the_last_one_is_poison() {
    let at = |attempt_count| {
        decide(&Ask { messages: vec![start("order", None)], attempt_count, ..Ask::default() })
    };
    assert!(matches!(at(MAX_ATTEMPTS), Decision::Run(_)));
    let poisoned = ending(at(MAX_ATTEMPTS + 1));
    assert_eq!(poisoned.cause, Cause::Poison { reason: None });
    assert_eq!(
        poison_details(&poisoned).display_message(),
        "poison: orchestration o-1 exceeded 4 attempts (max 3)"
    );
    assert_eq!(unstarted(&poisoned).version, "1.0.0");
}

/// S1.12, S1.35: the error holds all messages.
#[test]
fn a_poison_error_holds_the_messages() {
    let messages = vec![start("order", None), raised()];
    let poisoned = ending(decide(&Ask { messages: messages.clone(), attempt_count: 4, ..Ask::default() }));
    let ErrorDetails::Poison { message, .. } = poison_details(&poisoned) else { unreachable!() };
    assert_eq!(serde_json::from_str::<Vec<WorkItem>>(message).unwrap(), messages);
}

/// C6, S2.9, S2.19, S2.23: a missing handler is named in the warning, with attempt and maximum.
#[test]
fn poison_for_want_of_a_handler_says_so() {
    let poisoned =
        ending(decide(&Ask { messages: vec![start("ghost", None)], attempt_count: 4, ..Ask::default() }));
    let Cause::Poison { reason: Some(reason) } = &poisoned.cause else { panic!("{:?}", poisoned.cause) };
    assert!(reason.starts_with(
        "work item could not be processed on this node (orchestration not registered here, or execution \
         history is unsupported)"
    ));
    assert!(reason.ends_with("ghost@latest is not registered, attempt 4 (max 3)"), "{reason}");
    let told = poison_details(&poisoned).poison_reason();
    assert_eq!(told.as_deref(), Some("orchestration ghost@latest is not registered on node node-1"));

    let other = JoinedNode {
        name: "node-2".to_owned(),
        capability: Some(NodeCapability::default()),
        ..JoinedNode::default()
    };
    let messages = vec![start("ghost", Some("2.0.0"))];
    let ask = Ask { messages, attempt_count: 4, joined: vec![other], ..Ask::default() };
    let told = poison_details(&ending(decide(&ask))).poison_reason();
    assert_eq!(told.as_deref(), Some("orchestration ghost@2.0.0 is not registered on nodes node-1, node-2"));
}

/// S0.A1, 8.6: the successor fails as its own execution, with nothing carried into it.
#[test]
fn a_poisoned_successor_is_its_own_execution() {
    let history = vec![started(), continued()];
    let messages = vec![start("order", None), continue_as_new("order", Some("2.0.0"))];
    let from_item =
        ending(decide(&Ask { messages, history: history.clone(), attempt_count: 4, ..Ask::default() }));
    let seed = unstarted(&from_item);
    assert_eq!((seed.execution_id, seed.version.as_str(), seed.carried.len()), (2, "2.0.0", 0));

    // Without the `ContinueAsNew` item, the start comes from the history of the ended execution, never from a client's
    // start.
    let messages = vec![start("intruder", None)];
    let from_record = ending(decide(&Ask { messages, history, attempt_count: 4, ..Ask::default() }));
    let seed = unstarted(&from_record);
    assert_eq!((seed.name.as_str(), seed.input.as_str(), seed.execution_id), ("order", "next", 2));
    assert_eq!(seed.parent.as_ref().unwrap().instance, "boss");
    let ErrorDetails::Poison { message_type, .. } = poison_details(&from_record) else { unreachable!() };
    assert!(matches!(message_type, PoisonMessageType::Orchestration { execution_id: 2, .. }));
}

/// S2.16
#[test]
fn a_cancellation_ends_an_unsupported_execution_if_that_is_allowed() {
    let history = vec![started_as("order", "2.0.0")];
    let ask = Ask { messages: vec![raised(), cancel()], history, ..Ask::default() };
    assert!(matches!(decide(&ask), Decision::Abandon(Unprocessable::IncompatibleVersion { .. })));

    let ended = ending(decide(&Ask { cancel_only_fallback: true, ..ask }));
    assert_eq!((&ended.target, &ended.cause), (&EndTarget::Stored, &Cause::CancelledUnsupported));
    assert!(matches!(&ended.ending, Ending::Cancelled { reason } if reason == "enough"));
}

/// C8, S3.17, S3.44, 17.4: a pin out of range is abandoned; the poison check comes first (B3).
#[test]
fn an_execution_pinned_out_of_range_bounces_until_it_is_ended() {
    let history = vec![started_as("order", "2.0.0")];
    let ask = Ask { messages: vec![raised()], history, ..Ask::default() };
    let Decision::Abandon(Unprocessable::IncompatibleVersion { pinned, supported }) = decide(&ask) else {
        panic!("not abandoned")
    };
    assert_eq!((pinned.to_string().as_str(), supported.as_str()), ("2.0.0", ">=0.0.0, <=1.9.99"));

    let ended = ending(decide(&Ask { attempt_count: 4, ..ask }));
    let Ending::Failed(details) = &ended.ending else { panic!("{:?}", ended.ending) };
    assert_eq!(
        details.display_message(),
        "unsupported version: work item could not be processed on this node (orchestration not registered \
         here, or execution history is unsupported): execution pinned at 2.0.0, supported >=0.0.0, <=1.9.99, \
         attempt 4 (max 3)"
    );
}

/// S2.17, S2.18, S3.26, S3.T21: both ends, numeric comparison, pre-release parts ignored, odd stamps compatible.
#[test]
fn pins_are_compared_as_numbers_and_unreadable_ones_pass() {
    for (pin, compatible) in [
        ("0.0.0", true),
        ("1.9.99", true),
        ("1.9.99-rc.1", true),
        ("1.10.0", false),
        ("1.9.100", false),
        ("2.0.0-alpha", false),
        ("yesterday", true),
    ] {
        let history = vec![started_as("order", pin)];
        let decision = decide(&Ask { messages: vec![raised()], history, ..Ask::default() });
        assert_eq!(decision.is_processable(), compatible, "{pin}");
        if let Decision::Run(run) = decision {
            assert_eq!(run.unreadable_pin.is_some(), pin == "yesterday");
        }
    }
}

/// 2.2 (b), 16.6, S3.38
#[test]
fn an_undecodable_history_bounces_and_then_ends_as_poison() {
    let error = "Failed to deserialize event at position 1: unknown variant";
    let ask = Ask { history: vec![started()], history_error: Some(error), ..Ask::default() };
    assert!(matches!(decide(&ask), Decision::Abandon(Unprocessable::UndecodableHistory { .. })));

    let poisoned = ending(decide(&Ask { attempt_count: 4, history: vec![started()], ..ask }));
    assert_eq!(poisoned.target, EndTarget::Unreadable);
    let ErrorDetails::Poison { message_type, message, .. } = poison_details(&poisoned) else {
        unreachable!()
    };
    assert_eq!(message, error);
    assert!(matches!(message_type, PoisonMessageType::FailedDeserialization { .. }));
}

/// I02: nothing is appended behind a terminal event, even if an earlier one is unreadable.
#[test]
fn an_ended_instance_with_undecodable_history_is_drained() {
    let ask = Ask { history_error: Some("broken"), attempt_count: 4, ended: true, ..Ask::default() };
    assert!(matches!(decide(&ask), Decision::DropEnded));
}

#[test]
fn messages_without_instance_and_start_are_strays() {
    assert!(matches!(decide(&Ask { messages: vec![raised()], ..Ask::default() }), Decision::DropUnknown));
}

#[test]
fn only_the_start_of_a_later_execution_is_a_wake_up() {
    assert!(!is_wake_up(&start("order", None)));
    let WorkItem::StartOrchestration { instance, orchestration, input, version, .. } = start("order", None)
    else {
        unreachable!()
    };
    let later = WorkItem::StartOrchestration {
        instance,
        orchestration,
        input,
        version,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 2,
    };
    assert!(is_wake_up(&later));
}

#[test]
fn an_execution_that_has_only_its_seed_has_not_run() {
    assert!(is_seed_only(&[started()]));
    assert!(!is_seed_only(&[started(), completed()]));
    assert!(!is_seed_only(&[]));
}
