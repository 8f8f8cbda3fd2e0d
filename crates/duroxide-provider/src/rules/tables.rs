//! What the rules ask of a set of tables.

use duroxide_core::{KvEntry, Timestamp};

use super::{
    BatchBound, DeadLetterRow, ExecutionAge, ExecutionRow, InstanceRow, Lane, LaneId, Loaded, QueuedActivity,
    QueuedMessage, Removal, Route, RouteId, SessionRow, VisibleMessages, row::Extent,
};
use crate::{
    ClaimToken, InstanceFilter, NodeId,
    store::{ActivityRow, EventRow, MessageKind, MessageRow, NodeRow, Readies, StoreFailure},
};

/// The result of reading or writing rows.
pub type Rows<T> = Result<T, StoreFailure>;

/// Rows of one store, inside a transaction: they are read and written, and nothing is decided here.
///
/// Every read sees what was written before it in the same transaction. Lists are ordered as documented, because answers
/// depend on their order. `now` is an argument wherever time matters. A set of tables may cache what it likes, as long as
/// nobody can tell.
pub trait Tables {
    // ---- transactions ------------------------------------------------------------------------------------------

    /// Opens a write transaction.
    fn begin(&mut self) -> Rows<()>;

    /// Ends the transaction; everything written in it becomes durable and visible. `now` is its time.
    fn commit(&mut self, now: Timestamp) -> Rows<()>;

    /// Ends the transaction without effect. Also called after a failed `begin` or `commit`.
    fn rollback(&mut self);

    /// Draws the next number. None is drawn twice, not even after a rollback.
    fn next_number(&mut self) -> Rows<u64>;

    // ---- instances ---------------------------------------------------------------------------------------------

    /// The instance of this number.
    fn instance(&mut self, number: u64) -> Rows<Option<InstanceRow>>;

    /// The instance of this id.
    fn instance_named(&mut self, id: &str) -> Rows<Option<InstanceRow>>;

    /// The instance of this number with its current execution. What a rule loads it stores again with
    /// [`Self::store`], or drops unchanged.
    fn load(&mut self, number: u64) -> Rows<Option<Loaded>>;

    /// Writes an instance that was loaded. The execution was written by [`Self::write_execution`].
    fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Rows<()>;

    /// Inserts an instance; returns whether its id was free.
    fn insert_instance(&mut self, row: &InstanceRow) -> Rows<bool>;

    /// Writes the columns of an instance that `change` names.
    fn update_instance(&mut self, row: &InstanceRow, change: InstanceChange) -> Rows<()>;

    /// Makes an instance ready that waited on its route for nothing but a message.
    fn wake_instance(&mut self, number: u64, ready: u64) -> Rows<()>;

    /// Does the same without reading the instance, if one write can tell that it has this id, is running, unlocked and
    /// on its route, and waits. Returns whether it did. Tables that cannot tell return `false`.
    fn wake_if_waiting(&mut self, number: u64, id: &str, ready: u64) -> Rows<bool> {
        let _ = (number, id, ready);
        Ok(false)
    }

    /// Deletes the row of an instance, and nothing that belongs to it.
    fn delete_instance(&mut self, number: u64) -> Rows<()>;

    /// The numbers of the instances whose parent is this one, ascending.
    fn children(&mut self, id: &str) -> Rows<Vec<u64>>;

    /// Instances that have a lock whose lease ends after this time, by number.
    fn leased_instances(&mut self, after: Timestamp) -> Rows<Vec<InstanceRow>>;

    /// Number and id of the instances that a bulk delete (ended roots) or, with `running_too`, a bulk prune visits, by
    /// number.
    fn bulk_selection(&mut self, filter: &InstanceFilter, running_too: bool) -> Rows<Vec<(u64, String)>>;

    // ---- routes and readiness ----------------------------------------------------------------------------------

    /// The key of a route, which is stored if it is new.
    fn route_id(&mut self, route: &Route) -> Rows<RouteId>;

    /// The route of a key.
    fn route(&mut self, id: RouteId) -> Rows<Option<Route>>;

    /// The routes on which an instance is ready, in any fixed order.
    fn ready_routes(&mut self) -> Rows<Vec<RouteId>>;

    /// Ready instances on a route, lowest ready number first, at most `limit`: ready number and number.
    fn ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<Vec<(u64, u64)>>;

    /// How many instances are ready on a route whose instances the claim does not take, at most `limit`. Tables whose rows
    /// are locked by [`Self::ready_on_route`] must not lock these, because another node may take them.
    fn count_ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<usize> {
        Ok(self.ready_on_route(route, limit)?.len())
    }

    /// Numbers of stray mailboxes, ascending.
    fn stray_instances(&mut self) -> Rows<Vec<u64>>;

    /// Instances whose time to wait is over, by (time, number).
    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>>;

    /// The earliest time at which something is due: an instance or activity that waits, a removal, or the lease of a
    /// session that has queued activities and ends after `sessions_after`.
    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>>;

    /// Which queues hold something that some claim may take; may say yes too often, never too seldom.
    fn may_be_ready(&mut self) -> Rows<Readies>;

    // ---- executions and history --------------------------------------------------------------------------------

    /// An execution.
    fn execution(&mut self, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>>;

    /// Inserts or replaces an execution.
    fn write_execution(&mut self, instance: u64, execution_id: u64, execution: &ExecutionRow) -> Rows<()>;

    /// Whether an event is stored.
    fn has_event(&mut self, instance: u64, execution_id: u64, event_id: u64) -> Rows<bool>;

    /// Appends events.
    fn append_events(&mut self, instance: u64, execution_id: u64, events: &[EventRow]) -> Rows<()>;

    /// The first event of an execution.
    fn first_event(&mut self, instance: u64, execution_id: u64) -> Rows<Option<String>>;

    /// The id of the `nth` newest execution, counted from 1; `None` if there are fewer.
    fn nth_newest_execution(&mut self, instance: u64, nth: u32) -> Rows<Option<u64>>;

    /// Executions above `after` and below `below`, ascending, at most `limit`.
    fn executions_between(
        &mut self,
        instance: u64,
        after: u64,
        below: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>>;

    /// Deletes the row of an execution, and nothing that belongs to it.
    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()>;

    // ---- mailboxes ---------------------------------------------------------------------------------------------

    /// Inserts a message, unless one with its key is in the mailbox. Returns whether it was inserted.
    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool>;

    /// Messages that are due, not hidden, and not queue messages behind a hidden queue message, by position.
    fn visible_messages(&mut self, instance: u64, now: Timestamp, bound: BatchBound)
    -> Rows<VisibleMessages>;

    /// The first message of this kind that is due and not hidden, by position.
    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>>;

    /// The JSON of the first start or `ContinueAsNew`, visible or not, by (kind, position).
    fn first_start(&mut self, instance: u64) -> Rows<Option<String>>;

    /// Whether any message is in the mailbox.
    fn has_messages(&mut self, instance: u64) -> Rows<bool>;

    /// Whether [`Self::visible_messages`] would find one.
    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool>;

    /// Whether a start or `ContinueAsNew` is due and not hidden.
    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool>;

    /// Whether a start or `ContinueAsNew` is in the mailbox, visible or not.
    fn has_start(&mut self, instance: u64) -> Rows<bool>;

    /// Whether a message is in the mailbox that is no queue message.
    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool>;

    /// Whether a hidden queue message is in the mailbox: those behind it wait for it.
    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool>;

    /// Whether a message that was claimed before is in the mailbox.
    fn has_attempted(&mut self, instance: u64) -> Rows<bool>;

    /// The earliest time after `now` at which a message becomes due or is no longer hidden.
    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>>;

    /// Since when the oldest message waits ([`QueuedMessage::waits_since`]).
    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>>;

    /// Messages that wait since this time or longer, longest first, then by position.
    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>>;

    /// Gives messages the mark of an [`Extent::Marked`].
    fn mark_messages(&mut self, instance: u64, messages: &[QueuedMessage], mark: u64) -> Rows<()>;

    /// Deletes the messages of an extent; returns whether others are left in the mailbox.
    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool>;

    /// Hides the messages of an extent until this time, takes their mark away and adds to their attempts.
    fn release(&mut self, instance: u64, extent: &Extent, hidden_until: Timestamp, attempts: u32)
    -> Rows<()>;

    /// Adds one to the attempts of the messages of an extent.
    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()>;

    /// Writes kind, attempts, mark and hidden-until of a message.
    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()>;

    /// Deletes a message.
    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()>;

    /// Deletes the message with this key; returns whether there was one.
    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool>;

    /// The child starts in all mailboxes that carry out a call of this parent: number of the child's row, and key.
    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>>;

    // ---- activities and sessions -------------------------------------------------------------------------------

    /// The key of a lane, which is stored if it is new.
    fn lane_id(&mut self, lane: &Lane) -> Rows<LaneId>;

    /// The lane of a key.
    fn lane(&mut self, id: LaneId) -> Rows<Option<Lane>>;

    /// Inserts an activity, unless its instance has one of the same execution and id. Returns whether it was inserted.
    fn insert_activity(&mut self, activity: &QueuedActivity, prepared: &ActivityRow) -> Rows<bool>;

    /// An activity.
    fn activity(&mut self, number: u64) -> Rows<Option<QueuedActivity>>;

    /// An activity with what it is asked to do.
    fn activity_with_item(&mut self, number: u64) -> Rows<Option<(QueuedActivity, ActivityItem)>>;

    /// The number of an activity.
    fn find_activity(&mut self, instance: u64, execution_id: u64, activity_id: u64) -> Rows<Option<u64>>;

    /// Writes everything about an activity that can change.
    fn update_activity(&mut self, activity: &QueuedActivity) -> Rows<()>;

    /// Deletes an activity.
    fn delete_activity(&mut self, number: u64) -> Rows<()>;

    /// Deletes the activities of an instance; returns how many there were.
    fn delete_activities(&mut self, instance: u64) -> Rows<u64>;

    /// Whether an instance has queued activities.
    fn has_activities(&mut self, instance: u64) -> Rows<bool>;

    /// Makes every activity ready whose time to wait is over.
    fn wake_due_activities(&mut self, now: Timestamp) -> Rows<()>;

    /// The lanes in which an activity without session is ready, in any fixed order.
    fn ready_lanes(&mut self) -> Rows<Vec<LaneId>>;

    /// Ready activities without session in a lane, ascending, at most `limit`.
    fn ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<Vec<u64>>;

    /// How many activities without session are ready in a lane whose activities the claim does not take, at most `limit`.
    /// Like [`Self::count_ready_on_route`] it must not lock them.
    fn count_ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<usize> {
        Ok(self.ready_in_lane(lane, limit)?.len())
    }

    /// The sessions and lanes in which an activity is ready, in any fixed order.
    fn ready_session_lanes(&mut self) -> Rows<Vec<(String, LaneId)>>;

    /// Ready activities of a session in a lane, ascending, at most `limit`.
    fn ready_in_session_lane(&mut self, session: &str, lane: LaneId, limit: usize) -> Rows<Vec<u64>>;

    /// Activities that have a lock whose lease ends after this time, by number.
    fn leased_activities(&mut self, after: Timestamp) -> Rows<Vec<QueuedActivity>>;

    /// A session.
    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>>;

    /// Inserts or replaces a session.
    fn write_session(&mut self, session: &SessionRow) -> Rows<()>;

    /// Notes that an activity of a session was renewed or acknowledged; an unknown session is no error.
    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()>;

    /// The sessions whose lease ends after this time, by id; of this owner, if one is given.
    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>>;

    /// Deletes the sessions whose lease has ended and that have no queued activity; returns how many.
    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize>;

    // ---- key-values and custom status --------------------------------------------------------------------------

    /// Sets a change of the current execution; `None` marks a removed key.
    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()>;

    /// Forgets a change of the current execution.
    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()>;

    /// The changes of the current execution, by key.
    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>>;

    /// Whether earlier executions left a value under this key.
    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool>;

    /// The keys under which earlier executions left a value, ascending.
    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>>;

    /// Sets a value that an execution leaves.
    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()>;

    /// Deletes a value that an execution left.
    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()>;

    /// How often the custom status was set.
    fn custom_status_version(&mut self, instance: u64) -> Rows<u64>;

    /// Sets the custom status.
    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()>;

    /// The custom status with its version, if that is known without reading it. `Some(None)`: never set.
    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>>;

    // ---- dead letters ------------------------------------------------------------------------------------------

    /// Inserts a dead letter; returns its number, counted from 1 and never reused.
    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64>;

    /// A dead letter.
    fn dead_letter(&mut self, number: u64) -> Rows<Option<DeadLetterRow>>;

    /// Deletes a dead letter.
    fn delete_dead_letter(&mut self, number: u64) -> Rows<()>;

    /// Deletes the dead letters of an instance.
    fn delete_dead_letters_of(&mut self, id: &str) -> Rows<()>;

    // ---- nodes -------------------------------------------------------------------------------------------------

    /// The number of a node, and the owners of sessions that end with it.
    fn node(&mut self, name: &str) -> Rows<Option<(NodeId, Vec<String>)>>;

    /// Inserts a node, or replaces the one of its name, which keeps its number. Numbers count from 1 and are never reused.
    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId>;

    /// Notes that a node was seen; an unknown one is no error.
    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<()>;

    /// Numbers of all nodes with the time at which each was last seen.
    fn nodes_seen(&mut self) -> Rows<Vec<(NodeId, Timestamp)>>;

    /// Sets when a node was last seen.
    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()>;

    /// Deletes a node.
    fn delete_node(&mut self, node: NodeId) -> Rows<()>;

    /// The claims whose lease a node holds after this time: instances before activities, each by number.
    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>>;

    // ---- removals ----------------------------------------------------------------------------------------------

    /// Adds rows to remove to a task.
    fn insert_removal(&mut self, task: u64, removal: &Removal) -> Rows<()>;

    /// The first removal of a task.
    fn first_removal(&mut self, task: u64) -> Rows<Option<Removal>>;

    /// Ends a removal, all of whose rows are gone.
    fn delete_removal(&mut self, removal: &Removal) -> Rows<()>;

    /// Inserts a task, or changes when others may go on with it.
    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()>;

    /// Ends a task.
    fn delete_removal_task(&mut self, task: u64) -> Rows<()>;

    /// The task that has been due longest.
    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>>;

    /// Removes rows within a budget, in any fixed order.
    fn remove_rows(&mut self, removal: &Removal, budget: &mut RemovalBudget) -> Rows<RemovedRows>;
}

/// Which columns of an instance change beside its readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceChange {
    /// None.
    Readiness,
    /// Its lock, whether it is suspect, its losses.
    Lock,
    /// And its current execution and the time of its last change.
    Round,
    /// And its status.
    Status,
    /// And everything else.
    Description,
}

/// An instance whose time to wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueInstance {
    /// The instance.
    pub number: u64,
    /// Whether the tables can tell that it is known, unlocked, on its route, does not wait for its successor, and has a
    /// message that is visible and no queue message: it is ready, and nothing else has to be looked at.
    pub is_plainly_ready: bool,
}

/// A message that is put into a mailbox.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// Its number.
    pub number: u64,
    /// When it becomes visible; zero: at once.
    pub due_at: Timestamp,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// What it is.
    pub prepared: &'a MessageRow,
}

/// What an activity is asked to do.
#[derive(Debug, Clone)]
pub enum ActivityItem {
    /// As it was enqueued in this process.
    Item(std::sync::Arc<duroxide_core::WorkItem>),
    /// As it is stored.
    Data(String),
}

/// What a step of a removal may still remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalBudget {
    rows: usize,
    bytes: usize,
}

impl RemovalBudget {
    /// A budget.
    pub const fn new(rows: usize, bytes: usize) -> Self {
        Self { rows, bytes }
    }

    /// Whether nothing more may be removed.
    pub fn is_spent(self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// How many rows may be removed.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// How many bytes may be removed.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Takes a row into the step, unless the step is full.
    pub fn spend(&mut self, bytes: usize) -> bool {
        if self.is_spent() {
            return false;
        }
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        true
    }
}

/// What a step of a removal removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedRows {
    /// Events.
    pub events: u64,
    /// Messages.
    pub messages: u64,
    /// Executions.
    pub executions: u64,
    /// Whether no row of the removal is left.
    pub is_done: bool,
}
