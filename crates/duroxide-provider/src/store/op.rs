//! Operations that change a store, prepared on the caller's thread.

mod profile;

use std::time::Duration;

pub use self::profile::{OpClass, OpProfile, Payload, Watched};
use super::{ActivityRow, Ended, EventRow, MessageRow, NodeRow, PreparedRound, StateChange};
use crate::{ClaimToken, DeleteInstanceResult, InstanceFilter, NodeId, PruneOptions, PruneResult};

/// One operation. An engine checks everything before its first write, so that a refused operation changes
/// nothing and the transaction can go on.
#[derive(Debug, Clone)]
pub enum Op {
    /// [`Provider::commit_round`](crate::Provider::commit_round).
    CommitRound(Box<PreparedRound>),
    /// [`Provider::abandon_orchestration_item`](crate::Provider::abandon_orchestration_item).
    AbandonInstance {
        /// The lock.
        token: String,
        /// How long its messages stay hidden.
        delay: Option<Duration>,
        /// Whether the attempt is taken back.
        ignore_attempt: bool,
    },
    /// [`Provider::renew_orchestration_item_lock`](crate::Provider::renew_orchestration_item_lock).
    RenewInstance {
        /// The lock.
        token: String,
        /// Its new length, from now.
        extend_for: Duration,
    },
    /// [`Provider::ack_work_item`](crate::Provider::ack_work_item).
    AckActivity {
        /// The lock.
        token: String,
        /// The completion to queue.
        completion: Option<MessageRow>,
    },
    /// [`Provider::abandon_work_item`](crate::Provider::abandon_work_item).
    AbandonActivity {
        /// The lock.
        token: String,
        /// How long it stays hidden.
        delay: Option<Duration>,
        /// Whether the attempt is taken back.
        ignore_attempt: bool,
    },
    /// [`Provider::renew_work_item_lock`](crate::Provider::renew_work_item_lock).
    RenewActivity {
        /// The lock.
        token: String,
        /// Its new length, from now.
        extend_for: Duration,
    },
    /// [`Provider::dead_letter_work_item`](crate::Provider::dead_letter_work_item).
    DeadLetterActivity {
        /// The lock.
        token: String,
        /// Why.
        reason: String,
    },
    /// [`Provider::enqueue_for_orchestrator`](crate::Provider::enqueue_for_orchestrator).
    EnqueueMessage(MessageRow),
    /// [`Provider::start_if_new`](crate::Provider::start_if_new). The message is a start that is visible at once.
    StartIfNew(MessageRow),
    /// [`Provider::enqueue_for_worker`](crate::Provider::enqueue_for_worker).
    EnqueueActivity(ActivityRow),
    /// [`Provider::append_with_execution`](crate::Provider::append_with_execution).
    Append {
        /// The id of the instance.
        instance: String,
        /// The number of the execution, from 1.
        execution_id: u64,
        /// The events to append, in order of their ids.
        events: Vec<EventRow>,
        /// The changes of state that the events record.
        changes: Vec<StateChange>,
    },
    /// [`Provider::renew_session_lock`](crate::Provider::renew_session_lock).
    RenewSessions {
        /// The owners of the sessions.
        owners: Vec<String>,
        /// Their new length, from now.
        extend_for: Duration,
        /// Sessions without activity for this long are left alone.
        idle_timeout: Duration,
    },
    /// [`Provider::cleanup_orphaned_sessions`](crate::Provider::cleanup_orphaned_sessions): sessions whose lease has ended
    /// and that no queued activity needs. How long they were idle does not matter: the lease of an idle session is not
    /// renewed.
    CleanupSessions,
    /// [`Provider::set_max_attempts`](crate::Provider::set_max_attempts).
    SetMaxAttempts(u32),
    /// [`ProviderAdmin::delete_instances_atomic`](crate::ProviderAdmin::delete_instances_atomic).
    DeleteInstances {
        /// The instances.
        ids: Vec<String>,
        /// Whether running ones are deleted too.
        force: bool,
    },
    /// [`ProviderAdmin::delete_instance`](crate::ProviderAdmin::delete_instance), tree and all. After this operation no
    /// read, claim or commit finds any of it; rows may be left to remove.
    DeleteTree {
        /// The root.
        instance: String,
        /// Whether running ones are deleted too.
        force: bool,
    },
    /// [`ProviderAdmin::delete_instance_bulk`](crate::ProviderAdmin::delete_instance_bulk).
    DeleteBulk(InstanceFilter),
    /// [`ProviderAdmin::prune_executions`](crate::ProviderAdmin::prune_executions).
    Prune {
        /// The id of the instance.
        instance: String,
        /// The executions to keep.
        options: PruneOptions,
    },
    /// [`ProviderAdmin::prune_executions_bulk`](crate::ProviderAdmin::prune_executions_bulk).
    PruneBulk {
        /// The instances.
        filter: InstanceFilter,
        /// The executions to keep.
        options: PruneOptions,
    },
    /// Goes on with a delete or prune that has left rows to remove. An unknown task is done.
    RemoveRows {
        /// Which one.
        task: RemovalTask,
    },
    /// [`ProviderAdmin::retry_dead_letter`](crate::ProviderAdmin::retry_dead_letter).
    RetryDeadLetter {
        /// The dead letter.
        id: String,
    },
    /// [`ProviderAdmin::discard_dead_letter`](crate::ProviderAdmin::discard_dead_letter).
    DiscardDeadLetter {
        /// The dead letter.
        id: String,
    },
    /// [`Provider::join_node`](crate::Provider::join_node).
    JoinNode(NodeRow),
    /// Heartbeats of these nodes. A node without a row was ended by mistake, and gets its row and its number again. Rows
    /// that were not renewed for [`NODE_FORGOTTEN_AFTER`] are deleted.
    ///
    /// [`NODE_FORGOTTEN_AFTER`]: super::bounds::NODE_FORGOTTEN_AFTER
    RenewNodes {
        /// The nodes, under the numbers that they got when they joined.
        nodes: Vec<(NodeId, NodeRow)>,
    },
    /// Ends a node: its leases and sessions end now, and its row is deleted. Attempts stay counted, unless one claim is
    /// to blame.
    EndNode {
        /// Its name. An unknown one is no error.
        name: String,
        /// The claim that ended its process. It keeps its lease and is charged alone: the other claims get their attempt
        /// back.
        blamed: Option<ClaimToken>,
    },
}

/// Which queues an operation may have filled. A fetch that waits is served only if its queue may have something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Readies {
    /// Instances may have become ready.
    pub instances: bool,
    /// Activities may have become ready.
    pub activities: bool,
}

impl Readies {
    /// The queues that either of the two may have filled.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { instances: self.instances || other.instances, activities: self.activities || other.activities }
    }
}

impl Op {
    /// Whether clients, in this process or in another one, may wait for its changes.
    pub fn is_watched(&self) -> bool {
        self.profile().watched.is_watched()
    }

    /// Which queues this operation may fill.
    pub fn readies(&self) -> Readies {
        self.profile().readies
    }
}

/// The stored start of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredStart {
    /// The first event of its first execution.
    Recorded(String),
    /// The queued start that is first in line; nothing is recorded yet.
    Queued(String),
    /// Its first execution has no events, or was pruned.
    Unknown,
}

/// Rows that a store removes step by step, as a delete or prune has left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemovalTask(pub u64);

/// The rest of a delete or prune. Each step is a transaction of its own and changes a bounded number of
/// rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unfinished {
    /// Rows that nothing leads to any more, to be removed by [`Op::RemoveRows`].
    pub rows: Option<RemovalTask>,
    /// Instances that were not visited, or not to their end, in order.
    pub instances: Vec<String>,
}

impl Unfinished {
    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.rows.is_none() && self.instances.is_empty()
    }
}

/// The answer to an operation.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Success without a value.
    Done,
    /// The message was the start of an instance that was not there before, not even as a mailbox.
    Begun,
    /// The instance of an [`Op::StartIfNew`] exists already, and nothing was queued. With any other answer the start was
    /// queued.
    Found(StoredStart),
    /// Nothing was queued, because as many messages of clients wait in the mailbox as the operation allows.
    MailboxFull,
    /// A round was committed to this instance; its watchers are notified.
    RoundCommitted {
        /// The id of the instance.
        instance: String,
        /// If the round ended the instance, the end, if the engine has it without another read. Watchers get it and
        /// need not read; with `None` they read.
        ended: Option<Ended>,
    },
    /// An activity's lock was renewed.
    Renewed {
        /// Whether the activity was asked to stop.
        stop_requested: bool,
    },
    /// How many sessions were touched.
    Count(usize),
    /// The deleted instances.
    Deleted(DeleteInstanceResult),
    /// The instances that a step deleted, with the rest of the task.
    DeletedPart(DeleteInstanceResult, Unfinished),
    /// The pruned executions.
    Pruned(PruneResult),
    /// The executions that a step pruned, with the rest of the task.
    PrunedPart(PruneResult, Unfinished),
    /// A node has joined.
    Joined(NodeId),
}
