//! Dead letters.

use duroxide_provider::{
    rules::{DeadLetterRow, LaneId, Origin},
    store::MessageKind,
};

use super::record;
use crate::value::{Columns, unsigned};

/// A dead letter with its number.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) number: u64,
    pub(crate) row: DeadLetterRow,
}

impl Letter {
    fn of_activity(&self) -> Option<(u64, u64, LaneId, &Option<String>)> {
        match &self.row.origin {
            Origin::Message { .. } => None,
            Origin::Activity { execution_id, activity_id, lane, session_id } => {
                Some((*execution_id, *activity_id, *lane, session_id))
            }
        }
    }

    fn of_message(&self) -> Option<(i64, &Option<String>)> {
        match &self.row.origin {
            Origin::Message { kind, key } => Some((kind.number(), key)),
            Origin::Activity { .. } => None,
        }
    }
}

record!(Letter, "dead_letter", |it| {
    Key number: Int = it.number;
    Mutable instance_id: Text = &it.row.instance_id;
    Mutable payload: Text = &it.row.payload;
    Mutable reason: Text = &it.row.reason;
    Mutable attempts: Int = it.row.attempts;
    Mutable dead_lettered_at: Int = it.row.dead_lettered_at;
    Mutable kind: Int = it.of_message().map(|(kind, _)| kind);
    Mutable key: Text = it.of_message().and_then(|(_, key)| key.as_deref());
    Mutable execution_id: Int = it.of_activity().map(|(execution, ..)| execution);
    Mutable activity_id: Int = it.of_activity().map(|(_, activity, ..)| activity);
    Mutable lane: Int = it.of_activity().map(|(_, _, lane, _)| lane.0);
    Mutable session_id: Text = it.of_activity().and_then(|(.., session)| session.as_deref());
}, |row| {
    let origin = match row.column::<Option<i64>>("kind")? {
        Some(kind) => Origin::Message { kind: MessageKind::of_number(kind), key: row.column("key")? },
        None => Origin::Activity {
            execution_id: row.number("execution_id")?,
            activity_id: row.number("activity_id")?,
            lane: LaneId(unsigned(row.column("lane")?)),
            session_id: row.column("session_id")?,
        },
    };
    Ok(Letter {
        number: row.number("number")?,
        row: DeadLetterRow {
            instance_id: row.column("instance_id")?,
            payload: row.column("payload")?,
            reason: row.column("reason")?,
            attempts: row.count("attempts")?,
            dead_lettered_at: row.time("dead_lettered_at")?,
            origin,
        },
    })
});
