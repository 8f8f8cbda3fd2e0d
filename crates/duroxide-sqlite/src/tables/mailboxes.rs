//! The messages in the mailboxes of instances, from the row cache if it has them.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ClaimBound, Extent, MailboxTable, NewMessage, QueuedMessage, Rows, VisibleMessages},
    store::{MessageKind, calling_parent},
};
use rusqlite::Row;

use super::{SqliteTables, payloads::whole_data, row_cache::Taken};
use crate::{
    columns::{columns, insert, update},
    db::{Db, ONLY, count, lossy_text, micros, number, time, unsigned},
};

columns!(message as message_columns: seq, due_at, kind, key, enqueued_at, hidden_until, attempt_count, mark,
    data = whole_data!("message"));

/// `QueuedMessage::is_visible` in SQL, at the time in this parameter. A visible queue message may still wait behind a hidden one.
macro_rules! is_visible {
    ($now:literal) => {
        concat!("due_at <= ", $now, " AND hidden_until <= ", $now)
    };
}
pub(super) use is_visible;

/// `QueuedMessage::waits_since` in SQL.
macro_rules! waits_since {
    () => {
        "max(enqueued_at, due_at)"
    };
}
pub(crate) use waits_since;

/// Whether the lock of its instance holds a message, ended or not: [`Extent::holds`] in SQL.
macro_rules! held {
    () => {
        "((message.mark = instance.extent_mark OR (instance.extent_mark IS NULL
            AND message.seq <= instance.extent_up_to AND message.due_at <= instance.extent_at
            AND message.hidden_until <= instance.extent_at)) IS TRUE)"
    };
}
pub(crate) use held;

/// A message that an abandon hides. `hidden_until` is 0 where none did, and such rows are not in the index.
macro_rules! is_hidden {
    () => {
        "hidden_until > 0 AND hidden_until > ?2"
    };
}
/// The queue messages of those: [`QueuedMessage::holds_back`] in SQL.
macro_rules! holds_back {
    () => {
        concat!("instance = ?1 AND ", is_hidden!(), " AND kind = 2")
    };
}
const HIDDEN_QUEUE: &str = concat!("SELECT 1 FROM message WHERE ", holds_back!(), " LIMIT 1");
/// The messages that a claim may take: [`QueuedMessage::is_visible`] and not [`QueuedMessage::waits_behind`] in SQL. The
/// subquery for a hidden queue message runs for the first queue message only.
macro_rules! may_be_claimed {
    () => {
        concat!(
            "instance = ?1 AND ",
            is_visible!("?2"),
            "
      AND (kind <> 2 OR (seq < (SELECT seq FROM message WHERE ",
            holds_back!(),
            " ORDER BY seq LIMIT 1)) IS NOT FALSE)"
        )
    };
}
/// With each message, whether a queue message is hidden, behind which others may wait.
const VISIBLE: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", EXISTS (SELECT 1 FROM message WHERE ",
    holds_back!(),
    ") FROM message WHERE ",
    may_be_claimed!(),
    " ORDER BY due_at, seq"
);
const HIDES_A_QUEUE: usize = message::COUNT;
const HAS_VISIBLE: &str = concat!("SELECT 1 FROM message WHERE ", may_be_claimed!(), " LIMIT 1");
/// Names its index: by the primary key SQLite would read every message that is not a start.
const HAS_VISIBLE_START: &str = concat!(
    "SELECT 1 FROM message INDEXED BY message_start WHERE instance = ?1 AND ",
    is_visible!("?2"),
    " AND kind <= 1 LIMIT 1"
);
const FIRST_VISIBLE_START: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM message INDEXED BY message_start WHERE instance = ?1 AND kind <= 1 AND kind = ?2 AND ",
    is_visible!("?3"),
    " ORDER BY due_at, seq LIMIT 1"
);
const FIRST_START: &str = concat!(
    "SELECT ",
    whole_data!("message"),
    " FROM message WHERE instance = ?1 AND kind <= 1 ORDER BY kind, due_at, seq LIMIT 1"
);
const HAS_MESSAGES: &str = "SELECT 1 FROM message WHERE instance = ?1 LIMIT 1";
const HAS_START: &str = "SELECT 1 FROM message WHERE instance = ?1 AND kind <= 1 LIMIT 1";
const HAS_OTHER_THAN_QUEUE: &str = "SELECT 1 FROM message WHERE instance = ?1 AND kind <> 2 LIMIT 1";
const HAS_ATTEMPTED: &str = "SELECT 1 FROM message WHERE instance = ?1 AND attempt_count > 0 LIMIT 1";
const NEXT_DUE: &str =
    "SELECT due_at FROM message WHERE instance = ?1 AND due_at > ?2 ORDER BY due_at LIMIT 1";
const NEXT_SHOWN: &str =
    concat!("SELECT min(hidden_until) FROM message WHERE instance = ?1 AND ", is_hidden!());
pub(crate) const OLDEST: &str = concat!("SELECT min(", waits_since!(), ") FROM message WHERE instance = ?1");
const WAITING_SINCE: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM message WHERE instance = ?1 AND ",
    waits_since!(),
    " <= ?2 ORDER BY ",
    waits_since!(),
    ", due_at, seq"
);
pub(crate) const ALL: &str =
    concat!("SELECT ", message_columns!(), " FROM message WHERE instance = ?1 ORDER BY due_at, seq");
const MARK: &str = "UPDATE message SET mark = ?4 WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const DELETE: &str = "DELETE FROM message WHERE instance = ?1 AND due_at = ?2 AND seq = ?3";
const DELETE_BY_KEY: &str = "DELETE FROM message WHERE instance = ?1 AND key = ?2";
/// The first two conditions are those of the index.
const CALLS_IN_RANGE: &str = "SELECT instance, key FROM message
    WHERE key >= 'ST/' AND key < 'ST0' AND key >= ?1 AND key < ?2";

/// The rows of a visible extent ([`Extent::holds`]) in two ranges of the primary key: messages visible at once, and those that
/// became due.
macro_rules! at_once {
    () => {
        " WHERE instance = ?1 AND due_at = 0 AND seq <= ?3 AND hidden_until <= ?2"
    };
}
macro_rules! became_due {
    () => {
        " WHERE instance = ?1 AND due_at > 0 AND due_at <= ?2 AND seq <= ?3 AND hidden_until <= ?2"
    };
}
/// The rows of a marked extent, by their index.
macro_rules! marked {
    () => {
        " WHERE instance = ?1 AND mark IS NOT NULL AND mark = ?2"
    };
}
const CONSUME_AT_ONCE: &str = concat!("DELETE FROM message", at_once!());
const CONSUME_DUE: &str = concat!("DELETE FROM message", became_due!());
const CONSUME_MARKED: &str = concat!("DELETE FROM message", marked!());
macro_rules! release {
    () => {
        "UPDATE message SET mark = NULL, hidden_until = ?4, attempt_count = attempt_count + ?5"
    };
}
const RELEASE_AT_ONCE: &str = concat!(release!(), at_once!());
const RELEASE_DUE: &str = concat!(release!(), became_due!());
const RELEASE_MARKED: &str = concat!(
    "UPDATE message SET mark = NULL, hidden_until = ?3, attempt_count = attempt_count + ?4",
    marked!()
);
macro_rules! count_attempt {
    () => {
        "UPDATE message SET attempt_count = attempt_count + 1"
    };
}
const COUNT_AT_ONCE: &str = concat!(count_attempt!(), at_once!());
const COUNT_DUE: &str = concat!(count_attempt!(), became_due!());
const COUNT_MARKED: &str = concat!(count_attempt!(), marked!());

pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<QueuedMessage> {
    Ok(QueuedMessage {
        number: unsigned(row.get(message::seq)?),
        due_at: time(row.get(message::due_at)?),
        kind: MessageKind::of_number(row.get(message::kind)?),
        key: row.get(message::key)?,
        enqueued_at: time(row.get(message::enqueued_at)?),
        hidden_until: time(row.get(message::hidden_until)?),
        attempts: count(row.get(message::attempt_count)?),
        mark: row.get::<_, Option<i64>>(message::mark)?.map(unsigned),
        data: lossy_text(row, message::data)?,
        item: None,
    })
}

/// The key of a message in its table.
fn key(instance: u64, message: &QueuedMessage) -> (i64, i64, i64) {
    (number(instance), micros(message.due_at), number(message.number))
}

/// All messages of a mailbox.
pub(crate) fn all(db: &Db, instance: u64) -> Rows<Vec<QueuedMessage>> {
    db.all(ALL, [number(instance)], read)
}

/// All visible messages, or as many as the bound admits.
fn visible(db: &Db, instance: u64, now: Timestamp, bound: ClaimBound) -> Rows<VisibleMessages> {
    let (mut bytes, mut admitted, mut leaves_some) = (0_usize, 0, false);
    let messages = db.all_while(VISIBLE, (number(instance), micros(now)), |row| {
        let message = read(row)?;
        bytes = bytes.saturating_add(message.data.len());
        let fits = bound.admits(admitted, bytes);
        admitted += 1;
        leaves_some |= !fits || row.get(HIDES_A_QUEUE)?;
        Ok(fits.then_some(message))
    })?;
    Ok(VisibleMessages { messages, are_all: !leaves_some })
}

impl MailboxTable for SqliteTables {
    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool> {
        let split = self.payloads.split_queued(&mut self.sequence, instance, &message.prepared.data);
        // `ON CONFLICT` names its index: `INSERT OR IGNORE` would also swallow real errors.
        let inserted = insert!(self.db, message {
            instance: number(instance),
            due_at: micros(message.due_at),
            seq: number(message.number),
            kind: message.prepared.kind.number(),
            key: &message.prepared.key,
            enqueued_at: micros(message.enqueued_at),
            data: &*split.data,
            payload: split.payload,
        } "ON CONFLICT (instance, key) WHERE key IS NOT NULL DO NOTHING");
        let is_new = inserted? > 0;
        if is_new {
            self.payloads.insert(&self.db, instance, &split)?;
            self.cache.message_arrived(instance, message);
        }
        Ok(is_new)
    }

    fn visible_messages(
        &mut self,
        instance: u64,
        now: Timestamp,
        bound: ClaimBound,
    ) -> Rows<VisibleMessages> {
        if let Some(visible) = self.cache.take_messages(instance) {
            return Ok(visible);
        }
        let visible = visible(&self.db, instance, now, bound)?;
        self.cache.messages_read(instance, &visible);
        Ok(visible)
    }

    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>> {
        self.db.first(FIRST_VISIBLE_START, (number(instance), kind.number(), micros(now)), read)
    }

    fn first_start(&mut self, instance: u64) -> Rows<Option<String>> {
        self.db.first(FIRST_START, [number(instance)], |row| lossy_text(row, ONLY))
    }

    fn holds_of_clients(&mut self, instance: u64, at_least: u64) -> Rows<bool> {
        self.fullness.is_at_least_of(&self.db, number(instance), at_least)
    }

    fn has_messages(&mut self, instance: u64) -> Rows<bool> {
        self.db.exists(HAS_MESSAGES, [number(instance)])
    }

    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        self.db.exists(HAS_VISIBLE, (number(instance), micros(now)))
    }

    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        self.db.exists(HAS_VISIBLE_START, (number(instance), micros(now)))
    }

    fn has_start(&mut self, instance: u64) -> Rows<bool> {
        self.db.exists(HAS_START, [number(instance)])
    }

    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool> {
        self.db.exists(HAS_OTHER_THAN_QUEUE, [number(instance)])
    }

    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        self.db.exists(HIDDEN_QUEUE, (number(instance), micros(now)))
    }

    fn has_attempted(&mut self, instance: u64) -> Rows<bool> {
        self.db.exists(HAS_ATTEMPTED, [number(instance)])
    }

    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>> {
        let columns = (number(instance), micros(now));
        let due: Option<i64> = self.db.value(NEXT_DUE, columns)?;
        let shown: Option<i64> = self.db.value(NEXT_SHOWN, columns)?.flatten();
        Ok(due.into_iter().chain(shown).min().map(time))
    }

    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>> {
        let oldest = self.db.value::<Option<i64>>(OLDEST, [number(instance)])?;
        Ok(oldest.flatten().map(time))
    }

    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>> {
        self.db.all(WAITING_SINCE, (number(instance), micros(time)), read)
    }

    fn mark_messages(&mut self, instance: u64, marked: &[QueuedMessage], mark: u64) -> Rows<()> {
        let rows = marked.iter().map(|message| {
            let (instance, due_at, seq) = key(instance, message);
            (instance, due_at, seq, number(mark))
        });
        self.db.execute_each(MARK, rows)
    }

    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool> {
        let (db, id) = (&self.db, number(instance));
        match (self.cache.taken(instance), extent) {
            // Deleting a row by its key costs SQLite half of deleting it by a range.
            (Taken::One(due_at, seq), _) => db.execute(DELETE, (id, micros(due_at), number(seq)))?,
            (taken, Extent::Visible { at, up_to }) => {
                let columns = (id, micros(*at), number(*up_to));
                let consumed = db.execute(CONSUME_AT_ONCE, columns)?;
                if taken == Taken::AtOnce { consumed } else { db.execute(CONSUME_DUE, columns)? }
            }
            (_, Extent::Marked { mark }) => db.execute(CONSUME_MARKED, (id, number(*mark)))?,
        };
        let are_left = match self.cache.are_left(instance) {
            Some(are_left) => are_left,
            None => self.has_messages(instance)?,
        };
        self.cache.consumed(instance, are_left);
        Ok(are_left)
    }

    fn release(
        &mut self,
        instance: u64,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        let (instance, hidden_until) = (number(instance), micros(hidden_until));
        match extent {
            Extent::Visible { at, up_to } => {
                let columns = (instance, micros(*at), number(*up_to), hidden_until, attempts);
                // Due messages first: a row that is hidden now is no longer in the extent.
                self.db.execute(RELEASE_DUE, columns)?;
                self.db.execute(RELEASE_AT_ONCE, columns)?
            }
            Extent::Marked { mark } => {
                self.db.execute(RELEASE_MARKED, (instance, number(*mark), hidden_until, attempts))?
            }
        };
        Ok(())
    }

    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        match extent {
            Extent::Visible { at, up_to } => {
                let columns = (number(instance), micros(*at), number(*up_to));
                self.db.execute(COUNT_AT_ONCE, columns)?;
                self.db.execute(COUNT_DUE, columns)?
            }
            Extent::Marked { mark } => self.db.execute(COUNT_MARKED, (number(instance), number(*mark)))?,
        };
        Ok(())
    }

    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        let (instance, due_at, seq) = key(instance, message);
        let written = update!(self.db, message [instance: instance, due_at: due_at, seq: seq] {
            kind: message.kind.number(),
            hidden_until: micros(message.hidden_until),
            attempt_count: message.attempts,
            mark: message.mark.map(number),
        });
        written.map(|_| ())
    }

    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        self.db.execute(DELETE, key(instance, message)).map(|_| ())
    }

    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool> {
        self.cache.mailbox_changed(instance);
        Ok(self.db.execute(DELETE_BY_KEY, (number(instance), key))? > 0)
    }

    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>> {
        // The character behind the slash ends the range.
        let range = (format!("ST/{parent}/"), format!("ST/{parent}0"));
        let read = |row: &Row<'_>| Ok((unsigned(row.get("instance")?), row.get("key")?));
        let mut calls: Vec<(u64, String)> = self.db.all(CALLS_IN_RANGE, range, read)?;
        calls.retain(|(_, call)| calling_parent(call) == Some(parent));
        Ok(calls)
    }
}
