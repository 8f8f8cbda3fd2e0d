//! Compares actions with recorded events (4.1, 4.5).

use crate::{
    Action, EventKind, SUB_ORCH_AUTO_PREFIX, build_child_instance_id, ids::auto_child_suffix,
    is_auto_generated_sub_orch_id,
};

/// The event that records an action; `None` for a continue-as-new, which is recorded by its terminal event.
pub(crate) fn event_for(action: &Action, execution_id: u64, event_id: u64) -> Option<EventKind> {
    Some(match action {
        Action::CallActivity { name, input, session_id, tag, .. } => EventKind::ActivityScheduled {
            name: name.clone(),
            input: input.clone(),
            session_id: session_id.clone(),
            tag: tag.clone(),
        },
        Action::CreateTimer { fire_at_ms, .. } => EventKind::TimerCreated { fire_at_ms: *fire_at_ms },
        Action::WaitExternal { name, .. } => EventKind::ExternalSubscribed { name: name.clone() },
        Action::AwaitCancellation => EventKind::CancellationSubscribed,
        Action::DequeueEvent { name, .. } => EventKind::QueueSubscribed { name: name.clone() },
        Action::StartSubOrchestration { name, instance, input, .. } => EventKind::SubOrchestrationScheduled {
            name: name.clone(),
            instance: if instance.is_empty() {
                auto_child_suffix(execution_id, event_id)
            } else {
                instance.clone()
            },
            input: input.clone(),
        },
        Action::StartOrchestrationDetached { name, instance, input, .. } => EventKind::OrchestrationChained {
            name: name.clone(),
            instance: instance.clone(),
            input: input.clone(),
        },
        Action::UpdateCustomStatus { status } => EventKind::CustomStatusUpdated { status: status.clone() },
        Action::SetKeyValue { key, value, last_updated_at_ms } => EventKind::KeyValueSet {
            key: key.clone(),
            value: value.clone(),
            last_updated_at_ms: *last_updated_at_ms,
        },
        Action::ClearKeyValue { key } => EventKind::KeyValueCleared { key: key.clone() },
        Action::ClearKeyValues => EventKind::KeyValuesCleared,
        Action::ContinueAsNew { .. } => return None,
    })
}

/// Checks that the code's action is the recorded one. The error names both.
pub(crate) fn agree(action: Option<&Action>, kind: &EventKind, instance: &str) -> Result<(), String> {
    let Some(action) = action else {
        let is_detached = matches!(kind, EventKind::OrchestrationChained { .. });
        let what = if is_detached { "OrchestrationChained" } else { "schedule" };
        return Err(format!("history {what} but no emitted action"));
    };
    if same(action, kind, instance) {
        return Ok(());
    }
    Err(format!("{} mismatch: action={action:?} vs event={kind:?}", label(kind)))
}

/// How an error names a recorded event that differs from the code's action.
fn label(kind: &EventKind) -> &'static str {
    use EventKind as E;
    match kind {
        E::CustomStatusUpdated { .. } => "custom status",
        E::KeyValueSet { .. } => "kv set",
        E::KeyValueCleared { .. } => "kv clear",
        E::KeyValuesCleared => "kv clear_all",
        E::ActivityScheduled { .. }
        | E::TimerCreated { .. }
        | E::ExternalSubscribed { .. }
        | E::CancellationSubscribed
        | E::QueueSubscribed { .. }
        | E::SubOrchestrationScheduled { .. }
        | E::OrchestrationChained { .. }
        // These are recorded without an action, so no action can differ from them.
        | E::OrchestrationStarted { .. }
        | E::OrchestrationCompleted { .. }
        | E::OrchestrationFailed { .. }
        | E::OrchestrationContinuedAsNew { .. }
        | E::OrchestrationCancelRequested { .. }
        | E::ActivityCompleted { .. }
        | E::ActivityFailed { .. }
        | E::ActivityCancelRequested { .. }
        | E::TimerFired { .. }
        | E::StepEnded { .. }
        | E::ExternalEvent { .. }
        | E::ExternalSubscribedCancelled { .. }
        | E::QueueEventDelivered { .. }
        | E::QueueSubscriptionCancelled { .. }
        | E::SubOrchestrationCompleted { .. }
        | E::SubOrchestrationFailed { .. }
        | E::SubOrchestrationCancelRequested { .. } => "schedule",
    }
}

fn same(action: &Action, kind: &EventKind, instance: &str) -> bool {
    use EventKind as E;
    match action {
        Action::CallActivity { name, input, session_id, tag, .. } => matches!(
            kind,
            E::ActivityScheduled { name: name2, input: input2, session_id: session2, tag: tag2 }
                if name == name2 && input == input2 && session_id == session2 && tag == tag2
        ),
        Action::CreateTimer { .. } => matches!(kind, E::TimerCreated { .. }),
        Action::WaitExternal { name, .. } => {
            matches!(kind, E::ExternalSubscribed { name: name2 } if name == name2)
        }
        Action::AwaitCancellation => matches!(kind, E::CancellationSubscribed),
        Action::DequeueEvent { name, .. } => {
            matches!(kind, E::QueueSubscribed { name: name2 } if name == name2)
        }
        Action::StartSubOrchestration { name, instance: child, input, .. } => matches!(
            kind,
            E::SubOrchestrationScheduled { name: name2, instance: child2, input: input2 }
                if name == name2 && input == input2 && same_child(child, child2, instance)
        ),
        Action::StartOrchestrationDetached { name, instance: other, input, .. } => matches!(
            kind,
            E::OrchestrationChained { name: name2, instance: other2, input: input2 }
                if name == name2 && input == input2 && other == other2
        ),
        Action::UpdateCustomStatus { .. } => matches!(kind, E::CustomStatusUpdated { .. }),
        Action::SetKeyValue { key, value, .. } => {
            matches!(kind, E::KeyValueSet { key: key2, value: value2, .. } if key == key2 && value == value2)
        }
        Action::ClearKeyValue { key } => matches!(kind, E::KeyValueCleared { key: key2 } if key == key2),
        Action::ClearKeyValues => matches!(kind, E::KeyValuesCleared),
        // Recorded by the terminal event, which is not compared with an action.
        Action::ContinueAsNew { .. } => false,
    }
}

/// An explicit id must be the recorded one. Without an id the recorded one must be automatic, as suffix or in full.
fn same_child(asked: &str, recorded: &str, parent: &str) -> bool {
    if !asked.is_empty() {
        return asked == recorded;
    }
    is_auto_generated_sub_orch_id(recorded)
        || recorded.starts_with(&build_child_instance_id(parent, SUB_ORCH_AUTO_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(instance: &str) -> (Action, EventKind) {
        let action = Action::StartSubOrchestration {
            scheduling_event_id: 0,
            name: "c".into(),
            version: None,
            instance: instance.into(),
            input: "x".into(),
        };
        let event = event_for(&action, 1, 4).unwrap();
        (action, event)
    }

    #[test]
    fn an_action_agrees_with_its_own_event() {
        let (action, event) = child("");
        assert_eq!(agree(Some(&action), &event, "p"), Ok(()));
    }

    /// B11 (4)
    #[test]
    fn automatic_and_explicit_children_do_not_match_each_other() {
        let (automatic, automatic_event) = child("");
        let (explicit, explicit_event) = child("mine");
        assert!(agree(Some(&automatic), &explicit_event, "p").is_err());
        assert!(agree(Some(&explicit), &automatic_event, "p").is_err());
    }

    fn activity(name: &str, input: &str, session: Option<&str>, tag: Option<&str>) -> Action {
        Action::CallActivity {
            scheduling_event_id: 0,
            name: name.into(),
            input: input.into(),
            session_id: session.map(str::to_owned),
            tag: tag.map(str::to_owned),
        }
    }

    fn child_of(name: &str, instance: &str, input: &str) -> Action {
        let (name, instance, input) = (name.into(), instance.into(), input.into());
        Action::StartSubOrchestration { scheduling_event_id: 0, name, version: None, instance, input }
    }

    fn detached(name: &str, instance: &str, input: &str) -> Action {
        let (name, instance, input) = (name.into(), instance.into(), input.into());
        Action::StartOrchestrationDetached { scheduling_event_id: 0, name, version: None, instance, input }
    }

    fn set(key: &str, value: &str, last_updated_at_ms: u64) -> Action {
        Action::SetKeyValue { key: key.into(), value: value.into(), last_updated_at_ms }
    }

    /// 4.1: each compared field alone makes a difference.
    #[test]
    fn every_compared_field_is_compared() {
        let wait = |name: &str| Action::WaitExternal { scheduling_event_id: 0, name: name.into() };
        let read = |name: &str| Action::DequeueEvent { scheduling_event_id: 0, name: name.into() };
        let clear = |key: &str| Action::ClearKeyValue { key: key.into() };
        let differing = [
            vec![
                activity("a", "i", Some("s"), Some("t")),
                activity("b", "i", Some("s"), Some("t")),
                activity("a", "j", Some("s"), Some("t")),
                activity("a", "i", None, Some("t")),
                activity("a", "i", Some("s"), None),
            ],
            vec![
                child_of("c", "x", "i"),
                child_of("d", "x", "i"),
                child_of("c", "y", "i"),
                child_of("c", "x", "j"),
            ],
            vec![
                detached("c", "x", "i"),
                detached("d", "x", "i"),
                detached("c", "y", "i"),
                detached("c", "x", "j"),
            ],
            vec![set("k", "v", 1), set("l", "v", 1), set("k", "w", 1)],
            vec![wait("w"), wait("v")],
            vec![read("q"), read("p"), wait("q")],
            vec![clear("k"), clear("l"), Action::ClearKeyValues],
        ];
        for actions in differing {
            for (position, action) in actions.iter().enumerate() {
                let event = event_for(action, 1, 4).unwrap();
                for (other_position, other) in actions.iter().enumerate() {
                    let agrees = agree(Some(other), &event, "p").is_ok();
                    assert_eq!(agrees, position == other_position, "{other:?} against {event:?}");
                }
            }
        }
    }

    /// 4.1: times and the text of a status are not compared.
    #[test]
    fn fields_that_are_not_compared_make_no_difference() {
        let timer = |fire_at_ms| Action::CreateTimer { scheduling_event_id: 0, fire_at_ms };
        let status = |status: Option<&str>| Action::UpdateCustomStatus { status: status.map(str::to_owned) };
        let pairs = [
            (timer(1), timer(2)),
            (set("k", "v", 1), set("k", "v", 2)),
            (status(Some("s")), status(None)),
            (Action::ClearKeyValues, Action::ClearKeyValues),
        ];
        for (action, other) in pairs {
            assert_eq!(agree(Some(&other), &event_for(&action, 1, 4).unwrap(), "p"), Ok(()));
        }
    }

    /// 4.1: an automatic id is recorded as suffix, or in full with the parent's own id; that of another parent is not.
    #[test]
    fn an_automatic_id_may_be_recorded_in_full() {
        let recorded = |instance: &str| EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: instance.into(),
            input: "x".into(),
        };
        let (automatic, _) = child("");
        for (instance, agrees) in
            [("sub::4", true), ("p::sub::4", true), ("q::sub::4", false), ("p::other", false), ("p", false)]
        {
            assert_eq!(agree(Some(&automatic), &recorded(instance), "p").is_ok(), agrees, "{instance}");
        }
    }

    /// 4.5
    #[test]
    fn a_missing_action_is_told_apart_by_the_event() {
        let chained = event_for(&detached("c", "x", ""), 1, 2).unwrap();
        assert_eq!(
            agree(None, &chained, "p").unwrap_err(),
            "history OrchestrationChained but no emitted action"
        );
        let timer = EventKind::TimerCreated { fire_at_ms: 1 };
        assert_eq!(agree(None, &timer, "p").unwrap_err(), "history schedule but no emitted action");
        let wrong = Action::ClearKeyValues;
        for (kind, text) in [
            (EventKind::CustomStatusUpdated { status: None }, "custom status mismatch: "),
            (event_for(&set("k", "v", 1), 1, 2).unwrap(), "kv set mismatch: "),
            (EventKind::KeyValueCleared { key: "k".into() }, "kv clear mismatch: "),
            (chained, "schedule mismatch: "),
        ] {
            assert!(agree(Some(&wrong), &kind, "p").unwrap_err().starts_with(text));
        }
        let text = agree(Some(&child("").0), &EventKind::KeyValuesCleared, "p").unwrap_err();
        assert!(text.starts_with("kv clear_all mismatch: "));
    }

    #[test]
    fn a_mismatch_shows_both_sides() {
        let (action, _) = child("mine");
        let text = agree(Some(&action), &EventKind::TimerCreated { fire_at_ms: 9 }, "p").unwrap_err();
        assert!(text.starts_with("schedule mismatch: action=StartSubOrchestration"), "{text}");
        assert!(text.contains("vs event=TimerCreated { fire_at_ms: 9 }"), "{text}");
    }
}
