//! Every rule of storage, once, over rows.
//!
//! [`Rules`] carries out operations and claims on a set of [`Tables`]. The rules know no SQL, no cache and no clock; the
//! tables know no rule. The rules promise, on every set of tables:
//!
//! * **Mailbox.** A message or an activity for an id that has no row makes one without a name. An instance is *known*
//!   if it has a name or history. An empty mailbox is deleted. A client may limit the messages: its own is queued only
//!   while fewer than this many messages of clients wait in the mailbox.
//! * **Ready.** An instance is ready if no live lock holds it, a message is visible and, while it is not known, a start
//!   is visible. It gets the next number when it becomes ready and keeps it until it is claimed; claims take the
//!   lowest. An instance that is still ready after a commit, an abandon or the end of a lease gets a new number, so it
//!   goes to the back. Rows that become due in one `promote` get their numbers in the order of (time due, row).
//! * **Messages of a claim.** Visible messages are selected in the order (due time, number), in which everything that is visible at
//!   once is due at 0. A queue message waits behind an older hidden one of its instance. A bounded claim reads
//!   [`CLAIM_MESSAGES_MAX`](crate::store::bounds::CLAIM_MESSAGES_MAX) rows or
//!   [`CLAIM_BYTES_MAX`](crate::store::bounds::CLAIM_BYTES_MAX) bytes (at least one row), and beyond that adds the first
//!   visible start and the first visible `ContinueAsNew`. The selected messages are delivered in the order in which they
//!   became visible: [`sort_for_delivery`](crate::store::sort_for_delivery). An abandon changes neither order.
//! * **Shares.** Where several processes claim, the claims of a transaction take a third of the instances that it begins, those
//!   with the lowest numbers, and at least one. Of a stream, transactions in a row that begin at least four instances each, one takes
//!   all of them and the next one none. Later transactions of any process take the rest. Who is told of it, and when others may take
//!   it, is for the tables: notifications are theirs.
//! * **Undecodable rows** are counted, hidden and left out; they count towards the bounds of a claim. If nothing is
//!   left, or an unknown instance is left without its start, the instance is not locked and no other row of it is
//!   counted, and the claim goes on with the visible rows behind them. A hidden row that cannot be decoded holds no
//!   queue message back.
//! * **Possible poison.** A counted abandon marks an instance as possible poison, and so does a lease that ended, until a commit
//!   under it is served after all; a commit that leaves no attempted message makes it healthy again.
//! * **Leases.** A lease is live while `now < until`. Commit, ack and renewal check it at the time they were submitted;
//!   an abandon needs only the token. A lock whose lease ended keeps its token until the next claim. If the clock was
//!   set back, no lease lasts longer than its length from now; if it was set forward, leases move along with it.
//! * **Times.** A delayed message is due at `now + delay`, rounded up to milliseconds. Hidden rows and leases keep
//!   microseconds.
//! * **Execution end.** A status other than `Running` ends an execution: its key-value changes are merged, its
//!   completion time is stored. Changes left by an execution that was never ended are merged when a later one begins.
//! * **Orphans.** Each message of an unknown instance without a queued start becomes a dead letter `orphan_message_ttl`
//!   after it was enqueued or due, whichever is later; the messages of a mailbox of only
//!   queue messages become dead letters at the next claim, oldest first.
//! * **Route.** The handler filter compares the instance's name and version; before the instance is known, or when its
//!   execution continued as new and a `ContinueAsNew` is queued, those of that start.
//! * **Nodes** are numbered from 1 and never reuse a number; one that joins again under its name keeps it. A claim notes
//!   the node of its fetch, or none. A node that ends leaves its live leases ended as of now, in the order of their rows:
//!   possible poison, and ready if they have visible messages. If one of its claims is to blame, that one keeps its lease and the
//!   others are abandoned, their attempt taken back.
//! * **Losses.** A claim that finds the lock of an earlier one counts it as lost; an abandon leaves the counts as they are,
//!   and the commit that makes an instance healthy sets them to zero.
//! * **Early turns.** A claim may be handed over before its transaction is committed if every message in it was sent in the same
//!   transaction by the ack of an activity's first attempt, whose claim is stored: if the process dies, that claim is lost and
//!   counted. Where turns run early, the result of an activity that was lost before therefore begins with one attempt. The
//!   transaction has no round of the instance: until that is committed, its execution does not exist.
//! * **Dead letters** are numbered from 1 and never reuse a number. A retried one is read again from its payload; if
//!   that cannot be decoded it keeps its kind.
//! * **Deleting** counts messages and activities as queue rows. Unknown ids in a list are ignored. An instance that
//!   waits for its successor counts as running. Bulk calls visit instances in the order of their rows. An operation that
//!   deletes or prunes may leave rows to remove, but nothing that any read, claim or commit finds.

mod activities;
mod claims;
mod executions;
mod intake;
mod key_values;
mod locks;
mod mailbox;
mod management;
mod nodes;
mod readiness;
mod rounds;
mod row;
mod sessions;
mod tables;
mod time;

use std::{collections::BTreeSet, time::Duration};

use duroxide_core::Timestamp;

use self::claims::NewInstances;
pub use self::{
    claims::identity_in_event,
    management::WorkRows,
    row::{
        CONTINUED_AS_NEW, ClaimBound, DeadLetterRow, ExecutionAge, ExecutionRow, Extent, Family,
        InstanceLock, InstanceRow, Lane, LaneId, Lease, Loaded, NOT_HIDDEN, Origin, QueuedActivity,
        QueuedMessage, RUNNING, Readiness, Removal, Route, RouteId, SessionRow, VISIBLE_AT_ONCE,
        VisibleMessages, is_end_of_execution, is_end_of_instance, is_start, still_hidden,
    },
    tables::{
        ActivityItem, ActivityTable, DeadLetterTable, DueInstance, HistoryTable, InstanceChange,
        InstanceTable, MailboxTable, NewMessage, NodeTable, ReadyIndex, RemovalBudget, RemovalTable,
        RemovedRows, Rows, SessionTable, StateTable, Tables, Transactions,
    },
};
use crate::{
    OrchestrationClaim, WorkClaim,
    store::{
        ActivityFetch, Answer, ApplyError, Claimed, DeadLetterNote, InstanceFetch, Op, StoredNode,
        TransactionSteps,
        bounds::{MAX_ATTEMPTS_DEFAULT, ORPHAN_MESSAGE_TTL_DEFAULT},
    },
};

/// The rules over a set of tables.
#[derive(Debug, Clone)]
pub struct Rules<T> {
    tables: T,
    /// The time of the transaction, or of the last one.
    now: Timestamp,
    options: RuleOptions,
    max_attempts: u32,
    /// The time of the last promotion: the ends of sessions up to then need no wake-up.
    promoted_at: Timestamp,
    /// `promoted_at` as of the last commit, for a rollback.
    promoted_before: Timestamp,
    /// Whether leases that are too long, after the clock was set back, were searched since the store was opened.
    leases_checked: bool,
    /// Whether turns run early.
    early_turns: bool,
    /// Attempts that messages have when they are sent, by the operation that is carried out.
    attempts_before: u32,
    /// Whether the operation that is carried out ends the first attempt of an activity.
    is_first_attempt: bool,
    /// The numbers of the completions that such operations have sent in this transaction.
    early_messages: BTreeSet<u64>,
    /// The instances of the rounds that this transaction commits.
    rounds_of: BTreeSet<u64>,
    new_instances: NewInstances,
}

/// Settings of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleOptions {
    /// How long a message waits for an instance that was never started, before it becomes a dead letter.
    pub orphan_message_ttl: Duration,
}

impl Default for RuleOptions {
    fn default() -> Self {
        Self { orphan_message_ttl: ORPHAN_MESSAGE_TTL_DEFAULT }
    }
}

impl<T> Rules<T> {
    /// The rules over these tables.
    pub fn new(tables: T, options: RuleOptions) -> Self {
        Self {
            tables,
            now: Timestamp::ZERO,
            options,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            promoted_at: Timestamp::ZERO,
            promoted_before: Timestamp::ZERO,
            leases_checked: false,
            early_turns: false,
            attempts_before: 0,
            is_first_attempt: false,
            early_messages: BTreeSet::new(),
            rounds_of: BTreeSet::new(),
            new_instances: NewInstances::default(),
        }
    }

    /// The tables that the rules work on.
    pub fn tables(&self) -> &T {
        &self.tables
    }

    /// The tables that the rules work on.
    pub fn tables_mut(&mut self) -> &mut T {
        &mut self.tables
    }

    /// The time of the transaction, or of the last one.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Turns run early here (24.13). If the first attempt of an activity was lost, a turn may have run with its result and killed the
    /// process, so the result of a later attempt has an attempt when it is sent.
    pub fn count_early_turns(&mut self) {
        self.early_turns = true;
    }

    /// Sets whether other processes claim from this store, too. If so, each transaction leaves a part of the instances that it
    /// begins to them.
    pub fn share_new_instances(&mut self, shares: bool) {
        self.new_instances.share(shares);
    }

    /// The instances that the transaction has begun and leaves to other processes (24.11), lowest number first.
    pub fn left_to_others(&self) -> impl Iterator<Item = u64> + '_ {
        self.new_instances.left()
    }

    /// The store was opened anew: leases are checked again by the next transaction.
    pub fn reopened(&mut self) {
        self.leases_checked = false;
    }
}

impl<T: Tables> Rules<T> {
    /// The tables have committed the transaction themselves, together with other writes. Leases have been checked by now,
    /// and not earlier: a rollback undoes what the check has shortened.
    pub fn committed(&mut self) {
        self.leases_checked = true;
        self.new_instances.committed();
    }

    /// The earliest time at which a promotion will have something to do, by a read outside a transaction.
    ///
    /// # Errors
    /// If the tables cannot be read.
    pub fn next_wake(&mut self) -> Rows<Option<Timestamp>> {
        self.tables.next_due(self.promoted_at)
    }
}

impl<T: Tables> TransactionSteps for Rules<T> {
    fn begin(&mut self, now: Timestamp) -> Rows<()> {
        self.tables.begin()?;
        self.now = now;
        // After the clock was set back, a session that had ended may be live again: it ends a second time.
        self.promoted_at = self.promoted_at.min(now);
        self.promoted_before = self.promoted_at;
        self.early_messages.clear();
        self.rounds_of.clear();
        self.new_instances.clear();
        if !self.leases_checked {
            self.shorten_long_leases()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Rows<()> {
        self.tables.commit(self.now)?;
        self.committed();
        Ok(())
    }

    fn rollback(&mut self) {
        self.tables.rollback();
        self.promoted_at = self.promoted_before;
    }

    /// Promotes due rows, and removes rows of deleted instances whose removal has stopped.
    fn promote(&mut self) -> Rows<Vec<DeadLetterNote>> {
        self.promoted_at = self.now;
        self.remove_due_rows()?;
        self.tables.wake_due_activities(self.now)?;
        self.promote_instances()
    }

    fn shorten_leases(&mut self) -> Rows<()> {
        self.shorten_long_leases()
    }

    fn move_leases(&mut self, by: Duration) -> Rows<()> {
        self.move_live_leases(by)
    }

    fn nodes(&mut self) -> Rows<Vec<StoredNode>> {
        self.tables.nodes()
    }

    fn claim_instances(&mut self, fetch: &InstanceFetch, nonce: u128) -> Rows<Claimed<OrchestrationClaim>> {
        self.claim_ready_instances(fetch, nonce)
    }

    fn claim_activities(&mut self, fetch: &ActivityFetch, nonce: u128) -> Rows<Claimed<WorkClaim>> {
        self.claim_ready_activities(fetch, nonce)
    }

    /// Everything is checked before the first write.
    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        self.is_first_attempt = false;
        self.attempts_before = 0;
        match op {
            Op::CommitRound(round) => self.commit_round(round, handed_in),
            Op::AbandonInstance { token, delay, ignore_attempt } => {
                self.abandon_instance(token, *delay, *ignore_attempt)
            }
            Op::RenewInstance { token, extend_for } => self.renew_instance(token, *extend_for, handed_in),
            Op::AckActivity { token, completion } => self.ack_activity(token, completion.as_ref(), handed_in),
            Op::AbandonActivity { token, delay, ignore_attempt } => {
                self.abandon_activity(token, *delay, *ignore_attempt)
            }
            Op::RenewActivity { token, extend_for } => self.renew_activity(token, *extend_for, handed_in),
            Op::DeadLetterActivity { token, reason } => self.dead_letter_activity(token, reason, handed_in),
            Op::EnqueueMessage(message) => Ok(self.enqueue(message)?),
            Op::StartIfNew(start) => Ok(self.start_if_new(start)?),
            Op::EnqueueActivity(activity) => done(self.enqueue_activity(activity)),
            Op::Append { instance, execution_id, events, changes } => {
                self.append(instance, *execution_id, events, changes)
            }
            Op::RenewSessions { owners, extend_for, idle_timeout } => {
                Ok(Answer::Count(self.renew_sessions(owners, *extend_for, *idle_timeout, handed_in)?))
            }
            Op::CleanupSessions => Ok(Answer::Count(self.tables.delete_ended_sessions(self.now)?)),
            Op::SetMaxAttempts(max_attempts) => {
                self.max_attempts = *max_attempts;
                Ok(Answer::Done)
            }
            Op::DeleteInstances { ids, force } => self.delete_instances(ids, *force),
            Op::DeleteTree { instance, force } => self.delete_tree(instance, *force),
            Op::DeleteBulk(filter) => self.delete_bulk(filter),
            Op::Prune { instance, options } => self.prune(instance, options),
            Op::PruneBulk { filter, options } => self.prune_bulk(filter, options),
            Op::RemoveRows { task } => self.continue_removal(*task),
            Op::RetryDeadLetter { id } => self.retry_dead_letter(id),
            Op::DiscardDeadLetter { id } => self.discard_dead_letter(id),
            Op::JoinNode(row) => Ok(Answer::Joined(self.tables.write_node(row, self.now)?)),
            Op::RenewNodes { nodes } => done(self.renew_nodes(nodes)),
            Op::EndNode { name, blamed } => self.end_node(name, blamed.as_ref()),
        }
    }
}

fn done(result: Rows<()>) -> Result<Answer, ApplyError> {
    result.map(|()| Answer::Done).map_err(ApplyError::Broken)
}
