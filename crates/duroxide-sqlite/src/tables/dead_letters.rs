//! Dead letters.

use duroxide_provider::{
    DeadLetter, DeadLetterQueue,
    rules::{DeadLetterRow, DeadLetterTable, LaneId, Origin, Rows},
    store::MessageKind,
};
use rusqlite::Row;

use super::SqliteTables;
use crate::{
    columns::{columns, insert},
    db::{Db, count, limit, lossy_text, micros, number, time, unsigned},
};

columns!(dead_letter as dead_letter_columns: id, queue, instance_id, payload, reason, attempt_count, dead_lettered_at,
    kind, key, execution_id, activity_id, lane, session_id);

/// `queue` of a message, and of an activity.
const ORCHESTRATOR: i64 = 0;
const WORKER: i64 = 1;

const SELECT: &str = concat!("SELECT ", dead_letter_columns!(), " FROM dead_letter WHERE id = ?1");
const ALL: &str = concat!("SELECT ", dead_letter_columns!(), " FROM dead_letter ORDER BY id");
const LIST: &str = concat!("SELECT ", dead_letter_columns!(), " FROM dead_letter ORDER BY id LIMIT ?1");
const LIST_OF_INSTANCE: &str = concat!(
    "SELECT ",
    dead_letter_columns!(),
    " FROM dead_letter WHERE instance_id = ?1 ORDER BY id LIMIT ?2"
);
const DELETE: &str = "DELETE FROM dead_letter WHERE id = ?1";
const DELETE_OF_INSTANCE: &str = "DELETE FROM dead_letter WHERE instance_id = ?1";

fn read(row: &Row<'_>) -> rusqlite::Result<DeadLetterRow> {
    Ok(DeadLetterRow {
        instance_id: row.get(dead_letter::instance_id)?,
        payload: lossy_text(row, dead_letter::payload)?,
        reason: row.get(dead_letter::reason)?,
        attempts: count(row.get(dead_letter::attempt_count)?),
        dead_lettered_at: time(row.get(dead_letter::dead_lettered_at)?),
        origin: read_origin(row)?,
    })
}

/// A letter of the worker queue has the numbers of its activity. A damaged one names execution, activity and lane 0, which do not
/// exist: it is listed, and put back by its payload.
fn read_origin(row: &Row<'_>) -> rusqlite::Result<Origin> {
    let number_in =
        |column| Ok::<_, rusqlite::Error>(unsigned(row.get::<_, Option<i64>>(column)?.unwrap_or(0)));
    Ok(match queue_of(row.get(dead_letter::queue)?) {
        DeadLetterQueue::Orchestrator => {
            let kind: Option<i64> = row.get(dead_letter::kind)?;
            Origin::Message {
                kind: kind.map_or(MessageKind::Other, MessageKind::of_number),
                key: row.get(dead_letter::key)?,
            }
        }
        DeadLetterQueue::Worker => Origin::Activity {
            execution_id: number_in(dead_letter::execution_id)?,
            activity_id: number_in(dead_letter::activity_id)?,
            lane: LaneId(number_in(dead_letter::lane)?),
            session_id: row.get(dead_letter::session_id)?,
        },
    })
}

/// All dead letters, with their numbers.
pub(crate) fn all(db: &Db) -> Rows<Vec<(u64, DeadLetterRow)>> {
    db.all(ALL, [], |row| Ok((unsigned(row.get(dead_letter::id)?), read(row)?)))
}

/// Dead letters as operators see them, oldest first.
pub(crate) fn list(db: &Db, limit: Option<u32>) -> Rows<Vec<DeadLetter>> {
    match limit {
        Some(limit) => db.all(LIST, [limit], show),
        None => db.all(ALL, [], show),
    }
}

/// The dead letters of an instance, oldest first.
pub(crate) fn of_instance(db: &Db, id: &str, max: usize) -> Rows<Vec<DeadLetter>> {
    db.all(LIST_OF_INSTANCE, (id, limit(max)), show)
}

fn show(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        id: row.get::<_, i64>(dead_letter::id)?.to_string(),
        queue: queue_of(row.get(dead_letter::queue)?),
        instance_id: row.get(dead_letter::instance_id)?,
        payload: lossy_text(row, dead_letter::payload)?,
        reason: row.get(dead_letter::reason)?,
        attempt_count: count(row.get(dead_letter::attempt_count)?),
        dead_lettered_at_ms: time(row.get(dead_letter::dead_lettered_at)?).as_millis(),
    })
}

fn queue_of(number: i64) -> DeadLetterQueue {
    if number == ORCHESTRATOR { DeadLetterQueue::Orchestrator } else { DeadLetterQueue::Worker }
}

impl DeadLetterTable for SqliteTables {
    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64> {
        let (kind, key, activity) = match &row.origin {
            Origin::Message { kind, key } => (Some(kind.number()), key.as_ref(), None),
            Origin::Activity { execution_id, activity_id, lane, session_id } => {
                (None, None, Some((number(*execution_id), number(*activity_id), number(lane.0), session_id)))
            }
        };
        insert!(
            self.db,
            dead_letter {
                queue: if activity.is_some() { WORKER } else { ORCHESTRATOR },
                instance_id: &row.instance_id,
                payload: &row.payload,
                reason: &row.reason,
                attempt_count: row.attempts,
                dead_lettered_at: micros(row.dead_lettered_at),
                kind: kind,
                key: key,
                execution_id: activity.map(|(execution_id, ..)| execution_id),
                activity_id: activity.map(|(_, activity_id, ..)| activity_id),
                lane: activity.map(|(_, _, lane, _)| lane),
                session_id: activity.and_then(|(.., session_id)| session_id.as_ref()),
            }
        )?;
        Ok(unsigned(self.db.last_inserted()))
    }

    fn dead_letter(&mut self, id: u64) -> Rows<Option<DeadLetterRow>> {
        self.db.first(SELECT, [number(id)], read)
    }

    fn delete_dead_letter(&mut self, id: u64) -> Rows<()> {
        self.db.execute(DELETE, [number(id)]).map(|_| ())
    }

    fn delete_dead_letters_of(&mut self, ids: &[String]) -> Rows<()> {
        ids.iter().try_for_each(|id| self.db.execute(DELETE_OF_INSTANCE, [id]).map(|_| ()))
    }
}
