//! Which messages a claim sees, and what a lock does to those it took.

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    Arrival, MessageKind, StoreFailure,
    bounds::{CLAIM_BYTES_MAX, CLAIM_MESSAGES_MAX},
    sort_for_delivery,
};
use rusqlite::Row;

use super::{kind_number, kind_of};
use crate::{
    SqliteEngine,
    db::{count, lossy_text, micros, time, unsigned},
    instances::{Batch, Held, InstanceRow, Kept},
};

/// The columns of a [`Message`], in the order in which it reads them.
macro_rules! message_columns {
    () => {
        concat!(
            "due_at, seq, kind, attempt_count, ",
            $crate::payloads::whole_data!("message.seq"),
            ", key, hidden_until, enqueued_at"
        )
    };
}
pub(crate) use message_columns;

/// Whether the lock of its instance holds a message whose row does not say so; see [`Batch`].
macro_rules! held_unmarked {
    () => {
        "((instance.batch < 0 AND CASE instance.batch_due_at
            WHEN -1 THEN message.due_at = 0 AND message.seq <= instance.batch_seq
            ELSE message.due_at = instance.batch_due_at AND message.seq = instance.batch_seq END) IS TRUE)"
    };
}
pub(crate) use held_unmarked;

/// Whether the lock of its instance holds a message, ended or not.
macro_rules! held {
    () => {
        concat!("((message.batch = instance.batch) IS TRUE OR ", $crate::mailbox::held_unmarked!(), ")")
    };
}
pub(crate) use held;

/// The oldest queue message that an abandon hides: younger ones wait behind it, or backoff would break their order.
const HELD_FROM: &str = "SELECT seq FROM message
    WHERE instance = ?1 AND hidden_until > 0 AND hidden_until > ?2 AND kind = 2 ORDER BY seq LIMIT 1";
/// The look for a hidden one is made at the first queue message only, so it costs the others nothing.
const HAS_VISIBLE: &str = "SELECT 1 FROM message
    WHERE instance = ?1 AND due_at <= ?2 AND hidden_until <= ?2
      AND (kind <> 2 OR seq < coalesce((SELECT seq FROM message
        WHERE instance = ?1 AND hidden_until > 0 AND hidden_until > ?2 AND kind = 2 ORDER BY seq LIMIT 1),
        9223372036854775807))
    LIMIT 1";
/// Names its index: by the primary key SQLite would look at every message that is no start.
const HAS_VISIBLE_START: &str = "SELECT 1 FROM message INDEXED BY message_start
    WHERE instance = ?1 AND due_at <= ?2 AND hidden_until <= ?2 AND kind <= 1 LIMIT 1";
const VISIBLE: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM message WHERE instance = ?1 AND due_at <= ?2 AND hidden_until <= ?2
      AND (kind <> 2 OR seq < coalesce((SELECT seq FROM message
        WHERE instance = ?1 AND hidden_until > 0 AND hidden_until > ?2 AND kind = 2 ORDER BY seq LIMIT 1),
        9223372036854775807))
    ORDER BY due_at, seq"
);
const VISIBLE_START: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM message INDEXED BY message_start WHERE instance = ?1 AND due_at <= ?2 AND hidden_until <= ?2 AND kind <= 1 AND kind = ?3
    ORDER BY due_at, seq LIMIT 1"
);
const NEXT_DUE: &str =
    "SELECT due_at FROM message WHERE instance = ?1 AND due_at > ?2 ORDER BY due_at LIMIT 1";
const NEXT_SHOWN: &str =
    "SELECT min(hidden_until) FROM message WHERE instance = ?1 AND hidden_until > 0 AND hidden_until > ?2";
/// Leaves `hidden_until` alone where it is 0: its index would be written for nothing.
const TAKE: &str = "UPDATE message SET batch = ?4, attempt_count = attempt_count + 1
    WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const TAKE_SHOWN_AGAIN: &str =
    "UPDATE message SET batch = ?4, hidden_until = 0, attempt_count = attempt_count + 1
    WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const COUNT_ATTEMPT: &str = "UPDATE message SET attempt_count = attempt_count + 1
    WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const COUNT_ATTEMPT_OF_WHOLE: &str = "UPDATE message SET attempt_count = attempt_count + 1
    WHERE instance = ?1 AND due_at = 0 AND seq <= ?2";
const HIDE_UNDECODABLE: &str = "UPDATE message
    SET batch = NULL, kind = ?4, hidden_until = ?5, attempt_count = attempt_count + 1
    WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const DELETE: &str = "DELETE FROM message WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const CONSUME_LAST: &str =
    "DELETE FROM message WHERE instance = ?1 AND due_at = ?2 AND seq = ?3 AND batch = ?4";
const RELEASE_SOLE: &str = "UPDATE message SET hidden_until = ?4, attempt_count = attempt_count + ?5
    WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const CONSUME_WHOLE: &str = "DELETE FROM message WHERE instance = ?1 AND due_at = 0 AND seq <= ?2";
const RELEASE_WHOLE: &str = "UPDATE message SET hidden_until = ?3, attempt_count = attempt_count + ?4
    WHERE instance = ?1 AND due_at = 0 AND seq <= ?2";
const FIRST_LEFT: &str = "SELECT due_at, seq FROM message WHERE instance = ?1 ORDER BY due_at, seq LIMIT 1";
const CONSUME_BATCH: &str =
    "DELETE FROM message WHERE instance = ?1 AND (due_at, seq) <= (?2, ?3) AND batch = ?4";
const RELEASE_BATCH: &str = "UPDATE message
    SET batch = NULL, hidden_until = ?5, attempt_count = max(0, attempt_count - ?6)
    WHERE instance = ?1 AND (due_at, seq) <= (?2, ?3) AND batch = ?4";

/// A message that a claim looks at.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) due_at: i64,
    pub(crate) seq: i64,
    pub(crate) kind: MessageKind,
    pub(crate) attempt_count: u32,
    pub(crate) data: String,
    pub(crate) key: Option<String>,
    /// Whether it was hidden for some time.
    was_hidden: bool,
    enqueued_at: i64,
}

impl Message {
    /// One that was stored just now and can be seen at once. What it says is known apart from it.
    pub(super) fn arrived(seq: i64, kind: MessageKind, key: Option<String>, now: Timestamp) -> Self {
        Self {
            due_at: 0,
            seq,
            kind,
            attempt_count: 0,
            data: String::new(),
            key,
            was_hidden: false,
            enqueued_at: micros(now),
        }
    }

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            due_at: row.get(0)?,
            seq: row.get(1)?,
            kind: kind_of(row.get(2)?),
            attempt_count: count(row.get(3)?),
            data: lossy_text(row, 4)?,
            key: row.get(5)?,
            was_hidden: row.get::<_, i64>(6)? > 0,
            enqueued_at: row.get(7)?,
        })
    }

    /// Its kind once it could not be decoded: nothing waits behind such a queue message.
    pub(crate) fn kind_put_aside(&self) -> MessageKind {
        if self.kind == MessageKind::Queue { MessageKind::Other } else { self.kind }
    }

    fn place(&self) -> (i64, i64) {
        (self.due_at, self.seq)
    }

    fn arrival(&self) -> Arrival {
        Arrival { number: unsigned(self.seq), enqueued_at: time(self.enqueued_at), due_at: time(self.due_at) }
    }
}

impl SqliteEngine {
    /// From which queue message on they wait behind a hidden one.
    pub(super) fn held_from(&self, id: i64) -> Result<Option<i64>, StoreFailure> {
        self.db.first(HELD_FROM, (id, micros(self.now)), |row| row.get(0))
    }

    pub(crate) fn has_visible(&self, id: i64) -> Result<bool, StoreFailure> {
        self.db.exists(HAS_VISIBLE, (id, micros(self.now)))
    }

    pub(crate) fn has_visible_start(&self, id: i64) -> Result<bool, StoreFailure> {
        self.db.exists(HAS_VISIBLE_START, (id, micros(self.now)))
    }

    /// When something may become visible by itself.
    pub(crate) fn next_visible(&self, id: i64) -> Result<Option<Timestamp>, StoreFailure> {
        let now = micros(self.now);
        let due: Option<i64> = self.db.first(NEXT_DUE, (id, now), |row| row.get(0))?;
        let shown: Option<i64> = self.db.first(NEXT_SHOWN, (id, now), |row| row.get(0))?.flatten();
        Ok(due.into_iter().chain(shown).min().map(time))
    }

    /// The messages a claim looks at, in the order of delivery: all that are visible, or a bounded part of them and with it the
    /// first visible starts, without which an instance that does not exist yet could not take the others.
    pub(crate) fn visible_messages(&self, id: i64, whole: bool) -> Result<Vec<Message>, StoreFailure> {
        let mut left = if whole { Bound::NONE } else { Bound::OF_BATCH };
        let mut messages = self.db.all_while(VISIBLE, (id, micros(self.now)), |row| {
            let message = Message::read(row)?;
            Ok(left.admits(message.data.len()).then_some(message))
        })?;
        if left.reached {
            self.add_visible_starts(id, &mut messages)?;
        }
        sort_for_delivery(&mut messages, Message::arrival);
        Ok(messages)
    }

    fn add_visible_starts(&self, id: i64, messages: &mut Vec<Message>) -> Result<(), StoreFailure> {
        let last = messages.last().map(Message::place);
        for kind in [MessageKind::Start, MessageKind::ContinueAsNew] {
            let columns = (id, micros(self.now), kind_number(kind));
            let start = self.db.first(VISIBLE_START, columns, Message::read)?;
            messages.extend(start.filter(|start| last < Some(start.place())));
        }
        Ok(())
    }

    /// Gives messages to a batch and counts the attempt. If it is one message, or they `are_all` that the mailbox holds,
    /// what is stored with the lock does both.
    pub(crate) fn take_messages(
        &mut self,
        id: i64,
        messages: &[Message],
        are_all: bool,
    ) -> Result<Batch, StoreFailure> {
        let number = self.sequence.take();
        let (last_due_at, last_seq) = messages.iter().map(Message::place).max().unwrap_or_default();
        match messages {
            [sole] if !sole.was_hidden => return Ok(Batch { number: -number, last_due_at, last_seq }),
            _ if are_all => return Ok(Batch::whole(number, last_seq)),
            _ => {}
        }
        for message in messages {
            let take = if message.was_hidden { TAKE_SHOWN_AGAIN } else { TAKE };
            self.db.execute(take, (id, message.due_at, message.seq, number))?;
        }
        Ok(Batch { number, last_due_at, last_seq })
    }

    /// Counts the attempt of a lock that ended, in the rows of its messages, for which the lock stood so far.
    pub(crate) fn count_lost_attempt(
        &self,
        row: &InstanceRow,
        messages: &mut [Message],
    ) -> Result<(), StoreFailure> {
        let Some(lost) = row.batch else { return Ok(()) };
        match lost.held() {
            Held::Marked => return Ok(()),
            Held::Sole => self.db.execute(COUNT_ATTEMPT, (row.id, lost.last_due_at, lost.last_seq))?,
            Held::Whole => self.db.execute(COUNT_ATTEMPT_OF_WHOLE, (row.id, lost.last_seq))?,
        };
        for message in messages.iter_mut().filter(|message| lost.holds_unmarked(message.place())) {
            message.attempt_count = message.attempt_count.saturating_add(1);
        }
        Ok(())
    }

    /// Hides a message that could not be decoded, and counts the attempt.
    pub(crate) fn hide_undecodable(
        &self,
        id: i64,
        message: &Message,
        until: Timestamp,
    ) -> Result<(), StoreFailure> {
        let kind = message.kind_put_aside();
        let columns = (id, message.due_at, message.seq, kind_number(kind), micros(until));
        self.db.execute(HIDE_UNDECODABLE, columns).map(|_| ())
    }

    pub(crate) fn delete_message(&self, id: i64, message: &Message) -> Result<(), StoreFailure> {
        self.db.execute(DELETE, (id, message.due_at, message.seq)).map(|_| ())
    }

    /// Deletes the messages the lock holds, and says whether others are left. One that arrived after the fetch belongs
    /// to the next turn.
    pub(crate) fn consume_batch(&self, held: &mut Kept) -> Result<bool, StoreFailure> {
        if let Some(batch) = held.row.batch {
            self.delete_batch(held.row.id, batch)?;
        }
        let are_left = match &held.waiting {
            Some(waiting) => !waiting.is_empty(),
            None => self.has_messages(held.row.id)?,
        };
        if !are_left {
            held.waiting = Some(Vec::new());
        }
        Ok(are_left)
    }

    /// Most turns take one message. Its row is deleted by its key, which costs SQLite half of a delete by range, and so
    /// is the last of several, behind which no other of the batch stands.
    fn delete_batch(&self, id: i64, batch: Batch) -> Result<(), StoreFailure> {
        let last = (batch.last_due_at, batch.last_seq);
        match batch.held() {
            Held::Sole => self.db.execute(DELETE, (id, last.0, last.1))?,
            Held::Whole => self.db.execute(CONSUME_WHOLE, (id, last.1))?,
            Held::Marked => {
                self.db.execute(CONSUME_LAST, (id, last.0, last.1, batch.number))?;
                let first = self.db.first(FIRST_LEFT, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
                if first.is_none_or(|first| first > last) {
                    return Ok(());
                }
                self.db.execute(CONSUME_BATCH, (id, last.0, last.1, batch.number))?
            }
        };
        Ok(())
    }

    /// Gives back the messages the lock holds, and only those.
    pub(crate) fn release_batch(
        &self,
        row: &InstanceRow,
        hidden_until: Timestamp,
        ignore_attempt: bool,
    ) -> Result<(), StoreFailure> {
        let Some(batch) = row.batch else { return Ok(()) };
        let (last, hidden_until) = ((batch.last_due_at, batch.last_seq), micros(hidden_until));
        let counted = i64::from(!ignore_attempt);
        match batch.held() {
            Held::Sole => self.db.execute(RELEASE_SOLE, (row.id, last.0, last.1, hidden_until, counted))?,
            Held::Whole => self.db.execute(RELEASE_WHOLE, (row.id, last.1, hidden_until, counted))?,
            Held::Marked => {
                let columns = (row.id, last.0, last.1, batch.number, hidden_until, 1 - counted);
                self.db.execute(RELEASE_BATCH, columns)?
            }
        };
        Ok(())
    }
}

/// How much more a claim may look at.
#[derive(Debug)]
struct Bound {
    messages: usize,
    bytes: usize,
    admitted: usize,
    reached: bool,
}

impl Bound {
    const NONE: Self = Self { messages: usize::MAX, bytes: usize::MAX, admitted: 0, reached: false };
    const OF_BATCH: Self =
        Self { messages: CLAIM_MESSAGES_MAX, bytes: CLAIM_BYTES_MAX, admitted: 0, reached: false };

    /// Whether one more message of this size fits; the first always does.
    fn admits(&mut self, bytes: usize) -> bool {
        let fits = self.admitted < self.messages && (bytes <= self.bytes || self.admitted == 0);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.admitted += 1;
        self.reached = !fits;
        fits
    }
}
