//! The file of a queue item: its state (attempts, lock, due time) in the first line, then the item itself.

use std::path::Path;

use duroxide_peek_lock::{
    QueueItem,
    record::{ActivityRecord, MessageRecord, QueuedMessage},
};
use duroxide_provider::store::{ActivityRow, MessageKind};
use serde::{Serialize, de::DeserializeOwned};

use crate::layout::number_of;

/// The content of an item's file.
pub(crate) fn content(item: &QueueItem) -> Vec<u8> {
    match item {
        QueueItem::Message(message) => {
            let mut record = message.clone();
            let data = std::mem::take(&mut record.row.data);
            lines(&record, &data)
        }
        QueueItem::Activity(activity) => {
            let mut record = activity.clone();
            let data = std::mem::take(&mut record.activity.data);
            lines(&record, &data)
        }
    }
}

fn lines(record: &impl Serialize, data: &str) -> Vec<u8> {
    // Records are plain data with text keys, for which `serde_json` cannot fail.
    let record = serde_json::to_string(record).unwrap_or_default();
    format!("{record}\n{data}\n").into_bytes()
}

/// Reads a message. A damaged file yields an undecodable message with the file's number and instance.
pub(crate) fn message(path: &Path, instance: &str, content: &str) -> Option<MessageRecord> {
    if let Some((mut record, data)) = split::<MessageRecord>(content) {
        record.row.data = data;
        return Some(record);
    }
    let row = QueuedMessage {
        number: number_of(path)?,
        due_at: Default::default(),
        kind: MessageKind::Other,
        key: None,
        enqueued_at: Default::default(),
        hidden_until: Default::default(),
        attempts: 0,
        mark: None,
        data: content.to_owned(),
        item: None,
    };
    Some(MessageRecord { instance: instance.to_owned(), row })
}

/// Reads an activity, as [`message`] does.
pub(crate) fn activity(path: &Path, instance: &str, content: &str) -> Option<ActivityRecord> {
    if let Some((mut record, data)) = split::<ActivityRecord>(content) {
        record.activity.data = data;
        return Some(record);
    }
    let number = number_of(path)?;
    let activity = ActivityRow {
        instance: instance.to_owned(),
        execution_id: 0,
        activity_id: number,
        name: String::new(),
        tag: None,
        session_id: None,
        data: content.to_owned(),
        item: None,
    };
    Some(ActivityRecord::new(number, activity))
}

fn split<R: DeserializeOwned>(content: &str) -> Option<(R, String)> {
    let (record, data) = content.split_once('\n')?;
    let data = data.strip_suffix('\n').unwrap_or(data);
    Some((serde_json::from_str(record).ok()?, data.to_owned()))
}
