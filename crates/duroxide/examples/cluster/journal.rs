//! A journal outside of the store: the workers write down each step that they begin.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{Outcome, WAIT_MAX};

/// A file to which all workers add lines.
#[derive(Clone)]
pub(crate) struct Journal(PathBuf);

impl Journal {
    pub(crate) fn new(folder: &Path) -> Self {
        Self(folder.join("journal"))
    }

    /// Adds a line, which survives the death of the process.
    pub(crate) fn note(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until so many steps have begun.
    pub(crate) async fn reach(&self, steps: usize) -> Outcome {
        let began = Instant::now();
        while self.lines().len() < steps {
            if began.elapsed() > WAIT_MAX {
                return Err(format!("{steps} steps did not begin within {WAIT_MAX:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}
