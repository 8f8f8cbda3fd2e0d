//! Replays a whole history to find out whether the code does again what it did.

use crate::{
    Event, EventKind, EventRole,
    engine::{Execution, Outcome, Setup},
};

/// Replays a history to its last event and compares what the code does with what is recorded. The history may end with
/// the events of a turn that was just run, and may be terminal. No work is handed out, and no step runs.
///
/// # Errors
/// The first difference, as a text.
pub fn audit(mut history: Vec<Event>, setup: Setup) -> Result<(), String> {
    let end = history.last().map(|last| last.kind.clone()).filter(|kind| kind.role() == EventRole::End);
    if let Some(EventKind::OrchestrationFailed { details }) = &end
        && details.is_system()
    {
        // It was ended without its code, or in the middle of it.
        return Ok(());
    }
    // What the code did last, before it ended, is done again and not replayed.
    let received = if end.is_some() { after_last_received(&history) } else { history.len() };
    let recorded = history.split_off(received);
    let turn = Execution::replay(history, setup).turn(Vec::new());
    match (&turn.outcome, &end) {
        (Outcome::Failed { details }, None) => return Err(details.display_message()),
        (Outcome::Running, Some(_)) => return Err("the code ended, and waits in a replay".to_owned()),
        (
            Outcome::Failed { .. }
            | Outcome::Running
            | Outcome::Completed { .. }
            | Outcome::ContinuedAsNew(_),
            _,
        ) => {}
    }
    let (done, recorded) = (of_code(&turn.delta), of_code(&recorded));
    let last = turn.delta.last().map(|last| &last.kind);
    if done == recorded && (end.is_none() || last == end.as_ref()) {
        return Ok(());
    }
    Err(format!("a replay goes on with {done:?} and {last:?}, recorded is {recorded:?} and {end:?}"))
}

/// The position after the last event that the code received: what follows is what it did.
fn after_last_received(history: &[Event]) -> usize {
    let is_received = |event: &Event| match event.kind.role() {
        EventRole::Start | EventRole::CancelRequest | EventRole::Completion(_) | EventRole::Message => true,
        EventRole::End
        | EventRole::Call(_)
        | EventRole::GivenUp { .. }
        | EventRole::DetachedStart
        | EventRole::CustomStatus(_)
        | EventRole::KeyValues(_) => false,
    };
    history.iter().rposition(is_received).map_or(0, |last| last + 1)
}

/// The kinds of the events that the code asked for. Breadcrumbs tell what it gave up, which a replay records otherwise.
fn of_code(events: &[Event]) -> Vec<&'static str> {
    let kinds = events.iter().map(|event| &event.kind);
    kinds.filter(|kind| !matches!(kind.role(), EventRole::GivenUp { .. })).map(EventKind::wire_name).collect()
}
