//! Reads for diagnosis: the work of one instance, and summaries of the store.

use std::collections::BTreeMap;

use duroxide_core::Timestamp;

use crate::{
    InstanceSummary, LaneSummary, QueueSummary, QueuedWork, RouteSummary, SummaryRequest,
    memory::{MemoryTables, tables::mailboxes::Message},
    rules::{InstanceRow, LaneId, QueuedActivity, RouteId, WorkRows},
    store::{InstanceTally, recorded_at_ms},
};

impl MemoryTables {
    pub(super) fn queued_work(&self, id: &str, now: Timestamp) -> Option<QueuedWork> {
        let letters = self.dead_letters.of(id).into_iter().take(QueuedWork::LIMIT);
        let dead_letters = letters.filter_map(|number| self.dead_letters.shown_one(number)).collect();
        let Some(row) = self.instances.named(id) else { return QueuedWork::of_nobody(now, dead_letters) };
        let activities = self.activities.of(row.number);
        let shown = activities.take(QueuedWork::LIMIT).filter_map(|number| self.activities.get(&number));
        let in_lane =
            |activity: &QueuedActivity| Some((activity.clone(), self.lanes.value(activity.lane.0)?.clone()));
        let messages = self.messages.of(row.number).take(QueuedWork::LIMIT);
        let activities: Vec<_> = shown.filter_map(in_lane).collect();
        let sessions = activities.iter().filter_map(|(one, _)| self.sessions.get(one.session_id.as_ref()?));
        let rows = WorkRows {
            row: row.clone(),
            route: row.route.and_then(|RouteId(id)| self.routes.value(id)).cloned(),
            pinned: self.current_execution(row).and_then(|execution| execution.pinned),
            messages: messages.map(Message::whole).collect(),
            messages_total: self.messages.of(row.number).count() as u64,
            sessions: sessions.cloned().collect(),
            activities,
            activities_total: self.activities.of(row.number).count() as u64,
            dead_letters,
            nodes: self.nodes.stored(),
        };
        Some(rows.show(now))
    }

    pub(super) fn instance_summary(&self, request: &SummaryRequest) -> InstanceSummary {
        let mut tally = InstanceTally::new(request);
        for (_, row) in self.instances.iter().filter(|(_, row)| row.known) {
            let identity =
                [&row.name, &row.version, &row.status].map(|text| text.as_deref().unwrap_or_default());
            let ended_at = self.current_execution(row).and_then(|execution| execution.completed_at);
            tally.add(&row.id, identity, row.created_at.as_millis(), ended_at.map(Timestamp::as_millis));
        }
        tally.into_summary()
    }

    pub(super) fn queue_summary(&self, now: Timestamp) -> QueueSummary {
        let locked: Vec<&InstanceRow> = self.instances.leased(now).collect();
        let waiting = self.instances.waiting().filter_map(|number| self.instances.get(&number));
        let mut timers = waiting.filter(|row| !row.is_locked(now)).peekable();
        let next_timer = timers.peek().and_then(|row| row.waits_until());
        QueueSummary {
            now_ms: now.as_millis(),
            orchestrations: self.route_summaries(&locked),
            activities: self.lane_summaries(now),
            next_timer_ms: next_timer.map(Timestamp::as_millis_ceil),
            waiting_timers: timers.count() as u64,
        }
    }

    fn route_summaries(&self, locked: &[&InstanceRow]) -> Vec<RouteSummary> {
        let mut routes: BTreeMap<RouteId, RouteSummary> = BTreeMap::new();
        for route in self.instances.ready_routes() {
            let summary = routes.entry(route).or_default();
            summary.ready = self.instances.ready_on(route).count() as u64;
            let first = self.instances.ready_on(route).next();
            let oldest =
                first.and_then(|(_, number)| self.messages.waiting_since(number, Timestamp::MAX).next());
            summary.oldest_ready_ms = oldest.map(|message| message.row().waits_since().as_millis());
        }
        for route in locked.iter().filter_map(|row| row.route) {
            routes.entry(route).or_default().locked += 1;
        }
        let described = routes.into_iter().map(|(RouteId(id), summary)| {
            let route = self.routes.value(id).cloned().unwrap_or_default();
            let pinned = route.pinned.map(|pinned| pinned.to_string());
            RouteSummary { name: route.name, version: route.version, pinned, ..summary }
        });
        let mut described: Vec<_> = described.collect();
        described.sort_unstable();
        described
    }

    fn lane_summaries(&self, now: Timestamp) -> Vec<LaneSummary> {
        let mut lanes: BTreeMap<LaneId, LaneSummary> = BTreeMap::new();
        for (_, activity) in self.activities.iter() {
            let summary = lanes.entry(activity.lane).or_default();
            if activity.is_locked(now) {
                summary.running += 1;
            } else if activity.waits_until.is_some_and(|until| until > now) {
                summary.delayed += 1;
            } else {
                summary.ready += 1;
                if summary.ready == 1 {
                    summary.oldest_ready_ms = self.scheduled_at_ms(activity);
                }
            }
        }
        let described = lanes.into_iter().map(|(LaneId(id), summary)| {
            let lane = self.lanes.value(id).cloned().unwrap_or_default();
            LaneSummary { name: lane.name, tag: lane.tag, ..summary }
        });
        let mut described: Vec<_> = described.collect();
        described.sort_unstable();
        described
    }

    fn scheduled_at_ms(&self, activity: &QueuedActivity) -> Option<u64> {
        let event = (activity.instance, activity.execution_id, activity.activity_id);
        self.events.get(&event).and_then(|data| recorded_at_ms(data))
    }
}
