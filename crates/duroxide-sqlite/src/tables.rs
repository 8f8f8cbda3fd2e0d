//! The tables of SQLite, below the storage rules.
//!
//! A file for each table, with its statements beside the functions that run them; [`SqliteTables`] is the list of them. It
//! keeps a cache of rows (`row_cache`), which nobody above can see.

mod activities;
pub(crate) mod custom_status;
pub(crate) mod dead_letters;
pub(crate) mod executions;
mod instances;
pub(crate) mod key_values;
mod lanes;
pub(crate) mod messages;
pub(crate) mod nodes;
pub(crate) mod payloads;
mod readiness;
mod removals;
mod routes;
mod row_cache;
mod sequence;
mod sessions;

use duroxide_core::{KvEntry, Timestamp};
use duroxide_provider::{
    ClaimToken, InstanceFilter, NodeId,
    rules::{
        ActivityItem, BatchBound, DeadLetterRow, DueInstance, ExecutionAge, ExecutionRow, Extent,
        InstanceChange, InstanceRow, Lane, LaneId, Loaded, NewMessage, QueuedActivity, QueuedMessage,
        Removal, RemovalBudget, RemovedRows, Route, RouteId, Rows, SessionRow, Tables, VisibleMessages,
    },
    store::{ActivityRow, EventRow, FailureClass, MessageKind, NodeRow, Readies, StoreFailure},
};

use self::{
    lanes::Lanes,
    readiness::FirstRoute,
    routes::Routes,
    row_cache::{RowCache, Taken},
    sequence::Sequence,
};
use crate::{
    db::{Db, number},
    error::{commit_failure, failure},
    reads::bulk,
};

/// A transaction that writes takes the write lock at once: one that takes it later can meet a busy error that no
/// waiting cures (B20).
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(crate) const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const DATA_VERSION: &str = "PRAGMA data_version";

/// The tables of one store, through the connection that writes.
#[derive(Debug)]
pub(crate) struct SqliteTables {
    pub(crate) db: Db,
    sequence: Sequence,
    routes: Routes,
    lanes: Lanes,
    cache: RowCache,
    first_route: FirstRoute,
    /// Rows changed before the transaction began, to tell whether it wrote.
    changes_before: u64,
    /// The state of the store that the cache and the sequence belong to, as SQLite counts the commits of other
    /// connections.
    cached_version: Option<i64>,
}

impl SqliteTables {
    pub(crate) fn new(db: Db) -> Self {
        Self {
            db,
            sequence: Sequence::default(),
            routes: Routes::default(),
            lanes: Lanes::default(),
            cache: RowCache::default(),
            first_route: FirstRoute::default(),
            changes_before: 0,
            cached_version: None,
        }
    }

    /// How often other connections have changed the store.
    pub(crate) fn data_version(&self) -> Rows<i64> {
        Ok(self.db.first(DATA_VERSION, [], |row| row.get(0))?.unwrap_or_default())
    }

    /// SQLite ends a transaction itself on some errors. What ran after that would run outside of any.
    pub(crate) fn check_open(&self) -> Rows<()> {
        if self.db.conn().is_autocommit() {
            return Err(StoreFailure::new(FailureClass::Retryable, "no transaction is open"));
        }
        Ok(())
    }

    /// Somebody else, another process or somebody with a tool, may have changed rows that are cached.
    fn notice_other_writers(&mut self) -> Rows<()> {
        let version = Some(self.data_version()?);
        if self.cached_version != version {
            self.cache.clear();
            self.sequence.read(&self.db)?;
            self.cached_version = version;
        }
        Ok(())
    }
}

impl Tables for SqliteTables {
    fn begin(&mut self) -> Rows<()> {
        self.db.run(BEGIN).map_err(|error| failure(&error))?;
        self.changes_before = self.db.conn().total_changes();
        self.notice_other_writers()
    }

    fn commit(&mut self, now: Timestamp) -> Rows<()> {
        if self.db.conn().total_changes() != self.changes_before {
            self.sequence.write(&self.db, now)?;
        }
        self.db.run(COMMIT).map_err(|error| commit_failure(&error))
    }

    fn rollback(&mut self) {
        if !self.db.conn().is_autocommit()
            && let Err(error) = self.db.run(ROLLBACK)
        {
            tracing::warn!(target: "duroxide::providers::sqlite", %error, "rollback failed");
        }
        self.routes.clear();
        self.lanes.clear();
        self.cached_version = None;
    }

    fn next_number(&mut self) -> Rows<u64> {
        Ok(self.sequence.take())
    }

    // ---- instances ---------------------------------------------------------------------------------------------

    fn instance(&mut self, number: u64) -> Rows<Option<InstanceRow>> {
        match self.cache.instance(number) {
            Some(row) => Ok(Some(row.clone())),
            None => instances::by_number(&self.db, number),
        }
    }

    fn instance_named(&mut self, id: &str) -> Rows<Option<InstanceRow>> {
        match self.cache.instance_named(id) {
            Some(row) => Ok(Some(row.clone())),
            None => instances::by_id(&self.db, id),
        }
    }

    fn load(&mut self, number: u64) -> Rows<Option<Loaded>> {
        if let Some(loaded) = self.cache.take(number) {
            return Ok(Some(loaded));
        }
        let Some((loaded, custom_status_unset)) = instances::with_execution(&self.db, number)? else {
            return Ok(None);
        };
        self.cache.read(&loaded, custom_status_unset);
        Ok(Some(loaded))
    }

    fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Rows<()> {
        instances::update(&self.db, &loaded.row, change)?;
        self.cache.put_back(loaded);
        Ok(())
    }

    fn insert_instance(&mut self, row: &InstanceRow) -> Rows<bool> {
        let is_new = instances::insert(&self.db, row)?;
        if is_new {
            self.cache.inserted(row);
        }
        Ok(is_new)
    }

    fn update_instance(&mut self, row: &InstanceRow, change: InstanceChange) -> Rows<()> {
        self.cache.written(row, change);
        instances::update(&self.db, row, change)
    }

    fn wake_instance(&mut self, number: u64, ready: u64) -> Rows<()> {
        self.cache.woken(number, ready);
        instances::wake(&self.db, number, ready)
    }

    fn wake_if_waiting(&mut self, number: u64, id: &str, ready: u64) -> Rows<bool> {
        let woken = instances::wake_if_waiting(&self.db, number, id, ready)?;
        if woken {
            self.cache.woken(number, ready);
        }
        Ok(woken)
    }

    fn delete_instance(&mut self, number: u64) -> Rows<()> {
        self.cache.forget_number(number);
        instances::delete(&self.db, number)
    }

    fn children(&mut self, id: &str) -> Rows<Vec<u64>> {
        instances::children(&self.db, id)
    }

    fn leased_instances(&mut self, after: Timestamp) -> Rows<Vec<InstanceRow>> {
        instances::leased(&self.db, after)
    }

    fn bulk_selection(&mut self, filter: &InstanceFilter, running_too: bool) -> Rows<Vec<(u64, String)>> {
        bulk::select(&self.db, filter, running_too)
    }

    // ---- routes and readiness ----------------------------------------------------------------------------------

    fn route_id(&mut self, route: &Route) -> Rows<RouteId> {
        self.routes.id(&self.db, route)
    }

    fn route(&mut self, id: RouteId) -> Rows<Option<Route>> {
        Ok(self.routes.get(&self.db, id)?.cloned())
    }

    fn ready_routes(&mut self) -> Rows<Vec<RouteId>> {
        readiness::ready_routes(&self.db, self.first_route.known(&self.db))
    }

    fn ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<Vec<(u64, u64)>> {
        readiness::ready_on_route(&self.db, route, limit)
    }

    fn stray_instances(&mut self) -> Rows<Vec<u64>> {
        if self.first_route.look(&self.db)? { readiness::strays(&self.db) } else { Ok(Vec::new()) }
    }

    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>> {
        readiness::due(&self.db, now)
    }

    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>> {
        readiness::next_due(&self.db, sessions_after)
    }

    fn may_be_ready(&mut self) -> Rows<Readies> {
        Ok(Readies {
            instances: readiness::any_ready(&self.db)?,
            activities: activities::any_ready(&self.db)?,
        })
    }

    // ---- executions and history --------------------------------------------------------------------------------

    fn execution(&mut self, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>> {
        executions::get(&self.db, instance, execution_id)
    }

    fn write_execution(&mut self, instance: u64, execution_id: u64, execution: &ExecutionRow) -> Rows<()> {
        executions::write(&self.db, instance, execution_id, execution)
    }

    fn has_event(&mut self, instance: u64, execution_id: u64, event_id: u64) -> Rows<bool> {
        executions::has_event(&self.db, instance, execution_id, event_id)
    }

    fn append_events(&mut self, instance: u64, execution_id: u64, events: &[EventRow]) -> Rows<()> {
        executions::append(&self.db, instance, execution_id, events)
    }

    fn first_event(&mut self, instance: u64, execution_id: u64) -> Rows<Option<String>> {
        executions::first_event(&self.db, number(instance), execution_id)
    }

    fn nth_newest_execution(&mut self, instance: u64, nth: u32) -> Rows<Option<u64>> {
        executions::nth_newest(&self.db, instance, nth)
    }

    fn executions_between(
        &mut self,
        instance: u64,
        after: u64,
        below: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>> {
        executions::between(&self.db, instance, after, below, limit)
    }

    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()> {
        executions::delete(&self.db, instance, execution_id)
    }

    // ---- mailboxes ---------------------------------------------------------------------------------------------

    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool> {
        let is_new = messages::insert(&self.db, instance, message)?;
        if is_new {
            self.cache.message_arrived(instance, message);
        }
        Ok(is_new)
    }

    fn visible_messages(
        &mut self,
        instance: u64,
        now: Timestamp,
        bound: BatchBound,
    ) -> Rows<VisibleMessages> {
        match self.cache.take_messages(instance) {
            Some(visible) => Ok(visible),
            None => {
                let visible = messages::visible(&self.db, instance, now, bound)?;
                self.cache.messages_read(instance, &visible);
                Ok(visible)
            }
        }
    }

    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>> {
        messages::first_visible_start(&self.db, instance, kind, now)
    }

    fn first_start(&mut self, instance: u64) -> Rows<Option<String>> {
        messages::first_start(&self.db, instance)
    }

    fn has_messages(&mut self, instance: u64) -> Rows<bool> {
        messages::any(&self.db, instance)
    }

    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        messages::has_visible(&self.db, instance, now)
    }

    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        messages::has_visible_start(&self.db, instance, now)
    }

    fn has_start(&mut self, instance: u64) -> Rows<bool> {
        messages::has_start(&self.db, instance)
    }

    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool> {
        messages::has_other_than_queue(&self.db, instance)
    }

    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        messages::has_hidden_queue(&self.db, instance, now)
    }

    fn has_attempted(&mut self, instance: u64) -> Rows<bool> {
        messages::has_attempted(&self.db, instance)
    }

    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>> {
        messages::next_visible(&self.db, instance, now)
    }

    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>> {
        messages::oldest(&self.db, instance)
    }

    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>> {
        messages::waiting_since(&self.db, instance, time)
    }

    fn mark_messages(&mut self, instance: u64, marked: &[QueuedMessage], mark: u64) -> Rows<()> {
        messages::mark(&self.db, instance, marked, mark)
    }

    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool> {
        match (self.cache.taken(instance), extent) {
            // A row that is deleted by its key costs SQLite half of one that is deleted by a range.
            (Taken::One(due_at, seq), _) => messages::delete(&self.db, instance, due_at, seq)?,
            (Taken::AtOnce, Extent::Visible { at, up_to }) => {
                messages::consume_at_once(&self.db, instance, *at, *up_to)?;
            }
            _ => messages::consume(&self.db, instance, extent)?,
        }
        let are_left = match self.cache.are_left(instance) {
            Some(are_left) => are_left,
            None => messages::any(&self.db, instance)?,
        };
        self.cache.consumed(instance, are_left);
        Ok(are_left)
    }

    fn release(
        &mut self,
        instance: u64,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::release(&self.db, instance, extent, hidden_until, attempts)
    }

    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::count_attempt(&self.db, instance, extent)
    }

    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::update(&self.db, instance, message)
    }

    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::delete(&self.db, instance, message.due_at, message.number)
    }

    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool> {
        self.cache.mailbox_changed(instance);
        messages::delete_by_key(&self.db, instance, key)
    }

    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>> {
        messages::calls_of(&self.db, parent)
    }

    // ---- activities and sessions -------------------------------------------------------------------------------

    fn lane_id(&mut self, lane: &Lane) -> Rows<LaneId> {
        self.lanes.id(&self.db, lane)
    }

    fn lane(&mut self, id: LaneId) -> Rows<Option<Lane>> {
        Ok(self.lanes.get(&self.db, id)?.cloned())
    }

    fn insert_activity(&mut self, activity: &QueuedActivity, prepared: &ActivityRow) -> Rows<bool> {
        let is_new = activities::insert(&self.db, activity, prepared)?;
        if is_new {
            self.cache.put_activity(activity.clone(), prepared.item.clone());
        }
        Ok(is_new)
    }

    fn activity(&mut self, number: u64) -> Rows<Option<QueuedActivity>> {
        match self.cache.take_activity(number) {
            Some(activity) => Ok(Some(activity)),
            None => activities::get(&self.db, number),
        }
    }

    fn activity_with_item(&mut self, number: u64) -> Rows<Option<(QueuedActivity, ActivityItem)>> {
        if let Some((activity, item)) = self.cache.take_activity_with_item(number) {
            return Ok(Some((activity, ActivityItem::Item(item))));
        }
        let found = activities::get_with_data(&self.db, number)?;
        Ok(found.map(|(activity, data)| (activity, ActivityItem::Data(data))))
    }

    fn find_activity(&mut self, instance: u64, execution_id: u64, activity_id: u64) -> Rows<Option<u64>> {
        activities::find(&self.db, instance, execution_id, activity_id)
    }

    fn update_activity(&mut self, activity: &QueuedActivity) -> Rows<()> {
        self.cache.activity_written(activity);
        activities::update(&self.db, activity)
    }

    fn delete_activity(&mut self, number: u64) -> Rows<()> {
        self.cache.forget_activity(number);
        activities::delete(&self.db, number)
    }

    fn delete_activities(&mut self, instance: u64) -> Rows<u64> {
        self.cache.forget_activities();
        activities::delete_of_instance(&self.db, instance)
    }

    fn has_activities(&mut self, instance: u64) -> Rows<bool> {
        activities::any_of_instance(&self.db, instance)
    }

    fn wake_due_activities(&mut self, now: Timestamp) -> Rows<()> {
        for number in activities::wake_due(&self.db, now)? {
            self.cache.activity_woken(number);
        }
        Ok(())
    }

    fn ready_lanes(&mut self) -> Rows<Vec<LaneId>> {
        activities::ready_lanes(&self.db)
    }

    fn ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<Vec<u64>> {
        activities::ready_in_lane(&self.db, lane, limit)
    }

    fn ready_session_lanes(&mut self) -> Rows<Vec<(String, LaneId)>> {
        activities::ready_session_lanes(&self.db)
    }

    fn ready_in_session_lane(&mut self, session: &str, lane: LaneId, limit: usize) -> Rows<Vec<u64>> {
        activities::ready_in_session_lane(&self.db, session, lane, limit)
    }

    fn leased_activities(&mut self, after: Timestamp) -> Rows<Vec<QueuedActivity>> {
        activities::leased(&self.db, after)
    }

    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>> {
        sessions::get(&self.db, id)
    }

    fn write_session(&mut self, session: &SessionRow) -> Rows<()> {
        sessions::write(&self.db, session)
    }

    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()> {
        sessions::touch(&self.db, id, now)
    }

    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>> {
        sessions::leased(&self.db, owner, after)
    }

    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize> {
        sessions::delete_ended(&self.db, now)
    }

    // ---- key-values and custom status --------------------------------------------------------------------------

    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()> {
        self.cache.kv_changed(instance);
        key_values::set_change(&self.db, instance, key, change)
    }

    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()> {
        key_values::delete_change(&self.db, instance, key)
    }

    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>> {
        if self.cache.kv_is_unchanged(instance) {
            return Ok(Vec::new());
        }
        key_values::changes(&self.db, number(instance))
    }

    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool> {
        key_values::has(&self.db, instance, key)
    }

    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>> {
        key_values::keys(&self.db, instance)
    }

    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()> {
        key_values::set(&self.db, instance, key, entry)
    }

    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()> {
        key_values::delete(&self.db, instance, key)
    }

    fn custom_status_version(&mut self, instance: u64) -> Rows<u64> {
        if self.cache.custom_status_is_unset(instance) {
            return Ok(0);
        }
        custom_status::version(&self.db, instance)
    }

    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()> {
        self.cache.custom_status_set(instance);
        custom_status::set(&self.db, instance, status, version)
    }

    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
        self.cache.custom_status_is_unset(instance).then_some(None)
    }

    // ---- dead letters ------------------------------------------------------------------------------------------

    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64> {
        dead_letters::insert(&self.db, row)
    }

    fn dead_letter(&mut self, number: u64) -> Rows<Option<DeadLetterRow>> {
        dead_letters::get(&self.db, number)
    }

    fn delete_dead_letter(&mut self, number: u64) -> Rows<()> {
        dead_letters::delete(&self.db, number)
    }

    fn delete_dead_letters_of(&mut self, id: &str) -> Rows<()> {
        dead_letters::delete_of_instance(&self.db, id)
    }

    // ---- nodes -------------------------------------------------------------------------------------------------

    fn node(&mut self, name: &str) -> Rows<Option<(NodeId, Vec<String>)>> {
        nodes::find(&self.db, name)
    }

    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId> {
        nodes::write(&self.db, row, now)
    }

    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<()> {
        nodes::touch(&self.db, name, now)
    }

    fn nodes_seen(&mut self) -> Rows<Vec<(NodeId, Timestamp)>> {
        nodes::seen(&self.db)
    }

    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()> {
        nodes::set_seen(&self.db, node, seen_at)
    }

    fn delete_node(&mut self, node: NodeId) -> Rows<()> {
        nodes::delete(&self.db, node)
    }

    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>> {
        let instances = instances::tokens_of(&self.db, node, after)?.into_iter().map(ClaimToken::Instance);
        let activities = activities::tokens_of(&self.db, node, after)?.into_iter().map(ClaimToken::Activity);
        Ok(instances.chain(activities).collect())
    }

    // ---- removals ----------------------------------------------------------------------------------------------

    fn insert_removal(&mut self, task: u64, removal: &Removal) -> Rows<()> {
        removals::insert(&self.db, task, removal)
    }

    fn first_removal(&mut self, task: u64) -> Rows<Option<Removal>> {
        removals::first(&self.db, task)
    }

    fn delete_removal(&mut self, removal: &Removal) -> Rows<()> {
        removals::delete(&self.db, removal)
    }

    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()> {
        removals::write_task(&self.db, task, remove_at)
    }

    fn delete_removal_task(&mut self, task: u64) -> Rows<()> {
        removals::delete_task(&self.db, task)
    }

    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>> {
        removals::due_task(&self.db, now)
    }

    fn remove_rows(&mut self, removal: &Removal, budget: &mut RemovalBudget) -> Rows<RemovedRows> {
        removals::remove_rows(&self.db, removal, budget)
    }
}
