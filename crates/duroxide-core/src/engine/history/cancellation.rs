//! [`Cancellation`]: whether requests to cancel an execution end it, as far as its history shows.

use std::collections::BTreeSet;

use crate::{Event, EventKind, EventRole};

/// Whether an execution is cancelled.
///
/// Code that has subscribed (`CancellationSubscribed`) and has not dropped the subscription receives the first request. Any
/// other request ends the execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation {
    /// Questions of the code that are open.
    questions: BTreeSet<u64>,
    ends: bool,
}

impl Cancellation {
    pub(crate) fn push(&mut self, event: &Event) {
        match event.kind.role() {
            EventRole::CancelRequest => self.request(),
            EventRole::Call(_) if event.kind == EventKind::CancellationSubscribed => {
                self.questions.insert(event.event_id);
            }
            EventRole::GivenUp { .. } => {
                event.source_event_id.map(|question| self.questions.remove(&question));
            }
            EventRole::Start
            | EventRole::End
            | EventRole::Call(_)
            | EventRole::Completion(_)
            | EventRole::Message
            | EventRole::DetachedStart
            | EventRole::CustomStatus(_)
            | EventRole::KeyValues(_) => {}
        }
    }

    /// Whether a request that was made so far ends the execution.
    pub(crate) fn ends(&self) -> bool {
        self.ends
    }

    fn request(&mut self) {
        self.ends |= self.questions.is_empty();
        self.questions.clear();
    }
}

/// The reason of the first request that ends an execution with this history: of the recorded requests, then of those in
/// `waiting`, which are not recorded yet. `None` if no request ends it without its code.
pub fn cancels<'a>(history: &'a [Event], waiting: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut cancellation = Cancellation::default();
    for event in history {
        cancellation.push(event);
        if let EventKind::OrchestrationCancelRequested { reason } = &event.kind
            && cancellation.ends()
        {
            return Some(reason);
        }
    }
    waiting.into_iter().find(|_| {
        cancellation.request();
        cancellation.ends()
    })
}
