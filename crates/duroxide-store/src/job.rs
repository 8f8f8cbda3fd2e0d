//! Operations on their way to the store thread.

use duroxide_core::Timestamp;
pub(crate) use duroxide_provider::store::OpClass as JobClass;
use duroxide_provider::store::{Answer, ApplyError, Op};
use tokio::sync::oneshot;

use crate::submit::EnqueuePermit;

/// One operation with the caller that waits for its answer. A pointer, because jobs move from queue to queue.
#[derive(Debug)]
pub(crate) struct Job {
    parts: Box<JobParts>,
}

#[derive(Debug)]
struct JobParts {
    op: Op,
    handed_in: Timestamp,
    /// Where the answer goes. `None` for an operation without a waiting caller, such as the release of a claim.
    reply: Option<oneshot::Sender<Answered>>,
    /// The permit of a client enqueue; freed when the operation is answered.
    enqueue_permit: Option<EnqueuePermit>,
}

/// The answer to an operation, with the operation itself: the caller has allocated the operation and frees it, because the
/// store thread is the bottleneck.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answer: Result<Answer, ApplyError>,
    _parts: Box<JobParts>,
}

impl Job {
    /// A job, and where its caller waits for the answer.
    pub(crate) fn new(op: Op, handed_in: Timestamp) -> (Self, oneshot::Receiver<Answered>) {
        let (reply, answer) = oneshot::channel();
        (
            Self { parts: Box::new(JobParts { op, handed_in, reply: Some(reply), enqueue_permit: None }) },
            answer,
        )
    }

    /// A job without a waiting caller.
    pub(crate) fn unattended(op: Op, handed_in: Timestamp) -> Self {
        Self { parts: Box::new(JobParts { op, handed_in, reply: None, enqueue_permit: None }) }
    }

    /// Holds the permit of a client enqueue until the job is answered.
    pub(crate) fn hold_permit(&mut self, permit: EnqueuePermit) {
        self.parts.enqueue_permit = Some(permit);
    }

    /// The operation.
    pub(crate) fn op(&self) -> &Op {
        &self.parts.op
    }

    pub(crate) fn into_op(self) -> Op {
        self.parts.op
    }

    /// When the caller submitted the operation. Its lease is checked at this time.
    pub(crate) fn handed_in(&self) -> Timestamp {
        self.parts.handed_in
    }

    /// Whether the operation never had a waiting caller.
    pub(crate) fn is_unattended(&self) -> bool {
        self.parts.reply.is_none()
    }

    /// Whether the operation is tried again if its transaction had no effect: it has no caller, and nothing else repeats it.
    /// The next check of the nodes ends dead nodes again, and the holder of a lease renews it again.
    pub(crate) fn is_tried_again(&self) -> bool {
        let is_needed = matches!(
            self.op(),
            Op::AbandonInstance { .. } | Op::AbandonActivity { .. } | Op::SetMaxAttempts(_)
        );
        self.is_unattended() && is_needed
    }

    /// Whether the operation is a message of a client to an instance.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.op(), Op::EnqueueMessage(_) | Op::StartIfNew(_))
    }

    pub(crate) fn class(&self) -> JobClass {
        self.op().profile().class
    }

    pub(crate) fn bytes(&self) -> usize {
        self.op().profile().payload.bytes()
    }

    /// Sends the answer to the caller. If the caller was dropped, so is the answer; the operation stays committed.
    pub(crate) fn answer(self, answer: Result<Answer, ApplyError>) {
        let mut parts = self.parts;
        // Frees the enqueue permit now: other callers wait for it.
        parts.enqueue_permit = None;
        if let Some(reply) = parts.reply.take() {
            let _ = reply.send(Answered { answer, _parts: parts });
        }
    }
}
