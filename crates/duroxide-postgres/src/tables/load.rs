//! Statements that lock and load rows, and the effect of their answers on the working set.
//!
//! Statements of one round trip run one after the other, and under READ COMMITTED each sees the rows that were committed
//! when it began. So a statement that locks instances comes before those that read their rows: once an instance is locked,
//! no other transaction changes its mailbox or its execution. Rows whose instance was not locked by an earlier statement
//! are ignored.

mod answers;

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::Timestamp;
use duroxide_provider::rules::{LaneId, RouteId};
use tokio_postgres::Row;

use super::{instances::FamilyPart, numbers, working_set::ReadUpTo};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    value::{Columns, limit, time},
};

/// The instances that a batch names: by number, by id, or as the owner of an activity.
macro_rules! named {
    () => {
        "SELECT unnest($1::bigint[])
        UNION SELECT known.number FROM {s}.instance AS known WHERE known.id = ANY ($2::text[])
        UNION SELECT activity.instance FROM {s}.activity WHERE activity.number = ANY ($3::bigint[])"
    };
}

pub(super) use named;

/// The time that a caller has set, else the database's.
macro_rules! given_time {
    ($parameter:literal) => {
        concat!("coalesce(", $parameter, "::bigint, (extract(epoch FROM now()) * 1000000)::bigint)")
    };
}
pub(super) use given_time;

/// In the order of their numbers, so that two nodes never wait for each other in a circle.
const LOCK_INSTANCES: &str = concat!(
    "SELECT {columns instance} FROM {s}.instance WHERE instance.number = ANY (ARRAY(",
    named!(),
    ")) ORDER BY instance.number FOR UPDATE OF instance"
);
/// Instances whose rows are in the row cache, and the others that the batch names: all are locked in one order.
const LOCK_CACHED: &str = concat!(
    "SELECT instance.number, instance.revision FROM {s}.instance WHERE instance.number = ANY (ARRAY(",
    named!(),
    ")) ORDER BY instance.number FOR UPDATE OF instance"
);
/// The rows of instances that an earlier statement has locked: the current execution, if any, flags for the rows that few
/// instances have, and each message in a row of its own, with short texts. One message above the limit shows that a mailbox
/// is too long. Of two columns of one name the first is read, so the instance has a number without a message or an
/// execution, too.
macro_rules! instance_rows {
    ($instances:expr, $max:literal, $bytes:literal) => {
        concat!(
            "WITH owner AS MATERIALIZED (",
            $instances,
            ") SELECT owner.number AS instance, owner.execution_id, execution.instance IS NOT NULL AS has_execution,
                {columns execution},
                EXISTS (SELECT 1 FROM {s}.custom_status WHERE custom_status.instance = owner.number) AS has_custom_status,
                EXISTS (SELECT 1 FROM {s}.kv_change WHERE kv_change.instance = owner.number) AS has_key_value_changes,
                message.instance IS NOT NULL AS has_message, {head message}, octet_length(message.data)::bigint AS bytes,
                CASE WHEN octet_length(message.data) <= ",
            $bytes,
            " THEN message.data END AS data
            FROM owner LEFT JOIN {s}.execution
                ON execution.instance = owner.number AND execution.execution_id = owner.execution_id
            LEFT JOIN LATERAL (
                SELECT * FROM {s}.message WHERE message.instance = owner.number
                ORDER BY message.due_at, message.number LIMIT ",
            $max,
            ") AS message ON true"
        )
    };
}
pub(super) use instance_rows;
const INSTANCE_ROWS: &str = instance_rows!(
    concat!(
        "SELECT instance.number, instance.execution_id FROM {s}.instance WHERE instance.number = ANY (ARRAY(",
        named!(),
        "))"
    ),
    "$4",
    "$5::bigint"
);
const LOCK_ACTIVITIES: &str =
    "SELECT {head activity} FROM {s}.activity WHERE activity.number = ANY ($1::bigint[])
    ORDER BY activity.number FOR UPDATE";
const LOCK_ACTIVITIES_BY_KEY: &str = "SELECT {head activity}
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (instance, execution_id, activity_id)
    JOIN {s}.activity ON activity.instance = ANY (ARRAY[wanted.instance]) AND activity.execution_id = wanted.execution_id
        AND activity.activity_id = wanted.activity_id
    ORDER BY activity.number FOR UPDATE OF activity";
const LOCK_SESSIONS_OF_ACTIVITIES: &str = "SELECT {columns session} FROM {s}.session
    WHERE session.id IN (SELECT activity.session_id FROM {s}.activity WHERE activity.number = ANY ($1::bigint[]))
    ORDER BY session.id FOR UPDATE OF session";
const KEY_VALUE_CHANGES: &str =
    "SELECT {columns kv_change} FROM {s}.kv_change WHERE kv_change.instance = ANY ($1::bigint[])";
const KEY_VALUE_KEYS: &str = "SELECT instance, key FROM {s}.kv WHERE instance = ANY ($1::bigint[])";
const CUSTOM_STATUS: &str = "SELECT {columns custom_status} FROM {s}.custom_status
    WHERE custom_status.instance = ANY ($1::bigint[])";
/// Blocks of numbers, and the time. None is drawn before the rows are locked that the numbers order, and the time is not
/// before any time in the locked rows.
const DRAW_NUMBERS: &str = "SELECT nextval('{s}.numbers') AS first,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
    FROM generate_series(1, $1::bigint)";

/// Texts up to this length are loaded with the messages of a claim.
pub(super) const DATA_BYTES_MAX: i64 = 64 << 10;
/// Texts up to this length are loaded with other messages: the row cache takes a mailbox only with its texts.
const SMALL_DATA_BYTES_MAX: i64 = 2 << 10;

/// Instances to lock and load.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedInstances {
    pub(crate) numbers: BTreeSet<u64>,
    pub(crate) ids: BTreeSet<String>,
    /// Activities whose instances are locked, too.
    pub(crate) activities: BTreeSet<u64>,
}

impl NamedInstances {
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.ids.is_empty() && self.activities.is_empty()
    }

    pub(super) fn parameters(&self) -> Vec<crate::connection::Parameter> {
        let ids: Vec<String> = self.ids.iter().cloned().collect();
        parameters![numbers(&self.numbers), ids, numbers(&self.activities)]
    }
}

/// A loading statement, and how its answer is stored.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) query: Query,
    pub(super) meaning: Meaning,
}

#[derive(Debug)]
pub(super) enum Meaning {
    /// Instances by name: those without a row do not exist.
    Instances(NamedInstances),
    /// The revisions of instances that are in the row cache, with the cached revisions.
    CachedInstances(BTreeMap<u64, u64>),
    /// Ready instances on these routes, at most this many on each.
    ReadyInstances(Vec<RouteId>, usize),
    /// All stray mailboxes.
    Strays,
    /// All instances that were due at this time, or when the transaction began.
    DueInstances(Option<Timestamp>),
    /// The rows of instances that an earlier statement has locked.
    InstanceRows,
    /// Activities by number: those without a row do not exist.
    Activities(BTreeSet<u64>),
    /// Activities by key.
    ActivitiesByKey(BTreeSet<(u64, u64, u64)>),
    ReadyActivities(Vec<LaneId>, usize),
    DueActivities(Option<Timestamp>),
    SessionsOfActivities(BTreeSet<u64>),
    /// All leased sessions of these owners.
    SessionsOfOwners(Vec<String>),
    /// The sessions of all ready activities: those without a row do not exist.
    SessionsOfReady,
    /// Ready activities of sessions, at most this many of each session and lane.
    ReadyInSessions(usize),
    /// A node of this name.
    EndingNode(String),
    /// All changed keys of these instances.
    KeyValueChanges(BTreeSet<u64>),
    /// All keys under which these instances have a value.
    KeyValueKeys(BTreeSet<u64>),
    CustomStatus(BTreeSet<u64>),
    FirstEvents(BTreeSet<String>),
    /// A part of the families of instances that are locked.
    Family(FamilyPart, NamedInstances),
    /// Dead letters: those without a row do not exist.
    Letters(BTreeSet<u64>),
    LetterNumbers,
    /// Where instances are ready, and how many.
    RouteCounts,
    LaneCounts,
    SessionLanes,
    DueRemovalTask,
    Routes,
    Lanes,
    Numbers,
    /// Where scans of ready rows begin.
    ScanStarts,
    /// The answer is not used.
    Nothing,
}

impl Request {
    pub(super) fn new(
        meaning: Meaning,
        sql: &'static str,
        parameters: Vec<crate::connection::Parameter>,
    ) -> Self {
        Self { query: Query::new(sql, parameters), meaning }
    }

    /// Locks instances, and loads their current executions and their messages, short texts included.
    pub(super) fn instances(named: &NamedInstances, mailbox_max: usize) -> [Self; 2] {
        let mut of_rows = named.parameters();
        of_rows.extend(parameters![limit(mailbox_max.saturating_add(1)), SMALL_DATA_BYTES_MAX]);
        [
            Self::new(Meaning::Instances(named.clone()), LOCK_INSTANCES, named.parameters()),
            Self::new(Meaning::InstanceRows, INSTANCE_ROWS, of_rows),
        ]
    }

    /// Locks instances that are in the row cache, given with their revisions, and others.
    pub(super) fn cached_instances(cached: BTreeMap<u64, u64>, others: &NamedInstances) -> Self {
        let mut all = others.clone();
        all.numbers.extend(cached.keys());
        Self::new(Meaning::CachedInstances(cached), LOCK_CACHED, all.parameters())
    }

    pub(super) fn activities(activities: &BTreeSet<u64>) -> Self {
        let parameters = parameters![numbers(activities)];
        Self::new(Meaning::Activities(activities.clone()), LOCK_ACTIVITIES, parameters)
    }

    pub(super) fn activities_by_key(keys: &BTreeSet<(u64, u64, u64)>) -> Self {
        let parameters = parameters![
            numbers(keys.iter().map(|(instance, _, _)| instance)),
            numbers(keys.iter().map(|(_, execution, _)| execution)),
            numbers(keys.iter().map(|(_, _, activity)| activity)),
        ];
        Self::new(Meaning::ActivitiesByKey(keys.clone()), LOCK_ACTIVITIES_BY_KEY, parameters)
    }

    pub(super) fn sessions_of(activities: &BTreeSet<u64>) -> Self {
        let parameters = parameters![numbers(activities)];
        Self::new(Meaning::SessionsOfActivities(activities.clone()), LOCK_SESSIONS_OF_ACTIVITIES, parameters)
    }

    pub(super) fn key_value_changes(instances: &BTreeSet<u64>) -> Self {
        let parameters = parameters![numbers(instances)];
        Self::new(Meaning::KeyValueChanges(instances.clone()), KEY_VALUE_CHANGES, parameters)
    }

    pub(super) fn key_value_keys(instances: &BTreeSet<u64>) -> Self {
        Self::new(Meaning::KeyValueKeys(instances.clone()), KEY_VALUE_KEYS, parameters![numbers(instances)])
    }

    pub(super) fn custom_status(instances: &BTreeSet<u64>) -> Self {
        Self::new(Meaning::CustomStatus(instances.clone()), CUSTOM_STATUS, parameters![numbers(instances)])
    }

    /// Draws blocks of numbers.
    pub(super) fn numbers(blocks: i64) -> Self {
        Self::new(Meaning::Numbers, DRAW_NUMBERS, parameters![blocks])
    }
}

/// How far a list was read that begins with these numbers and was cut off at a limit.
pub(super) fn read_up_to(found: &[u64], limit: usize) -> ReadUpTo {
    if found.len() < limit { ReadUpTo::End } else { ReadUpTo::Number(found.iter().max().copied()) }
}

/// A time in a row of the answer.
pub(super) fn time_in(row: &Row, name: &str) -> Result<Timestamp, DatabaseError> {
    row.column::<i64>(name).map(time)
}
