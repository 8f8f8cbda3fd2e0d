//! A panic in an engine is a failure of one call, not the end of a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use duroxide_provider::store::{FailureClass, StoreFailure};

use crate::log;

/// Runs one call of an engine. A panic is logged and becomes a failure of the given class.
///
/// The engine is used again afterwards: the caller rolls back, or reopens it if the class says so.
pub(crate) fn guarded<T>(
    store: &str,
    call: &'static str,
    on_panic: FailureClass,
    run: impl FnOnce() -> Result<T, StoreFailure>,
) -> Result<T, StoreFailure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let message = panic_message(panic.as_ref());
        log::engine_panicked(store, call, message);
        Err(StoreFailure::new(on_panic, format!("store engine panicked in {call}: {message}")))
    })
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
