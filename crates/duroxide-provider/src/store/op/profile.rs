//! The facts of an operation that decide how it is queued and which watchers are notified: one match over all
//! operations.

use std::time::Duration;

use super::{Op, Readies};
use crate::store::{ActivityRow, EventRow, MessageRow, PreparedExecution, PreparedRound, StateChange};

/// In which order operations are taken into a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpClass {
    /// Renews leases, before anything else.
    Renewal,
    /// Finishes work in progress, before new work is accepted.
    Commit,
    /// New work from clients.
    Enqueue,
    /// Deletes and prunes, step by step. They yield to everything else.
    Management,
}

/// Which instances an operation changes in a way that a client can wait for.
#[derive(Debug, Clone, Copy)]
pub enum Watched<'a> {
    /// None. Where an operation leaves something for a turn, the round of that turn notifies.
    Nothing,
    /// The instance of a round, if watchers are notified of the round.
    Round(&'a PreparedRound),
    /// None; but the message may begin an instance, and the answer tells whether it did.
    Begins(&'a MessageRow),
    /// This instance.
    Instance(&'a str),
    /// Instances that the answer does not name.
    Unknown,
}

/// The rows that make an operation large.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// None.
    Nothing,
    /// A round.
    Round(&'a PreparedRound),
    /// A message.
    Message(&'a MessageRow),
    /// An activity.
    Activity(&'a ActivityRow),
    /// Events, with the changes of state that they record.
    Events(&'a [EventRow], &'a [StateChange]),
}

/// Facts about an operation, used before and after it is carried out. See [`Op::profile`].
#[derive(Debug, Clone, Copy)]
pub struct OpProfile<'a> {
    /// When it is taken into a transaction.
    pub class: OpClass,
    /// Which queues it may fill.
    pub readies: Readies,
    /// The watchers to notify.
    pub watched: Watched<'a>,
    /// The length of the lease that it renews, from now.
    pub lease: Option<Duration>,
    /// The part that decides its size.
    pub payload: Payload<'a>,
}

const BOTH: Readies = Readies { instances: true, activities: true };
const INSTANCES: Readies = Readies { instances: true, activities: false };
const ACTIVITIES: Readies = Readies { instances: false, activities: true };

impl<'a> OpProfile<'a> {
    /// An operation that fills no queue, is not watched, renews no lease and carries nothing large.
    const fn of(class: OpClass) -> Self {
        Self {
            class,
            readies: Readies { instances: false, activities: false },
            watched: Watched::Nothing,
            lease: None,
            payload: Payload::Nothing,
        }
    }

    const fn fills(self, readies: Readies) -> Self {
        Self { readies, ..self }
    }

    const fn watched(self, watched: Watched<'a>) -> Self {
        Self { watched, ..self }
    }

    const fn renews(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    const fn carries(self, payload: Payload<'a>) -> Self {
        Self { payload, ..self }
    }
}

impl Op {
    /// The facts about the operation, except for how it is carried out.
    #[inline]
    pub fn profile(&self) -> OpProfile<'_> {
        const COMMIT: OpProfile<'_> = OpProfile::of(OpClass::Commit);
        const ENQUEUE: OpProfile<'_> = OpProfile::of(OpClass::Enqueue);
        const RENEWAL: OpProfile<'_> = OpProfile::of(OpClass::Renewal);
        const MANAGEMENT: OpProfile<'_> = OpProfile::of(OpClass::Management);
        match self {
            Self::CommitRound(round) => {
                COMMIT.fills(BOTH).watched(Watched::Round(round)).carries(Payload::Round(round))
            }
            Self::AbandonInstance { .. } => COMMIT.fills(INSTANCES),
            Self::AckActivity { completion, .. } => {
                let payload = completion.as_ref().map_or(Payload::Nothing, Payload::Message);
                COMMIT.fills(INSTANCES).carries(payload)
            }
            Self::AbandonActivity { .. } => COMMIT.fills(ACTIVITIES),
            // An append gives a mailbox its history.
            Self::Append { instance, events, changes, .. } => COMMIT
                .fills(INSTANCES)
                .watched(Watched::Instance(instance))
                .carries(Payload::Events(events, changes)),
            Self::RetryDeadLetter { .. } | Self::EndNode { .. } => COMMIT.fills(BOTH),
            Self::DeadLetterActivity { .. }
            | Self::SetMaxAttempts(_)
            | Self::DiscardDeadLetter { .. }
            | Self::JoinNode(_) => COMMIT,
            Self::EnqueueMessage(message) | Self::StartIfNew(message) => {
                ENQUEUE.fills(INSTANCES).watched(Watched::Begins(message)).carries(Payload::Message(message))
            }
            Self::EnqueueActivity(activity) => ENQUEUE.fills(ACTIVITIES).carries(Payload::Activity(activity)),
            Self::RenewInstance { extend_for, .. }
            | Self::RenewActivity { extend_for, .. }
            | Self::RenewSessions { extend_for, .. } => RENEWAL.renews(*extend_for),
            Self::CleanupSessions => RENEWAL.fills(ACTIVITIES),
            Self::RenewNodes { .. } => RENEWAL,
            // A delete frees the permits of turns that its parent will never call.
            Self::DeleteInstances { .. } | Self::DeleteTree { .. } | Self::DeleteBulk(_) => {
                MANAGEMENT.fills(INSTANCES).watched(Watched::Unknown)
            }
            // The rows that `RemoveRows` removes were invisible already.
            Self::Prune { .. } | Self::PruneBulk { .. } | Self::RemoveRows { .. } => MANAGEMENT,
        }
    }

    /// The operation with another length of the lease that it renews, if any.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        if let Self::RenewInstance { extend_for, .. }
        | Self::RenewActivity { extend_for, .. }
        | Self::RenewSessions { extend_for, .. } = &mut self
        {
            *extend_for = lease;
        }
        debug_assert!(
            self.profile().lease.is_none_or(|renewed| renewed == lease),
            "an operation is missing here"
        );
        self
    }
}

impl Watched<'_> {
    /// Whether clients, in this process or in another one, may wait for the changes of the operation.
    pub fn is_watched(self) -> bool {
        match self {
            Self::Nothing | Self::Begins(_) => false,
            Self::Round(round) => round.is_worth_telling(),
            Self::Instance(_) | Self::Unknown => true,
        }
    }
}

impl Payload<'_> {
    /// Its bytes, which count towards the size of a transaction.
    pub fn bytes(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Round(round) => {
                bytes_of_part(&round.execution) + round.next.as_ref().map_or(0, bytes_of_part)
            }
            Self::Message(message) => message.data.len(),
            Self::Activity(activity) => activity.data.len(),
            Self::Events(events, changes) => bytes_of_events(events) + bytes_of_changes(changes),
        }
    }
}

fn bytes_of_part(part: &PreparedExecution) -> usize {
    let messages: usize = part.messages.iter().map(|message| message.data.len()).sum();
    let activities: usize = part.activities.iter().map(|activity| activity.data.len()).sum();
    let output = part.metadata.output.as_ref().map_or(0, String::len);
    bytes_of_events(&part.events) + bytes_of_changes(&part.changes) + messages + activities + output
}

fn bytes_of_events(events: &[EventRow]) -> usize {
    events.iter().map(|event| event.data.len()).sum()
}

fn bytes_of_changes(changes: &[StateChange]) -> usize {
    let bytes_of = |change: &StateChange| match change {
        StateChange::CustomStatus(status) => status.as_ref().map_or(0, String::len),
        StateChange::KvSet { key, value, .. } => key.len() + value.len(),
        StateChange::KvClear { key } => key.len(),
        StateChange::KvClearAll => 0,
    };
    changes.iter().map(bytes_of).sum()
}
