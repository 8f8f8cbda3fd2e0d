//! The rounds that turns commit.

use duroxide_core::AppErrorKind;

use super::*;

const WHO: ExecutionRef<'static> = ExecutionRef { instance: "o-1", execution_id: 1, name: "order" };
const NOW: Timestamp = Timestamp::from_millis(7);

fn link(execution_id: Option<u64>) -> ParentLink {
    ParentLink { instance: "boss".into(), event_id: 4, execution_id }
}

fn seed() -> Seed {
    Seed {
        instance: "o-1".into(),
        execution_id: 1,
        name: "order".into(),
        version: "1.2.0".into(),
        input: "in".into(),
        parent: Some(link(Some(2))),
        carried: vec![],
        custom_status: None,
    }
}

fn turn(outcome: Outcome) -> Turn {
    Turn {
        delta: seed().into_events(NOW),
        activities: vec![],
        messages: vec![],
        cancelled_activities: vec![],
        stopped_activities: vec![],
        cancelled_timers: vec![],
        outcome,
        parent: Some(link(Some(2))),
    }
}

fn continuation(version: Option<&str>) -> Outcome {
    Outcome::ContinuedAsNew(Continuation {
        input: "next".into(),
        version: version.map(str::to_owned),
        carried: vec![("q".into(), "unread".into())],
        custom_status: Some("half".into()),
    })
}

fn failure() -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: "no".into(),
        retryable: false,
    }
}

fn child_start(parent_execution_id: Option<u64>, parent_id: u64) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "o-1".into(),
        orchestration: "order".into(),
        input: "in".into(),
        version: None,
        parent_instance: Some("boss".into()),
        parent_id: Some(parent_id),
        parent_execution_id,
        execution_id: 1,
    }
}

/// 2.16, S3.23, S3.T19
#[test]
fn the_first_round_has_name_version_parent_and_pin() {
    let metadata = round(WHO, turn(Outcome::Running), &Successor::Elsewhere, NOW).metadata;
    assert_eq!(metadata.orchestration_name.as_deref(), Some("order"));
    assert_eq!(metadata.orchestration_version.as_deref(), Some("1.2.0"));
    assert_eq!(metadata.parent_instance_id.as_deref(), Some("boss"));
    assert_eq!(metadata.pinned_duroxide_version, Some(duroxide_core::current_build_version()));
    assert_eq!(metadata.status, None);
}

/// 2.16
#[test]
fn later_rounds_have_only_the_end() {
    let mut last = turn(Outcome::Completed { output: "done".into() });
    last.delta.clear();
    let metadata = round(WHO, last, &Successor::Elsewhere, NOW).metadata;
    assert_eq!(metadata.orchestration_name, None);
    assert_eq!(metadata.pinned_duroxide_version, None);
    assert_eq!((metadata.status.as_deref(), metadata.output.as_deref()), (Some("Completed"), Some("done")));

    let failed =
        round(WHO, turn(Outcome::Failed { details: failure() }), &Successor::Elsewhere, NOW).metadata;
    assert_eq!((failed.status.as_deref(), failed.output.as_deref()), (Some("Failed"), Some("no")));
}

/// 2.16
#[test]
fn cancelled_work_is_named_in_full() {
    let mut cancelled = turn(Outcome::Running);
    cancelled.cancelled_activities = vec![5];
    cancelled.cancelled_timers = vec![6];
    let round = round(WHO, cancelled, &Successor::Elsewhere, NOW);
    let activity = ScheduledActivityIdentifier { instance: "o-1".into(), execution_id: 1, activity_id: 5 };
    let timer = ScheduledTimerIdentifier { instance: "o-1".into(), execution_id: 1, timer_id: 6 };
    assert_eq!(round.cancelled_activities, [activity]);
    assert_eq!(round.cancelled_timers, [timer]);
}

/// 6.6, I17
#[test]
fn a_parent_gets_the_end_of_its_child_and_nothing_before() {
    let told = |outcome| notice_of(&turn(outcome)).map(|notice| notice.into_item(9));
    assert_eq!(told(Outcome::Running), None);
    assert_eq!(told(continuation(None)), None, "8.7: the execution that finally ends tells it");
    assert_eq!(
        told(Outcome::Completed { output: "done".into() }),
        Some(WorkItem::SubOrchCompleted {
            parent_instance: "boss".into(),
            parent_execution_id: 2,
            parent_id: 4,
            result: "done".into(),
        })
    );
    assert!(matches!(
        told(Outcome::Failed { details: failure() }),
        Some(WorkItem::SubOrchFailed { parent_execution_id: 2, .. })
    ));
}

/// 6.4: a link of older data means the parent's current execution.
#[test]
fn a_link_without_execution_means_the_parents_current_one() {
    let notice = Notice { link: link(None), result: Ok("done".into()) };
    assert!(matches!(notice.into_item(9), WorkItem::SubOrchCompleted { parent_execution_id: 9, .. }));
}

/// 8.1, 8.3, 8.4, S4.19
#[test]
fn a_round_holds_the_old_end_and_the_new_beginning() {
    let version = "2.0.0".to_owned();
    let round = round(WHO, turn(continuation(None)), &Successor::Here { version }, NOW);
    assert_eq!(round.metadata.status.as_deref(), Some("ContinuedAsNew"));
    assert_eq!(round.metadata.output.as_deref(), Some("next"));
    assert!(round.orchestrator_items.is_empty());

    let next = round.next_execution.unwrap();
    assert_eq!(next.execution_id, 2);
    assert_eq!(next.history_delta.iter().map(|event| event.event_id).collect::<Vec<_>>(), [1, 2]);
    let EventKind::OrchestrationStarted {
        version, input, parent_execution_id, initial_custom_status, ..
    } = &next.history_delta[0].kind
    else {
        panic!("no start")
    };
    assert_eq!((version.as_str(), input.as_str(), *parent_execution_id), ("2.0.0", "next", Some(2)));
    assert_eq!(initial_custom_status.as_deref(), Some("half"));
    assert!(next.metadata.pinned_duroxide_version.is_some());
    let [wake_up] = next.orchestrator_items.as_slice() else { panic!("one wake-up") };
    assert!(is_wake_up(wake_up));
}

/// 8.5
#[test]
fn a_successor_that_cannot_begin_here_is_left_to_its_item() {
    let round = round(WHO, turn(continuation(Some("9.0.0"))), &Successor::Elsewhere, NOW);
    assert!(round.next_execution.is_none());
    let [WorkItem::ContinueAsNew { version, carry_forward_events, parent_instance, .. }] =
        round.orchestrator_items.as_slice()
    else {
        panic!("{:?}", round.orchestrator_items)
    };
    assert_eq!(version.as_deref(), Some("9.0.0"));
    assert_eq!(carry_forward_events.len(), 1);
    assert_eq!(parent_instance.as_deref(), Some("boss"));
}

/// 6.5
#[test]
fn a_child_start_under_a_taken_id_is_refused() {
    let messages = [child_start(Some(3), 4)];
    let refused = refused_starts("o-1", &messages, None, Some(&link(Some(2))), false);
    let [notice] = refused.notices.as_slice() else { panic!("{refused:?}") };
    let text = notice.result.as_ref().unwrap_err().display_message();
    assert_eq!(text, "sub-orchestration instance id 'o-1' already exists");

    let ended = refused_starts("o-1", &messages, None, Some(&link(Some(2))), true);
    let text = ended.notices[0].result.as_ref().unwrap_err().display_message();
    assert_eq!(text, "sub-orchestration instance id 'o-1' already exists and is terminal");
}

/// 6.5: two missing execution ids prove nothing.
#[test]
fn a_repeat_of_the_very_call_is_ignored_if_both_sides_know_its_execution() {
    let told = |in_start, recorded| {
        let messages = [child_start(in_start, 4)];
        refused_starts("o-1", &messages, None, Some(&link(recorded)), false).notices.len()
    };
    assert_eq!(told(Some(2), Some(2)), 0);
    assert_eq!(told(Some(3), Some(2)), 1);
    assert_eq!(told(None, None), 1);
    assert_eq!(told(None, Some(2)), 1);
}

#[test]
fn the_accepted_start_and_wake_ups_are_not_duplicates() {
    let mut wake_up = child_start(None, 4);
    if let WorkItem::StartOrchestration { parent_instance, parent_id, execution_id, .. } = &mut wake_up {
        (*parent_instance, *parent_id, *execution_id) = (None, None, 2);
    }
    let messages = [child_start(Some(2), 4), wake_up, child_start(Some(2), 5)];
    let refused = refused_starts("o-1", &messages, Some(&messages[0]), Some(&link(Some(2))), false);
    assert_eq!((refused.duplicates, refused.notices.len()), (1, 1));
}

/// 15.3: messages that are carried along count wherever they are held: in the start, among the first events, in the item.
#[test]
fn carried_messages_count_as_bytes_of_a_round() {
    let here = Successor::Here { version: "1.2.0".into() };
    for (successor, copies) in [(Successor::Elsewhere, 1), (here, 3)] {
        let bytes_with = |data: &str| {
            let mut outcome = continuation(None);
            if let Outcome::ContinuedAsNew(next) = &mut outcome {
                next.carried = vec![("q".into(), data.into())];
            }
            round_bytes(&round(WHO, turn(outcome), &successor, NOW))
        };
        assert_eq!(bytes_with(&"x".repeat(1_000)) - bytes_with(""), copies * 1_000, "{successor:?}");
    }
}
