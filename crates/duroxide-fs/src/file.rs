//! Writing files so that a crash leaves either the old or the new content.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use duroxide_provider::store::{FailureClass, StoreFailure};

use crate::FsError;

/// The file name suffix of a temporary file. Opening the store deletes temporary files that a crash left behind.
pub(crate) const BEING_WRITTEN: &str = "tmp";

/// Writes files, synced or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files {
    /// Whether a change survives a power failure as soon as its call returns.
    pub(crate) sync: bool,
}

impl Files {
    /// Creates or replaces a file.
    pub(crate) fn put(self, path: &Path, content: &[u8]) -> Result<(), StoreFailure> {
        let new = path.with_extension(BEING_WRITTEN);
        self.create(&new, content)
            .and_then(|()| fs::rename(&new, path))
            .map_err(|error| FsError::io(path, &error))?;
        self.sync_folder_of(path)
    }

    fn create(self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            self.create_folder(folder)?;
        }
        let mut file = File::create(path)?;
        file.write_all(content)?;
        self.sync_file(&file)
    }

    /// Creates a folder and its missing parents, durably.
    pub(crate) fn create_folder(self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
            self.create_folder(above)?;
            match fs::create_dir(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => return self.sync_folder(above),
            }
        }
        fs::create_dir_all(folder)
    }

    /// Writes at a position of a file and truncates the file behind it. Creates the file if it is missing.
    pub(crate) fn write_at(self, path: &Path, position: u64, content: &[u8]) -> Result<(), StoreFailure> {
        let is_new = !path.exists();
        let write = || {
            if let Some(folder) = path.parent() {
                self.create_folder(folder)?;
            }
            let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            file.set_len(position)?;
            file.seek(SeekFrom::Start(position))?;
            file.write_all(content)?;
            self.sync_file(&file)
        };
        write().map_err(|error| unknown(path, &error))?;
        if is_new { self.sync_folder_of(path) } else { Ok(()) }
    }

    /// Deletes a file. A missing file is not an error.
    pub(crate) fn remove(self, path: &Path) -> Result<(), StoreFailure> {
        match fs::remove_file(path) {
            Ok(()) => self.sync_folder_of(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(FsError::io(path, &error).into()),
        }
    }

    /// Moves a folder. A missing folder is not an error.
    pub(crate) fn rename_folder(self, from: &Path, to: &Path) -> Result<(), StoreFailure> {
        match fs::rename(from, to) {
            Ok(()) => self.sync_folder_of(from),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(FsError::io(from, &error).into()),
        }
    }

    fn sync_file(self, file: &File) -> io::Result<()> {
        if self.sync { file.sync_all() } else { Ok(()) }
    }

    /// Syncs the folder of `path`, which makes its file names durable. If that fails, their durability is unknown.
    fn sync_folder_of(self, path: &Path) -> Result<(), StoreFailure> {
        let Some(folder) = path.parent() else { return Ok(()) };
        self.sync_folder(folder).map_err(|error| unknown(path, &error))
    }

    fn sync_folder(self, folder: &Path) -> io::Result<()> {
        if self.sync { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

fn unknown(path: &Path, error: &io::Error) -> StoreFailure {
    StoreFailure::new(FailureClass::OutcomeUnknown, FsError::io(path, error).to_string())
}
