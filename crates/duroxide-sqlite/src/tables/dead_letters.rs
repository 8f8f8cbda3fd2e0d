//! Dead letters.

use duroxide_provider::{
    DeadLetter, DeadLetterQueue,
    rules::{DeadLetterRow, DeadLetterTable, LaneId, Origin, Rows},
    store::MessageKind,
};
use rusqlite::Row;

use super::{
    SqliteTables,
    mailboxes::messages::{kind_number, kind_of},
};
use crate::{
    columns::columns,
    db::{Db, count, lossy_text, micros, number, time, unsigned},
};

columns!(dead_letter as dead_letter_columns: id, queue, instance_id, payload, reason, attempt_count, dead_lettered_at,
    kind, key, execution_id, activity_id, lane, session_id);

const INSERT_MESSAGE: &str = "INSERT INTO dead_letter
        (queue, instance_id, payload, reason, attempt_count, dead_lettered_at, kind, key)
    VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const INSERT_ACTIVITY: &str = "INSERT INTO dead_letter
        (queue, instance_id, payload, reason, attempt_count, dead_lettered_at, execution_id, activity_id, lane,
         session_id)
    VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
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

pub(super) fn insert(db: &Db, row: &DeadLetterRow) -> Rows<u64> {
    let shared = (&row.instance_id, &row.payload, &row.reason, row.attempts, micros(row.dead_lettered_at));
    let id = match &row.origin {
        Origin::Message { kind, key } => {
            let columns = (shared.0, shared.1, shared.2, shared.3, shared.4, kind_number(*kind), key);
            db.insert(INSERT_MESSAGE, columns)?
        }
        Origin::Activity { execution_id, activity_id, lane, session_id } => {
            let schedule = (number(*execution_id), number(*activity_id), number(lane.0));
            let columns = (
                shared.0, shared.1, shared.2, shared.3, shared.4, schedule.0, schedule.1, schedule.2,
                session_id,
            );
            db.insert(INSERT_ACTIVITY, columns)?
        }
    };
    Ok(unsigned(id))
}

pub(super) fn get(db: &Db, id: u64) -> Rows<Option<DeadLetterRow>> {
    db.first(SELECT, [number(id)], read)
}

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

fn read_origin(row: &Row<'_>) -> rusqlite::Result<Origin> {
    let number_in =
        |column| Ok::<_, rusqlite::Error>(unsigned(row.get::<_, Option<i64>>(column)?.unwrap_or(0)));
    Ok(match queue_of(row.get(dead_letter::queue)?) {
        DeadLetterQueue::Orchestrator => {
            let kind: Option<i64> = row.get(dead_letter::kind)?;
            Origin::Message {
                kind: kind.map_or(MessageKind::Other, kind_of),
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

pub(super) fn delete(db: &Db, id: u64) -> Rows<()> {
    db.execute(DELETE, [number(id)]).map(|_| ())
}

pub(super) fn delete_of_instance(db: &Db, id: &str) -> Rows<()> {
    db.execute(DELETE_OF_INSTANCE, [id]).map(|_| ())
}

/// All dead letters, with their numbers.
pub(crate) fn all(db: &Db) -> Rows<Vec<(u64, DeadLetterRow)>> {
    db.all(ALL, [], |row| Ok((unsigned(row.get(dead_letter::id)?), read(row)?)))
}

/// Dead letters as operators see them, oldest first.
pub(crate) fn list(db: &Db, limit: Option<u32>) -> Rows<Vec<DeadLetter>> {
    let limit = limit.map_or(-1, i64::from);
    db.all(LIST, [limit], show)
}

/// The dead letters of an instance, oldest first.
pub(crate) fn of_instance(db: &Db, id: &str, max: usize) -> Rows<Vec<DeadLetter>> {
    db.all(LIST_OF_INSTANCE, (id, i64::try_from(max).unwrap_or(i64::MAX)), show)
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
    if number == 0 { DeadLetterQueue::Orchestrator } else { DeadLetterQueue::Worker }
}

impl DeadLetterTable for SqliteTables {
    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64> {
        insert(&self.db, row)
    }

    fn dead_letter(&mut self, number: u64) -> Rows<Option<DeadLetterRow>> {
        get(&self.db, number)
    }

    fn delete_dead_letter(&mut self, number: u64) -> Rows<()> {
        delete(&self.db, number)
    }

    fn delete_dead_letters_of(&mut self, id: &str) -> Rows<()> {
        delete_of_instance(&self.db, id)
    }
}
