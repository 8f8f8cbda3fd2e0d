//! Queries on a mailbox that is too long for the working set.
//!
//! Unsent writes go before each query, in the same round trip.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ClaimBound, Extent, QueuedMessage, VisibleMessages},
    store::MessageKind,
};

use crate::tables::PostgresTables;
use crate::{
    connection::{Parameter, Query, parameters},
    database_error::DatabaseError,
    record::rules_in_sql::{holds, is_visible, waits_since},
    record::{Message, read_all},
    value::{Columns, limit, micros, number, time},
};

/// The messages that a claim may take: [`QueuedMessage::is_visible`] and not [`QueuedMessage::waits_behind`] in SQL. `$1` is the
/// instance, `$2` the time.
macro_rules! visible {
    () => {
        concat!(
            " FROM {s}.message WHERE message.instance = $1 AND ",
            is_visible!(),
            " AND (message.kind <> 2 OR message.number < coalesce((SELECT min(hidden.number) FROM {s}.message AS hidden
            WHERE hidden.instance = $1 AND hidden.hidden_until > $2 AND hidden.kind = 2), 9223372036854775807))"
        )
    };
}
/// The messages of the instance `$1` that the extent of its lock holds.
macro_rules! held {
    () => {
        concat!(" message.instance = $1 AND ", holds!("$2::bigint", "$3::bigint", "$4::bigint"))
    };
}
macro_rules! message_columns {
    () => {
        "{columns message}, octet_length(message.data)::bigint AS bytes"
    };
}

/// [`ClaimBound::admits`] in SQL: `$3` are the bytes, `$4` the messages.
const VISIBLE: &str = concat!(
    "SELECT found.* FROM (SELECT ",
    message_columns!(),
    ", sum(octet_length(message.data)) OVER place AS total, row_number() OVER place AS place",
    visible!(),
    " WINDOW place AS (ORDER BY message.due_at, message.number)) AS found
    WHERE found.total <= $3 OR found.place = 1 ORDER BY found.due_at, found.number LIMIT $4"
);
const COUNT_SHOWN: &str = concat!(
    "SELECT count(*) AS shown FROM (SELECT 1 FROM {s}.message WHERE instance = $1 AND ",
    is_visible!(),
    " LIMIT $3) AS counted"
);
const HAS_VISIBLE: &str = concat!("SELECT 1", visible!(), " LIMIT 1");
const FIRST_VISIBLE_START: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM {s}.message WHERE message.instance = $1 AND message.kind <= 1 AND message.kind = $3 AND ",
    is_visible!(),
    " ORDER BY message.due_at, message.number LIMIT 1"
);
const HAS_VISIBLE_START: &str =
    concat!("SELECT 1 FROM {s}.message WHERE instance = $1 AND kind <= 1 AND ", is_visible!(), " LIMIT 1");
const FIRST_START: &str = "SELECT data FROM {s}.message WHERE instance = $1 AND kind <= 1
    ORDER BY kind, due_at, number LIMIT 1";
const HAS_MESSAGES: &str = "SELECT 1 FROM {s}.message WHERE instance = $1 LIMIT 1";
/// `QueuedMessage::is_from_client` in SQL. No mailbox has more messages than there are numbers from its first to its last
/// one, so most need not be counted.
const HOLDS_OF_CLIENTS: &str = "SELECT 1 FROM {s}.message WHERE instance = $1
    AND due_at = 0 AND kind > 1 AND key IS NULL
    AND (SELECT max(number) - min(number) FROM {s}.message WHERE instance = $1 AND due_at = 0) >= $2
    OFFSET $2 LIMIT 1";
const HAS_START: &str = "SELECT 1 FROM {s}.message WHERE instance = $1 AND kind <= 1 LIMIT 1";
const HAS_OTHER_THAN_QUEUE: &str = "SELECT 1 FROM {s}.message WHERE instance = $1 AND kind <> 2 LIMIT 1";
const HAS_HIDDEN_QUEUE: &str =
    "SELECT 1 FROM {s}.message WHERE instance = $1 AND kind = 2 AND hidden_until > $2 LIMIT 1";
const HAS_ATTEMPTED: &str = "SELECT 1 FROM {s}.message WHERE instance = $1 AND attempts > 0 LIMIT 1";
const NEXT_VISIBLE: &str = "SELECT least(
        (SELECT due_at FROM {s}.message WHERE instance = $1 AND due_at > $2 ORDER BY due_at LIMIT 1),
        (SELECT min(hidden_until) FROM {s}.message WHERE instance = $1 AND hidden_until > $2)) AS at";
const OLDEST: &str = concat!("SELECT min(", waits_since!(), ") AS at FROM {s}.message WHERE instance = $1");
const WAITING_SINCE: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM {s}.message WHERE message.instance = $1 AND ",
    waits_since!(),
    " <= $2 ORDER BY ",
    waits_since!(),
    ", message.due_at, message.number"
);
const MARK: &str =
    "UPDATE {s}.message SET mark = $2 FROM unnest($3::bigint[], $4::bigint[]) AS taken (due_at, number)
    WHERE message.instance = $1 AND message.due_at = taken.due_at AND message.number = taken.number";
const CONSUME: &str = concat!("DELETE FROM {s}.message WHERE", held!());
const RELEASE: &str =
    concat!("UPDATE {s}.message SET hidden_until = $5, mark = NULL, attempts = attempts + $6 WHERE", held!());
const COUNT_ATTEMPT: &str = concat!("UPDATE {s}.message SET attempts = attempts + 1 WHERE", held!());
const UPDATE: &str = "UPDATE {s}.message SET kind = $4, attempts = $5, mark = $6, hidden_until = $7
    WHERE instance = $1 AND due_at = $2 AND number = $3";
const DELETE: &str = "DELETE FROM {s}.message WHERE instance = $1 AND due_at = $2 AND number = $3";
const DELETE_BY_KEY: &str = "DELETE FROM {s}.message WHERE instance = $1 AND key = $2 RETURNING 1";
const HAS_KEY: &str = "SELECT 1 FROM {s}.message WHERE instance = $1 AND key = $2";

/// A mailbox in the database.
pub(in crate::tables) struct LargeMailbox<'a> {
    pub(in crate::tables) tables: &'a mut PostgresTables,
    pub(in crate::tables) instance: u64,
}

impl LargeMailbox<'_> {
    fn exists(&mut self, sql: &'static str, more: Vec<Parameter>) -> Result<bool, DatabaseError> {
        Ok(!self.rows(sql, more)?.is_empty())
    }

    fn rows(
        &mut self,
        sql: &'static str,
        more: Vec<Parameter>,
    ) -> Result<Vec<tokio_postgres::Row>, DatabaseError> {
        let mut parameters = parameters![number(self.instance)];
        parameters.extend(more);
        self.tables.ask(Query::new(sql, parameters))
    }

    /// Changes messages, and so gives the instance a new revision.
    fn change(&mut self, sql: &'static str, more: Vec<Parameter>) -> Result<bool, DatabaseError> {
        self.tables.set.touch_instance(self.instance);
        self.exists(sql, more)
    }

    fn held(
        &mut self,
        sql: &'static str,
        extent: &Extent,
        more: Vec<Parameter>,
    ) -> Result<(), DatabaseError> {
        let mut parameters = extent_parameters(extent);
        parameters.extend(more);
        self.change(sql, parameters).map(|_| ())
    }

    pub(in crate::tables) fn visible(
        &mut self,
        now: Timestamp,
        bound: ClaimBound,
    ) -> Result<VisibleMessages, DatabaseError> {
        let rows = self.rows(VISIBLE, parameters![micros(now), limit(bound.bytes), limit(bound.messages)])?;
        let messages: Vec<QueuedMessage> =
            read_all::<Message>(&rows)?.into_iter().map(|message| message.queued).collect();
        let more_than = limit(messages.len().saturating_add(1));
        let counted = self.rows(COUNT_SHOWN, parameters![micros(now), more_than])?;
        let shown: i64 = counted.first().map(|row| row.column("shown")).transpose()?.unwrap_or_default();
        let are_all = usize::try_from(shown).unwrap_or_default() == messages.len();
        Ok(VisibleMessages { messages, are_all })
    }

    pub(in crate::tables) fn first_visible_start(
        &mut self,
        kind: MessageKind,
        now: Timestamp,
    ) -> Result<Option<QueuedMessage>, DatabaseError> {
        let rows = self.rows(FIRST_VISIBLE_START, parameters![micros(now), kind.number()])?;
        Ok(read_all::<Message>(&rows)?.into_iter().next().map(|message| message.queued))
    }

    pub(in crate::tables) fn first_start(&mut self) -> Result<Option<String>, DatabaseError> {
        self.rows(FIRST_START, Vec::new())?.first().map(|row| row.column("data")).transpose()
    }

    pub(in crate::tables) fn holds_of_clients(&mut self, at_least: u64) -> Result<bool, DatabaseError> {
        match at_least.checked_sub(1) {
            Some(others) => self.exists(HOLDS_OF_CLIENTS, parameters![number(others)]),
            None => Ok(true),
        }
    }

    pub(in crate::tables) fn has_messages(&mut self) -> Result<bool, DatabaseError> {
        self.exists(HAS_MESSAGES, Vec::new())
    }

    pub(in crate::tables) fn has_visible(&mut self, now: Timestamp) -> Result<bool, DatabaseError> {
        self.exists(HAS_VISIBLE, parameters![micros(now)])
    }

    pub(in crate::tables) fn has_visible_start(&mut self, now: Timestamp) -> Result<bool, DatabaseError> {
        self.exists(HAS_VISIBLE_START, parameters![micros(now)])
    }

    pub(in crate::tables) fn has_start(&mut self) -> Result<bool, DatabaseError> {
        self.exists(HAS_START, Vec::new())
    }

    pub(in crate::tables) fn has_other_than_queue(&mut self) -> Result<bool, DatabaseError> {
        self.exists(HAS_OTHER_THAN_QUEUE, Vec::new())
    }

    pub(in crate::tables) fn has_hidden_queue(&mut self, now: Timestamp) -> Result<bool, DatabaseError> {
        self.exists(HAS_HIDDEN_QUEUE, parameters![micros(now)])
    }

    pub(in crate::tables) fn has_attempted(&mut self) -> Result<bool, DatabaseError> {
        self.exists(HAS_ATTEMPTED, Vec::new())
    }

    pub(in crate::tables) fn has_key(&mut self, key: &str) -> Result<bool, DatabaseError> {
        self.exists(HAS_KEY, parameters![key.to_owned()])
    }

    pub(in crate::tables) fn next_visible(
        &mut self,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        first_time(&self.rows(NEXT_VISIBLE, parameters![micros(now)])?)
    }

    pub(in crate::tables) fn oldest(&mut self) -> Result<Option<Timestamp>, DatabaseError> {
        first_time(&self.rows(OLDEST, Vec::new())?)
    }

    pub(in crate::tables) fn waiting_since(
        &mut self,
        since: Timestamp,
    ) -> Result<Vec<QueuedMessage>, DatabaseError> {
        let rows = self.rows(WAITING_SINCE, parameters![micros(since)])?;
        Ok(read_all::<Message>(&rows)?.into_iter().map(|message| message.queued).collect())
    }

    pub(in crate::tables) fn mark(
        &mut self,
        messages: &[QueuedMessage],
        mark: u64,
    ) -> Result<(), DatabaseError> {
        let due: Vec<i64> = messages.iter().map(|message| micros(message.due_at)).collect();
        let taken: Vec<i64> = messages.iter().map(|message| number(message.number)).collect();
        self.change(MARK, parameters![number(mark), due, taken]).map(|_| ())
    }

    pub(in crate::tables) fn consume(&mut self, extent: &Extent) -> Result<bool, DatabaseError> {
        self.held(CONSUME, extent, Vec::new())?;
        self.has_messages()
    }

    pub(in crate::tables) fn release(
        &mut self,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Result<(), DatabaseError> {
        self.held(RELEASE, extent, parameters![micros(hidden_until), i64::from(attempts)])
    }

    pub(in crate::tables) fn count_attempt(&mut self, extent: &Extent) -> Result<(), DatabaseError> {
        self.held(COUNT_ATTEMPT, extent, Vec::new())
    }

    pub(in crate::tables) fn update(&mut self, message: &QueuedMessage) -> Result<(), DatabaseError> {
        let parameters = parameters![
            micros(message.due_at),
            number(message.number),
            message.kind.number(),
            i64::from(message.attempts),
            message.mark.map(number),
            micros(message.hidden_until),
        ];
        self.change(UPDATE, parameters).map(|_| ())
    }

    pub(in crate::tables) fn delete(&mut self, message: &QueuedMessage) -> Result<(), DatabaseError> {
        self.change(DELETE, parameters![micros(message.due_at), number(message.number)]).map(|_| ())
    }

    pub(in crate::tables) fn delete_by_key(&mut self, key: &str) -> Result<bool, DatabaseError> {
        self.change(DELETE_BY_KEY, parameters![key.to_owned()])
    }
}

fn extent_parameters(extent: &Extent) -> Vec<Parameter> {
    match *extent {
        Extent::Marked { mark } => parameters![Some(number(mark)), None::<i64>, None::<i64>],
        Extent::Visible { at, up_to } => {
            parameters![None::<i64>, Some(number(up_to)), Some(micros(at))]
        }
    }
}

fn first_time(rows: &[tokio_postgres::Row]) -> Result<Option<Timestamp>, DatabaseError> {
    match rows.first() {
        Some(row) => Ok(row.column::<Option<i64>>("at")?.map(time)),
        None => Ok(None),
    }
}
