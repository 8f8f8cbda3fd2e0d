//! [`check_replay`] and [`audit`]: compare code with a history and find the first difference.

use std::fmt;

use crate::{
    Action, AppErrorKind, ErrorDetails, Event, EventKind, EventRole,
    engine::{Execution, Setup, matching::event_for, state::Emission},
};

/// The first difference between a history and the code that replays it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The event of the history.
    pub event_id: u64,
    /// The recorded side.
    pub recorded: String,
    /// The side of the code.
    pub found: String,
    /// The call in the code, if the code made one.
    pub location: Option<&'static std::panic::Location<'static>>,
}

impl Divergence {
    pub(in crate::engine) fn new(
        event_id: u64,
        recorded: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { event_id, recorded: recorded.into(), found: found.into(), location: None }
    }

    fn with_call(mut self, emission: Option<&Emission>) -> Self {
        self.location = emission.map(|emission| emission.location);
        self
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: history says {}; the code {}", self.event_id, self.recorded, self.found)?;
        self.location.map_or(Ok(()), |location| write!(f, " at {location}"))
    }
}

impl std::error::Error for Divergence {}

/// Replays a history, ended or not, and compares the actions of the code with the recorded events.
///
/// Calls that the code makes after the last event are not compared: they would become the next events. How an ended
/// history ended is compared if its code ended it, and not if it was cancelled or failed for another reason.
///
/// # Errors
/// The first difference. A history that breaks a rule of its own, or input that the handler cannot read, counts as one.
pub fn check_replay(history: Vec<Event>, setup: Setup) -> Result<(), Box<Divergence>> {
    compare(history, setup, |execution, last_event_id| match &execution.ended {
        Some(Err(error)) if is_panic(error) => Err(execution.differs(last_event_id, "that it waits".into())),
        _ => Ok(()),
    })
}

/// [`check_replay`] with the code that made the history and a history that ends with a whole turn: the code does nothing
/// more than is recorded.
///
/// # Errors
/// The first difference.
pub fn audit(history: Vec<Event>, setup: Setup) -> Result<(), Box<Divergence>> {
    compare(history, setup, |execution, last_event_id| {
        if execution.ended.is_none() && execution.shared.lock().emissions().next().is_none() {
            return Ok(());
        }
        Err(execution.differs(last_event_id, "that it waits".into()))
    })
}

/// Replays a history. `check_open` checks code that has not ended by its last event.
fn compare(
    mut history: Vec<Event>,
    setup: Setup,
    check_open: impl FnOnce(&Execution, u64) -> Result<(), Box<Divergence>>,
) -> Result<(), Box<Divergence>> {
    let last_event_id = history.last().map_or(0, |last| last.event_id);
    let end = take_end(&mut history);
    let mut execution = Execution::replay_history(history, setup, end.is_some());
    if let Some(divergence) = execution.divergence.take() {
        return Err(divergence);
    }
    if let Some(failure) = &execution.failure {
        return Err(
            Divergence::new(last_event_id, "this", format!("failed: {}", failure.display_message())).into()
        );
    }
    match end {
        Some(end) => execution.check_end(&end),
        None => check_open(&execution, last_event_id),
    }
}

/// Takes the terminal event out of a history, with the breadcrumbs of the last turn, which are recorded after its code
/// has run.
fn take_end(history: &mut Vec<Event>) -> Option<Event> {
    let end = history.pop_if(|last| matches!(last.kind.role(), EventRole::End))?;
    while history.pop_if(|last| matches!(last.kind.role(), EventRole::GivenUp { .. })).is_some() {}
    Some(end)
}

fn is_panic(error: &ErrorDetails) -> bool {
    matches!(error, ErrorDetails::Application { kind: AppErrorKind::Panicked, .. })
}

impl Execution {
    /// The first difference between the history that was replayed and the code.
    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_deref()
    }

    /// Notes that the code made `emission`, or no call, where this event records a call.
    pub(in crate::engine) fn note_other_call(
        &mut self,
        event_id: u64,
        kind: &EventKind,
        emission: Option<&Emission>,
    ) {
        let found = emission.map_or_else(|| self.what_it_did(), |call| self.describe(&call.action, event_id));
        let divergence = Divergence::new(event_id, format!("{kind:?}"), found).with_call(emission);
        self.note_divergence(divergence);
    }

    pub(in crate::engine) fn note_divergence(&mut self, divergence: Divergence) {
        self.divergence.get_or_insert_with(|| Box::new(divergence));
    }

    /// Compares how the code ended with the terminal event.
    fn check_end(&self, end: &Event) -> Result<(), Box<Divergence>> {
        if self.ends_like(&end.kind) {
            Ok(())
        } else {
            Err(self.differs(end.event_id, format!("{:?}", end.kind)))
        }
    }

    fn ends_like(&self, end: &EventKind) -> bool {
        if let EventKind::OrchestrationCompleted { output } = end {
            return matches!(&self.ended, Some(Ok(returned)) if returned == output);
        }
        if let EventKind::OrchestrationContinuedAsNew { input } = end {
            let asks = |action: &Action| matches!(action, Action::ContinueAsNew { input: other, .. } if other == input);
            return self.shared.lock().emissions().any(|emission| asks(&emission.action));
        }
        let EventKind::OrchestrationFailed { details } = end else { return true };
        let failed = |error: &ErrorDetails| error.display_message() == details.display_message();
        match details {
            ErrorDetails::Application {
                kind: AppErrorKind::OrchestrationFailed | AppErrorKind::Panicked,
                ..
            } => self.ended.as_ref().is_some_and(|ended| ended.as_ref().is_err_and(failed)),
            // Not the code's doing: a cancellation, a poison message, an error of the configuration.
            ErrorDetails::Application { .. }
            | ErrorDetails::Infrastructure { .. }
            | ErrorDetails::Configuration { .. }
            | ErrorDetails::Poison { .. } => true,
        }
    }

    /// The difference between an end and what the code does in its place: another end, another call, or nothing.
    fn differs(&self, event_id: u64, recorded: String) -> Box<Divergence> {
        let state = self.shared.lock();
        let call = if self.ended.is_none() { state.emissions().next() } else { None };
        let found = call.map_or_else(|| self.what_it_did(), |call| self.describe(&call.action, event_id));
        Box::new(Divergence::new(event_id, recorded, found).with_call(call))
    }

    /// A call in the words of the history.
    fn describe(&self, action: &Action, event_id: u64) -> String {
        match event_for(action, self.shared.identity.execution_id, event_id) {
            Some(kind) => format!("asked for {kind:?}"),
            None => format!("asked for {action:?}"),
        }
    }

    /// The behaviour of code that made no call.
    pub(in crate::engine) fn what_it_did(&self) -> String {
        match &self.ended {
            None => "waits and makes no further call".to_owned(),
            Some(Ok(output)) => format!("returned Ok({output:?})"),
            Some(Err(error)) if is_panic(error) => format!("panicked: {}", error.display_message()),
            Some(Err(error)) => format!("returned Err({:?})", error.display_message()),
        }
    }
}
