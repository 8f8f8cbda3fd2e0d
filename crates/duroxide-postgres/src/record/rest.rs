//! Events, sessions, key-values, custom status, dead letters.

use duroxide_core::KvEntry;
use duroxide_provider::{
    rules::{DeadLetterRow, LaneId, Origin, SessionRow},
    store::MessageKind,
};

use super::record;
use crate::value::{Columns, duration, unsigned};

/// An event of an execution.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) instance: u64,
    pub(crate) execution_id: u64,
    pub(crate) event_id: u64,
    pub(crate) data: String,
}

record!(Event, "history", |it| {
    Key instance: Int = it.instance;
    Key execution_id: Int = it.execution_id;
    Key event_id: Int = it.event_id;
    Mutable data: Text = &it.data;
}, |row| {
    Ok(Event {
        instance: row.number("instance")?,
        execution_id: row.number("execution_id")?,
        event_id: row.number("event_id")?,
        data: row.column("data")?,
    })
});

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct Session(pub(crate) SessionRow);

record!(Session, "session", |it| {
    Key id: Text = &it.0.id;
    Mutable owner: Text = &it.0.owner;
    Mutable lock_until: Int = it.0.until;
    Mutable lock_length: Int = it.0.length;
    Mutable last_activity_at: Int = it.0.last_activity_at;
}, |row| {
    Ok(Session(SessionRow {
        id: row.column("id")?,
        owner: row.column("owner")?,
        until: row.time("lock_until")?,
        length: duration(row.column("lock_length")?),
        last_activity_at: row.time("last_activity_at")?,
    }))
});

/// A value that earlier executions left under a key.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) instance: u64,
    pub(crate) key: String,
    /// `None`: a value exists, and was not read.
    pub(crate) entry: Option<KvEntry>,
}

record!(Setting, "kv", |it| {
    Key instance: Int = it.instance;
    Key key: Text = &it.key;
    Mutable value: Text = it.entry.as_ref().map(|entry| entry.value.as_str());
    Mutable last_updated_at_ms: Int = it.entry.as_ref().map(|entry| entry.last_updated_at_ms);
}, |row| {
    let entry = KvEntry { value: row.column("value")?, last_updated_at_ms: row.number("last_updated_at_ms")? };
    Ok(Setting { instance: row.number("instance")?, key: row.column("key")?, entry: Some(entry) })
});

/// A change of the current execution under a key; without an entry the key was removed.
#[derive(Debug, Clone)]
pub(crate) struct SettingChange {
    pub(crate) instance: u64,
    pub(crate) key: String,
    pub(crate) entry: Option<KvEntry>,
}

record!(SettingChange, "kv_change", |it| {
    Key instance: Int = it.instance;
    Key key: Text = &it.key;
    Mutable value: Text = it.entry.as_ref().map(|entry| entry.value.as_str());
    Mutable last_updated_at_ms: Int = it.entry.as_ref().map_or(0, |entry| entry.last_updated_at_ms);
}, |row| {
    let last_updated_at_ms = row.number("last_updated_at_ms")?;
    let value: Option<String> = row.column("value")?;
    let entry = value.map(|value| KvEntry { value, last_updated_at_ms });
    Ok(SettingChange { instance: row.number("instance")?, key: row.column("key")?, entry })
});

/// The custom status of an instance.
#[derive(Debug, Clone)]
pub(crate) struct CustomStatus {
    pub(crate) instance: u64,
    pub(crate) status: Option<String>,
    pub(crate) version: u64,
}

record!(CustomStatus, "custom_status", |it| {
    Key instance: Int = it.instance;
    Mutable status: Text = &it.status;
    Mutable version: Int = it.version;
}, |row| {
    Ok(CustomStatus {
        instance: row.number("instance")?,
        status: row.column("status")?,
        version: row.number("version")?,
    })
});

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
