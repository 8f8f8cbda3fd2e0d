//! The folder that holds a run's data.

use std::{
    env, fs, io,
    io::Read,
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

/// A fresh folder that is removed with all it holds when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder below this one, or next to the program: temporary folders are often kept in memory, where a
    /// sync costs nothing, while build output is on a disk.
    pub fn below(folder: Option<&Path>) -> io::Result<Self> {
        let parent = match folder {
            Some(folder) => folder.to_owned(),
            None => env::current_exe()?.with_file_name("scratch"),
        };
        let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let path = parent.join(format!("{}-{}", process::id(), moment.as_micros()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The database file of this run.
    pub fn file(&self) -> PathBuf {
        self.0.join("bench.db")
    }

    /// The journal mode as the database file's header has it; nothing if the store made no such file.
    pub fn journal_mode(&self) -> Option<String> {
        let mut header = [0; 20];
        fs::File::open(self.file()).ok()?.read_exact(&mut header).ok()?;
        // The file format versions for writing and reading: 2 is WAL, 1 a rollback journal.
        let mode = if header[18..] == [2, 2] { "wal" } else { "rollback journal" };
        Some(mode.to_owned())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
