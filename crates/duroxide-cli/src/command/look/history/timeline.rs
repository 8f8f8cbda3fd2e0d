//! [`Timeline`]: events as sentences, each completion with the name of its call and how long the call took.

use std::collections::BTreeMap;

use duroxide::{ErrorDetails, Event, EventKind};
use duroxide_core::EventRole;

use crate::{
    output::{Line, Output, Tone, clean},
    time::{age, iso, short},
};

/// Events of one execution, in order.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// Calls by event id: the name of the call, and when it was made.
    calls: BTreeMap<u64, (String, u64)>,
}

impl Timeline {
    /// The line of the next event.
    pub(super) fn add(&mut self, event: &Event, out: &Output) -> Line {
        let (tone, text) = self.describe(event, out);
        if let Some(call) = call_of(&event.kind) {
            self.calls.insert(event.event_id, (call, event.timestamp_ms));
        }
        let prefix = format!("{:>5}  {}  ", event.event_id, iso(event.timestamp_ms));
        Line::toned(Tone::Dim, prefix).and(tone, text)
    }

    fn describe(&self, event: &Event, out: &Output) -> (Tone, String) {
        use EventKind as K;
        let payload = |text: &str| out.payload(text);
        let call = || self.call(event);
        let tone = tone_of(&event.kind);
        let text = match &event.kind {
            K::OrchestrationStarted { name, version, input, parent_instance, .. } => {
                let by = parent_instance.as_ref().map(|parent| format!(" by {}", clean(parent)));
                let (name, by) = (clean(name), by.unwrap_or_default());
                format!("{name} {} started{by}: {}", clean(version), payload(input))
            }
            K::OrchestrationCompleted { output } => format!("completed: {}", payload(output)),
            K::OrchestrationFailed { details } => format!("failed: {}", error(details, out)),
            K::OrchestrationContinuedAsNew { input } => format!("continued as new: {}", payload(input)),
            K::OrchestrationCancelRequested { reason } => {
                format!("cancellation requested: {}", payload(reason))
            }
            K::CancellationSubscribed => "subscribes to cancellation".to_owned(),
            K::ActivityScheduled { name, input, session_id, tag } => {
                let option = |word: &str, value: &Option<String>| {
                    value.as_ref().map(|value| format!(", {word} {}", clean(value))).unwrap_or_default()
                };
                let options = option("session", session_id) + &option("tag", tag);
                format!("activity {}{options} scheduled: {}", clean(name), payload(input))
            }
            K::ActivityCompleted { result } | K::SubOrchestrationCompleted { result } => {
                format!("{} returned: {}", call(), payload(result))
            }
            K::ActivityFailed { details } | K::SubOrchestrationFailed { details } => {
                format!("{} failed: {}", call(), error(details, out))
            }
            K::ActivityCancelRequested { reason }
            | K::SubOrchestrationCancelRequested { reason }
            | K::ExternalSubscribedCancelled { reason }
            | K::QueueSubscriptionCancelled { reason } => format!("{} given up: {}", call(), payload(reason)),
            K::StepEnded { name, result, .. } => match result {
                Ok(result) => format!("step {} returned: {}", clean(name), payload(result)),
                Err(details) => format!("step {} failed: {}", clean(name), error(details, out)),
            },
            K::TimerCreated { fire_at_ms } => {
                let wait = age(event.timestamp_ms, *fire_at_ms);
                format!("timer of {wait} created, due {}", iso(*fire_at_ms))
            }
            K::TimerFired { .. } => format!("{} fired", call()),
            K::ExternalSubscribed { name } => format!("waits for event {}", clean(name)),
            K::ExternalEvent { name, data } => format!("event {} arrived: {}", clean(name), payload(data)),
            K::QueueSubscribed { name } => format!("waits for a message of queue {}", clean(name)),
            K::QueueEventDelivered { name, data } => {
                format!("message of queue {} arrived: {}", clean(name), payload(data))
            }
            K::OrchestrationChained { name, instance, input } => {
                format!("started {} as {}, detached: {}", clean(name), clean(instance), payload(input))
            }
            K::SubOrchestrationScheduled { name, instance, input } => {
                format!("child {} as {} scheduled: {}", clean(name), clean(instance), payload(input))
            }
            K::CustomStatusUpdated { status: Some(status) } => format!("custom status: {}", payload(status)),
            K::CustomStatusUpdated { status: None } => "custom status reset".to_owned(),
            K::KeyValueSet { key, value, .. } => format!("{} = {}", clean(key), payload(value)),
            K::KeyValueCleared { key } => format!("key {} removed", clean(key)),
            K::KeyValuesCleared => "all keys removed".to_owned(),
        };
        (tone, text)
    }

    /// `activity Charge (of 2, 1.2 s)`: the call that an event refers to, its event id, and how long ago it was made.
    fn call(&self, event: &Event) -> String {
        let Some(id) = event.source_event_id else { return "a call".to_owned() };
        match self.calls.get(&id) {
            Some((call, at)) => {
                let took = std::time::Duration::from_millis(event.timestamp_ms.saturating_sub(*at));
                format!("{call} (of {id}, {})", short(took))
            }
            None => format!("call {id}"),
        }
    }
}

fn tone_of(kind: &EventKind) -> Tone {
    use EventKind as K;
    let is_failure = matches!(
        kind,
        K::OrchestrationFailed { .. }
            | K::ActivityFailed { .. }
            | K::SubOrchestrationFailed { .. }
            | K::StepEnded { result: Err(_), .. }
    );
    match kind.role() {
        _ if is_failure => Tone::Bad,
        EventRole::Start => Tone::Strong,
        EventRole::End => Tone::Good,
        EventRole::CancelRequest | EventRole::GivenUp { .. } => Tone::Warn,
        EventRole::Call(_)
        | EventRole::Completion(_)
        | EventRole::Message
        | EventRole::DetachedStart
        | EventRole::CustomStatus(_)
        | EventRole::KeyValues(_) => Tone::Plain,
    }
}

/// The name of the call that an event makes and a later event completes.
fn call_of(kind: &EventKind) -> Option<String> {
    if let EventKind::ActivityScheduled { name, .. } = kind {
        return Some(format!("activity {}", clean(name)));
    }
    if let EventKind::SubOrchestrationScheduled { name, .. } = kind {
        return Some(format!("child {}", clean(name)));
    }
    if let EventKind::ExternalSubscribed { name } = kind {
        return Some(format!("the wait for event {}", clean(name)));
    }
    if let EventKind::QueueSubscribed { name } = kind {
        return Some(format!("the wait for queue {}", clean(name)));
    }
    let EventKind::TimerCreated { .. } = kind else { return None };
    Some("timer".to_owned())
}

fn error(details: &ErrorDetails, out: &Output) -> String {
    out.payload(&details.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    const BEGAN: u64 = 1_700_000_000_000;

    fn event(event_id: u64, source_event_id: Option<u64>, after_ms: u64, kind: EventKind) -> Event {
        Event {
            event_id,
            source_event_id,
            instance_id: "order-1".to_owned(),
            execution_id: 1,
            timestamp_ms: BEGAN + after_ms,
            duroxide_version: "0.5.0".to_owned(),
            kind,
        }
    }

    fn lines(events: &[Event]) -> Vec<String> {
        let out = Output::new(Format::Table, false);
        let mut timeline = Timeline::default();
        let line = |event| timeline.add(event, &out).render(false);
        events.iter().map(line).map(|line| line[7..].to_owned()).collect()
    }

    fn owned(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn completions_name_their_calls_and_how_long_those_took() {
        let scheduled = EventKind::ActivityScheduled {
            name: owned("Charge"),
            input: owned("60"),
            session_id: None,
            tag: Some(owned("gpu")),
        };
        let events = [
            event(2, None, 0, scheduled),
            event(3, None, 10, EventKind::TimerCreated { fire_at_ms: BEGAN + 3_600_010 }),
            event(4, Some(2), 1_200, EventKind::ActivityCompleted { result: owned("paid") }),
            event(5, Some(3), 3_600_020, EventKind::TimerFired { fire_at_ms: BEGAN + 3_600_010 }),
        ];
        let expected = [
            "2023-11-14T22:13:20.000Z  activity Charge, tag gpu scheduled: 60",
            "2023-11-14T22:13:20.010Z  timer of 1 h created, due 2023-11-14T23:13:20.010Z",
            "2023-11-14T22:13:21.200Z  activity Charge (of 2, 1.2 s) returned: paid",
            "2023-11-14T23:13:20.020Z  timer (of 3, 1 h) fired",
        ];
        assert_eq!(lines(&events), expected);
    }

    #[test]
    fn failures_say_why() {
        let details = ErrorDetails::activity_failed("no money");
        let events = [
            event(2, Some(7), 0, EventKind::ActivityFailed { details: details.clone() }),
            event(3, None, 0, EventKind::OrchestrationFailed { details }),
        ];
        let lines = lines(&events);
        assert!(lines[0].ends_with("call 7 failed: no money"), "{lines:?}");
        assert!(lines[1].ends_with("failed: no money"), "{lines:?}");
    }

    #[test]
    fn payloads_are_folded_and_harmless() {
        let long = format!("\x1b[2J{}", "x".repeat(1_000));
        let line = &lines(&[event(2, None, 0, EventKind::OrchestrationCompleted { output: long })])[0];
        assert!(line.contains("\\u{1b}[2Jxxx") && line.ends_with("… (1004 bytes)"), "{line}");
    }

    #[test]
    fn a_wait_that_was_given_up_is_named() {
        let events = [
            event(2, None, 0, EventKind::ExternalSubscribed { name: owned("Approval") }),
            event(3, Some(2), 5, EventKind::ExternalSubscribedCancelled { reason: owned("dropped") }),
        ];
        assert!(lines(&events)[1].ends_with("the wait for event Approval (of 2, 5 ms) given up: dropped"));
    }
}
