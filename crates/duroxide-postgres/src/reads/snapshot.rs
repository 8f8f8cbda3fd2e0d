//! The whole content of a store, for invariant checks and comparisons.

use std::{collections::HashMap, hash::Hash, mem};

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{InstanceRow, still_hidden},
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
    database_error::DatabaseError,
    record::{
        Activity, CustomStatus, Event, Execution, KeyValue, KeyValueChange, Letter, Message, Record, read_all,
    },
    value::Columns,
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
const KEY_VALUE_CHANGES: &str = "SELECT {columns kv_change} FROM {s}.kv_change";
const CUSTOM_STATUS: &str = "SELECT {columns custom_status} FROM {s}.custom_status";
const LETTERS: &str = "SELECT {columns dead_letter} FROM {s}.dead_letter ORDER BY dead_letter.number";

/// Contradictions between values that are stored twice, so that an index need not be written with every change: ready
/// numbers, and `look_at`, which is never after the time at which the instance is due.
const CONTRADICTIONS: &str = "SELECT
    (SELECT count(*) FROM {s}.ready_instance WHERE NOT EXISTS (SELECT 1 FROM {s}.instance
        WHERE instance.number = ready_instance.instance AND instance.route = ready_instance.route
            AND instance.ready_number = ready_instance.place AND NOT instance.is_stray))
    + (SELECT count(*) FROM {s}.instance WHERE ready_number IS NOT NULL AND NOT is_stray AND route IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM {s}.ready_instance
            WHERE ready_instance.route = instance.route AND ready_instance.place = instance.ready_number)) AS places,
    (SELECT count(*) FROM {s}.instance WHERE wait_until IS NOT NULL AND (look_at <= wait_until) IS NOT TRUE) AS looks";

const ALL: [&str; 9] = [
    INSTANCES,
    EXECUTIONS,
    EVENTS,
    MESSAGES,
    ACTIVITIES,
    SETTINGS,
    KEY_VALUE_CHANGES,
    CUSTOM_STATUS,
    LETTERS,
];

/// The whole content, grouped by instance. Each row is visited once, and moved into the snapshot.
struct Content {
    instances: Vec<InstanceRow>,
    executions: Grouped<u64, Execution>,
    /// By instance and execution.
    events: Grouped<(u64, u64), Event>,
    messages: Grouped<u64, Message>,
    activities: Grouped<u64, Activity>,
    key_values: Grouped<u64, KeyValue>,
    key_value_changes: Grouped<u64, KeyValueChange>,
    custom_status: Grouped<u64, CustomStatus>,
    letters: Vec<Letter>,
}

impl Content {
    fn read(answers: Vec<Vec<Row>>) -> Result<Self, DatabaseError> {
        fn next<R: Record>(answers: &mut impl Iterator<Item = Vec<Row>>) -> Result<Vec<R>, DatabaseError> {
            read_all(&answers.next().unwrap_or_default())
        }
        let mut answers = answers.into_iter();
        Ok(Self {
            instances: next(&mut answers)?,
            executions: Grouped::new(next(&mut answers)?, |row: &Execution| row.instance),
            events: Grouped::new(next(&mut answers)?, |row: &Event| (row.instance, row.execution_id)),
            messages: Grouped::new(next(&mut answers)?, |row: &Message| row.instance),
            activities: Grouped::new(next(&mut answers)?, |row: &Activity| row.queued.instance),
            key_values: Grouped::new(next(&mut answers)?, |row: &KeyValue| row.instance),
            key_value_changes: Grouped::new(next(&mut answers)?, |row: &KeyValueChange| row.instance),
            custom_status: Grouped::new(next(&mut answers)?, |row: &CustomStatus| row.instance),
            letters: next(&mut answers)?,
        })
    }

    fn into_snapshot(mut self, taken_at: Timestamp) -> StoreSnapshot {
        let rows = mem::take(&mut self.instances);
        let instances = rows.into_iter().map(|row| self.take_instance(row, taken_at)).collect();
        StoreSnapshot { taken_at, instances, dead_letters: self.letters.into_iter().map(shown).collect() }
    }

    fn take_instance(&mut self, row: InstanceRow, now: Timestamp) -> InstanceSnapshot {
        let number = row.number;
        let status = self.custom_status.take(number).next();
        let messages =
            self.messages.take(number).map(|message| message_snapshot(&row, message, now)).collect();
        let activities = self.activities.take(number).map(|activity| activity_snapshot(activity, now));
        let key_values =
            self.key_values.take(number).filter_map(|key_value| Some((key_value.key, key_value.entry?)));
        let changes = self.key_value_changes.take(number).map(|change| (change.key, change.entry));
        InstanceSnapshot {
            execution_id: row.execution_id,
            lock: row.lock.as_ref().map(|lock| LockSnapshot::from(&lock.lease)),
            custom_status: status.map(|status| (status.status, status.version)),
            messages,
            activities: activities.collect(),
            kv: key_values.collect(),
            kv_changes: changes.collect(),
            executions: self.take_executions(number),
            instance: row.id,
            name: row.name,
            version: row.version,
            parent: row.parent,
        }
    }

    fn take_executions(&mut self, instance: u64) -> Vec<ExecutionSnapshot> {
        let executions = self.executions.take(instance);
        let snapshot = |Execution { execution_id, row, .. }| ExecutionSnapshot {
            execution_id,
            status: row.status,
            output: row.output,
            pinned: row.pinned,
            turns: row.turns,
            events: self.events.take((instance, execution_id)).map(event_row).collect(),
        };
        executions.map(snapshot).collect()
    }
}

/// Rows by a key. Those of one key keep their order.
struct Grouped<K, R>(HashMap<K, Vec<R>>);

impl<K: Eq + Hash, R> Grouped<K, R> {
    fn new(rows: Vec<R>, key: impl Fn(&R) -> K) -> Self {
        let mut groups: HashMap<K, Vec<R>> = HashMap::new();
        for row in rows {
            groups.entry(key(&row)).or_default().push(row);
        }
        Self(groups)
    }

    fn take(&mut self, key: K) -> impl Iterator<Item = R> + use<K, R> {
        self.0.remove(&key).unwrap_or_default().into_iter()
    }
}

impl PostgresEngine {
    /// The whole content. Rows hidden until now or earlier count as visible.
    pub(super) fn read_snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        let taken_at = self.rules.now();
        let queries =
            ALL.into_iter().chain([CONTRADICTIONS]).map(|sql| Query::of_whole_tables(sql, Vec::new()));
        let mut answers = self.read_all(&queries.collect::<Vec<_>>())?;
        check_contradictions(answers.pop().unwrap_or_default().first())
            .map_err(DatabaseError::into_failure)?;
        let content = Content::read(answers).map_err(DatabaseError::into_failure)?;
        Ok(content.into_snapshot(taken_at))
    }
}

fn check_contradictions(row: Option<&Row>) -> Result<(), DatabaseError> {
    let count = |name| row.map_or(Ok(0), |row| row.number(name));
    let (places, looks) = (count("places")?, count("looks")?);
    if places + looks == 0 {
        return Ok(());
    }
    let message = format!(
        "the store contradicts itself: {places} instances are not listed as they are ready, and {looks} would be looked at too late"
    );
    Err(DatabaseError::refused(message))
}

/// The attempt of a present lock is counted when the lock ends.
fn message_snapshot(row: &InstanceRow, message: Message, now: Timestamp) -> MessageSnapshot {
    let locked = row.lock.as_ref().is_some_and(|lock| lock.extent.holds(&message.queued));
    MessageSnapshot {
        due_at_ms: message.queued.due_at.as_millis(),
        hidden_until: still_hidden(message.queued.hidden_until, now),
        attempt_count: message.queued.attempts.saturating_add(u32::from(locked)),
        locked,
        key: message.queued.key,
        data: message.queued.data,
    }
}

fn activity_snapshot(activity: Activity, now: Timestamp) -> ActivitySnapshot {
    let queued = &activity.queued;
    ActivitySnapshot {
        execution_id: queued.execution_id,
        activity_id: queued.activity_id,
        hidden_until: still_hidden(queued.hidden_until, now),
        attempt_count: queued.attempts,
        lock: queued.lock.as_ref().map(LockSnapshot::from),
        claimed: queued.claimed,
        stop_requested: queued.stop_requested,
        data: activity.data.unwrap_or_default(),
    }
}

fn event_row(event: Event) -> EventRow {
    EventRow { event_id: event.event_id, data: event.data }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// `check` and `copy` read whole stores: their time grows with the rows, not with rows times instances.
    #[test]
    fn each_row_is_looked_at_once_however_many_instances_there_are() {
        let looks = Cell::new(0);
        let rows: Vec<(u64, u64)> = (0..3_000).map(|n| (n % 1_000, n)).collect();
        let key = |row: &(u64, u64)| {
            looks.set(looks.get() + 1);
            row.0
        };
        let mut grouped = Grouped::new(rows, key);
        for instance in 0..1_000 {
            let expected = [0, 1_000, 2_000].map(|n| (instance, instance + n));
            assert_eq!(grouped.take(instance).collect::<Vec<_>>(), expected);
        }
        assert_eq!(looks.get(), 3_000);
        assert_eq!(grouped.take(0).next(), None);
    }
}
