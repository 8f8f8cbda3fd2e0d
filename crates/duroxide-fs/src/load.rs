//! Reading a whole store.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use duroxide_peek_lock::{
    Stored, WhichQueue,
    record::{ExecutionRecord, ExecutionRow, InstanceRecord, Records, StoredInstance},
};
use duroxide_provider::store::EventRow;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    FsError,
    file::BEING_WRITTEN,
    item_file,
    layout::{InstanceFolder, Layout, safe_name},
};

/// Reads a whole store, and deletes temporary files of writes that a crash interrupted.
pub(crate) fn load(layout: &Layout) -> Result<Stored, FsError> {
    remove_folder(&layout.deleted())?;
    let unfinished = read_json(&layout.unfinished())?.unwrap_or_default();
    let mut records = Records::default();
    for path in entries(&layout.instances())? {
        records.instances.extend(instance(&InstanceFolder { path })?);
    }
    for path in entries(&layout.dead_letters())? {
        records.dead_letters.extend(read_json(&path)?);
    }
    Ok(Stored { records, unfinished })
}

fn instance(folder: &InstanceFolder) -> Result<Option<StoredInstance>, FsError> {
    let Some(record) = read_json::<InstanceRecord>(&folder.record())? else {
        return unborn(folder);
    };
    let is_its_own = folder.path.file_name() == Some(OsStr::new(&safe_name(&record.row.id)));
    if !is_its_own {
        let message = format!("the instance '{}' does not belong into this folder", record.row.id);
        return Err(FsError::damaged(&folder.record(), message));
    }
    let (executions, id) = (executions(folder, &record)?, record.row.id.clone());
    let mut stored = StoredInstance { instance: record, executions, messages: vec![], activities: vec![] };
    for path in entries(&folder.queue(WhichQueue::Orchestrator))? {
        let content = read(&path)?.unwrap_or_default();
        stored.messages.extend(item_file::message(&path, &id, &content));
    }
    for path in entries(&folder.queue(WhichQueue::Worker))? {
        let content = read(&path)?.unwrap_or_default();
        stored.activities.extend(item_file::activity(&path, &id, &content));
    }
    Ok(Some(stored))
}

/// Removes an empty instance folder, which a crash left before the record was written. The record is the first file of
/// a folder, so a folder with other files and no record is damaged.
fn unborn(folder: &InstanceFolder) -> Result<Option<StoredInstance>, FsError> {
    if entries(&folder.path)?.is_empty() {
        remove_folder(&folder.path)?;
        return Ok(None);
    }
    Err(FsError::damaged(&folder.record(), "the file is missing"))
}

fn executions(
    folder: &InstanceFolder,
    instance: &InstanceRecord,
) -> Result<Vec<(ExecutionRecord, Vec<EventRow>)>, FsError> {
    let names = entries(&folder.path)?;
    let ids: BTreeSet<u64> = names.iter().filter_map(|path| execution_of(path)).collect();
    let mut executions = Vec::new();
    for id in ids {
        let record = read_json(&folder.execution(id))?.unwrap_or_else(|| begun(instance, id));
        let history = HistoryFile::read(&folder.history(id))?;
        executions.push((record, history.rows));
    }
    Ok(executions)
}

/// The record of an execution that has events but no record file yet.
fn begun(instance: &InstanceRecord, execution_id: u64) -> ExecutionRecord {
    ExecutionRecord {
        instance: instance.row.id.clone(),
        execution_id,
        row: ExecutionRow::begun(instance.row.updated_at),
    }
}

/// The execution id in a file name.
fn execution_of(path: &Path) -> Option<u64> {
    let stem = path.file_stem()?.to_str()?;
    stem.strip_prefix("execution-").or_else(|| stem.strip_prefix("history-"))?.parse().ok()
}

/// The undamaged part of a history file.
#[derive(Debug, Default)]
pub(crate) struct HistoryFile {
    /// Its events, in order of their ids.
    pub(crate) rows: Vec<EventRow>,
    /// The length of the undamaged part, in bytes.
    pub(crate) bytes: u64,
    /// Whether the last line has no line break.
    pub(crate) is_open: bool,
}

/// The field of an event that must be readable.
#[derive(Deserialize)]
struct EventId {
    event_id: u64,
}

impl HistoryFile {
    /// Reads a history. A last line without a line break was cut off by a crash and is dropped, unless it is valid JSON:
    /// some editors write no final line break.
    pub(crate) fn read(path: &Path) -> Result<Self, FsError> {
        let content = read_bytes(path)?.unwrap_or_default();
        let mut rows = BTreeMap::new();
        let (mut bytes, mut last, mut is_open) = (0, 0, false);
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            is_open = !line.ends_with(b"\n");
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end_matches('\n');
            let id = serde_json::from_str::<EventId>(text).map(|event| event.event_id);
            if is_open && id.is_err() {
                is_open = false;
                break;
            }
            bytes += line.len() as u64;
            // A damaged line counts as an event that cannot be decoded.
            last = id.unwrap_or(last + 1);
            rows.entry(last).or_insert_with(|| text.to_owned());
        }
        let rows = rows.into_iter().map(|(event_id, data)| EventRow { event_id, data }).collect();
        Ok(Self { rows, bytes, is_open })
    }
}

/// Lists a folder in the order of names, and deletes temporary files.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FsError> {
    let listing = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(|error| FsError::io(folder, &error))?,
    };
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry.map_err(|error| FsError::io(folder, &error))?.path();
        if path.extension() == Some(OsStr::new(BEING_WRITTEN)) {
            fs::remove_file(&path).map_err(|error| FsError::io(&path, &error))?;
        } else {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn remove_folder(folder: &Path) -> Result<(), FsError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FsError::io(folder, &error)),
        _ => Ok(()),
    }
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FsError> {
    let Some(content) = read(path)? else { return Ok(None) };
    serde_json::from_str(&content).map(Some).map_err(|error| FsError::damaged(path, error))
}

/// Reads a file as text. Invalid UTF-8 becomes replacement characters, which the decoder refuses.
fn read(path: &Path) -> Result<Option<String>, FsError> {
    Ok(read_bytes(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, FsError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FsError::io(path, &error)),
    }
}
