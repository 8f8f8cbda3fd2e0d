//! The lock file that keeps a second process out of a store.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::Write as _,
    path::Path,
};

use crate::FsError;

/// The lock of a store. The operating system releases it when the process ends, also after a crash.
#[derive(Debug)]
pub(crate) struct LockFile {
    _held: File,
}

impl LockFile {
    pub(crate) fn hold(path: &Path, root: &Path) -> Result<Self, FsError> {
        let io = |error: std::io::Error| FsError::io(path, &error);
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => FsError::InUse { folder: root.display().to_string() },
            TryLockError::Error(error) => io(error),
        })?;
        // The process id is for people who read the file; the file lock decides.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _held: file })
    }
}
