//! [`FsStore`]: the writes of a store in a folder of plain files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use duroxide_peek_lock::{
    PeekLockStore, QueueItem, QueueItemId, Step, Stored,
    record::{DeadLetterRecord, ExecutionRecord, InstanceRecord},
};
use duroxide_provider::store::{EventRow, FailureClass, StoreFailure};
use serde::{Deserialize, Serialize};

use crate::{
    FsError,
    file::Files,
    item_file,
    layout::{Layout, is_shortened},
    load::{HistoryFile, load, read_json, remove_folder},
    lock_file::LockFile,
};

/// The version of the layout that this crate reads and writes.
const FORMAT: u64 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Format {
    format: u64,
}

/// A folder of plain files.
#[derive(Debug)]
pub(crate) struct FsStore {
    layout: Layout,
    files: Files,
    /// The content that opening the store has read, until `load` takes it.
    opened: Option<Stored>,
    /// Histories that were appended to, by instance and execution.
    histories: BTreeMap<(String, u64), HistoryEnd>,
    deleted: u64,
    _lock: LockFile,
}

/// The end of a history file, where the next append writes.
#[derive(Debug)]
struct HistoryEnd {
    ids: BTreeSet<u64>,
    bytes: u64,
    /// Whether the last line has no line break.
    is_open: bool,
}

impl FsStore {
    /// Opens the store in a folder, and creates the folder if it is missing.
    pub(crate) fn open(folder: &Path, sync: bool) -> Result<Self, FsError> {
        let (layout, files) = (Layout::new(folder), Files { sync });
        files.create_folder(folder).map_err(|error| FsError::io(folder, &error))?;
        check_is_store_or_empty(&layout)?;
        let lock = LockFile::hold(&layout.lock(), folder)?;
        check_format(&layout, files)?;
        let opened = Some(load(&layout)?);
        Ok(Self { layout, files, opened, histories: BTreeMap::new(), deleted: 0, _lock: lock })
    }

    fn put_json(&self, path: &Path, record: &impl Serialize) -> Result<(), StoreFailure> {
        let content = serde_json::to_vec_pretty(record)
            .map_err(|error| StoreFailure::new(FailureClass::Permanent, error.to_string()))?;
        self.files.put(path, &content)
    }

    fn put_item(&self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.files.put(&self.layout.item(&item.id()), &item_file::content(item))
    }

    /// Removes the histories of an instance from the cache.
    fn forget(&mut self, instance: &str) {
        self.histories.retain(|(id, _), _| id != instance);
    }

    fn history_end(&mut self, key: &(String, u64), path: &Path) -> Result<HistoryEnd, StoreFailure> {
        if let Some(end) = self.histories.remove(key) {
            return Ok(end);
        }
        let history = HistoryFile::read(path)?;
        let ids = history.rows.iter().map(|row| row.event_id).collect();
        Ok(HistoryEnd { ids, bytes: history.bytes, is_open: history.is_open })
    }
}

/// Refuses a folder with content that is not a store.
fn check_is_store_or_empty(layout: &Layout) -> Result<(), FsError> {
    if layout.format().exists() {
        return Ok(());
    }
    let io = |error: std::io::Error| FsError::io(&layout.root, &error);
    for entry in fs::read_dir(&layout.root).map_err(io)? {
        // A crash during the creation of a store may have left these files.
        let name = entry.map_err(io)?.file_name();
        if name != "lock" && name != "format.tmp" {
            return Err(FsError::NotAStore { folder: layout.root.display().to_string() });
        }
    }
    Ok(())
}

fn check_format(layout: &Layout, files: Files) -> Result<(), FsError> {
    match read_json::<Format>(&layout.format())? {
        Some(Format { format: FORMAT }) => Ok(()),
        Some(Format { format }) => Err(FsError::UnknownFormat {
            folder: layout.root.display().to_string(),
            found: format,
            known: FORMAT,
        }),
        None => {
            let content = format!("{{\"format\": {FORMAT}}}\n");
            files
                .put(&layout.format(), content.as_bytes())
                .map_err(|failure| FsError::Store { message: failure.message })
        }
    }
}

impl PeekLockStore for FsStore {
    fn load(&mut self) -> Result<Stored, StoreFailure> {
        self.histories.clear();
        match self.opened.take() {
            Some(stored) => Ok(stored),
            None => Ok(load(&self.layout)?),
        }
    }

    /// The lock file was free, so the process that used the store before has ended.
    fn former_user_is_gone(&self) -> bool {
        true
    }

    fn note_unfinished(&mut self, steps: &[Step]) -> Result<(), StoreFailure> {
        self.put_json(&self.layout.unfinished(), &steps)
    }

    fn clear_unfinished(&mut self) -> Result<(), StoreFailure> {
        self.files.remove(&self.layout.unfinished())
    }

    fn put_instance(&mut self, record: &InstanceRecord) -> Result<(), StoreFailure> {
        let path = self.layout.instance(&record.row.id).record();
        if is_shortened(&record.row.id)
            && let Some(stored) = read_json::<InstanceRecord>(&path)?
            && stored.row.id != record.row.id
        {
            return Err(FsError::damaged(&path, "the folder belongs to another instance").into());
        }
        self.put_json(&path, record)
    }

    fn append(&mut self, instance: &str, execution_id: u64, events: &[EventRow]) -> Result<(), StoreFailure> {
        let path = self.layout.instance(instance).history(execution_id);
        let key = (instance.to_owned(), execution_id);
        let mut end = self.history_end(&key, &path)?;
        let mut lines = String::new();
        for event in events.iter().filter(|event| end.ids.insert(event.event_id)) {
            // Line breaks in JSON are only between tokens, never inside strings, so a space can replace them.
            lines.push_str(&event.data.replace('\n', " "));
            lines.push('\n');
        }
        if !lines.is_empty() {
            if std::mem::take(&mut end.is_open) {
                lines.insert(0, '\n');
            }
            self.files.write_at(&path, end.bytes, lines.as_bytes())?;
        }
        end.bytes += lines.len() as u64;
        self.histories.insert(key, end);
        Ok(())
    }

    fn put_execution(&mut self, record: &ExecutionRecord) -> Result<(), StoreFailure> {
        self.put_json(&self.layout.instance(&record.instance).execution(record.execution_id), record)
    }

    fn enqueue(&mut self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.put_item(item)
    }

    fn peek_lock(&mut self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.put_item(item)
    }

    fn abandon(&mut self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.put_item(item)
    }

    fn ack(&mut self, item: &QueueItemId) -> Result<(), StoreFailure> {
        self.files.remove(&self.layout.item(item))
    }

    fn put_dead_letter(&mut self, record: &DeadLetterRecord) -> Result<(), StoreFailure> {
        self.put_json(&self.layout.dead_letter(record.number), record)
    }

    fn remove_dead_letter(&mut self, number: u64) -> Result<(), StoreFailure> {
        self.files.remove(&self.layout.dead_letter(number))
    }

    fn remove_execution(&mut self, instance: &str, execution_id: u64) -> Result<(), StoreFailure> {
        self.histories.remove(&(instance.to_owned(), execution_id));
        let folder = self.layout.instance(instance);
        self.files.remove(&folder.history(execution_id))?;
        self.files.remove(&folder.execution(execution_id))
    }

    /// Renames the folder first, because a rename is one step and deleting the files is not.
    fn remove_instance(&mut self, instance: &str) -> Result<(), StoreFailure> {
        self.forget(instance);
        let deleted = self.layout.deleted();
        self.files.create_folder(&deleted).map_err(|error| FsError::io(&deleted, &error))?;
        self.deleted += 1;
        let to = deleted.join(self.deleted.to_string());
        self.files.rename_folder(&self.layout.instance(instance).path, &to)?;
        // If the deletion fails, the next opening of the store deletes the remaining files.
        let _ = remove_folder(&to);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
