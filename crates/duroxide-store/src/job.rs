//! Operations on their way to the store thread.

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    ActivityRow, Answer, ApplyError, EventRow, MessageRow, Op, PreparedExecution, PreparedRound, StateChange,
};
use tokio::sync::oneshot;

use crate::submit::EnqueuePlace;

/// One operation with the caller who waits for its answer. It is a pointer, because it goes from queue to queue.
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
    /// The operation's place in the bounded queue of client enqueues, free again when it is answered.
    place: Option<EnqueuePlace>,
}

/// The answer to an operation, with the operation itself. It was allocated by its caller, and is freed there too: that is
/// cheaper than on the store thread, which everybody waits for.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answer: Result<Answer, ApplyError>,
    _parts: Box<JobParts>,
}

/// In which order operations are taken into a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobClass {
    /// Leases are kept before anything else.
    Renewal,
    /// Work in progress is finished before new work is let in.
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
        (Self { parts: Box::new(JobParts { op, handed_in, reply: Some(reply), place: None }) }, answer)
    }

    /// A job that nobody waits for.
    pub(crate) fn unattended(op: Op, handed_in: Timestamp) -> Self {
        Self { parts: Box::new(JobParts { op, handed_in, reply: None, place: None }) }
    }

    /// Keeps a place among the client enqueues until the job is answered.
    pub(crate) fn occupy(&mut self, place: EnqueuePlace) {
        self.parts.place = Some(place);
    }

    /// The operation.
    pub(crate) fn op(&self) -> &Op {
        &self.parts.op
    }

    pub(crate) fn into_op(self) -> Op {
        self.parts.op
    }

    /// When the caller handed it in: the time its lease is checked at.
    pub(crate) fn handed_in(&self) -> Timestamp {
        self.parts.handed_in
    }

    /// Whether the operation never had a waiting caller.
    pub(crate) fn is_unattended(&self) -> bool {
        self.parts.reply.is_none()
    }

    /// Whether it is tried again if its transaction had no effect: nobody waits for it, and nobody else would do it. Nodes are
    /// ended by the next look at them, and a lease that was not renewed is its holder's concern.
    pub(crate) fn is_tried_again(&self) -> bool {
        let is_needed = matches!(
            self.op(),
            Op::AbandonInstance { .. } | Op::AbandonActivity { .. } | Op::SetMaxAttempts(_)
        );
        self.is_unattended() && is_needed
    }

    /// Whether it is a message of a client to an instance.
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
            _ => JobClass::Commit,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        op_bytes(self.op())
    }

    /// Tells the caller. One who has gone away is not missed: the operation stands.
    pub(crate) fn answer(self, answer: Result<Answer, ApplyError>) {
        let mut parts = self.parts;
        // Not when the caller gets to it: others wait for the place.
        parts.place = None;
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
        _ => 0,
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
