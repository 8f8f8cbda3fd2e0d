//! Work that may block, on a thread of its own.

use std::thread;

use tokio::sync::oneshot;

use crate::SqliteError;

/// Runs work that may block, such as waiting for another process's lock, away from the caller's async runtime.
pub(crate) async fn run_on_a_thread<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, SqliteError> + Send + 'static,
) -> Result<T, SqliteError> {
    let (done, result) = oneshot::channel();
    let spawned = thread::Builder::new().name(format!("duroxide-{operation}")).spawn(move || {
        // If the caller no longer waits, the result is dropped, which closes the store.
        let _ = done.send(work());
    });
    if let Err(error) = spawned {
        let message = format!("cannot start a thread: {error}");
        return Err(SqliteError { operation: operation.to_owned(), message, retryable: true });
    }
    result.await.unwrap_or_else(|_| Err(SqliteError::permanent(operation, "the work ended without a result")))
}
