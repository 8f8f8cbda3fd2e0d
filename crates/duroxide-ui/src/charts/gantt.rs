//! [`Gantt`]: the calls of an execution as bars over time.
//!
//! A history records when a call was made and when its completion arrived. A retried activity is a call for each attempt.

use std::collections::{HashMap, VecDeque};

use duroxide::{Event, EventKind};
use duroxide_core::EventRole;

use crate::format;

/// The width of the drawing, in its own units.
pub(crate) const WIDTH: u64 = 1_000;
/// The minimum width of a visible bar.
const NARROWEST: u64 = 4;

/// The calls of an execution as bars over time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gantt {
    pub(crate) begin: String,
    pub(crate) end: String,
    pub(crate) span: String,
    pub(crate) rows: Vec<Row>,
    /// The number of calls left out because there are too many.
    pub(crate) left_out: usize,
}

/// One call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) event_id: u64,
    /// `activity`, `timer`, `event`, `queue`, `child`, `step` or `cancel`.
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    /// The attempt: 2 or more for a retry.
    pub(crate) attempt: u32,
    pub(crate) state: State,
    pub(crate) x: u64,
    pub(crate) width: u64,
    pub(crate) took: String,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Done,
    Failed,
    GivenUp,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::GivenUp => "given-up",
        }
    }
}

/// A call as it was recorded.
#[derive(Debug)]
struct Call {
    event_id: u64,
    kind: &'static str,
    name: String,
    attempt: u32,
    begin: u64,
    end: Option<u64>,
    state: State,
}

/// The calls of a whole history that the events `shown` made or ended. The bars of open calls end at `now_ms`.
pub(crate) fn gantt(history: &[Event], shown: &[Event], now_ms: u64, rows_max: usize) -> Gantt {
    let calls = calls(history);
    let (from, to) =
        (shown.first().map_or(0, |event| event.event_id), shown.last().map_or(0, |event| event.event_id));
    let begin = shown.first().map_or(now_ms, |event| event.timestamp_ms);
    let is_last_page = history.last().is_some_and(|last| last.event_id == to);
    let has_ended = history.last().is_some_and(Event::is_terminal);
    let end = match is_last_page && !has_ended {
        true => now_ms,
        false => shown.last().map_or(now_ms, |event| event.timestamp_ms),
    };
    let end = end.max(begin + 1);
    let is_shown = |call: &&Call| {
        let ended_before = call.end.is_some_and(|end| end < begin);
        call.event_id <= to && (call.event_id >= from || !ended_before)
    };
    let chosen: Vec<&Call> = calls.iter().filter(is_shown).collect();
    let left_out = chosen.len().saturating_sub(rows_max);
    let rows =
        chosen.into_iter().skip(left_out).map(|call| row(call, begin, end, now_ms, has_ended)).collect();
    let (begin_text, end_text) = (format::clock(begin), format::clock(end));
    Gantt { begin: begin_text, end: end_text, span: format::duration(end - begin), rows, left_out }
}

fn row(call: &Call, begin: u64, end: u64, now_ms: u64, has_ended: bool) -> Row {
    let place = |at: u64| at.clamp(begin, end).saturating_sub(begin).saturating_mul(WIDTH) / (end - begin);
    let call_end = call.end.unwrap_or(if has_ended { end } else { now_ms });
    let x = place(call.begin).min(WIDTH - NARROWEST);
    let width = place(call_end).saturating_sub(x).clamp(NARROWEST, WIDTH - x);
    Row {
        event_id: call.event_id,
        kind: call.kind,
        label: format::one_line(&call.name, 80),
        attempt: call.attempt,
        state: call.state,
        x,
        width,
        took: format::duration(call_end.saturating_sub(call.begin)),
    }
}

/// All calls of a history, in the order of their events.
fn calls(history: &[Event]) -> Vec<Call> {
    let mut calls = Calls::default();
    for event in history {
        match begun(event) {
            Some(call) => calls.begin(call, event),
            None => calls.end(event),
        }
    }
    calls.list
}

/// The calls so far. The maps make the cost of an event independent of the length of the history.
#[derive(Default)]
struct Calls<'a> {
    list: Vec<Call>,
    /// The last call of each activity, by name and input.
    last: HashMap<(&'a str, &'a str), usize>,
    /// Open waits by kind and name, the oldest first.
    open: HashMap<(&'static str, &'a str), VecDeque<usize>>,
}

/// The call that an event records.
fn begun(event: &Event) -> Option<Call> {
    let call = |kind, name: String| Call {
        event_id: event.event_id,
        kind,
        name,
        attempt: 1,
        begin: event.timestamp_ms,
        end: None,
        state: State::Open,
    };
    use EventKind as K;
    match &event.kind {
        K::ActivityScheduled { name, .. } => Some(call("activity", name.clone())),
        K::TimerCreated { fire_at_ms } => {
            Some(call("timer", format!("until {}", format::clock(*fire_at_ms))))
        }
        K::ExternalSubscribed { name } => Some(call("event", name.clone())),
        K::QueueSubscribed { name } => Some(call("queue", name.clone())),
        K::CancellationSubscribed => Some(call("cancel", "a request to cancel".to_owned())),
        K::SubOrchestrationScheduled { name, instance, .. } => {
            Some(call("child", format!("{name} {instance}")))
        }
        K::StepEnded { name, result, .. } => {
            let state = if result.is_ok() { State::Done } else { State::Failed };
            Some(Call { end: Some(event.timestamp_ms), state, ..call("step", name.clone()) })
        }
        K::OrchestrationStarted { .. }
        | K::OrchestrationCompleted { .. }
        | K::OrchestrationFailed { .. }
        | K::OrchestrationContinuedAsNew { .. }
        | K::OrchestrationCancelRequested { .. }
        | K::ActivityCompleted { .. }
        | K::ActivityFailed { .. }
        | K::ActivityCancelRequested { .. }
        | K::TimerFired { .. }
        | K::ExternalEvent { .. }
        | K::ExternalSubscribedCancelled { .. }
        | K::QueueEventDelivered { .. }
        | K::QueueSubscriptionCancelled { .. }
        | K::OrchestrationChained { .. }
        | K::SubOrchestrationCompleted { .. }
        | K::SubOrchestrationFailed { .. }
        | K::SubOrchestrationCancelRequested { .. }
        | K::CustomStatusUpdated { .. }
        | K::KeyValueSet { .. }
        | K::KeyValueCleared { .. }
        | K::KeyValuesCleared => None,
    }
}

impl<'a> Calls<'a> {
    fn begin(&mut self, mut call: Call, event: &'a Event) {
        let at = self.list.len();
        if let EventKind::ActivityScheduled { name, input, .. } = &event.kind {
            // A call of the same activity with the same input after one that failed is its next attempt.
            let before = self.last.insert((name, input), at).and_then(|before| self.list.get(before));
            let retried = before.filter(|before| before.state == State::Failed);
            call.attempt += retried.map_or(0, |before| before.attempt);
        }
        if let Some(wait) = waited_for(&event.kind) {
            self.open.entry(wait).or_default().push_back(at);
        }
        self.list.push(call);
    }

    /// Ends the call that an event completes or gives up.
    fn end(&mut self, event: &'a Event) {
        let Some(state) = ended(&event.kind) else { return };
        let at = match event.source_event_id {
            Some(source) => self.list.binary_search_by_key(&source, |call| call.event_id).ok(),
            None => self.oldest_open(&event.kind),
        };
        let call = at.and_then(|at| self.list.get_mut(at)).filter(|call| call.end.is_none());
        if let Some(call) = call {
            call.end = Some(event.timestamp_ms);
            call.state = state;
        }
    }

    /// External events and queue messages complete the oldest open wait for their name.
    fn oldest_open(&mut self, kind: &'a EventKind) -> Option<usize> {
        let wait = if let EventKind::ExternalEvent { name, .. } = kind {
            ("event", name.as_str())
        } else if let EventKind::QueueEventDelivered { name, .. } = kind {
            ("queue", name.as_str())
        } else {
            ("cancel", "")
        };
        let open = self.open.get_mut(&wait)?;
        while let Some(at) = open.pop_front() {
            // A wait that was given up is no longer open.
            if self.list.get(at).is_some_and(|call| call.end.is_none()) {
                return Some(at);
            }
        }
        None
    }
}

/// Kind and name of a wait.
fn waited_for(kind: &EventKind) -> Option<(&'static str, &str)> {
    if let EventKind::ExternalSubscribed { name } = kind {
        return Some(("event", name));
    }
    if let EventKind::QueueSubscribed { name } = kind {
        return Some(("queue", name));
    }
    matches!(kind, EventKind::CancellationSubscribed).then_some(("cancel", ""))
}

/// The final state of the call that an event completes or gives up.
fn ended(kind: &EventKind) -> Option<State> {
    match kind.role() {
        EventRole::GivenUp { .. } => Some(State::GivenUp),
        EventRole::Completion(_) => {
            let failed =
                matches!(kind, EventKind::ActivityFailed { .. } | EventKind::SubOrchestrationFailed { .. });
            Some(if failed { State::Failed } else { State::Done })
        }
        EventRole::Message | EventRole::CancelRequest => Some(State::Done),
        EventRole::Start
        | EventRole::End
        | EventRole::Call(_)
        | EventRole::DetachedStart
        | EventRole::CustomStatus(_)
        | EventRole::KeyValues(_) => None,
    }
}

#[cfg(test)]
mod tests;
