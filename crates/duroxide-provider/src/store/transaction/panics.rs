//! A panic in an engine is a failure of one step, not the end of a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::store::{FailureClass, StoreFailure};

/// Runs one step of an engine. A panic becomes a failure of the given class, which says what holds afterwards: an
/// operation that panics is rolled back and will not succeed later; a panic around the transaction itself leaves nothing
/// known.
///
/// # Errors
/// The failure of the step, or its panic.
pub fn caught<T>(
    step: &'static str,
    on_panic: FailureClass,
    run: impl FnOnce() -> Result<T, StoreFailure>,
) -> Result<T, StoreFailure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("store engine panicked in {step}: {}", text.unwrap_or("no message"));
        Err(StoreFailure { panicked_in: Some(step), ..StoreFailure::new(on_panic, message) })
    })
}
