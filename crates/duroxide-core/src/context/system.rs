//! Recorded system values: new ids and the current time.

use std::{
    future::Future,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{OrchestrationContext, activities::ActivityRequest, into_result};
use crate::{SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};

/// # System values
///
/// A value that deterministic code must not compute itself, recorded like the result of an activity.
impl OrchestrationContext {
    /// A random UUID.
    #[track_caller]
    pub fn new_guid(&self) -> impl Future<Output = Result<String, String>> + use<> {
        self.call_activity(ActivityRequest::new(SYSCALL_NEW_GUID, String::new()), into_result)
    }

    /// The current time, in milliseconds.
    #[track_caller]
    pub fn utc_now(&self) -> impl Future<Output = Result<SystemTime, String>> + use<> {
        self.call_activity(ActivityRequest::new(SYSCALL_UTC_NOW_MS, String::new()), |value| {
            let text = into_result(value)?;
            let millis: u64 = text.parse().map_err(|error| format!("utc_now returned '{text}': {error}"))?;
            Ok(UNIX_EPOCH + Duration::from_millis(millis))
        })
    }
}
