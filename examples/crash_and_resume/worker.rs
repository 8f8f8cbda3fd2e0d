//! The worker: a process of its own, so that it can really be killed.

use std::{
    error::Error,
    io::{self, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use duroxide::prelude::*;

use crate::{journal::Journal, order};

/// How long a worker may be silent before its activities are given to others, as long as it may be alive.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The file of the store.
pub(crate) const STORE: &str = "orders.db";

pub(crate) async fn open_store(folder: &Path) -> Result<Arc<SqliteProvider>, Box<dyn Error>> {
    let url = format!("sqlite:{}", folder.join(STORE).display());
    Ok(Arc::new(SqliteProvider::new(&url, None).await?))
}

/// What the worker process does: run orders until its standard input is closed.
pub(crate) async fn run(name: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let journal = Journal::open(folder, name);
    let store = open_store(folder).await?;
    // A dead worker's leases would last for half a minute. Nobody waits for them: its lock beside the store ended with it.
    let options =
        RuntimeOptions { worker_lock_timeout: LEASE, worker_concurrency: 4, ..RuntimeOptions::default() };
    let runtime =
        Runtime::start_with_options(store, order::activities(&journal), order::orchestrations(), options)
            .await;
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    runtime.shutdown(None).await;
    Ok(())
}

/// A running worker process. Dropping it kills the process, so that a failed run leaves nothing behind.
pub(crate) struct Worker {
    name: &'static str,
    process: Child,
}

impl Worker {
    pub(crate) fn start(name: &'static str, folder: &Path) -> io::Result<Self> {
        let process =
            Command::new(std::env::current_exe()?).arg(name).arg(folder).stdin(Stdio::piped()).spawn()?;
        Ok(Self { name, process })
    }

    pub(crate) fn describe(&self) -> String {
        format!("{} as process {}", self.name, self.process.id())
    }

    /// SIGKILL: the process gets no chance to clean up.
    pub(crate) fn kill(mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// Closes the worker's standard input and waits until it has shut down.
    pub(crate) fn stop(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.process.stdin.take());
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", self.name).into()) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail harmlessly if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
