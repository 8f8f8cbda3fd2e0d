//! A queue item as a file: how it stands in the first line, the item itself behind it.

use std::path::Path;

use duroxide_peek_lock::{
    QueueItem,
    record::{ActivityRecord, MessageRecord},
};
use duroxide_provider::store::{ActivityRow, MessageKind};
use serde::{Serialize, de::DeserializeOwned};

use crate::layout::number_of;

/// The content of an item's file.
pub(crate) fn content(item: &QueueItem) -> Vec<u8> {
    match item {
        QueueItem::Message(message) => {
            lines(&MessageRecord { data: String::new(), ..message.clone() }, &message.data)
        }
        QueueItem::Activity(activity) => {
            let row = ActivityRow { data: String::new(), ..activity.row.clone() };
            lines(&ActivityRecord { row, ..activity.clone() }, &activity.row.data)
        }
    }
}

fn lines(record: &impl Serialize, data: &str) -> Vec<u8> {
    // Records are plain data with text keys, for which `serde_json` cannot fail.
    let record = serde_json::to_string(record).unwrap_or_default();
    format!("{record}\n{data}\n").into_bytes()
}

/// Reads a message. Of a damaged file the number and the instance are known, and that it cannot be decoded.
pub(crate) fn message(path: &Path, instance: &str, content: &str) -> Option<MessageRecord> {
    if let Some((record, data)) = split::<MessageRecord>(content) {
        return Some(MessageRecord { data, ..record });
    }
    Some(MessageRecord {
        instance: instance.to_owned(),
        number: number_of(path)?,
        kind: MessageKind::Other,
        key: None,
        start: None,
        due_at_ms: 0,
        enqueued_at: Default::default(),
        hidden_until: Default::default(),
        attempt_count: 0,
        locked: false,
        data: content.to_owned(),
    })
}

/// Reads an activity, as [`message`] does.
pub(crate) fn activity(path: &Path, instance: &str, content: &str) -> Option<ActivityRecord> {
    if let Some((mut record, data)) = split::<ActivityRecord>(content) {
        record.row.data = data;
        return Some(record);
    }
    let number = number_of(path)?;
    let row = ActivityRow {
        instance: instance.to_owned(),
        execution_id: 0,
        activity_id: number,
        name: String::new(),
        tag: None,
        session_id: None,
        data: content.to_owned(),
        item: None,
    };
    Some(ActivityRecord {
        number,
        row,
        hidden_until: Default::default(),
        attempt_count: 0,
        losses: Default::default(),
        claimed: false,
        stop_requested: false,
        lock: None,
    })
}

fn split<R: DeserializeOwned>(content: &str) -> Option<(R, String)> {
    let (record, data) = content.split_once('\n')?;
    let data = data.strip_suffix('\n').unwrap_or(data);
    Some((serde_json::from_str(record).ok()?, data.to_owned()))
}
