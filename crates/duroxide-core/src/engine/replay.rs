//! Rebuilds an execution from its stored history.

mod divergence;

use std::collections::{BTreeSet, VecDeque};

pub use divergence::{Divergence, audit, check_replay};

use super::{conclude::DROPPED_FUTURE, execution::Execution, seed::Setup};
use crate::{AppErrorKind, CallKind, ErrorDetails, Event, EventKind, EventRole};

impl Execution {
    /// An execution from its stored history, which must not be terminal. A history that is only a seed (the start
    /// of a continue-as-new) has not run yet.
    ///
    /// If the code does not match the history, the next turn fails.
    pub fn replay(history: Vec<Event>, setup: Setup) -> Self {
        Self::replay_history(history, setup, false)
    }

    /// [`Self::replay`]. If the code `has_ended` with this history, the calls of its last poll and the other messages of
    /// that turn are recorded after it returned.
    pub(super) fn replay_history(history: Vec<Event>, setup: Setup, has_ended: bool) -> Self {
        let seed_len = seed_len(&history);
        if history.len() <= seed_len && !has_ended {
            return Self::of_events(history, setup);
        }
        let mut history = VecDeque::from(history);
        let times = recorded_set_times(&history);
        let first = history.pop_front().into_iter().collect();
        let mut execution = Self::of_events(first, setup);
        {
            let mut state = execution.shared.lock();
            state.kv.recorded_times = times;
            state.begin_replay(history.len());
        }
        execution.replayed_to = history.back().map_or(0, |last| last.event_id);
        execution.replay_recorded(history, has_ended);
        execution
    }

    /// Applies the recorded events to the code. Even after a failure the check receives all of them, because the open work
    /// must be known when the execution is ended.
    fn replay_recorded(&mut self, recorded: VecDeque<Event>, has_ended: bool) {
        let mut recorded_drops = BTreeSet::new();
        for event in recorded {
            self.take(&event);
            self.poll_if_needed(true);
            if self.failure.is_some() {
                continue;
            }
            if let (true, Some(Err(error))) = (self.undecodable, &self.ended) {
                // Code that was aborted cannot match the rest of the record. The cause is the data that did not decode.
                self.fail(error.clone());
                continue;
            }
            if self.returned() && !has_ended {
                let found = self.what_it_did();
                self.note_divergence(Divergence::new(event.event_id, format!("{:?}", event.kind), found));
                self.fail(ErrorDetails::nondeterminism(format!(
                    "orchestration ended before its recorded history: event {} ({}) was not reached",
                    event.event_id,
                    event.kind.wire_name()
                )));
                continue;
            }
            recorded_drops.extend(given_up(&event));
            self.apply(event);
        }
        self.poll_if_needed(true);
        self.settle_replayed_drops(&recorded_drops);
    }

    /// Whether the code returned. A panic is a failure of its own.
    fn returned(&self) -> bool {
        let panicked = |details: &ErrorDetails| {
            matches!(details, ErrorDetails::Application { kind: AppErrorKind::Panicked, .. })
        };
        self.ended.as_ref().is_some_and(|ended| !ended.as_ref().is_err_and(panicked))
    }

    /// Every recorded breadcrumb of a dropped future must have been reproduced (4.4).
    fn settle_replayed_drops(&mut self, recorded: &BTreeSet<(CallKind, u64)>) {
        let reproduced = self.shared.lock().take_replayed_drops();
        for (kind, event_id) in &reproduced {
            if *kind == CallKind::Timer {
                self.check.give_up(*event_id);
            }
        }
        let missing: Vec<_> = recorded.difference(&reproduced).collect();
        if let (Some((kind, _)), None) = (missing.first(), &self.failure) {
            let ids = |set: &BTreeSet<(CallKind, u64)>| -> Vec<u64> {
                set.iter().filter(|(other, _)| other == kind).map(|(_, id)| *id).collect()
            };
            let what = match kind {
                CallKind::Activity | CallKind::Timer => "activities",
                CallKind::Child => "sub-orchestrations",
                CallKind::Wait => "external waits",
                CallKind::Queue => "persistent waits",
            };
            let (dropped, kept) = (format!("that {what} {:?} were dropped", ids(recorded)), ids(&reproduced));
            let event_id = missing.first().map_or(0, |(_, event_id)| *event_id);
            self.note_divergence(Divergence::new(event_id, dropped, format!("dropped {kept:?}")));
            self.fail(ErrorDetails::nondeterminism(format!(
                "cancellation mismatch ({what}): history says {:?} were dropped, the code dropped {:?}",
                ids(recorded),
                ids(&reproduced)
            )));
        }
    }
}

/// How many events of a stored history are its seed.
fn seed_len(history: &[Event]) -> usize {
    let first = history.first().map(|first| &first.kind);
    let Some(EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. }) = first else {
        return 1;
    };
    1 + carried.len()
}

fn recorded_set_times(history: &VecDeque<Event>) -> VecDeque<u64> {
    history
        .iter()
        .filter_map(|event| {
            let EventKind::KeyValueSet { last_updated_at_ms, .. } = event.kind else { return None };
            Some(last_updated_at_ms)
        })
        .collect()
}

/// The schedule that a recorded breadcrumb of a dropped future names.
fn given_up(event: &Event) -> Option<(CallKind, u64)> {
    let EventRole::GivenUp { call, reason: DROPPED_FUTURE } = event.kind.role() else { return None };
    Some((call, event.source_event_id?))
}
