//! Starts and joins the threads of a store. A thread owns the engine or reader that it works on; the provider only ends and
//! joins the thread.

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
        let _log = PanicLog;
        run();
    };
    let run = move || {
        // A subscriber that is installed later applies to all threads.
        if logs.is::<NoSubscriber>() { run() } else { dispatcher::with_default(&logs, run) }
    };
    Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| ProviderError::retryable("start", format!("cannot start thread {name}: {error}")))
}

/// Starts a thread that calls `open` and then `work` with the result. Returns after `open`.
pub(crate) fn spawn_opening<T>(
    name: &str,
    open: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
    work: impl FnOnce(T) + Send + 'static,
) -> Result<JoinHandle<()>, ProviderError> {
    let (sender, opened) = mpsc::sync_channel(1);
    let thread = spawn(name, move || match open() {
        Ok(value) => {
            let _ = sender.send(Ok(()));
            work(value);
        }
        Err(error) => {
            let _ = sender.send(Err(error));
        }
    })?;
    let panicked = |_| Err(ProviderError::permanent("start", format!("thread {name} panicked")));
    match opened.recv().unwrap_or_else(panicked) {
        Ok(()) => Ok(thread),
        Err(error) => {
            join(thread);
            Err(error)
        }
    }
}

/// Waits for a thread to end, unless it is the current thread.
pub(crate) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != current().id() {
        // A panic has been logged by the thread itself.
        let _ = thread.join();
    }
}

/// Logs when its thread ends by a panic.
struct PanicLog;

impl Drop for PanicLog {
    fn drop(&mut self) {
        if panicking() {
            log::thread_panicked(current().name().unwrap_or("unnamed"));
        }
    }
}
