//! An open file of one connection.

use std::ffi::c_void;

use super::{Busy, Content, Fate, File, FileId, HandleId, LockLevel, SharedState, SlotLock, State};
use crate::{DiskError, Operation};

/// One open file of one connection.
pub(crate) struct Handle {
    disk: SharedState,
    id: HandleId,
    file: FileId,
    /// The first sync of a journal also makes its entry in the directory durable, as SQLite does on Unix whenever it
    /// opens one that may be new.
    syncs_directory: bool,
    /// The name under which it is removed when it is closed.
    temporary: Option<String>,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenMode {
    /// Whether a missing file is made.
    pub(crate) create: bool,
    /// Whether it is a rollback journal or a write-ahead log.
    pub(crate) journal: bool,
    pub(crate) delete_on_close: bool,
}

#[derive(Debug)]
pub(crate) enum OpenError {
    NoSuchFile,
    Failed(DiskError),
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Failed(error)
    }
}

// ---- the directory ----------------------------------------------------------------------------------------------

impl SharedState {
    /// Opens a file; one without a name is private to its handle.
    pub(crate) fn open(&self, name: Option<&str>, mode: OpenMode) -> Result<Handle, OpenError> {
        let mut state = self.lock();
        state.check_power()?;
        let existing = name.and_then(|name| state.directory.get(name).copied());
        let file = match (existing, mode.create || name.is_none()) {
            (Some(file), _) => file,
            (None, false) => return Err(OpenError::NoSuchFile),
            (None, true) => state.create(name)?,
        };
        state.handles += 1;
        Ok(Handle {
            disk: self.clone(),
            id: HandleId(state.handles),
            file,
            syncs_directory: mode.create && mode.journal,
            temporary: name.filter(|_| mode.delete_on_close).map(str::to_owned),
        })
    }

    /// Removes a file; says whether there was one.
    pub(crate) fn delete(&self, name: &str, sync_directory: bool) -> Result<bool, DiskError> {
        let mut state = self.lock();
        if !state.directory.contains_key(name) {
            return state.check_power().map(|()| false);
        }
        let fate = state.attempt(Operation::Delete)?;
        state.directory.remove(name);
        if fate == Fate::IsCut {
            return Err(DiskError::Io);
        }
        if sync_directory {
            state.sync_directory();
        }
        Ok(true)
    }

    pub(crate) fn exists(&self, name: &str) -> Result<bool, DiskError> {
        let state = self.lock();
        state.check_power()?;
        Ok(state.directory.contains_key(name))
    }
}

impl State {
    fn create(&mut self, name: Option<&str>) -> Result<FileId, DiskError> {
        let fate = self.attempt(Operation::Create)?;
        let file = self.add_file(Content::default());
        if let Some(name) = name {
            self.directory.insert(name.to_owned(), file);
        }
        if fate == Fate::IsCut { Err(DiskError::Io) } else { Ok(file) }
    }
}

// ---- one file ---------------------------------------------------------------------------------------------------

impl Handle {
    /// Reads as much as there is; returns how much that was.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) -> Result<usize, DiskError> {
        self.with(|state, file| {
            state.check_power()?;
            Ok(state.files.get(file).map_or(0, |file| file.content.read(at, into)))
        })
    }

    pub(crate) fn len(&self) -> Result<usize, DiskError> {
        self.with(|state, file| {
            state.check_power()?;
            Ok(state.files.get(file).map_or(0, |file| file.content.len()))
        })
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> Result<(), DiskError> {
        self.change(Operation::Write, |content| content.write(at, bytes))
    }

    pub(crate) fn truncate(&self, length: usize) -> Result<(), DiskError> {
        self.change(Operation::Truncate, |content| content.truncate(length))
    }

    /// A change that is cut has happened, but is not synced.
    fn change(&self, operation: Operation, change: impl FnOnce(&mut Content)) -> Result<(), DiskError> {
        self.with(|state, file| {
            let fate = state.attempt(operation)?;
            if let Some(file) = state.files.get_mut(file) {
                change(&mut file.content);
            }
            if fate == Fate::IsCut { Err(DiskError::Io) } else { Ok(()) }
        })
    }

    pub(crate) fn sync(&mut self) -> Result<(), DiskError> {
        let syncs_directory = self.syncs_directory;
        self.with(|state, file| {
            state.check_power()?;
            let fate = state.attempt(Operation::Sync);
            let Some(file) = state.files.get_mut(file) else { return Ok(()) };
            match fate {
                Ok(Fate::Happens) => file.content.sync(),
                Ok(Fate::IsCut) => return Err(DiskError::Io),
                Err(error) => {
                    file.content.fail_to_sync();
                    return Err(error);
                }
            }
            if syncs_directory {
                state.sync_directory();
            }
            Ok(())
        })?;
        self.syncs_directory = false;
        Ok(())
    }

    pub(crate) fn lock(&self, level: LockLevel) -> Result<(), Busy> {
        self.with_file(|file| file.locks.lock(self.id, level))
    }

    pub(crate) fn unlock(&self, level: LockLevel) {
        self.with_file(|file| {
            file.locks.unlock(self.id, level);
            Ok(())
        })
        .unwrap_or(());
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.with(|state, file| state.files.get(file).is_some_and(|file| file.locks.is_reserved()))
    }

    /// The address of a region of the file's shared memory; null if it is not there and shall not be made. It stays
    /// valid until this handle lets the memory go.
    pub(crate) fn map_memory(&self, region: usize, bytes: usize, make: bool) -> *mut c_void {
        self.with(|state, file| {
            let file = state.files.get_mut(file);
            file.map_or(std::ptr::null_mut(), |file| file.shared_memory.map(self.id, region, bytes, make))
        })
    }

    pub(crate) fn unmap_memory(&self) {
        self.with(|state, file| {
            if let Some(file) = state.files.get_mut(file) {
                file.shared_memory.unmap(self.id);
            }
        });
    }

    pub(crate) fn lock_memory(&self, slots: u32, lock: SlotLock) -> Result<(), Busy> {
        self.with_file(|file| file.shared_memory.lock(self.id, slots, lock))
    }

    /// Orders this thread's earlier accesses to the shared memory before its later ones.
    pub(crate) fn memory_barrier(&self) {
        drop(self.disk.lock());
    }

    fn with_file<T>(&self, run: impl FnOnce(&mut File) -> Result<T, Busy>) -> Result<T, Busy> {
        self.with(|state, file| state.files.get_mut(file).map_or(Err(Busy), run))
    }

    fn with<T>(&self, run: impl FnOnce(&mut State, FileId) -> T) -> T {
        run(&mut self.disk.lock(), self.file)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.with(|state, file| {
            if let Some(file) = state.files.get_mut(file) {
                file.locks.forget(self.id);
                file.shared_memory.unmap(self.id);
            }
        });
        if let Some(name) = &self.temporary {
            // The failure to remove a temporary file cannot be reported.
            let _ = self.disk.delete(name, false);
        }
    }
}
