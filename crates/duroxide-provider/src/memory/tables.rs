//! The tables of a memory engine.

use duroxide_core::{KvEntry, Timestamp};

use super::{
    activities::Activities,
    dead_letters::DeadLetters,
    history::{Events, Executions},
    instances::{Instances, limit},
    interned::Interned,
    key_values::KeyValues,
    mailboxes::Mailboxes,
    nodes::{Node, Nodes},
    removals::Removals,
    sessions::Sessions,
    table::{Table, Transact},
};
use crate::{
    ClaimToken, InstanceFilter, NodeId,
    rules::{
        ActivityItem, BatchBound, DeadLetterRow, DueInstance, ExecutionAge, ExecutionRow, Extent,
        InstanceChange, InstanceRow, Lane, LaneId, Loaded, NewMessage, QueuedActivity, QueuedMessage,
        Readiness, Removal, RemovalBudget, RemovedRows, Route, RouteId, Rows, SessionRow, Tables,
        VisibleMessages,
    },
    store::{ActivityRow, EventRow, MessageKind, NodeRow, Readies},
};

/// All rows of a store, in ordered maps.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryTables {
    pub(super) last_number: u64,
    pub(super) last_dead_letter: u64,
    pub(super) last_node: u64,
    pub(super) instances: Instances,
    pub(super) routes: Interned<Route>,
    pub(super) executions: Executions,
    pub(super) events: Events,
    pub(super) messages: Mailboxes,
    pub(super) activities: Activities,
    /// What each activity is asked to do.
    pub(super) activity_items: Table<u64, ActivityRow>,
    pub(super) lanes: Interned<Lane>,
    pub(super) sessions: Sessions,
    pub(super) kv: KeyValues<KvEntry>,
    pub(super) kv_changes: KeyValues<Option<KvEntry>>,
    /// The custom status of each instance, and how often it was set.
    pub(super) custom_statuses: Table<u64, (Option<String>, u64)>,
    pub(super) dead_letters: DeadLetters,
    pub(super) nodes: Nodes,
    pub(super) removals: Removals,
    /// When others may go on with a task.
    pub(super) removal_tasks: Table<u64, Timestamp>,
}

impl MemoryTables {
    fn each(&mut self, act: impl FnMut(&mut dyn Transact)) {
        let tables: [&mut dyn Transact; 14] = [
            &mut self.instances,
            &mut self.executions,
            &mut self.events,
            &mut self.messages,
            &mut self.activities,
            &mut self.activity_items,
            &mut self.sessions,
            &mut self.kv,
            &mut self.kv_changes,
            &mut self.custom_statuses,
            &mut self.dead_letters,
            &mut self.nodes,
            &mut self.removals,
            &mut self.removal_tasks,
        ];
        tables.into_iter().for_each(act);
    }

    pub(super) fn current_execution(&self, row: &InstanceRow) -> Option<&ExecutionRow> {
        self.executions.get(&(row.number, row.execution_id))
    }

    pub(super) fn is_selected(&self, row: &InstanceRow, filter: &InstanceFilter, running_too: bool) -> bool {
        let ended_before = |millis| {
            let completed_at = self.current_execution(row).and_then(|execution| execution.completed_at);
            !row.is_running() && completed_at.is_some_and(|at| at < Timestamp::from_millis(millis))
        };
        let is_accepted = running_too || (row.parent.is_none() && !row.is_running());
        is_accepted && filter.completed_before.is_none_or(ended_before)
    }
}

impl Tables for MemoryTables {
    fn begin(&mut self) -> Rows<()> {
        Ok(())
    }

    fn commit(&mut self, _: Timestamp) -> Rows<()> {
        self.each(|table| table.commit());
        Ok(())
    }

    fn rollback(&mut self) {
        self.each(|table| table.rollback());
    }

    fn next_number(&mut self) -> Rows<u64> {
        self.last_number += 1;
        Ok(self.last_number)
    }

    fn instance(&mut self, number: u64) -> Rows<Option<InstanceRow>> {
        Ok(self.instances.get(&number).cloned())
    }

    fn instance_named(&mut self, id: &str) -> Rows<Option<InstanceRow>> {
        Ok(self.instances.named(id).cloned())
    }

    fn load(&mut self, number: u64) -> Rows<Option<Loaded>> {
        let row = self.instances.get(&number);
        Ok(row.map(|row| Loaded { row: row.clone(), execution: self.current_execution(row).cloned() }))
    }

    fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Rows<()> {
        self.instances.write(loaded.row, change);
        Ok(())
    }

    fn insert_instance(&mut self, row: &InstanceRow) -> Rows<bool> {
        let is_free = self.instances.find(&row.id).is_none();
        if is_free {
            self.instances.put(row.number, row.clone());
        }
        Ok(is_free)
    }

    fn update_instance(&mut self, row: &InstanceRow, change: InstanceChange) -> Rows<()> {
        self.instances.write(row.clone(), change);
        Ok(())
    }

    fn wake_instance(&mut self, number: u64, ready: u64) -> Rows<()> {
        self.instances.update(&number, |row| row.readiness = Readiness::Ready { number: ready });
        Ok(())
    }

    fn delete_instance(&mut self, number: u64) -> Rows<()> {
        self.instances.remove(&number);
        Ok(())
    }

    fn children(&mut self, id: &str) -> Rows<Vec<u64>> {
        Ok(self.instances.children(id).collect())
    }

    fn leased_instances(&mut self, after: Timestamp) -> Rows<Vec<InstanceRow>> {
        Ok(self.instances.leased(after).cloned().collect())
    }

    fn bulk_selection(&mut self, filter: &InstanceFilter, running_too: bool) -> Rows<Vec<(u64, String)>> {
        let named = self.instances.named_by(filter);
        let selected = named.filter(|row| self.is_selected(row, filter, running_too)).take(limit(filter));
        Ok(selected.map(|row| (row.number, row.id.clone())).collect())
    }

    fn route_id(&mut self, route: &Route) -> Rows<RouteId> {
        Ok(RouteId(self.routes.number(route)))
    }

    fn route(&mut self, id: RouteId) -> Rows<Option<Route>> {
        Ok(self.routes.value(id.0).cloned())
    }

    fn ready_routes(&mut self) -> Rows<Vec<RouteId>> {
        Ok(self.instances.ready_routes().collect())
    }

    fn ready_on_route(&mut self, route: RouteId, limit: usize) -> Rows<Vec<(u64, u64)>> {
        Ok(self.instances.ready_on(route).take(limit).collect())
    }

    fn stray_instances(&mut self) -> Rows<Vec<u64>> {
        Ok(self.instances.strays().collect())
    }

    fn due_instances(&mut self, now: Timestamp) -> Rows<Vec<DueInstance>> {
        let due = self.instances.due(now);
        Ok(due.map(|number| DueInstance { number, is_plainly_ready: false }).collect())
    }

    fn next_due(&mut self, sessions_after: Timestamp) -> Rows<Option<Timestamp>> {
        let mut sessions = self.sessions.ends_after(sessions_after);
        let session = sessions.find(|(_, id)| self.activities.are_in_session(id)).map(|(until, _)| *until);
        let removal = self.removal_tasks.iter().map(|(_, remove_at)| *remove_at).min();
        let rows = self.instances.next_due().into_iter().chain(self.activities.next_due());
        Ok(rows.chain(session).chain(removal).min())
    }

    fn may_be_ready(&mut self) -> Rows<Readies> {
        Ok(Readies { instances: self.instances.are_ready(), activities: self.activities.are_ready() })
    }

    fn execution(&mut self, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>> {
        Ok(self.executions.get(&(instance, execution_id)).cloned())
    }

    fn write_execution(&mut self, instance: u64, execution_id: u64, execution: &ExecutionRow) -> Rows<()> {
        self.executions.put((instance, execution_id), execution.clone());
        Ok(())
    }

    fn has_event(&mut self, instance: u64, execution_id: u64, event_id: u64) -> Rows<bool> {
        Ok(self.events.contains(&(instance, execution_id, event_id)))
    }

    fn append_events(&mut self, instance: u64, execution_id: u64, events: &[EventRow]) -> Rows<()> {
        for event in events {
            self.events.put((instance, execution_id, event.event_id), event.data.clone());
        }
        Ok(())
    }

    fn first_event(&mut self, instance: u64, execution_id: u64) -> Rows<Option<String>> {
        Ok(self.events.first(instance, execution_id).cloned())
    }

    fn nth_newest_execution(&mut self, instance: u64, nth: u32) -> Rows<Option<u64>> {
        let mut newest = self.executions.of(instance).rev().map(|(execution_id, _)| execution_id);
        Ok(newest.nth(nth.saturating_sub(1) as usize))
    }

    fn executions_between(
        &mut self,
        instance: u64,
        after: u64,
        below: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>> {
        let from = self.executions.range((instance, after)..=(instance, u64::MAX));
        let between = from.filter(|((_, id), _)| after < *id).take_while(|((_, id), _)| *id < below);
        let age = |((_, execution_id), execution): (&(u64, u64), &ExecutionRow)| ExecutionAge {
            execution_id: *execution_id,
            status: execution.status.clone(),
            completed_at: execution.completed_at,
        };
        Ok(between.take(limit).map(age).collect())
    }

    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()> {
        self.executions.remove(&(instance, execution_id));
        Ok(())
    }

    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool> {
        Ok(self.messages.insert(instance, message))
    }

    fn visible_messages(
        &mut self,
        instance: u64,
        now: Timestamp,
        bound: BatchBound,
    ) -> Rows<VisibleMessages> {
        Ok(self.messages.visible(instance, now, bound))
    }

    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>> {
        Ok(self.messages.first_visible_start(instance, kind, now))
    }

    fn first_start(&mut self, instance: u64) -> Rows<Option<String>> {
        Ok(self.messages.first_start(instance).map(|start| start.data().to_owned()))
    }

    fn has_messages(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.of(instance).next().is_some())
    }

    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        Ok(self.messages.has_visible(instance, now))
    }

    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        let is_visible = |kind| self.messages.first_visible_start(instance, kind, now).is_some();
        Ok(is_visible(MessageKind::Start) || is_visible(MessageKind::ContinueAsNew))
    }

    fn has_start(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.first_start(instance).is_some())
    }

    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.has_other_than_queue(instance))
    }

    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        Ok(self.messages.has_hidden_queue(instance, now))
    }

    fn has_attempted(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.has_attempted(instance))
    }

    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>> {
        Ok(self.messages.next_visible(instance, now))
    }

    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>> {
        let oldest = self.messages.waiting_since(instance, Timestamp::MAX).next();
        Ok(oldest.map(|message| message.row().waits_since()))
    }

    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>> {
        Ok(self.messages.waiting_since(instance, time).map(|message| message.whole()).collect())
    }

    fn mark_messages(&mut self, instance: u64, messages: &[QueuedMessage], mark: u64) -> Rows<()> {
        for message in messages {
            self.messages.change(&(instance, message.position()), |row| row.mark = Some(mark));
        }
        Ok(())
    }

    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool> {
        let held = self.messages.held_by(instance, extent);
        self.messages.remove_all(&held);
        self.has_messages(instance)
    }

    fn release(
        &mut self,
        instance: u64,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Rows<()> {
        self.messages.change_held(instance, extent, |row| {
            row.hidden_until = hidden_until;
            row.mark = None;
            row.attempts = row.attempts.saturating_add(attempts);
        });
        Ok(())
    }

    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()> {
        self.messages.change_held(instance, extent, |row| row.attempts = row.attempts.saturating_add(1));
        Ok(())
    }

    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.messages.change(&(instance, message.position()), |row| {
            (row.kind, row.attempts, row.mark) = (message.kind, message.attempts, message.mark);
            row.hidden_until = message.hidden_until;
        });
        Ok(())
    }

    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.messages.remove(&(instance, message.position()));
        Ok(())
    }

    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool> {
        Ok(self.messages.remove_by_key(instance, key))
    }

    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>> {
        Ok(self.messages.calls_of(parent))
    }

    fn lane_id(&mut self, lane: &Lane) -> Rows<LaneId> {
        Ok(LaneId(self.lanes.number(lane)))
    }

    fn lane(&mut self, id: LaneId) -> Rows<Option<Lane>> {
        Ok(self.lanes.value(id.0).cloned())
    }

    fn insert_activity(&mut self, activity: &QueuedActivity, prepared: &ActivityRow) -> Rows<bool> {
        let QueuedActivity { number, instance, execution_id, activity_id, .. } = *activity;
        let is_new = self.activities.find(instance, execution_id, activity_id).is_none();
        if is_new {
            self.activities.put(number, activity.clone());
            self.activity_items.put(number, prepared.clone());
        }
        Ok(is_new)
    }

    fn activity(&mut self, number: u64) -> Rows<Option<QueuedActivity>> {
        Ok(self.activities.get(&number).cloned())
    }

    fn activity_with_item(&mut self, number: u64) -> Rows<Option<(QueuedActivity, ActivityItem)>> {
        let Some(activity) = self.activities.get(&number) else { return Ok(None) };
        let Some(prepared) = self.activity_items.get(&number) else { return Ok(None) };
        let item = match &prepared.item {
            Some(item) => ActivityItem::Item(item.clone()),
            None => ActivityItem::Data(prepared.data.clone()),
        };
        Ok(Some((activity.clone(), item)))
    }

    fn find_activity(&mut self, instance: u64, execution_id: u64, activity_id: u64) -> Rows<Option<u64>> {
        Ok(self.activities.find(instance, execution_id, activity_id))
    }

    fn update_activity(&mut self, activity: &QueuedActivity) -> Rows<()> {
        self.activities.put(activity.number, activity.clone());
        Ok(())
    }

    fn delete_activity(&mut self, number: u64) -> Rows<()> {
        self.activities.remove(&number);
        self.activity_items.remove(&number);
        Ok(())
    }

    fn delete_activities(&mut self, instance: u64) -> Rows<u64> {
        let numbers: Vec<u64> = self.activities.of(instance).collect();
        self.activities.remove_all(&numbers);
        Ok(self.activity_items.remove_all(&numbers) as u64)
    }

    fn has_activities(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.activities.of(instance).next().is_some())
    }

    fn wake_due_activities(&mut self, now: Timestamp) -> Rows<()> {
        self.activities.wake_due(now);
        Ok(())
    }

    fn ready_lanes(&mut self) -> Rows<Vec<LaneId>> {
        Ok(self.activities.ready_lanes().collect())
    }

    fn ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<Vec<u64>> {
        Ok(self.activities.ready_in(lane).take(limit).collect())
    }

    fn ready_session_lanes(&mut self) -> Rows<Vec<(String, LaneId)>> {
        Ok(self.activities.ready_session_lanes().collect())
    }

    fn ready_in_session_lane(&mut self, session: &str, lane: LaneId, limit: usize) -> Rows<Vec<u64>> {
        Ok(self.activities.ready_in_session(session, lane).take(limit).collect())
    }

    fn leased_activities(&mut self, after: Timestamp) -> Rows<Vec<QueuedActivity>> {
        Ok(self.activities.leased(after).cloned().collect())
    }

    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>> {
        Ok(self.sessions.get(&id.to_owned()).cloned())
    }

    fn write_session(&mut self, session: &SessionRow) -> Rows<()> {
        self.sessions.put(session.id.clone(), session.clone());
        Ok(())
    }

    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()> {
        self.sessions.update(&id.to_owned(), |session| session.last_activity_at = now);
        Ok(())
    }

    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>> {
        let of_owner = owner.map(|owner| self.sessions.of_owner(owner));
        let all = owner.is_none().then(|| self.sessions.iter().map(|(_, session)| session));
        let sessions = of_owner.into_iter().flatten().chain(all.into_iter().flatten());
        Ok(sessions.filter(|session| session.until > after).cloned().collect())
    }

    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize> {
        let ended = self.sessions.ended(now).filter(|id| !self.activities.are_in_session(id));
        let ended: Vec<String> = ended.cloned().collect();
        Ok(self.sessions.remove_all(&ended))
    }

    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()> {
        self.kv_changes.put((instance, key.to_owned()), change.cloned());
        Ok(())
    }

    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()> {
        self.kv_changes.remove(&(instance, key.to_owned()));
        Ok(())
    }

    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>> {
        Ok(self.kv_changes.of(instance).map(|(key, change)| (key.clone(), change.clone())).collect())
    }

    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool> {
        Ok(self.kv.contains(&(instance, key.to_owned())))
    }

    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>> {
        Ok(self.kv.of(instance).map(|(key, _)| key.clone()).collect())
    }

    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()> {
        self.kv.put((instance, key.to_owned()), entry.clone());
        Ok(())
    }

    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()> {
        self.kv.remove(&(instance, key.to_owned()));
        Ok(())
    }

    fn custom_status_version(&mut self, instance: u64) -> Rows<u64> {
        Ok(self.custom_statuses.get(&instance).map_or(0, |(_, version)| *version))
    }

    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()> {
        self.custom_statuses.put(instance, (status.map(str::to_owned), version));
        Ok(())
    }

    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
        Some(self.custom_statuses.get(&instance).cloned())
    }

    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64> {
        self.last_dead_letter += 1;
        self.dead_letters.put(self.last_dead_letter, row.clone());
        Ok(self.last_dead_letter)
    }

    fn dead_letter(&mut self, number: u64) -> Rows<Option<DeadLetterRow>> {
        Ok(self.dead_letters.get(&number).cloned())
    }

    fn delete_dead_letter(&mut self, number: u64) -> Rows<()> {
        self.dead_letters.remove(&number);
        Ok(())
    }

    fn delete_dead_letters_of(&mut self, id: &str) -> Rows<()> {
        let letters = self.dead_letters.of(id);
        self.dead_letters.remove_all(&letters);
        Ok(())
    }

    fn node(&mut self, name: &str) -> Rows<Option<(NodeId, Vec<String>)>> {
        let node = self.nodes.find(name).and_then(|id| Some((id, self.nodes.get(&id)?)));
        Ok(node.map(|(id, node)| (id, node.row.session_owners.clone())))
    }

    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId> {
        let id = self.nodes.find(&row.name).unwrap_or_else(|| {
            self.last_node += 1;
            NodeId(self.last_node)
        });
        self.nodes.put(id, Node { row: row.clone(), started_at: now, seen_at: now });
        Ok(id)
    }

    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<()> {
        match self.nodes.find(name) {
            Some(id) => self.set_node_seen(id, now),
            None => Ok(()),
        }
    }

    fn nodes_seen(&mut self) -> Rows<Vec<(NodeId, Timestamp)>> {
        Ok(self.nodes.iter().map(|(id, node)| (*id, node.seen_at)).collect())
    }

    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()> {
        self.nodes.update(&node, |node| node.seen_at = seen_at);
        Ok(())
    }

    fn delete_node(&mut self, node: NodeId) -> Rows<()> {
        self.nodes.remove(&node);
        Ok(())
    }

    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>> {
        let instances = self.instances.leased(after).filter_map(|row| row.lock.as_ref());
        let instances = instances.map(|lock| &lock.lease).filter(|lease| lease.node == Some(node));
        let activities = self.activities.leased(after).filter_map(|row| row.lock.as_ref());
        let activities = activities.filter(|lease| lease.node == Some(node));
        let instances = instances.map(|lease| ClaimToken::Instance(lease.token.clone()));
        Ok(instances.chain(activities.map(|lease| ClaimToken::Activity(lease.token.clone()))).collect())
    }

    fn insert_removal(&mut self, task: u64, removal: &Removal) -> Rows<()> {
        self.removals.put(removal.number, (task, *removal));
        Ok(())
    }

    fn first_removal(&mut self, task: u64) -> Rows<Option<Removal>> {
        Ok(self.removals.first_of(task))
    }

    fn delete_removal(&mut self, removal: &Removal) -> Rows<()> {
        self.removals.remove(&removal.number);
        Ok(())
    }

    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()> {
        self.removal_tasks.put(task, remove_at);
        Ok(())
    }

    fn delete_removal_task(&mut self, task: u64) -> Rows<()> {
        self.removal_tasks.remove(&task);
        Ok(())
    }

    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>> {
        let due = self.removal_tasks.iter().filter(|(_, remove_at)| **remove_at <= now);
        Ok(due.min_by_key(|(_, remove_at)| **remove_at).map(|(task, _)| *task))
    }

    fn remove_rows(&mut self, removal: &Removal, _: &mut RemovalBudget) -> Rows<RemovedRows> {
        Ok(self.remove_all_rows(removal))
    }
}
