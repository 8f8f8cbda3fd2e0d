//! Threads of a store. They own what they work on; the provider owns only the right to end and join them.

use std::{
    sync::mpsc,
    thread::{Builder, JoinHandle, current, panicking},
};

use tracing::{Dispatch, dispatcher, subscriber::NoSubscriber};

use duroxide_provider::ProviderError;

use crate::log;

/// Starts a thread that logs where its starter logs.
pub(crate) fn spawn(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, ProviderError> {
    let logs = dispatcher::get_default(Dispatch::clone);
    let run = || {
        let _alarm = Alarm;
        run();
    };
    let run = move || {
        // A process that has not set up its logs yet will do so for all threads.
        if logs.is::<NoSubscriber>() { run() } else { dispatcher::with_default(&logs, run) }
    };
    Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| ProviderError::retryable("start", format!("cannot start thread {name}: {error}")))
}

/// Starts a thread that opens what it works on, and then works on it. Returns when it is open, or cannot be.
pub(crate) fn spawn_opening<T>(
    name: &str,
    open: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
    work: impl FnOnce(T) + Send + 'static,
) -> Result<JoinHandle<()>, ProviderError> {
    let (tell, told) = mpsc::sync_channel(1);
    let thread = spawn(name, move || {
        // The starter waits for what is told.
        match open() {
            Ok(opened) => {
                let _ = tell.send(Ok(()));
                work(opened);
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        }
    })?;
    let panicked = |_| Err(ProviderError::permanent("start", format!("thread {name} panicked")));
    match told.recv().unwrap_or_else(panicked) {
        Ok(()) => Ok(thread),
        Err(error) => {
            join(thread);
            Err(error)
        }
    }
}

/// Waits for a thread to end, unless it is the one that waits.
pub(crate) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != current().id() {
        // A panic has been logged by the thread itself.
        let _ = thread.join();
    }
}

/// Logs when its thread ends by a panic.
struct Alarm;

impl Drop for Alarm {
    fn drop(&mut self) {
        if panicking() {
            log::thread_panicked(current().name().unwrap_or("unnamed"));
        }
    }
}
