//! A panic in an engine is a failure of one call, not the end of a thread.

use duroxide_provider::store::{FailureClass, StoreFailure, caught};

use crate::log;

/// Runs one call of an engine. A panic is logged and becomes a failure of the given class.
///
/// The engine is used again afterwards: it is reopened if the class says so.
pub(crate) fn guarded<T>(
    store: &str,
    call: &'static str,
    on_panic: FailureClass,
    run: impl FnOnce() -> Result<T, StoreFailure>,
) -> Result<T, StoreFailure> {
    caught(call, on_panic, run).inspect_err(|failure| log::panic_in(store, failure))
}
