//! Reads for diagnosis: why an item is not processed.

use duroxide_core::Timestamp;

use super::{
    ModelEngine,
    activities::Activity,
    instance::{Execution, Instance},
    leases::Lock,
    mailbox::Message,
    sessions::Session,
};
use crate::{
    InstanceCount, InstanceNeeds, InstanceSummary, LaneSummary, QueueSummary, QueuedActivityInfo,
    QueuedMessageInfo, QueuedWork, RouteSummary, SessionLease, SummaryRequest, WorkLock,
    store::recorded_at_ms,
};

impl ModelEngine {
    pub(super) fn show_work(&self, id: &str, now: Timestamp) -> Option<QueuedWork> {
        let letters = self.dead_letters.values().map(|letter| letter.shown.clone());
        let letters =
            letters.filter(|letter| letter.instance_id.as_deref() == Some(id)).take(QueuedWork::LIMIT);
        let mut work =
            QueuedWork { now_ms: now.as_millis(), dead_letters: letters.collect(), ..QueuedWork::default() };
        let Some(key) = self.find(id) else { return (!work.dead_letters.is_empty()).then_some(work) };
        let whole = &self.instances[&key];
        // A long mailbox is judged by its first messages, so that it costs no more than a short one.
        let mut row = whole.clone();
        row.messages.truncate(QueuedWork::LIMIT);
        let mut activities: Vec<&Activity> =
            self.activities.values().filter(|one| one.instance == key).collect();
        activities.sort_by_key(|activity| (activity.row.execution_id, activity.row.activity_id));
        let visible: Vec<&Message> = row.visible(now).collect();
        work.needs = row.next_needs(now);
        work.lock = row.lock.as_ref().filter(|lock| lock.is_live(now)).map(|lock| self.show_lock(lock));
        work.attempts = visible.iter().map(|message| message.attempts).max().unwrap_or_default();
        if !row.is_locked(now) && row.has_work(now) {
            work.ready_since_ms = visible.iter().map(|message| message.age().as_millis()).min();
        }
        work.messages_total = whole.messages.len() as u64;
        let mut bytes = 0;
        let in_room = row.messages.iter().take_while(|message| {
            let is_in_room = bytes <= QueuedWork::BYTES_LIMIT;
            bytes += message.data.len();
            is_in_room
        });
        work.messages = in_room.map(|message| show_message(message, now)).collect();
        work.activities_total = activities.len() as u64;
        activities.truncate(QueuedWork::LIMIT);
        work.sessions = self.show_sessions(&activities, now);
        work.activities = activities.into_iter().map(|activity| self.show_activity(activity, now)).collect();
        Some(work)
    }

    fn show_sessions(&self, activities: &[&Activity], now: Timestamp) -> Vec<SessionLease> {
        let is_named = |id: &str| activities.iter().any(|one| one.row.session_id.as_deref() == Some(id));
        let named = self.sessions.iter().filter(|(id, session)| is_named(id) && session.until > now);
        let lease = |(id, session): (&String, &Session)| SessionLease {
            session_id: id.clone(),
            owner: session.owner.clone(),
            until_ms: session.until.as_millis(),
        };
        named.map(lease).collect()
    }

    fn show_lock(&self, lock: &Lock) -> WorkLock {
        let node = self.stored_nodes().into_iter().find(|node| Some(node.id) == lock.node);
        WorkLock { node: node.map(|node| node.name), until_ms: lock.until.as_millis() }
    }

    fn show_activity(&self, activity: &Activity, now: Timestamp) -> QueuedActivityInfo {
        let lock = activity.lock.as_ref().filter(|lock| lock.is_live(now));
        let is_hidden = activity.hidden_until > now;
        QueuedActivityInfo {
            execution_id: activity.row.execution_id,
            activity_id: activity.row.activity_id,
            name: activity.row.name.clone(),
            tag: activity.row.tag.clone(),
            session_id: activity.row.session_id.clone(),
            attempts: activity.attempts,
            hidden_until_ms: is_hidden.then(|| activity.hidden_until.as_millis_ceil()),
            lock: lock.map(|lock| self.show_lock(lock)),
            stop_requested: activity.stop_requested,
        }
    }

    pub(super) fn summarize(&self, request: &SummaryRequest) -> InstanceSummary {
        let mut summary = InstanceSummary::empty(request);
        for row in self.instances.values().filter(|row| row.is_known()) {
            let (info, current) = (row.info(), row.current());
            let (name, version) =
                (row.name.clone().unwrap_or_default(), row.version.clone().unwrap_or_default());
            let status = info.status;
            let is_same = |one: &&mut InstanceCount| {
                (&one.name, &one.version, &one.status) == (&name, &version, &status)
            };
            match summary.counts.iter_mut().find(is_same) {
                Some(found) => found.count += 1,
                None => {
                    summary.counts.push(InstanceCount { name, version, status: status.clone(), count: 1 });
                }
            }
            if let Some(bucket) = request.bucket_of(info.created_at) {
                summary.started[bucket] += 1;
            }
            let ended_at = current.and_then(|current| current.completed_at).map(Timestamp::as_millis);
            if let Some(bucket) = ended_at.and_then(|at| request.bucket_of(at)) {
                summary.completed[bucket] += u64::from(status == "Completed");
                summary.failed[bucket] += u64::from(status == "Failed");
            }
            let is_older =
                summary.oldest_running.as_ref().is_none_or(|(_, oldest)| info.created_at < *oldest);
            if status == "Running" && is_older {
                summary.oldest_running = Some((row.id.clone(), info.created_at));
            }
        }
        summary.counts.sort();
        summary
    }

    pub(super) fn summarize_queues(&self, now: Timestamp) -> QueueSummary {
        let waits = self.instances.values().filter(|row| !row.is_locked(now));
        let waits: Vec<Timestamp> = waits.filter_map(|row| row.look_at).collect();
        QueueSummary {
            now_ms: now.as_millis(),
            orchestrations: self.summarize_routes(now),
            activities: self.summarize_lanes(now),
            next_timer_ms: waits.iter().min().map(|at| at.as_millis_ceil()),
            waiting_timers: waits.len() as u64,
        }
    }

    fn summarize_routes(&self, now: Timestamp) -> Vec<RouteSummary> {
        let mut ready: Vec<_> =
            self.instances.values().filter_map(|row| Some((row.ready.clone()?, row))).collect();
        ready.sort_by_key(|((place, _), _)| *place);
        let mut routes: Vec<RouteSummary> = Vec::new();
        for ((_, needs), row) in ready {
            let route = entry(&mut routes, &needs);
            route.ready += 1;
            let oldest = row.messages.iter().map(|message| message.age().as_millis()).min();
            route.oldest_ready_ms = route.oldest_ready_ms.or(oldest);
        }
        for row in self.instances.values().filter(|row| row.is_locked(now)) {
            entry(&mut routes, &row.claimed_as).locked += 1;
        }
        routes.sort();
        routes
    }

    fn summarize_lanes(&self, now: Timestamp) -> Vec<LaneSummary> {
        let mut lanes: Vec<LaneSummary> = Vec::new();
        for activity in self.activities.values() {
            let (name, tag) = (activity.row.name.clone(), activity.row.tag.clone());
            let position = lanes.iter().position(|lane| (&lane.name, &lane.tag) == (&name, &tag));
            let position = position.unwrap_or_else(|| {
                lanes.push(LaneSummary { name, tag, ..LaneSummary::default() });
                lanes.len() - 1
            });
            let lane = &mut lanes[position];
            if activity.is_locked(now) {
                lane.running += 1;
            } else if activity.waits_until.is_some_and(|until| until > now) {
                lane.delayed += 1;
            } else {
                lane.ready += 1;
                if lane.ready == 1 {
                    lane.oldest_ready_ms = self.scheduled_at(activity);
                }
            }
        }
        lanes.sort();
        lanes
    }

    fn scheduled_at(&self, activity: &Activity) -> Option<u64> {
        let execution: &Execution =
            self.instances.get(&activity.instance)?.executions.get(&activity.row.execution_id)?;
        recorded_at_ms(execution.events.get(&activity.row.activity_id)?)
    }
}

impl Instance {
    /// The needs of the next claim: as it was found ready, else as it is now, or when the first message for a turn appears.
    fn next_needs(&self, now: Timestamp) -> InstanceNeeds {
        if let Some((_, needs)) = &self.ready {
            return needs.clone();
        }
        if self.has_work(now) {
            return self.route(now);
        }
        let for_a_turn = self.messages.iter().filter(|message| self.is_known() || message.is_start());
        let appears = for_a_turn.map(|message| message.due_at.max(message.hidden_until));
        self.route(appears.filter(|at| *at > now).min().unwrap_or(now))
    }
}

fn entry<'a>(routes: &'a mut Vec<RouteSummary>, needs: &InstanceNeeds) -> &'a mut RouteSummary {
    let pinned = needs.pinned.map(|pinned| pinned.to_string());
    let is_it = |route: &RouteSummary| {
        (&route.name, &route.version, &route.pinned) == (&needs.name, &needs.version, &pinned)
    };
    let position = routes.iter().position(is_it).unwrap_or(routes.len());
    if position == routes.len() {
        let (name, version) = (needs.name.clone(), needs.version.clone());
        routes.push(RouteSummary { name, version, pinned, ..RouteSummary::default() });
    }
    &mut routes[position]
}

fn show_message(message: &Message, now: Timestamp) -> QueuedMessageInfo {
    let hidden_until = if message.hidden_until > now { message.hidden_until } else { Timestamp::ZERO };
    let visible_at = message.due_at.max(hidden_until);
    QueuedMessageInfo {
        data: message.data.clone(),
        enqueued_at_ms: message.enqueued_at.as_millis(),
        visible_at_ms: (visible_at > Timestamp::ZERO).then(|| visible_at.as_millis_ceil()),
        attempts: message.attempts,
    }
}
