//! [`HistoryCheck`]: the rules of every history, checked one event at a time, before a commit and after a read.

mod cancellation;

use std::{collections::BTreeMap, fmt};

pub use cancellation::cancels;

use self::cancellation::Cancellation;
use super::conclude::CANCEL_AND_WAIT;
use crate::{CallKind, Event, EventKind, EventRole, INITIAL_EVENT_ID};

/// An incremental check of one execution's history, and the state of its schedules.
///
/// The check keeps no events. Each [`push`](Self::push) costs O(log n), so a turn pays only for its new events.
#[derive(Debug, Clone, Default)]
pub struct HistoryCheck {
    last_event_id: u64,
    ended: bool,
    schedules: BTreeMap<u64, Schedule>,
    cancellation: Cancellation,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) kind: CallKind,
    pub(crate) completed: bool,
    /// Whether a breadcrumb records that the code gave the call up.
    pub(crate) cancelled: bool,
}

/// A rule that a history breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryViolation {
    /// I01: the first event is not OrchestrationStarted, or another one is.
    MisplacedStart,
    /// I03: ids are not 1, 2, 3 …
    NotContiguous {
        /// The next id in order.
        expected: u64,
        /// The id of the event.
        found: u64,
    },
    /// I02: an event after the terminal one.
    AfterEnd {
        /// The id of the event.
        event_id: u64,
    },
    /// I04, I05: a completion of something that is not scheduled, or has one already.
    NotOpen {
        /// The id of the schedule it names.
        schedule_id: u64,
    },
    /// I04: a completion of a schedule of another kind.
    WrongKind {
        /// The kind the completion is for.
        expected: &'static str,
        /// The id of the schedule it names.
        schedule_id: u64,
    },
}

impl fmt::Display for HistoryViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MisplacedStart => {
                f.write_str("corrupted history: first event must be OrchestrationStarted")
            }
            Self::NotContiguous { expected, found } => {
                write!(f, "corrupted history: expected event {expected}, found {found}")
            }
            Self::AfterEnd { event_id } => {
                write!(f, "corrupted history: event {event_id} follows the terminal event")
            }
            Self::NotOpen { .. } => f.write_str("completion without open schedule"),
            Self::WrongKind { expected, .. } => write!(f, "completion kind mismatch: expected {expected}"),
        }
    }
}

impl std::error::Error for HistoryViolation {}

impl HistoryCheck {
    /// A check of an empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The first rule that the event breaks. The event still counts, so that the check can go on.
    pub fn push(&mut self, event: &Event) -> Result<(), HistoryViolation> {
        let order = self.check_order(event);
        self.last_event_id = event.event_id;
        self.ended |= event.is_terminal();
        order.and(self.take(event))
    }

    /// The last event taken; 0 if there is none.
    pub fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// Whether the recorded requests to cancel end the execution. They do not if its code has subscribed to them.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancellation.ends()
    }

    /// Whether the execution has ended.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    fn check_order(&self, event: &Event) -> Result<(), HistoryViolation> {
        let is_start = matches!(event.kind, EventKind::OrchestrationStarted { .. });
        let expected = self.last_event_id + 1;
        if is_start != (self.last_event_id < INITIAL_EVENT_ID) {
            Err(HistoryViolation::MisplacedStart)
        } else if event.event_id != expected {
            Err(HistoryViolation::NotContiguous { expected, found: event.event_id })
        } else if self.ended {
            Err(HistoryViolation::AfterEnd { event_id: event.event_id })
        } else {
            Ok(())
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), HistoryViolation> {
        self.cancellation.push(event);
        match event.kind.role() {
            EventRole::Call(kind) => self.open(event.event_id, kind),
            EventRole::Completion(kind) => return self.complete(event.source_event_id, kind),
            // Code still waits for the activity that it asked to stop, so the schedule stays open.
            EventRole::GivenUp { call: CallKind::Activity, reason: CANCEL_AND_WAIT } => {}
            EventRole::GivenUp { .. } => self.cancel(event.source_event_id),
            EventRole::Start
            | EventRole::End
            | EventRole::CancelRequest
            | EventRole::Message
            | EventRole::DetachedStart
            | EventRole::CustomStatus(_)
            | EventRole::KeyValues(_) => {}
        }
        Ok(())
    }

    fn open(&mut self, event_id: u64, kind: CallKind) {
        self.schedules.insert(event_id, Schedule { kind, completed: false, cancelled: false });
    }

    fn complete(&mut self, source: Option<u64>, kind: CallKind) -> Result<(), HistoryViolation> {
        let schedule_id = source.unwrap_or_default();
        match self.schedules.get_mut(&schedule_id) {
            Some(schedule) if schedule.kind != kind => {
                Err(HistoryViolation::WrongKind { expected: kind.label(), schedule_id })
            }
            Some(schedule) if !schedule.completed => {
                schedule.completed = true;
                Ok(())
            }
            _ => Err(HistoryViolation::NotOpen { schedule_id }),
        }
    }

    fn cancel(&mut self, source: Option<u64>) {
        if let Some(schedule) = source.and_then(|id| self.schedules.get_mut(&id)) {
            schedule.cancelled = true;
        }
    }

    /// Marks a schedule as given up that gets no breadcrumb: a timer.
    pub(crate) fn give_up(&mut self, event_id: u64) {
        self.cancel(Some(event_id));
    }

    pub(crate) fn schedule(&self, event_id: u64) -> Option<Schedule> {
        self.schedules.get(&event_id).copied()
    }

    /// Ids of schedules of this kind that have neither completed nor been given up, ascending.
    pub(crate) fn open_ids(&self, kind: CallKind) -> impl Iterator<Item = u64> + '_ {
        self.schedules
            .iter()
            .filter(move |(_, schedule)| schedule.kind == kind && !schedule.completed && !schedule.cancelled)
            .map(|(id, _)| *id)
    }

    /// Forgets everything after `event_id`: a turn whose schedules are discarded.
    pub(crate) fn forget_after(&mut self, event_id: u64) {
        self.schedules.split_off(&(event_id + 1));
        self.last_event_id = event_id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorDetails;

    fn event(event_id: u64, source: Option<u64>, kind: EventKind) -> Event {
        Event::with_event_id(event_id, "i", 1, source, kind)
    }

    fn started() -> Event {
        let kind = EventKind::OrchestrationStarted {
            name: "o".into(),
            version: "1.0.0".into(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        event(1, None, kind)
    }

    fn timer(id: u64) -> Event {
        event(id, None, EventKind::TimerCreated { fire_at_ms: 5 })
    }

    fn fired(id: u64, source: u64) -> Event {
        event(id, Some(source), EventKind::TimerFired { fire_at_ms: 5 })
    }

    fn first_violation(events: &[Event]) -> Option<HistoryViolation> {
        let mut check = HistoryCheck::new();
        events.iter().find_map(|event| check.push(event).err())
    }

    #[test]
    fn a_healthy_history_passes() {
        assert_eq!(first_violation(&[started(), timer(2), fired(3, 2)]), None);
    }

    /// I01, I02, I03
    #[test]
    fn starts_ends_and_gaps_are_found() {
        let done = || event(2, None, EventKind::OrchestrationCompleted { output: String::new() });
        assert_eq!(first_violation(&[timer(1)]), Some(HistoryViolation::MisplacedStart));
        assert_eq!(
            first_violation(&[started(), timer(3)]),
            Some(HistoryViolation::NotContiguous { expected: 2, found: 3 })
        );
        assert_eq!(
            first_violation(&[started(), done(), timer(3)]),
            Some(HistoryViolation::AfterEnd { event_id: 3 })
        );
    }

    /// I04, I05
    #[test]
    fn unmatched_repeated_and_mismatched_completions_are_found() {
        let not_open = Some(HistoryViolation::NotOpen { schedule_id: 2 });
        assert_eq!(first_violation(&[started(), fired(2, 2)]), not_open);
        assert_eq!(first_violation(&[started(), timer(2), fired(3, 2), fired(4, 2)]), not_open);
        let failed = EventKind::ActivityFailed { details: ErrorDetails::orchestration_failed("x") };
        assert_eq!(
            first_violation(&[started(), timer(2), event(3, Some(2), failed)]),
            Some(HistoryViolation::WrongKind { expected: "activity", schedule_id: 2 })
        );
    }
}
