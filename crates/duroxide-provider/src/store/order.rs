use std::time::Duration;

use crate::{HandlerCapability, OrchestrationFetch, SessionFetchConfig, TagFilter, VersionRange, WorkFetch};

/// An [`OrchestrationFetch`] as a store engine takes it: owned, because it waits in another thread.
#[derive(Debug, Clone)]
pub struct InstanceOrder {
    /// For how long each instance is locked.
    pub lock_timeout: Duration,
    /// Pinned versions that pass; `None` passes everything, an empty list passes only nothing.
    pub versions: Option<Vec<VersionRange>>,
    /// Handlers the node has; `None` passes everything.
    pub handlers: Option<HandlerCapability>,
    /// How many instances at most.
    pub max: usize,
    /// How many of them may hold messages that were attempted before.
    pub free_slots: usize,
    /// Whether a claim takes all visible messages (the plain fetch), or a bounded part of them.
    pub whole_mailbox: bool,
}

impl InstanceOrder {
    /// The order of a batch fetch.
    pub fn new(request: &OrchestrationFetch<'_>) -> Self {
        Self {
            lock_timeout: request.lock_timeout,
            versions: request
                .filter
                .map(|filter| filter.supported_duroxide_versions.iter().map(Into::into).collect()),
            handlers: request.handlers.cloned(),
            max: request.max,
            free_slots: request.free_slots,
            whole_mailbox: false,
        }
    }
}

/// A [`WorkFetch`] as a store engine takes it.
#[derive(Debug, Clone)]
pub struct ActivityOrder {
    /// For how long each activity is locked.
    pub lock_timeout: Duration,
    /// How session activities are taken.
    pub session: Option<SessionFetchConfig>,
    /// Which tags are taken.
    pub tag_filter: TagFilter,
    /// Handlers the node has; `None` passes everything.
    pub handlers: Option<HandlerCapability>,
    /// How many activities at most.
    pub max: usize,
    /// How many of them may have been attempted before.
    pub free_slots: usize,
}

impl ActivityOrder {
    /// The order of a batch fetch.
    pub fn new(request: &WorkFetch<'_>) -> Self {
        Self {
            lock_timeout: request.lock_timeout,
            session: request.session.cloned(),
            tag_filter: request.tag_filter.clone(),
            handlers: request.handlers.cloned(),
            max: request.max,
            free_slots: request.free_slots,
        }
    }
}
