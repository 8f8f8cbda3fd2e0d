//! Messages.

use duroxide_core::Timestamp;
use duroxide_provider::{rules::QueuedMessage, store::MessageKind};

use super::record;
use crate::value::{Columns, unsigned};

/// A message in the mailbox of an instance.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) instance: u64,
    /// The message. The text is empty until it is loaded.
    pub(crate) queued: QueuedMessage,
    /// The length of the text, also before it is loaded.
    pub(crate) bytes: usize,
    /// Whether the text was loaded.
    pub(crate) has_data: bool,
}

impl Message {
    /// The primary key. Keys are in the order of the mailbox.
    pub(crate) fn key(&self) -> (u64, Timestamp, u64) {
        (self.instance, self.queued.due_at, self.queued.number)
    }
}

// A statement that reads messages adds `bytes`, and may leave `data` out or make it NULL.
record!(Message, "message", |it| {
    Key instance: Int = it.instance;
    Key due_at: Int = it.queued.due_at;
    Key number: Int = it.queued.number;
    Mutable kind: Int = it.queued.kind.number();
    Fixed key: Text = &it.queued.key;
    Fixed enqueued_at: Int = it.queued.enqueued_at;
    Mutable hidden_until: Int = it.queued.hidden_until;
    Mutable attempts: Int = it.queued.attempts;
    Mutable mark: Int = it.queued.mark;
    Fixed data: Text = &it.queued.data;
}, |row| {
    let has_data_column = row.columns().iter().any(|column| column.name() == "data");
    let data: Option<String> = if has_data_column { row.column("data")? } else { None };
    Ok(Message {
        instance: row.number("instance")?,
        bytes: usize::try_from(row.column::<i64>("bytes")?).unwrap_or_default(),
        has_data: data.is_some(),
        queued: QueuedMessage {
            number: row.number("number")?,
            due_at: row.time("due_at")?,
            kind: MessageKind::of_number(row.column("kind")?),
            key: row.column("key")?,
            enqueued_at: row.time("enqueued_at")?,
            hidden_until: row.time("hidden_until")?,
            attempts: row.count("attempts")?,
            mark: row.column::<Option<i64>>("mark")?.map(unsigned),
            data: data.unwrap_or_default(),
            item: None,
        },
    })
});
