//! Events as sentences with their payloads.

use std::borrow::Cow;

use duroxide::{ErrorDetails, Event, EventKind};

use crate::{
    PayloadKind,
    format::{self, ShownPayload},
    redact::Redact,
};

/// An event as it is shown.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) event_id: u64,
    /// The event id of the call that this event completes or gives up.
    pub(crate) source: Option<u64>,
    pub(crate) at: String,
    /// The time since the event before; empty if it is below [`GAP_MS`].
    pub(crate) gap: String,
    pub(crate) kind: &'static str,
    pub(crate) class: &'static str,
    pub(crate) text: String,
    pub(crate) payloads: Vec<(&'static str, ShownPayload)>,
    pub(crate) made_by: String,
}

/// Shorter gaps between events are not shown.
const GAP_MS: u64 = 100;

/// Describes an event of a history.
pub(crate) fn describe(history: &[Event], event: &Event, redact: &Redact, bytes_max: usize) -> Described {
    let before = at(history, event.event_id.saturating_sub(1));
    let gap = before.map_or(0, |before| event.timestamp_ms.saturating_sub(before.timestamp_ms));
    let Summary { class, text, payloads } = summary(&event.kind);
    let owner = owner(history, event);
    let shown = |payload: RawPayload<'_>| {
        let name = if payload.name.is_empty() { owner } else { payload.name };
        let text = redact.shown(&event.instance_id, payload.kind, name, &payload.text);
        (payload.label, ShownPayload::new(&text, bytes_max))
    };
    Described {
        event_id: event.event_id,
        source: event.source_event_id,
        at: format::clock(event.timestamp_ms),
        gap: if gap >= GAP_MS { format!("+{}", format::duration(gap)) } else { String::new() },
        kind: event.kind.wire_name(),
        class,
        text,
        payloads: payloads.into_iter().map(shown).collect(),
        made_by: event.duroxide_version.clone(),
    }
}

/// The event with this id. Events are numbered from 1 without gaps.
fn at(history: &[Event], event_id: u64) -> Option<&Event> {
    history.get(usize::try_from(event_id).ok()?.checked_sub(1)?)
}

/// The owner of a payload whose event does not name one: the activity or child that the event completes, or else the
/// orchestration.
fn owner<'a>(history: &'a [Event], event: &Event) -> &'a str {
    let called =
        event.source_event_id.and_then(|source| at(history, source)).and_then(|call| name_of(&call.kind));
    called.or_else(|| history.first().and_then(|first| name_of(&first.kind))).unwrap_or_default()
}

fn name_of(kind: &EventKind) -> Option<&str> {
    if let EventKind::OrchestrationStarted { name, .. }
    | EventKind::ActivityScheduled { name, .. }
    | EventKind::SubOrchestrationScheduled { name, .. } = kind
    {
        return Some(name);
    }
    None
}

/// The line of an event and its payloads.
struct Summary<'a> {
    class: &'static str,
    text: String,
    payloads: Vec<RawPayload<'a>>,
}

/// A payload as it is recorded. If the name is empty, [`owner`] decides.
struct RawPayload<'a> {
    label: &'static str,
    kind: PayloadKind,
    name: &'a str,
    text: Cow<'a, str>,
}

fn payload<'a>(label: &'static str, kind: PayloadKind, name: &'a str, text: &'a str) -> RawPayload<'a> {
    RawPayload { label, kind, name, text: text.into() }
}

fn error<'a>(name: &'a str, details: &ErrorDetails) -> Vec<RawPayload<'a>> {
    vec![RawPayload {
        label: "error",
        kind: PayloadKind::Error,
        name,
        text: details.display_message().into(),
    }]
}

fn plain(class: &'static str, text: impl Into<String>) -> Summary<'static> {
    Summary { class, text: text.into(), payloads: Vec::new() }
}

fn with<'a>(class: &'static str, text: impl Into<String>, payloads: Vec<RawPayload<'a>>) -> Summary<'a> {
    Summary { class, text: text.into(), payloads }
}

fn summary(kind: &EventKind) -> Summary<'_> {
    use EventKind as K;
    use PayloadKind as P;
    match kind {
        K::OrchestrationStarted { name, version, input, parent_instance, .. } => {
            let parent =
                parent_instance.as_ref().map(|parent| format!(", called by {parent}")).unwrap_or_default();
            with(
                "start",
                format!("{name} {version} started{parent}"),
                vec![payload("input", P::Input, name, input)],
            )
        }
        K::OrchestrationCompleted { output } => {
            with("done", "completed", vec![payload("output", P::Output, "", output)])
        }
        K::OrchestrationFailed { details } => with("failed", "failed", error("", details)),
        K::OrchestrationContinuedAsNew { input } => {
            with("start", "continues as new", vec![payload("input", P::Input, "", input)])
        }
        K::OrchestrationCancelRequested { reason } => {
            with("failed", "cancellation requested", vec![payload("reason", P::Error, "", reason)])
        }
        K::CancellationSubscribed => plain("wait", "waits for a request to cancel"),
        K::ActivityScheduled { .. }
        | K::ActivityCompleted { .. }
        | K::ActivityFailed { .. }
        | K::ActivityCancelRequested { .. } => activity(kind),
        K::StepEnded { name, result: Ok(result), .. } => {
            with("done", format!("step {name} ended"), vec![payload("result", P::Output, name, result)])
        }
        K::StepEnded { name, result: Err(details), .. } => {
            with("failed", format!("step {name} failed"), error(name, details))
        }
        K::TimerCreated { fire_at_ms } => {
            plain("wait", format!("timer until {} UTC", format::time(*fire_at_ms)))
        }
        K::TimerFired { .. } => plain("done", "timer fired"),
        K::ExternalSubscribed { name } => plain("wait", format!("waits for event {name}")),
        K::ExternalEvent { name, data } => {
            with("message", format!("event {name} arrived"), vec![payload("data", P::Message, name, data)])
        }
        K::ExternalSubscribedCancelled { .. } => plain("given-up", "gave the wait up"),
        K::QueueSubscribed { name } => plain("wait", format!("reads from queue {name}")),
        K::QueueEventDelivered { name, data } => {
            with("message", format!("message of queue {name}"), vec![payload("data", P::Message, name, data)])
        }
        K::QueueSubscriptionCancelled { .. } => plain("given-up", "gave the read up"),
        K::OrchestrationChained { .. }
        | K::SubOrchestrationScheduled { .. }
        | K::SubOrchestrationCompleted { .. }
        | K::SubOrchestrationFailed { .. }
        | K::SubOrchestrationCancelRequested { .. } => other_instance(kind),
        K::CustomStatusUpdated { status: Some(status) } => {
            with("state", "custom status set", vec![payload("status", P::CustomStatus, "", status)])
        }
        K::CustomStatusUpdated { status: None } => plain("state", "custom status reset"),
        K::KeyValueSet { key, value, .. } => {
            with("state", format!("key {key} set"), vec![payload("value", P::KeyValue, key, value)])
        }
        K::KeyValueCleared { key } => plain("state", format!("key {key} removed")),
        K::KeyValuesCleared => plain("state", "all keys removed"),
    }
}

fn activity(kind: &EventKind) -> Summary<'_> {
    use PayloadKind as P;
    if let EventKind::ActivityScheduled { name, input, session_id, tag } = kind {
        let tag = tag.as_ref().map(|tag| format!(", tag {tag}")).unwrap_or_default();
        let session = session_id.as_ref().map(|session| format!(", session {session}")).unwrap_or_default();
        let text = format!("calls activity {name}{tag}{session}");
        return with("call", text, vec![payload("input", P::Input, name, input)]);
    }
    if let EventKind::ActivityCompleted { result } = kind {
        return with("done", "activity completed", vec![payload("result", P::Output, "", result)]);
    }
    if let EventKind::ActivityFailed { details } = kind {
        return with("failed", "activity failed", error("", details));
    }
    plain("given-up", "asked the activity to stop")
}

fn other_instance(kind: &EventKind) -> Summary<'_> {
    use PayloadKind as P;
    if let EventKind::SubOrchestrationScheduled { name, instance, input } = kind {
        let text = format!("calls child {name} as {instance}");
        return with("call", text, vec![payload("input", P::Input, name, input)]);
    }
    if let EventKind::OrchestrationChained { name, instance, input } = kind {
        let text = format!("starts {name} as {instance}, without waiting for it");
        return with("call", text, vec![payload("input", P::Input, name, input)]);
    }
    if let EventKind::SubOrchestrationCompleted { result } = kind {
        return with("done", "child completed", vec![payload("result", P::Output, "", result)]);
    }
    if let EventKind::SubOrchestrationFailed { details } = kind {
        return with("failed", "child failed", error("", details));
    }
    plain("given-up", "asked the child to end")
}
