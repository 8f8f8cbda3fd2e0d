//! The workers: processes of their own, so that they can really be killed.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use duroxide::{
    prelude::*,
    providers::postgres::{PostgresOptions, PostgresProvider, SchemaName},
};

use crate::{Outcome, journal::Journal, orders};

/// A folder with the address of the store, for the workers.
pub(crate) struct Place {
    folder: PathBuf,
}

impl Place {
    /// Writes the address of the store. A connection string may have a password, so it is no argument, which other users can see.
    pub(crate) fn new(folder: &Path, url: &str, schema: &SchemaName) -> io::Result<Self> {
        fs::write(folder.join("store"), format!("{schema}\n{url}"))?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) async fn open(&self) -> Outcome<Arc<PostgresProvider>> {
        let text = fs::read_to_string(self.folder.join("store"))?;
        let (schema, url) = text.split_once('\n').ok_or("the folder names no store")?;
        let mut options = PostgresOptions::new(url)?;
        options.schema = SchemaName::new(schema)?;
        Ok(Arc::new(PostgresProvider::open(options).await?))
    }
}

/// The main function of a worker process, which works until its standard input is closed.
pub(crate) async fn run(name: &str, build: &str, folder: &Path) -> Outcome {
    let place = Place { folder: folder.to_owned() };
    let options = RuntimeOptions {
        orchestration_concurrency: 8,
        worker_concurrency: 8,
        // A worker without a version does not fetch its orders.
        handler_capability_filter: true,
        ..RuntimeOptions::default()
    };
    let activities = orders::activities(name, Journal::new(folder));
    let store = place.open().await?;
    let runtime =
        Runtime::start_with_options(store, activities, orders::orchestrations(build), options).await;
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    runtime.shutdown(None).await;
    Ok(())
}

/// A running worker process. Dropping it kills the process, so that a failed run leaves no processes.
pub(crate) struct Worker {
    name: &'static str,
    process: Child,
}

impl Worker {
    pub(crate) fn start(name: &'static str, build: &str, place: &Place) -> io::Result<Self> {
        let process = Command::new(std::env::current_exe()?)
            .args([name, build])
            .arg(place.folder())
            .stdin(Stdio::piped())
            .spawn()?;
        Ok(Self { name, process })
    }

    /// SIGKILL: the process gets no chance to clean up.
    pub(crate) fn kill(mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// Closes the worker's standard input and waits until it has shut down.
    pub(crate) fn stop(mut self) -> Outcome {
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
