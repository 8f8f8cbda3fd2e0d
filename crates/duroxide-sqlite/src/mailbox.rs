//! The messages of an instance: order, visibility, the batch a lock holds.

mod fullness;
mod visible;

use std::sync::Arc;

use duroxide_core::{INITIAL_EXECUTION_ID, Timestamp, WorkItem};
use duroxide_provider::store::{
    Answer, MessageKind, MessageRow, StartTarget, StoreFailure, StoredStart, Visibility, timer_key,
};

use crate::{
    SqliteEngine,
    db::{lossy_text, micros},
    instances::InstanceRow,
    payloads::{kept_in_row, whole_data},
    reads::first_event,
    routes::ORPHANS,
};

pub(crate) use fullness::Fullness;
pub(crate) use visible::{Message, held, held_unmarked, message_columns};

/// `ON CONFLICT` names its index: `INSERT OR IGNORE` would also swallow real errors.
const INSERT: &str = "INSERT INTO message (instance, due_at, seq, kind, key, enqueued_at, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (instance, key) WHERE key IS NOT NULL DO NOTHING";
const DELETE_BY_KEY: &str = "DELETE FROM message WHERE instance = ?1 AND key = ?2";
const HAS_MESSAGES: &str = "SELECT 1 FROM message WHERE instance = ?1 LIMIT 1";
const HAS_START: &str = "SELECT 1 FROM message WHERE instance = ?1 AND kind <= 1 LIMIT 1";
const HAS_OTHER_THAN_QUEUE: &str = "SELECT 1 FROM message WHERE instance = ?1 AND kind <> 2 LIMIT 1";
const HAS_ATTEMPTED: &str = "SELECT 1 FROM message WHERE instance = ?1 AND attempt_count > 0 LIMIT 1";
/// Names its index: by the primary key SQLite would look at every message that is no start.
const START_TARGET: &str = concat!(
    "SELECT ",
    whole_data!("message.seq"),
    " FROM message INDEXED BY message_start WHERE instance = ?1 AND kind <= 1 AND kind = ?2 AND due_at <= ?3 AND hidden_until <= ?3
    ORDER BY due_at, seq LIMIT 1"
);
const FIRST_START: &str = concat!(
    "SELECT ",
    whole_data!("message.seq"),
    " FROM message WHERE instance = ?1 AND kind <= 1 ORDER BY kind, due_at, seq LIMIT 1"
);
const OLDEST: &str = "SELECT min(max(enqueued_at, due_at)) FROM message WHERE instance = ?1";

/// A kind as it is stored.
pub(crate) const fn kind_number(kind: MessageKind) -> i64 {
    match kind {
        MessageKind::Start => 0,
        MessageKind::ContinueAsNew => 1,
        MessageKind::Queue => 2,
        MessageKind::Timer => 3,
        MessageKind::Other => 4,
    }
}

/// A stored kind.
pub(crate) const fn kind_of(number: i64) -> MessageKind {
    match number {
        0 => MessageKind::Start,
        1 => MessageKind::ContinueAsNew,
        2 => MessageKind::Queue,
        3 => MessageKind::Timer,
        _ => MessageKind::Other,
    }
}

/// Whether a message of this kind can begin an execution.
pub(crate) const fn is_start(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Start | MessageKind::ContinueAsNew)
}

impl SqliteEngine {
    /// Queues a message and makes its instance ready if that is what it waited for.
    pub(crate) fn enqueue(&mut self, message: &MessageRow) -> Result<(), StoreFailure> {
        self.enqueue_from(None, message).map(|_| ())
    }

    /// The same. If it begins an instance, `sender` is the row of that one's parent. Returns whether it does.
    pub(crate) fn enqueue_from(
        &mut self,
        sender: Option<i64>,
        message: &MessageRow,
    ) -> Result<bool, StoreFailure> {
        if let Some(start) = message.start.as_ref().filter(|_| message.visible == Visibility::Now)
            && let Some(id) = self.insert_ready_mailbox(&message.instance, start, sender)?
        {
            return self.insert_message(id, message);
        }
        let row = self.open_instance(&message.instance)?;
        self.enqueue_to(&row, message).map(|()| false)
    }

    /// Queues a start, unless its instance exists or has one. Most are of new instances, so the row is made first.
    pub(crate) fn start_if_new(&mut self, start: &MessageRow) -> Result<Answer, StoreFailure> {
        if let Some(target) = &start.start
            && let Some(id) = self.insert_ready_mailbox(&start.instance, target, None)?
        {
            self.insert_message(id, start)?;
            return Ok(Answer::Begun);
        }
        let row = self.open_instance(&start.instance)?;
        match self.stored_start(&row)? {
            Some(found) => Ok(Answer::Found(found)),
            None => self.enqueue_to(&row, start).map(|()| Answer::Done),
        }
    }

    /// How an instance was started; `None` for a mailbox without a start.
    fn stored_start(&self, row: &InstanceRow) -> Result<Option<StoredStart>, StoreFailure> {
        if row.known {
            let first = first_event(&self.db, row.id, INITIAL_EXECUTION_ID)?;
            return Ok(Some(first.map_or(StoredStart::Unknown, StoredStart::Recorded)));
        }
        let queued = self.db.first(FIRST_START, [row.id], |row| lossy_text(row, 0))?;
        Ok(queued.map(StoredStart::Queued))
    }

    /// Queues a message of this instance.
    pub(crate) fn enqueue_to(&mut self, row: &InstanceRow, message: &MessageRow) -> Result<(), StoreFailure> {
        if !self.insert_message(row.id, message)? || self.is_settled_with(row, message)? {
            return Ok(());
        }
        if self.wakes(row, message)? { self.stand_up(row.id) } else { self.settle(row) }
    }

    /// Inserts a message, unless one with its key is queued.
    pub(crate) fn insert_message(&mut self, id: i64, message: &MessageRow) -> Result<bool, StoreFailure> {
        let seq = self.sequence.take();
        let columns = (
            id,
            micros(due_at(message.visible, self.now)),
            seq,
            kind_number(message.kind),
            &message.key,
            micros(self.now),
            kept_in_row(&message.data),
        );
        let is_new = self.db.execute(INSERT, columns)? > 0;
        if is_new {
            let is_visible = message.visible == Visibility::Now;
            let visible = message.item.as_ref().filter(|_| is_visible).map(|item| {
                (Message::arrived(seq, message.kind, message.key.clone(), self.now), Arc::clone(item))
            });
            self.kept.message_arrived(id, visible);
            self.insert_payload(seq, &message.data)?;
        }
        Ok(is_new)
    }

    /// Whether a message is visible as soon as it is queued, if no older one holds it back.
    pub(crate) fn is_due(&self, message: &MessageRow) -> bool {
        due_at(message.visible, self.now) <= self.now
    }

    /// Whether one more message leaves the instance where it is, found out without looking at the others.
    fn is_settled_with(&self, row: &InstanceRow, message: &MessageRow) -> Result<bool, StoreFailure> {
        if row.is_locked(self.now) {
            return Ok(true);
        }
        if row.waits_for_successor() || row.is_ready_to_start() {
            // A hidden start may have become visible since, and the first visible one decides the route.
            return Ok(false);
        }
        if message.visible != Visibility::Now {
            return Ok(row.known && row.ready.is_some());
        }
        if !row.known {
            // It goes on waiting for its start, and the oldest message still decides until when.
            let stays_stray = message.kind == MessageKind::Queue || row.route != Some(ORPHANS);
            return Ok(row.wake_at.is_some() && !is_start(message.kind) && stays_stray);
        }
        let held_back = message.kind == MessageKind::Queue && self.held_from(row.id)?.is_some();
        Ok(row.ready.is_some() || held_back)
    }

    /// Whether one more message is what an instance waited for, found out without looking at the others. Asked only
    /// where it is not settled with it.
    fn wakes(&self, row: &InstanceRow, message: &MessageRow) -> Result<bool, StoreFailure> {
        let on_its_route = row.route.is_some_and(|route| route != ORPHANS);
        let waits = row.known && row.ready.is_none() && !row.waits_for_successor();
        if !waits || !on_its_route || message.visible != Visibility::Now {
            return Ok(false);
        }
        Ok(message.kind != MessageKind::Queue || self.held_from(row.id)?.is_none())
    }

    /// Removes the message of a timer that no longer counts; unknown ones are no error.
    pub(crate) fn cancel_timer(
        &mut self,
        id: i64,
        execution_id: u64,
        timer_id: u64,
    ) -> Result<(), StoreFailure> {
        self.delete_by_key(id, &timer_key(execution_id, timer_id)).map(|_| ())
    }

    /// Deletes the message of this key; says how many there were.
    pub(crate) fn delete_by_key(&mut self, id: i64, key: &str) -> Result<u64, StoreFailure> {
        self.kept.message_removed(id);
        Ok(self.db.execute(DELETE_BY_KEY, (id, key))? as u64)
    }

    pub(crate) fn has_messages(&self, id: i64) -> Result<bool, StoreFailure> {
        self.db.exists(HAS_MESSAGES, [id])
    }

    /// Whether a start is queued, visible or not.
    pub(crate) fn has_start(&self, id: i64) -> Result<bool, StoreFailure> {
        self.db.exists(HAS_START, [id])
    }

    pub(crate) fn holds_only_queue_messages(&self, id: i64) -> Result<bool, StoreFailure> {
        Ok(!self.db.exists(HAS_OTHER_THAN_QUEUE, [id])?)
    }

    pub(crate) fn has_attempted(&self, id: i64) -> Result<bool, StoreFailure> {
        self.db.exists(HAS_ATTEMPTED, [id])
    }

    /// When the oldest message has waited too long for an instance.
    pub(crate) fn next_orphan(&self, id: i64) -> Result<Option<Timestamp>, StoreFailure> {
        let oldest = self.db.first(OLDEST, [id], |row| row.get::<_, Option<i64>>(0))?.flatten();
        Ok(oldest.map(|at| crate::db::time(at).saturating_add(self.orphan_message_ttl)))
    }

    /// What the first visible message of this kind asks for.
    pub(crate) fn start_target(
        &self,
        id: i64,
        kind: MessageKind,
    ) -> Result<Option<StartTarget>, StoreFailure> {
        let columns = (id, kind_number(kind), micros(self.now));
        let data = self.db.first(START_TARGET, columns, |row| lossy_text(row, 0))?;
        Ok(data.and_then(|data| start_target_of(&data)))
    }
}

fn start_target_of(data: &str) -> Option<StartTarget> {
    match serde_json::from_str(data).ok()? {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. } => {
            Some(StartTarget { name: orchestration, version })
        }
        _ => None,
    }
}

/// Due times are whole milliseconds, rounded up: a delay never ends early.
fn due_at(visible: Visibility, now: Timestamp) -> Timestamp {
    match visible {
        Visibility::Now => Timestamp::ZERO,
        Visibility::At(millis) => Timestamp::from_millis(millis),
        Visibility::After(delay) => Timestamp::from_millis(now.saturating_add(delay).as_millis_ceil()),
    }
}
