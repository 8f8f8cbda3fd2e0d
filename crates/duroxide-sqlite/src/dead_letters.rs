//! Rows that nobody could process. Nothing is ever deleted silently (16.10 to 16.12).

use duroxide_core::WorkItem;
use duroxide_provider::{
    DeadLetter, DeadLetterQueue, Losses,
    store::{
        ActivityRow, Answer, ApplyError, DeadLetterNote, DeadLetterReason, MessageRow, Refusal, StoreFailure,
        Visibility,
    },
};
use rusqlite::Row;

use crate::{
    SqliteEngine,
    activities::Activity,
    db::{Db, count, lossy_text, micros, time, unsigned},
    mailbox::{Message, kind_number, kind_of},
};

const INSERT_MESSAGE: &str = "INSERT INTO dead_letter
        (queue, instance_id, payload, reason, attempt_count, dead_lettered_at, kind, key)
    VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const INSERT_ACTIVITY: &str = "INSERT INTO dead_letter
        (queue, instance_id, payload, reason, attempt_count, dead_lettered_at, execution_id, activity_id, lane,
         session_id)
    VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const SELECT: &str =
    "SELECT queue, instance_id, payload, kind, key, execution_id, activity_id, lane, session_id
    FROM dead_letter WHERE id = ?1";
const DELETE: &str = "DELETE FROM dead_letter WHERE id = ?1";
const LIST: &str = "SELECT id, queue, instance_id, payload, reason, attempt_count, dead_lettered_at
    FROM dead_letter ORDER BY id LIMIT ?1";

/// A row that was taken out of its queue, as far as it is needed to put it back.
#[derive(Debug)]
struct Undelivered {
    queue: DeadLetterQueue,
    instance_id: String,
    payload: String,
    kind: Option<i64>,
    key: Option<String>,
    execution_id: Option<i64>,
    activity_id: Option<i64>,
    lane: Option<i64>,
    session_id: Option<String>,
}

impl Undelivered {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            queue: queue_of(row.get(0)?),
            instance_id: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
            payload: lossy_text(row, 2)?,
            kind: row.get(3)?,
            key: row.get(4)?,
            execution_id: row.get(5)?,
            activity_id: row.get(6)?,
            lane: row.get(7)?,
            session_id: row.get(8)?,
        })
    }
}

impl SqliteEngine {
    /// Keeps a message of an instance as a dead letter. The caller has taken it out of its queue.
    pub(crate) fn bury_message(
        &self,
        instance_id: &str,
        message: &Message,
        reason: DeadLetterReason,
        attempt_count: u32,
    ) -> Result<DeadLetterNote, StoreFailure> {
        let kind = match reason {
            DeadLetterReason::Undeserializable { .. } => message.kind_put_aside(),
            DeadLetterReason::NoInstance | DeadLetterReason::UnexpectedKind { .. } => message.kind,
        };
        let columns = (
            instance_id,
            &message.data,
            reason.to_string(),
            attempt_count,
            micros(self.now),
            kind_number(kind),
            &message.key,
        );
        let id = unsigned(self.db.insert(INSERT_MESSAGE, columns)?);
        let instance = Some(instance_id.to_owned());
        Ok(DeadLetterNote { id, queue: DeadLetterQueue::Orchestrator, instance, reason })
    }

    /// Keeps an activity as a dead letter, and returns its number. The caller takes it out of its queue.
    pub(crate) fn insert_dead_activity(
        &self,
        activity: &Activity,
        data: &str,
        instance: Option<&str>,
        reason: &str,
        attempt_count: u32,
    ) -> Result<u64, StoreFailure> {
        let columns = (
            instance,
            data,
            reason,
            attempt_count,
            micros(self.now),
            activity.execution_id,
            activity.activity_id,
            activity.lane,
            &activity.session_id,
        );
        self.db.insert(INSERT_ACTIVITY, columns).map(unsigned)
    }

    /// Puts a dead letter back into its queue, visible, with attempt count 0. It is read again from its payload,
    /// which an operator may have mended.
    pub(crate) fn retry_dead_letter(&mut self, id: &str) -> Result<Answer, ApplyError> {
        let row = self.dead_letter(id)?;
        self.discard_dead_letter(id)?;
        let item = serde_json::from_str::<WorkItem>(&row.payload).ok();
        match row.queue {
            DeadLetterQueue::Orchestrator => self.retry_message(row, item.as_ref())?,
            DeadLetterQueue::Worker => self.retry_activity(&row, item.as_ref())?,
        }
        Ok(Answer::Done)
    }

    pub(crate) fn discard_dead_letter(&mut self, id: &str) -> Result<Answer, ApplyError> {
        self.dead_letter(id)?;
        self.db.execute(DELETE, [id.parse::<i64>().unwrap_or_default()])?;
        Ok(Answer::Done)
    }

    fn dead_letter(&self, id: &str) -> Result<Undelivered, ApplyError> {
        let found = match id.parse::<i64>() {
            Ok(row) => self.db.first(SELECT, [row], Undelivered::read)?,
            Err(_) => None,
        };
        found.ok_or_else(|| Refusal::DeadLetterNotFound { id: id.to_owned() }.into())
    }

    /// A retried timer is due at once.
    fn retry_message(&mut self, row: Undelivered, item: Option<&WorkItem>) -> Result<(), StoreFailure> {
        let read = item.and_then(|item| MessageRow::new(item.clone(), None).ok());
        let message = read.unwrap_or_else(|| MessageRow {
            instance: row.instance_id,
            kind: kind_of(row.kind.unwrap_or(i64::MAX)),
            key: row.key,
            visible: Visibility::Now,
            start: None,
            data: row.payload,
            item: None,
        });
        self.enqueue(&MessageRow { visible: Visibility::Now, ..message })
    }

    fn retry_activity(&mut self, row: &Undelivered, item: Option<&WorkItem>) -> Result<(), StoreFailure> {
        if let Some(activity) = item.and_then(|item| ActivityRow::new(item.clone()).ok()) {
            return self.enqueue_activity(&activity);
        }
        let activity = Activity {
            id: self.sequence.take(),
            instance: self.open_instance(&row.instance_id)?.id,
            execution_id: row.execution_id.unwrap_or_default(),
            activity_id: row.activity_id.unwrap_or_default(),
            lane: row.lane.unwrap_or_default(),
            session_id: row.session_id.clone(),
            lock: None,
            attempt_count: 0,
            claimed: false,
            stop_requested: false,
            losses: Losses::default(),
        };
        self.insert_activity(activity, &row.payload, None)
    }
}

/// Dead letters, oldest first.
pub(crate) fn list(db: &Db, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure> {
    let limit = limit.map_or(-1, i64::from);
    db.all(LIST, [limit], |row| {
        Ok(DeadLetter {
            id: row.get::<_, i64>(0)?.to_string(),
            queue: queue_of(row.get(1)?),
            instance_id: row.get(2)?,
            payload: lossy_text(row, 3)?,
            reason: row.get(4)?,
            attempt_count: count(row.get(5)?),
            dead_lettered_at_ms: time(row.get(6)?).as_millis(),
        })
    })
}

fn queue_of(number: i64) -> DeadLetterQueue {
    if number == 0 { DeadLetterQueue::Orchestrator } else { DeadLetterQueue::Worker }
}
