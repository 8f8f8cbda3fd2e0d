//! Large texts, stored once for all rows of an instance that have them.
//!
//! The input of an instance reaches the store as a message, goes into its history, and from there often into an activity; a
//! result goes a similar way. Each of these rows is JSON around the same string. That string is stored as a payload, and the
//! rows refer to it. A payload exists as long as any row refers to it: triggers record the payloads of deleted rows, and the
//! commit deletes those without references. Until then a row of the same transaction can refer to one again, as an event does
//! with the text of the message that the turn consumed.
//!
//! Also, SQLite writes a whole row anew with each change of it, and claims and renewals change the rows of the queues.

mod literal;
mod stored;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use duroxide_provider::rules::Rows;

use self::{literal::longest_literal, stored::StoredTexts};
use super::sequence::Sequence;
use crate::{
    columns::{columns, insert},
    db::{Db, number, unsigned},
};

/// From this many bytes on a text is stored apart: below, a second row costs more than writing one twice. The tests of this
/// module share all texts.
const SHARED_BYTES_MIN: usize = if cfg!(test) { 1 } else { 2 << 10 };
/// Stands in a row for the text that is stored apart.
const MARK: &str = "\u{1}";

const DELETE: &str = "DELETE FROM payload WHERE id = ?1";
columns!(look as look_columns: released = "(SELECT min(rowid) FROM released_payload)",
    stored = "(SELECT max(id) FROM payload)");
const LOOK: &str = concat!("SELECT ", look_columns!());
columns!(released as released_columns: payload, instance);
/// Most have gone into the history, which has an index. For the others the queued rows of their instances are read, once for
/// all of them; an index there would be opened with every message. (SQLite evaluates a CASE in order.)
const UNUSED: &str = concat!(
    "SELECT ",
    released_columns!(),
    " FROM released_payload AS released
    WHERE CASE
        WHEN EXISTS (SELECT 1 FROM history WHERE history.payload = released.payload) THEN 0
        WHEN released.payload IN (SELECT message.payload FROM message
            WHERE message.instance IN (SELECT instance FROM released_payload) AND message.payload IS NOT NULL) THEN 0
        WHEN released.payload IN (SELECT activity.payload FROM activity
            WHERE activity.instance IN (SELECT instance FROM released_payload) AND activity.payload IS NOT NULL) THEN 0
        ELSE 1 END"
);
const FORGET_RELEASED: &str = "DELETE FROM released_payload";

/// The text of a row in a statement, wherever it is stored. The argument is the row's table or its alias.
macro_rules! whole_data {
    ($table:literal) => {
        concat!(
            "CASE WHEN ",
            $table,
            ".payload IS NULL THEN ",
            $table,
            ".data ELSE replace(",
            $table,
            ".data, char(1), (SELECT payload.data FROM payload WHERE payload.id = ",
            $table,
            ".payload)) END"
        )
    };
}
pub(crate) use whole_data;

/// The length of that text in bytes.
macro_rules! whole_bytes {
    ($table:literal) => {
        concat!(
            "octet_length(",
            $table,
            ".data) + CASE WHEN ",
            $table,
            ".payload IS NULL THEN 0 ELSE coalesce(
                (SELECT octet_length(payload.data) - 1 FROM payload WHERE payload.id = ",
            $table,
            ".payload), 0) END"
        )
    };
}
pub(crate) use whole_bytes;

/// A text as a row stores it.
#[derive(Debug)]
pub(super) struct Split<'a> {
    /// The part of the text that the row itself stores.
    pub(super) data: Cow<'a, str>,
    /// The number of the payload that belongs in the place of the mark.
    pub(super) payload: Option<i64>,
    /// The payload, if it is not stored yet.
    new: Option<&'a str>,
}

impl<'a> Split<'a> {
    fn whole(data: &'a str) -> Self {
        Self { data: Cow::Borrowed(data), payload: None, new: None }
    }
}

/// The payloads of a store.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    known: StoredTexts,
    /// The store has no payload, so no row can let one go.
    known_to_be_none: bool,
    /// The event with a payload that was appended last.
    appended: Option<AppendedPayload>,
}

#[derive(Debug)]
struct AppendedPayload {
    instance: u64,
    execution_id: u64,
    event_id: u64,
    payload: u64,
}

impl Payloads {
    /// The store may have changed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// No more rows of an instance are expected.
    pub(super) fn forget_instance(&mut self, instance: u64) {
        self.known.forget_instance(instance);
    }

    /// Whether a text may have something to share.
    pub(super) const fn is_large(data: &str) -> bool {
        data.len() >= SHARED_BYTES_MIN
    }

    /// How a row that is seldom changed stores a text: without its longest string, if that is large.
    pub(super) fn split<'a>(&self, sequence: &mut Sequence, instance: u64, data: &'a str) -> Split<'a> {
        if !Self::is_large(data) {
            return Split::whole(data);
        }
        let literal = longest_literal(data);
        let parts = (data.get(..literal.start), data.get(literal.clone()), data.get(literal.end..));
        match parts {
            (Some(head), Some(text), Some(tail))
                if Self::is_large(text) && !head.contains(MARK) && !tail.contains(MARK) =>
            {
                let data = [head, MARK, tail].concat();
                self.with_payload(sequence, instance, data.into(), text)
            }
            _ => Split::whole(data),
        }
    }

    /// How a row of a queue stores a text: a large text without a large string is stored apart as a whole.
    pub(super) fn split_queued<'a>(
        &self,
        sequence: &mut Sequence,
        instance: u64,
        data: &'a str,
    ) -> Split<'a> {
        let split = self.split(sequence, instance, data);
        if split.payload.is_none() && Self::is_large(data) {
            return self.with_payload(sequence, instance, MARK.into(), data);
        }
        split
    }

    fn with_payload<'a>(
        &self,
        sequence: &mut Sequence,
        instance: u64,
        data: Cow<'a, str>,
        text: &'a str,
    ) -> Split<'a> {
        match self.known.find(instance, text) {
            Some(id) => Split { data, payload: Some(number(id)), new: None },
            None => Split { data, payload: Some(number(sequence.take())), new: Some(text) },
        }
    }

    /// An event was appended.
    pub(super) fn appended(&mut self, instance: u64, execution_id: u64, event_id: u64, split: &Split<'_>) {
        if let Some(payload) = split.payload.map(unsigned) {
            self.appended = Some(AppendedPayload { instance, execution_id, event_id, payload });
        }
    }

    /// The event that holds an output as its payload, if it was appended just before.
    pub(super) fn event_of_output(&mut self, instance: u64, execution_id: u64, output: &str) -> Option<u64> {
        let appended = self.appended.take().filter(|_| Self::is_large(output))?;
        let is_of = (appended.instance, appended.execution_id) == (instance, execution_id);
        let payload = self.payload_of_output(instance, output).filter(|_| is_of);
        (payload == Some(appended.payload)).then_some(appended.event_id)
    }

    fn payload_of_output(&self, instance: u64, output: &str) -> Option<u64> {
        // An output without a backslash that equals the literal is the literal's value.
        if !output.contains('\\')
            && let Some(id) = self.known.find(instance, output)
        {
            return Some(id);
        }
        let literal = serde_json::to_string(output).ok()?;
        self.known.find(instance, literal.strip_prefix('"')?.strip_suffix('"')?)
    }

    /// Stores the payload of a row that was inserted, unless it is stored already.
    pub(super) fn insert(&mut self, db: &Db, instance: u64, split: &Split<'_>) -> Rows<()> {
        if let (Some(id), Some(text)) = (split.payload, split.new) {
            self.known_to_be_none = false;
            insert!(db, payload { id: id, data: text })?;
            self.known.put(instance, unsigned(id), text);
        }
        Ok(())
    }

    /// Deletes the payloads that rows of this transaction referred to and that no row refers to any more.
    pub(super) fn delete_unused(&mut self, db: &Db) -> Rows<()> {
        if self.known_to_be_none {
            return Ok(());
        }
        let look = db.first(LOOK, [], |row| Ok((row.get(look::released)?, row.get(look::stored)?)))?;
        let (released, stored): (Option<i64>, Option<i64>) = look.unwrap_or_default();
        self.known_to_be_none = stored.is_none();
        if released.is_none() {
            return Ok(());
        }
        let unused: Vec<(i64, i64)> =
            db.all(UNUSED, [], |row| Ok((row.get(released::payload)?, row.get(released::instance)?)))?;
        for (id, instance) in unused {
            db.execute(DELETE, [id])?;
            self.known.forget(unsigned(instance), unsigned(id));
        }
        db.execute(FORGET_RELEASED, []).map(|_| ())
    }
}

/// The text of a payload that is an output.
pub(crate) fn output_of(literal: &str) -> String {
    if literal.contains('\\') {
        serde_json::from_str(&format!("\"{literal}\"")).unwrap_or_else(|_| literal.to_owned())
    } else {
        literal.to_owned()
    }
}
