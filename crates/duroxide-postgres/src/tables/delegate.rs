//! The traits of the rules, each from a list of its methods.

use duroxide_core::{KvEntry, Timestamp};
use duroxide_provider::{
    ClaimToken, InstanceFilter, NodeId,
    rules::{
        ActivityItem, ActivityTable, ClaimBound, DeadLetterRow, DeadLetterTable, DueInstance, ExecutionAge,
        ExecutionRow, Extent, Family, HistoryTable, InstanceChange, InstanceRow, InstanceTable, Lane, LaneId,
        Loaded, MailboxTable, NewMessage, NodeTable, QueuedActivity, QueuedMessage, ReadyIndex, Removal,
        RemovalBudget, RemovalTable, RemovedRows, Route, RouteId, Rows, SessionRow, SessionTable, StateTable,
        Transactions, VisibleMessages,
    },
    store::{ActivityRow, EventRow, MessageKind, NodeRow, Readies, StoredNode},
};

use super::PostgresTables;
use crate::database_error::DatabaseError;

/// Forwards calls to the methods of the same name.
macro_rules! delegate {
    (
        $trait:ident { $($own:tt)* }
        $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*
    ) => {
        impl $trait for PostgresTables {
            $($own)*

            $(fn $name(&mut self, $($argument: $type),*) -> Rows<$result> {
                PostgresTables::$name(self, $($argument),*).map_err(DatabaseError::into_failure)
            })*
        }
    };
}

delegate! {
    Transactions {
        fn begin(&mut self) -> Rows<()> {
            PostgresTables::begin(self);
            Ok(())
        }

        fn commit(&mut self, _now: Timestamp) -> Rows<()> {
            PostgresTables::commit(self).map_err(DatabaseError::into_failure)
        }

        fn rollback(&mut self) {
            PostgresTables::rollback(self);
        }
    }
    fn next_number() -> u64;
}

delegate! {
    InstanceTable {
        fn load(&mut self, number: u64) -> Rows<Option<Loaded>> {
            self.load_with_execution(number).map_err(DatabaseError::into_failure)
        }

        fn is_at_hand(&mut self, number: u64) -> bool {
            self.relied_on_cache
                && self.set.whole_key_value_changes.contains(&number)
                && self.set.custom_status.knows(&number)
        }
    }
    fn instance(number: u64) -> Option<InstanceRow>;
    fn instance_named(id: &str) -> Option<InstanceRow>;
    fn store(loaded: Loaded, change: InstanceChange) -> ();
    fn insert_instance(row: &InstanceRow) -> bool;
    fn update_instance(row: &InstanceRow, change: InstanceChange) -> ();
    fn wake_instance(number: u64, ready: u64) -> ();
    fn delete_instance(number: u64) -> ();
    fn instances(numbers: &[u64]) -> Vec<InstanceRow>;
    fn families(numbers: &[u64]) -> Vec<Family>;
    fn leased_instances(after: Timestamp) -> Vec<InstanceRow>;
    fn bulk_selection(filter: &InstanceFilter, running_too: bool) -> Vec<(u64, String)>;
}

delegate! {
    ReadyIndex {
    }
    fn route_id(route: &Route) -> RouteId;
    fn route(id: RouteId) -> Option<Route>;
    fn ready_routes() -> Vec<RouteId>;
    fn ready_on_route(route: RouteId, limit: usize) -> Vec<(u64, u64)>;
    fn count_ready_on_route(route: RouteId, limit: usize) -> usize;
    fn stray_instances() -> Vec<u64>;
    fn due_instances(now: Timestamp) -> Vec<DueInstance>;
    fn next_due(sessions_after: Timestamp) -> Option<Timestamp>;
    fn may_be_ready() -> Readies;
}

delegate! {
    HistoryTable {
    }
    fn execution(instance: u64, execution_id: u64) -> Option<ExecutionRow>;
    fn write_execution(instance: u64, execution_id: u64, execution: &ExecutionRow) -> ();
    fn has_event(instance: u64, execution_id: u64, event_id: u64) -> bool;
    fn append_events(instance: u64, execution_id: u64, events: &[EventRow]) -> ();
    fn first_event(instance: u64, execution_id: u64) -> Option<String>;
    fn old_executions(instances: &[u64], keep: u32, after: u64, limit: usize) -> Vec<ExecutionAge>;
    fn delete_execution(instance: u64, execution_id: u64) -> ();
}

delegate! {
    MailboxTable {
    }
    fn insert_message(instance: u64, message: &NewMessage<'_>) -> bool;
    fn visible_messages(instance: u64, now: Timestamp, bound: ClaimBound) -> VisibleMessages;
    fn first_visible_start(instance: u64, kind: MessageKind, now: Timestamp) -> Option<QueuedMessage>;
    fn first_start(instance: u64) -> Option<String>;
    fn holds_of_clients(instance: u64, at_least: u64) -> bool;
    fn has_messages(instance: u64) -> bool;
    fn has_visible(instance: u64, now: Timestamp) -> bool;
    fn has_visible_start(instance: u64, now: Timestamp) -> bool;
    fn has_start(instance: u64) -> bool;
    fn has_other_than_queue(instance: u64) -> bool;
    fn has_hidden_queue(instance: u64, now: Timestamp) -> bool;
    fn has_attempted(instance: u64) -> bool;
    fn next_visible(instance: u64, now: Timestamp) -> Option<Timestamp>;
    fn oldest_message(instance: u64) -> Option<Timestamp>;
    fn messages_waiting_since(instance: u64, time: Timestamp) -> Vec<QueuedMessage>;
    fn mark_messages(instance: u64, messages: &[QueuedMessage], mark: u64) -> ();
    fn consume(instance: u64, extent: &Extent) -> bool;
    fn release(instance: u64, extent: &Extent, hidden_until: Timestamp, attempts: u32) -> ();
    fn count_attempt(instance: u64, extent: &Extent) -> ();
    fn update_message(instance: u64, message: &QueuedMessage) -> ();
    fn delete_message(instance: u64, message: &QueuedMessage) -> ();
    fn delete_message_by_key(instance: u64, key: &str) -> bool;
    fn calls_of(parent: &str) -> Vec<(u64, String)>;
}

delegate! {
    ActivityTable {
    }
    fn lane_id(lane: &Lane) -> LaneId;
    fn lane(id: LaneId) -> Option<Lane>;
    fn insert_activity(activity: &QueuedActivity, prepared: &ActivityRow) -> bool;
    fn activity(number: u64) -> Option<QueuedActivity>;
    fn activity_with_item(number: u64) -> Option<(QueuedActivity, ActivityItem)>;
    fn find_activity(instance: u64, execution_id: u64, activity_id: u64) -> Option<u64>;
    fn update_activity(activity: &QueuedActivity) -> ();
    fn delete_activity(number: u64) -> ();
    fn delete_activities(instances: &[u64]) -> u64;
    fn has_activities(instance: u64) -> bool;
    fn wake_due_activities(now: Timestamp) -> ();
    fn ready_lanes() -> Vec<LaneId>;
    fn ready_in_lane(lane: LaneId, limit: usize) -> Vec<u64>;
    fn count_ready_in_lane(lane: LaneId, limit: usize) -> usize;
    fn ready_session_lanes() -> Vec<(String, LaneId)>;
    fn ready_in_session_lane(session: &str, lane: LaneId, limit: usize) -> Vec<u64>;
    fn leased_activities(after: Timestamp) -> Vec<QueuedActivity>;
}

delegate! {
    SessionTable {
    }
    fn session(id: &str) -> Option<SessionRow>;
    fn write_session(session: &SessionRow) -> ();
    fn touch_session(id: &str, now: Timestamp) -> ();
    fn leased_sessions(owner: Option<&str>, after: Timestamp) -> Vec<SessionRow>;
    fn delete_ended_sessions(now: Timestamp) -> usize;
}

delegate! {
    StateTable {
        fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
            self.known_custom_status(instance)
        }
    }
    fn set_kv_change(instance: u64, key: &str, change: Option<&KvEntry>) -> ();
    fn delete_kv_change(instance: u64, key: &str) -> ();
    fn kv_changes(instance: u64) -> Vec<(String, Option<KvEntry>)>;
    fn has_kv(instance: u64, key: &str) -> bool;
    fn kv_keys(instance: u64) -> Vec<String>;
    fn set_kv(instance: u64, key: &str, entry: &KvEntry) -> ();
    fn delete_kv(instance: u64, key: &str) -> ();
    fn custom_status_version(instance: u64) -> u64;
    fn set_custom_status(instance: u64, status: Option<&str>, version: u64) -> ();
}

delegate! {
    DeadLetterTable {
    }
    fn insert_dead_letter(row: &DeadLetterRow) -> u64;
    fn dead_letter(number: u64) -> Option<DeadLetterRow>;
    fn delete_dead_letter(number: u64) -> ();
    fn delete_dead_letters_of(ids: &[String]) -> ();
}

delegate! {
    NodeTable {
    }
    fn node(name: &str) -> Option<(NodeId, Vec<String>)>;
    fn write_node(row: &NodeRow, now: Timestamp) -> NodeId;
    fn touch_node(name: &str, now: Timestamp) -> bool;
    fn restore_node(node: NodeId, row: &NodeRow, now: Timestamp) -> ();
    fn nodes() -> Vec<StoredNode>;
    fn set_node_seen(node: NodeId, seen_at: Timestamp) -> ();
    fn delete_node(node: NodeId) -> ();
    fn claims_of(node: NodeId, after: Timestamp) -> Vec<ClaimToken>;
}

delegate! {
    RemovalTable {
    }
    fn insert_removals(task: u64, removals: &[(u64, Removal)]) -> ();
    fn first_removals(task: u64, limit: usize) -> Vec<(u64, Removal)>;
    fn delete_removals(numbers: &[u64]) -> ();
    fn write_removal_task(task: u64, remove_at: Timestamp) -> ();
    fn delete_removal_task(task: u64) -> ();
    fn due_removal_task(now: Timestamp) -> Option<u64>;
    fn remove_rows(removals: &[Removal], budget: &mut RemovalBudget) -> RemovedRows;
}
