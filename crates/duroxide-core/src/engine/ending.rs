//! Ends an execution without running its code.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    HistoryCheck, Outcome, Seed, Turn,
    conclude::{OpenSchedules, PARENT_CANCELLED, terminal_event},
    history::cancels,
    state::CANCELLATION,
};
use crate::{
    CallKind, ErrorDetails, Event, EventKind, ParentLink, Timestamp, WorkItem, build_child_instance_id,
    version::BUILD_VERSION,
};

/// The record of an execution that is ended without running its code.
#[derive(Debug, Clone)]
pub enum Record {
    /// The execution has no history yet and would have begun with this seed.
    Unstarted(Seed),
    /// The execution has this history, which is not terminal.
    Stored(Vec<Event>),
    /// The execution has an undecodable history. Its parent and open work are unknown here.
    Unreadable {
        /// The id of the instance.
        instance: String,
        /// The number of the execution, from 1.
        execution_id: u64,
        /// The last stored event.
        last_event_id: u64,
    },
}

/// How an execution ends without running its code.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The execution fails with these details.
    Failed(ErrorDetails),
    /// The execution is cancelled: the request is recorded and open children are cancelled too.
    Cancelled {
        /// Why.
        reason: String,
    },
}

/// Ends an execution without running its code: poison, unsupported version, failed commit, or cancellation where the
/// handler is not registered. The turn holds the start if there was none, the breadcrumbs of open calls, and the
/// terminal event; open activities and timers are removed.
pub fn end_without_code(record: Record, ending: Ending, now: Timestamp) -> Turn {
    let RecordedState {
        instance,
        execution_id,
        parent,
        last_event_id,
        seed,
        open,
        timers,
        children,
        cancel_reason,
    } = RecordedState::of(record, now);
    let cancelled_activities = open.activities.clone();
    let cancel = |instance| WorkItem::CancelInstance { instance, reason: PARENT_CANCELLED.to_owned() };
    let (details, request, messages) = match ending {
        Ending::Failed(details) => (details, None, Vec::new()),
        Ending::Cancelled { reason } => {
            let messages = children.into_iter().map(cancel).collect();
            match cancel_reason {
                // The request is recorded, and its reason is kept (2.4).
                Some(recorded) => (ErrorDetails::cancelled(&recorded), None, messages),
                None => (
                    ErrorDetails::cancelled(&reason),
                    Some(EventKind::OrchestrationCancelRequested { reason }),
                    messages,
                ),
            }
        }
    };
    let outcome = Outcome::Failed { details };
    let kinds = request
        .map(|request| (None, request))
        .into_iter()
        .chain(open.breadcrumbs(&outcome, last_event_id).into_iter().map(|(id, kind)| (Some(id), kind)))
        .chain(terminal_event(&outcome).map(|kind| (None, kind)));
    let mut delta = seed;
    delta.extend(kinds.zip(last_event_id + 1..).map(|((source_event_id, kind), event_id)| Event {
        event_id,
        source_event_id,
        instance_id: instance.clone(),
        execution_id,
        timestamp_ms: now.as_millis(),
        duroxide_version: BUILD_VERSION.to_owned(),
        kind,
    }));
    Turn {
        delta,
        activities: Vec::new(),
        messages,
        cancelled_activities,
        stopped_activities: Vec::new(),
        cancelled_timers: timers,
        outcome,
        parent,
    }
}

/// The state of an execution as far as its record shows it.
#[derive(Default)]
struct RecordedState {
    instance: String,
    execution_id: u64,
    parent: Option<ParentLink>,
    last_event_id: u64,
    /// Events that have to be stored before the terminal event.
    seed: Vec<Event>,
    open: OpenSchedules,
    timers: Vec<u64>,
    /// Instance ids of open children.
    children: Vec<String>,
    /// The reason of a recorded request that ends the execution.
    cancel_reason: Option<String>,
}

impl RecordedState {
    fn of(record: Record, now: Timestamp) -> Self {
        match record {
            Record::Unstarted(seed) => {
                let seed = seed.into_events(now);
                Self { seed: seed.clone(), ..Self::of_history(&seed) }
            }
            Record::Stored(history) => Self::of_history(&history),
            Record::Unreadable { instance, execution_id, last_event_id } => {
                Self { instance, execution_id, last_event_id, ..Self::default() }
            }
        }
    }

    fn of_history(history: &[Event]) -> Self {
        let mut check = HistoryCheck::new();
        let mut listeners = Listeners::default();
        for event in history {
            // A history that breaks a rule is ended as well, with the state of the check up to that event.
            let _ = check.push(event);
            listeners.push(event);
        }
        let children = history.iter().filter_map(|event| {
            let EventKind::SubOrchestrationScheduled { instance, .. } = &event.kind else { return None };
            Some((event, instance))
        });
        let open_children: BTreeSet<u64> = check.open_ids(CallKind::Child).collect();
        let first = history.first();
        Self {
            instance: first.map(|event| event.instance_id.clone()).unwrap_or_default(),
            execution_id: first.map_or(0, |event| event.execution_id),
            parent: first.and_then(Event::parent_link),
            last_event_id: check.last_event_id(),
            seed: Vec::new(),
            open: OpenSchedules {
                activities: check.open_ids(CallKind::Activity).collect(),
                waits: listeners.open_waits(&check),
                reads: listeners.open_reads(&check),
            },
            timers: check.open_ids(CallKind::Timer).collect(),
            children: children
                .filter(|(event, _)| open_children.contains(&event.event_id))
                .map(|(event, child)| build_child_instance_id(&event.instance_id, child))
                .collect(),
            cancel_reason: cancels(history, []).map(str::to_owned),
        }
    }
}

/// Open waits and queue reads as far as a history shows them. Only the code knows when it dropped one, so an event that
/// raced with a drop may be counted for the wrong wait. Only breadcrumbs depend on it.
#[derive(Default)]
struct Listeners {
    waits: BTreeMap<String, VecDeque<u64>>,
    reads: BTreeMap<String, VecDeque<u64>>,
    unread: BTreeMap<String, usize>,
}

impl Listeners {
    fn push(&mut self, event: &Event) {
        use EventKind as E;
        match &event.kind {
            E::ExternalSubscribed { name } => {
                self.waits.entry(name.clone()).or_default().push_back(event.event_id);
            }
            E::CancellationSubscribed => {
                self.waits.entry(CANCELLATION.to_owned()).or_default().push_back(event.event_id);
            }
            E::OrchestrationCancelRequested { .. } => {
                self.waits.remove(CANCELLATION);
            }
            E::ExternalEvent { name, .. } => {
                self.waits.get_mut(name).and_then(VecDeque::pop_front);
            }
            E::QueueSubscribed { name } => {
                let unread = self.unread.entry(name.clone()).or_default();
                match unread.checked_sub(1) {
                    Some(left) => *unread = left,
                    None => self.reads.entry(name.clone()).or_default().push_back(event.event_id),
                }
            }
            E::QueueEventDelivered { name, .. } => {
                let reader = self.reads.get_mut(name).and_then(VecDeque::pop_front);
                *self.unread.entry(name.clone()).or_default() += usize::from(reader.is_none());
            }
            E::OrchestrationStarted { .. }
            | E::OrchestrationCompleted { .. }
            | E::OrchestrationFailed { .. }
            | E::OrchestrationContinuedAsNew { .. }
            | E::ActivityScheduled { .. }
            | E::ActivityCompleted { .. }
            | E::ActivityFailed { .. }
            | E::ActivityCancelRequested { .. }
            | E::TimerCreated { .. }
            | E::StepEnded { .. }
            | E::TimerFired { .. }
            | E::ExternalSubscribedCancelled { .. }
            | E::QueueSubscriptionCancelled { .. }
            | E::OrchestrationChained { .. }
            | E::SubOrchestrationScheduled { .. }
            | E::SubOrchestrationCompleted { .. }
            | E::SubOrchestrationFailed { .. }
            | E::SubOrchestrationCancelRequested { .. }
            | E::CustomStatusUpdated { .. }
            | E::KeyValueSet { .. }
            | E::KeyValueCleared { .. }
            | E::KeyValuesCleared => {}
        }
    }

    fn open_waits(&self, check: &HistoryCheck) -> Vec<u64> {
        still_open(&self.waits, check)
    }

    fn open_reads(&self, check: &HistoryCheck) -> Vec<u64> {
        still_open(&self.reads, check)
    }
}

fn still_open(listeners: &BTreeMap<String, VecDeque<u64>>, check: &HistoryCheck) -> Vec<u64> {
    let given_up = |id: &u64| check.schedule(*id).is_some_and(|schedule| schedule.cancelled);
    listeners.values().flatten().copied().filter(|id| !given_up(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> Seed {
        Seed {
            instance: "i".into(),
            execution_id: 1,
            name: "o".into(),
            version: "1.0.0".into(),
            input: "x".into(),
            parent: Some(ParentLink { instance: "p".into(), event_id: 3, execution_id: Some(1) }),
            carried: Vec::new(),
            custom_status: None,
        }
    }

    fn kinds(turn: &Turn) -> Vec<(u64, &'static str)> {
        turn.delta.iter().map(|event| (event.event_id, event.kind.wire_name())).collect()
    }

    /// 16.6, 6.6: an instance that never started is started and failed, and its parent is known.
    #[test]
    fn an_unstarted_execution_gets_a_start_and_an_end() {
        let ending = Ending::Failed(ErrorDetails::orchestration_failed("no"));
        let turn = end_without_code(Record::Unstarted(seed()), ending, Timestamp::ZERO);
        assert_eq!(kinds(&turn), [(1, "OrchestrationStarted"), (2, "OrchestrationFailed")]);
        assert_eq!(turn.parent.unwrap().instance, "p");
    }

    /// 6.2, 6.3: open work is taken back and open children are cancelled.
    #[test]
    fn a_cancelled_execution_takes_back_what_is_open() {
        let mut history = seed().into_events(Timestamp::ZERO);
        let mut add = |kind| {
            let id = history.len() as u64 + 1;
            history.push(Event::with_event_id(id, "i", 1, None, kind));
        };
        add(EventKind::ActivityScheduled {
            name: "a".into(),
            input: String::new(),
            session_id: None,
            tag: None,
        });
        add(EventKind::TimerCreated { fire_at_ms: 9 });
        add(EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: "sub::4".into(),
            input: String::new(),
        });
        add(EventKind::ExternalSubscribed { name: "e".into() });
        add(EventKind::ExternalSubscribed { name: "e".into() });
        add(EventKind::ExternalEvent { name: "e".into(), data: String::new() });
        let turn = end_without_code(
            Record::Stored(history),
            Ending::Cancelled { reason: "r".into() },
            Timestamp::ZERO,
        );
        assert_eq!(
            kinds(&turn),
            [
                (8, "OrchestrationCancelRequested"),
                (9, "ActivityCancelRequested"),
                (10, "ExternalSubscribedCancelled"),
                (11, "OrchestrationFailed"),
            ]
        );
        assert_eq!(turn.delta[2].source_event_id, Some(6), "the younger wait is the open one");
        assert_eq!((turn.cancelled_activities, turn.cancelled_timers), (vec![2], vec![3]));
        let cancel =
            WorkItem::CancelInstance { instance: "i::sub::4".into(), reason: "parent canceled".into() };
        assert_eq!(turn.messages, [cancel]);
    }

    /// 2.4: a request that is stored already is not recorded again, and its reason is kept.
    #[test]
    fn a_recorded_request_is_not_repeated() {
        let mut history = seed().into_events(Timestamp::ZERO);
        let request = EventKind::OrchestrationCancelRequested { reason: "first".into() };
        history.push(Event::with_event_id(2, "i", 1, None, request));
        let ending = Ending::Cancelled { reason: "second".into() };
        let turn = end_without_code(Record::Stored(history), ending, Timestamp::ZERO);
        assert_eq!(kinds(&turn), [(3, "OrchestrationFailed")]);
        assert_eq!(turn.outcome, Outcome::Failed { details: ErrorDetails::cancelled("first") });
    }

    /// 3.2 group 5: reads that have no message, waits that have no event, and nothing that code gave up.
    #[test]
    fn open_waits_are_told_apart_from_served_ones() {
        let mut history = seed().into_events(Timestamp::ZERO);
        let mut add = |source, kind| {
            let id = history.len() as u64 + 1;
            history.push(Event::with_event_id(id, "i", 1, source, kind));
        };
        let read = |name: &str| EventKind::QueueSubscribed { name: name.into() };
        let message = |name: &str| EventKind::QueueEventDelivered { name: name.into(), data: String::new() };
        add(None, message("q")); // 2
        add(None, read("q")); // 3, served by 2
        add(None, read("q")); // 4, served by 6
        add(None, read("q")); // 5, open
        add(None, message("q")); // 6
        add(None, read("other")); // 7, given up
        let reason = || "dropped_future".to_owned();
        add(Some(7), EventKind::QueueSubscriptionCancelled { reason: reason() });
        add(None, EventKind::ExternalSubscribed { name: "e".into() }); // 9, given up
        add(Some(9), EventKind::ExternalSubscribedCancelled { reason: reason() });
        add(None, EventKind::ExternalSubscribed { name: "f".into() }); // 11, open
        add(None, EventKind::ExternalEvent { name: "nobody".into(), data: String::new() });
        let ending = Ending::Failed(ErrorDetails::orchestration_failed("no"));
        let turn = end_without_code(Record::Stored(history), ending, Timestamp::ZERO);
        let open: Vec<_> =
            turn.delta.iter().map(|event| (event.kind.wire_name(), event.source_event_id)).collect();
        assert_eq!(
            open,
            [
                ("ExternalSubscribedCancelled", Some(11)),
                ("ExternalSubscribedPersistentCancelled", Some(5)),
                ("OrchestrationFailed", None)
            ]
        );
        assert!(turn.messages.is_empty(), "a failure cancels no children");
        assert_eq!(turn.delta[0].event_id, 13);
    }

    /// 16.6: with an undecodable history the end is the next event.
    #[test]
    fn an_unreadable_execution_ends_after_its_last_event() {
        let record = Record::Unreadable { instance: "i".into(), execution_id: 2, last_event_id: 41 };
        let turn = end_without_code(
            record,
            Ending::Failed(ErrorDetails::orchestration_failed("no")),
            Timestamp::ZERO,
        );
        assert_eq!(kinds(&turn), [(42, "OrchestrationFailed")]);
        assert_eq!((turn.delta[0].instance_id.as_str(), turn.delta[0].execution_id), ("i", 2));
    }
}
