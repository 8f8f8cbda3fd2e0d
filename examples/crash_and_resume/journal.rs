//! Events outside of the store: every run of an activity, and the actions of the supervisor.
//!
//! The store records results; the journal records every run of an activity. It is a file to which all processes
//! append, one line per entry.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// One line: a process, its action and the time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) at_ms: u64,
    pub(crate) who: String,
    pub(crate) what: String,
    pub(crate) detail: String,
}

impl Entry {
    pub(crate) fn is(&self, who: &str, what: &str) -> bool {
        self.who == who && self.what == what
    }
}

/// The journal, as one process writes to it.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    file: PathBuf,
    who: String,
}

impl Journal {
    pub(crate) fn open(folder: &Path, who: &str) -> Self {
        Self { file: folder.join("journal.jsonl"), who: who.to_owned() }
    }

    /// Appends a line. One small write to a file opened for appending does not mix with writes of other processes.
    pub(crate) fn note(&self, what: &str, detail: impl Into<String>) -> io::Result<()> {
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let entry = Entry { at_ms, who: self.who.clone(), what: what.to_owned(), detail: detail.into() };
        let line = serde_json::to_string(&entry)? + "\n";
        OpenOptions::new().create(true).append(true).open(&self.file)?.write_all(line.as_bytes())
    }

    /// All complete lines; another process may be writing the last one.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let text = std::fs::read_to_string(&self.file)?;
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
    }

    /// How often an activity has begun so far, over all processes.
    pub(crate) fn runs(&self, activity: &str) -> io::Result<usize> {
        Ok(self.entries()?.iter().filter(|entry| entry.what == activity).count())
    }
}
