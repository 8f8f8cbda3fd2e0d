//! The queued rows of one instance.

use duroxide_core::Timestamp;
use duroxide_provider::{
    QueuedWork,
    rules::{InstanceRow, Lane, WorkRows},
    store::StoreFailure,
};
use tokio_postgres::Row;

use super::overview::{NOW, defined, shown};
use crate::{
    PostgresEngine,
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::{Activity, Letter, Message, Record, Session, read_all, read_pinned},
    tables::nodes,
    value::{Columns, limit, micros},
};

const ROW: &str = "SELECT {columns instance}, pinned_major, pinned_minor, pinned_patch,
        (SELECT definition FROM {s}.route WHERE route.id = instance.route) AS definition,
        (SELECT count(*) FROM {s}.message WHERE message.instance = instance.number) AS messages,
        (SELECT count(*) FROM {s}.activity WHERE activity.instance = instance.number) AS activities
    FROM {s}.instance LEFT JOIN {s}.execution ON execution.instance = instance.number
        AND execution.execution_id = instance.execution_id
    WHERE instance.id = $1";
/// The first messages: those in front of which there are no more bytes than a limit.
const MESSAGES: &str = "SELECT {columns message}, bytes FROM (
        SELECT *, octet_length(data)::bigint AS bytes,
            sum(octet_length(data)) OVER (ORDER BY due_at, number) - octet_length(data) AS before
        FROM (SELECT * FROM {s}.message WHERE instance = (SELECT number FROM {s}.instance WHERE id = $1)
            ORDER BY due_at, number LIMIT $2) AS first) AS message
    WHERE before <= $3 ORDER BY message.due_at, message.number";
const ACTIVITIES: &str = "SELECT {head activity}, lane.definition
    FROM {s}.activity JOIN {s}.lane ON lane.id = activity.lane
    WHERE activity.instance = (SELECT number FROM {s}.instance WHERE id = $1)
    ORDER BY activity.execution_id, activity.activity_id LIMIT $2";
const SESSIONS: &str =
    "SELECT {columns session} FROM {s}.session WHERE session.id IN (SELECT session_id FROM (
        SELECT session_id FROM {s}.activity WHERE instance = (SELECT number FROM {s}.instance WHERE id = $1)
        ORDER BY execution_id, activity_id LIMIT $2) AS shown)";
const LETTERS: &str = "SELECT {columns dead_letter} FROM {s}.dead_letter WHERE dead_letter.instance_id = $1
    ORDER BY dead_letter.number LIMIT $2";

impl PostgresEngine {
    /// By the keys of the instance, its messages, activities and dead letters, in one round trip.
    pub(super) fn read_queued_work(&mut self, instance: &str) -> Result<Option<QueuedWork>, StoreFailure> {
        let (id, max) = (|| instance.to_owned(), limit(QueuedWork::LIMIT));
        let answers = self.read_all(&[
            Query::new(NOW, parameters![self.time_of_reads().map(micros)]),
            Query::new(ROW, parameters![id()]),
            Query::new(MESSAGES, parameters![id(), max, limit(QueuedWork::BYTES_LIMIT)]),
            Query::new(ACTIVITIES, parameters![id(), max]),
            Query::new(SESSIONS, parameters![id(), max]),
            Query::new(LETTERS, parameters![id(), max]),
            Query::new(nodes::ALL, Vec::new()),
        ])?;
        shown_work(&answers).map_err(DatabaseError::into_failure)
    }
}

fn shown_work(answers: &[Vec<Row>]) -> Result<Option<QueuedWork>, DatabaseError> {
    let [now, row, messages, activities, sessions, letters, nodes] = answers else { return Ok(None) };
    let now = now.first().map(|row| row.time("now")).transpose()?.unwrap_or(Timestamp::ZERO);
    let dead_letters = read_all::<Letter>(letters)?.into_iter().map(shown).collect();
    let Some(row) = row.first() else { return Ok(QueuedWork::of_nobody(now, dead_letters)) };
    let in_lane = |row: &Row| Ok((Activity::read(row)?.queued, defined::<Lane>(row)?));
    let rows = WorkRows {
        row: InstanceRow::read(row)?,
        route: row.column::<Option<String>>("definition")?.is_some().then(|| defined(row)).transpose()?,
        pinned: read_pinned(row)?,
        messages: read_all::<Message>(messages)?.into_iter().map(|message| message.queued).collect(),
        messages_total: row.number("messages")?,
        activities: activities.iter().map(in_lane).collect::<Result<_, DatabaseError>>()?,
        activities_total: row.number("activities")?,
        sessions: read_all::<Session>(sessions)?.into_iter().map(|session| session.0).collect(),
        dead_letters,
        nodes: nodes.iter().map(nodes::stored_node).collect::<Result<_, DatabaseError>>()?,
    };
    Ok(Some(rows.show(now)))
}
