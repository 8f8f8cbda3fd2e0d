//! The one clock read of this crate: the public constructors promise to stamp "now".
//!
//! The engine never calls them; it stamps events with the time of its [`Clock`](crate::Clock).

use std::time::SystemTime;

use super::{Event, EventKind};
use crate::{Timestamp, version::BUILD_VERSION};

impl Event {
    /// An event stamped with the current time and this build's version.
    pub fn with_event_id(
        event_id: u64,
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the published contract of this constructor")]
        let now = Timestamp::from(SystemTime::now());
        Self {
            event_id,
            source_event_id,
            instance_id: instance_id.into(),
            execution_id,
            timestamp_ms: now.as_millis(),
            duroxide_version: BUILD_VERSION.to_owned(),
            kind,
        }
    }

    /// The same with event id 0, to be numbered later.
    pub fn new(
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self::with_event_id(0, instance_id, execution_id, source_event_id, kind)
    }
}
