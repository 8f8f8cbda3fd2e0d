//! [`Letter`]: a dead letter as it is shown.

use duroxide::providers::{DeadLetter, DeadLetterQueue};

use crate::{
    PayloadKind,
    format::{Moment, ShownPayload},
    links,
    redact::Redact,
};

/// A dead letter as it is shown.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) id: String,
    pub(super) queue: &'static str,
    /// The instance and the link to it.
    pub(super) instance: Option<(String, String)>,
    pub(super) reason: String,
    pub(super) attempts: u32,
    pub(super) since: Moment,
    pub(super) payload: ShownPayload,
}

impl Letter {
    pub(super) fn new(letter: &DeadLetter, redact: &Redact, bytes_max: usize, now_ms: u64) -> Self {
        let instance = letter.instance_id.as_deref().unwrap_or_default();
        let payload = redact.shown(instance, PayloadKind::DeadLetter, "", &letter.payload);
        let reason = redact.shown(instance, PayloadKind::Error, "", &letter.reason);
        Self {
            id: letter.id.clone(),
            queue: match letter.queue {
                DeadLetterQueue::Orchestrator => "message",
                DeadLetterQueue::Worker => "activity",
            },
            instance: letter.instance_id.as_ref().map(|id| (id.clone(), links::instance(id))),
            reason: reason.into_owned(),
            attempts: letter.attempt_count,
            since: Moment::new(letter.dead_lettered_at_ms, now_ms),
            payload: ShownPayload::new(&payload, bytes_max),
        }
    }
}
