//! Operations on their way to the store thread.

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    ActivityRow, Answer, ApplyError, EventRow, MessageRow, Op, PreparedExecution, PreparedRound, StateChange,
};
use tokio::sync::oneshot;

use crate::submit::EnqueuePermit;

/// One operation with the caller who waits for its answer. A pointer, because jobs move from queue to queue.
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

/// In which order operations are taken into a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobClass {
    /// Renews leases, before anything else.
    Renewal,
    /// Finishes work in progress, before new work is accepted.
    Commit,
    /// New work from clients.
    Enqueue,
    /// Deletes and prunes, step by step. They yield to everything else.
    Management,
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

    /// A job that nobody waits for.
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
        match self.op() {
            Op::RenewInstance { .. }
            | Op::RenewActivity { .. }
            | Op::RenewSessions { .. }
            | Op::CleanupSessions { .. }
            | Op::RenewNodes { .. } => JobClass::Renewal,
            Op::EnqueueMessage(_) | Op::StartIfNew(_) | Op::EnqueueActivity(_) => JobClass::Enqueue,
            Op::DeleteInstances { .. }
            | Op::DeleteTree { .. }
            | Op::DeleteBulk(_)
            | Op::Prune { .. }
            | Op::PruneBulk { .. }
            | Op::RemoveRows { .. } => JobClass::Management,
            Op::CommitRound(_)
            | Op::AbandonInstance { .. }
            | Op::AckActivity { .. }
            | Op::AbandonActivity { .. }
            | Op::DeadLetterActivity { .. }
            | Op::Append { .. }
            | Op::SetMaxAttempts(_)
            | Op::RetryDeadLetter { .. }
            | Op::DiscardDeadLetter { .. }
            | Op::JoinNode(_)
            | Op::EndNode { .. } => JobClass::Commit,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        op_bytes(self.op())
    }

    /// Sends the answer to the caller. If the caller is gone, the answer is dropped; the operation stays committed.
    pub(crate) fn answer(self, answer: Result<Answer, ApplyError>) {
        let mut parts = self.parts;
        // Frees the enqueue permit now: other callers wait for it.
        parts.enqueue_permit = None;
        if let Some(reply) = parts.reply.take() {
            let _ = reply.send(Answered { answer, _parts: parts });
        }
    }
}

/// The payload bytes of an operation: what makes a transaction large.
fn op_bytes(op: &Op) -> usize {
    match op {
        Op::CommitRound(round) => round_bytes(round),
        Op::EnqueueMessage(message) | Op::StartIfNew(message) => message.data.len(),
        Op::EnqueueActivity(activity) => activity.data.len(),
        Op::AckActivity { completion, .. } => completion.as_ref().map_or(0, |message| message.data.len()),
        Op::Append { events, changes, .. } => event_bytes(events) + change_bytes(changes),
        // Without payload.
        Op::AbandonInstance { .. }
        | Op::RenewInstance { .. }
        | Op::AbandonActivity { .. }
        | Op::RenewActivity { .. }
        | Op::DeadLetterActivity { .. }
        | Op::RenewSessions { .. }
        | Op::CleanupSessions { .. }
        | Op::SetMaxAttempts(_)
        | Op::DeleteInstances { .. }
        | Op::DeleteTree { .. }
        | Op::DeleteBulk(_)
        | Op::Prune { .. }
        | Op::PruneBulk { .. }
        | Op::RemoveRows { .. }
        | Op::RetryDeadLetter { .. }
        | Op::DiscardDeadLetter { .. }
        | Op::JoinNode(_)
        | Op::RenewNodes { .. }
        | Op::EndNode { .. } => 0,
    }
}

fn round_bytes(round: &PreparedRound) -> usize {
    execution_bytes(&round.execution) + round.next.as_ref().map_or(0, execution_bytes)
}

fn execution_bytes(execution: &PreparedExecution) -> usize {
    let messages: usize = execution.messages.iter().map(|message: &MessageRow| message.data.len()).sum();
    let activities: usize =
        execution.activities.iter().map(|activity: &ActivityRow| activity.data.len()).sum();
    let output = execution.metadata.output.as_ref().map_or(0, String::len);
    event_bytes(&execution.events) + change_bytes(&execution.changes) + messages + activities + output
}

fn event_bytes(events: &[EventRow]) -> usize {
    events.iter().map(|event| event.data.len()).sum()
}

fn change_bytes(changes: &[StateChange]) -> usize {
    let bytes_of = |change: &StateChange| match change {
        StateChange::CustomStatus(status) => status.as_ref().map_or(0, String::len),
        StateChange::KvSet { key, value, .. } => key.len() + value.len(),
        StateChange::KvClear { key } => key.len(),
        StateChange::KvClearAll => 0,
    };
    changes.iter().map(bytes_of).sum()
}
