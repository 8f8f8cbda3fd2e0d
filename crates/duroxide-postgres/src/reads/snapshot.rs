//! The whole content of a store, for invariant checks and comparisons.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{InstanceRow, Lease},
    store::{
        ActivitySnapshot, EventRow, ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MessageSnapshot,
        StoreFailure, StoreSnapshot,
    },
};
use tokio_postgres::Row;

use super::overview::shown;
use crate::{
    PostgresEngine,
    connection::Query,
    fault::Trouble,
    record::{
        Activity, CustomStatus, Event, Execution, Letter, Message, Record, Setting, SettingChange, read_all,
    },
};

const INSTANCES: &str = "SELECT {columns instance} FROM {s}.instance ORDER BY instance.id";
const EXECUTIONS: &str =
    "SELECT {columns execution} FROM {s}.execution ORDER BY execution.instance, execution.execution_id";
const EVENTS: &str = "SELECT {columns history} FROM {s}.history WHERE NOT EXISTS (SELECT 1 FROM {s}.removal
        WHERE removal.instance = history.instance AND removal.execution_id = history.execution_id)
    ORDER BY history.instance, history.execution_id, history.event_id";
const MESSAGES: &str =
    "SELECT {columns message}, octet_length(message.data)::bigint AS bytes FROM {s}.message
    ORDER BY message.instance, message.due_at, message.number";
const ACTIVITIES: &str = "SELECT {columns activity} FROM {s}.activity ORDER BY activity.number";
const SETTINGS: &str = "SELECT {columns kv} FROM {s}.kv";
const SETTING_CHANGES: &str = "SELECT {columns kv_change} FROM {s}.kv_change";
const CUSTOM_STATUS: &str = "SELECT {columns custom_status} FROM {s}.custom_status";
const LETTERS: &str = "SELECT {columns dead_letter} FROM {s}.dead_letter ORDER BY dead_letter.number";

const ALL: [&str; 9] =
    [INSTANCES, EXECUTIONS, EVENTS, MESSAGES, ACTIVITIES, SETTINGS, SETTING_CHANGES, CUSTOM_STATUS, LETTERS];

/// Everything, as it was read.
struct Content {
    instances: Vec<InstanceRow>,
    executions: Vec<Execution>,
    events: Vec<Event>,
    messages: Vec<Message>,
    activities: Vec<Activity>,
    settings: Vec<Setting>,
    setting_changes: Vec<SettingChange>,
    custom_status: Vec<CustomStatus>,
    letters: Vec<Letter>,
}

impl Content {
    fn read(answers: Vec<Vec<Row>>) -> Result<Self, Trouble> {
        fn next<R: Record>(answers: &mut impl Iterator<Item = Vec<Row>>) -> Result<Vec<R>, Trouble> {
            read_all(&answers.next().unwrap_or_default())
        }
        let mut answers = answers.into_iter();
        Ok(Self {
            instances: next(&mut answers)?,
            executions: next(&mut answers)?,
            events: next(&mut answers)?,
            messages: next(&mut answers)?,
            activities: next(&mut answers)?,
            settings: next(&mut answers)?,
            setting_changes: next(&mut answers)?,
            custom_status: next(&mut answers)?,
            letters: next(&mut answers)?,
        })
    }

    fn instance(&self, row: &InstanceRow, now: Timestamp) -> InstanceSnapshot {
        let of_instance = row.number;
        let status = self.custom_status.iter().find(|status| status.instance == of_instance);
        let messages = self.messages.iter().filter(|message| message.instance == of_instance);
        let activities = self.activities.iter().filter(|activity| activity.queued.instance == of_instance);
        let settings = self.settings.iter().filter(|setting| setting.instance == of_instance);
        let changes = self.setting_changes.iter().filter(|change| change.instance == of_instance);
        InstanceSnapshot {
            instance: row.id.clone(),
            name: row.name.clone(),
            version: row.version.clone(),
            parent: row.parent.clone(),
            execution_id: row.execution_id,
            lock: row.lock.as_ref().map(|lock| lock_snapshot(&lock.lease)),
            custom_status: status.map(|status| (status.status.clone(), status.version)),
            executions: self.executions(of_instance),
            messages: messages.map(|message| message_snapshot(row, message, now)).collect(),
            activities: activities.map(|activity| activity_snapshot(activity, now)).collect(),
            kv: settings.filter_map(|setting| Some((setting.key.clone(), setting.entry.clone()?))).collect(),
            kv_changes: changes.map(|change| (change.key.clone(), change.entry.clone())).collect(),
        }
    }

    fn executions(&self, instance: u64) -> Vec<ExecutionSnapshot> {
        let executions = self.executions.iter().filter(|execution| execution.instance == instance);
        executions
            .map(|Execution { execution_id, row, .. }| ExecutionSnapshot {
                execution_id: *execution_id,
                status: row.status.clone(),
                output: row.output.clone(),
                pinned: row.pinned,
                turns: row.turns,
                events: self.events(instance, *execution_id),
            })
            .collect()
    }

    fn events(&self, instance: u64, execution_id: u64) -> Vec<EventRow> {
        let of_instance = self.events.iter().filter(|event| event.instance == instance);
        let events = of_instance.filter(|event| event.execution_id == execution_id);
        events.map(|event| EventRow { event_id: event.event_id, data: event.data.clone() }).collect()
    }
}

impl PostgresEngine {
    /// Everything. What was hidden until now or earlier counts as visible.
    pub(super) fn read_snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        let taken_at = self.rules.now();
        let answers = self.read_all(&ALL.map(|sql| Query::new(sql, Vec::new())))?;
        let content = Content::read(answers).map_err(Trouble::into_failure)?;
        let instances = content.instances.iter().map(|row| content.instance(row, taken_at)).collect();
        let dead_letters = content.letters.into_iter().map(shown).collect();
        Ok(StoreSnapshot { taken_at, instances, dead_letters })
    }
}

/// The attempt of a lock that is still there is counted when the lock ends.
fn message_snapshot(row: &InstanceRow, message: &Message, now: Timestamp) -> MessageSnapshot {
    let locked = row.lock.as_ref().is_some_and(|lock| lock.extent.holds(&message.queued));
    MessageSnapshot {
        due_at_ms: message.queued.due_at.as_millis(),
        hidden_until: still_hidden(message.queued.hidden_until, now),
        attempt_count: message.queued.attempts.saturating_add(u32::from(locked)),
        locked,
        key: message.queued.key.clone(),
        data: message.queued.data.clone(),
    }
}

fn activity_snapshot(activity: &Activity, now: Timestamp) -> ActivitySnapshot {
    let queued = &activity.queued;
    ActivitySnapshot {
        execution_id: queued.execution_id,
        activity_id: queued.activity_id,
        hidden_until: still_hidden(queued.hidden_until, now),
        attempt_count: queued.attempts,
        lock: queued.lock.as_ref().map(lock_snapshot),
        claimed: queued.claimed,
        stop_requested: queued.stop_requested,
        data: activity.data.clone().unwrap_or_default(),
    }
}

fn still_hidden(until: Timestamp, now: Timestamp) -> Timestamp {
    if until > now { until } else { Timestamp::ZERO }
}

fn lock_snapshot(lease: &Lease) -> LockSnapshot {
    LockSnapshot { token: lease.token.clone(), until: lease.until }
}
