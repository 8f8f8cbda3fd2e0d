use duroxide_core::{ErrorDetails, EventKind, WorkItem};
use duroxide_provider::StatusSnapshot;

/// How an instance stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// There is no such instance.
    NotFound,
    /// It has not ended; also between two executions.
    Running {
        /// The custom status.
        custom_status: Option<String>,
        /// How often it was set.
        custom_status_version: u64,
    },
    /// It returned.
    Completed {
        /// What it returned.
        output: String,
        /// The custom status.
        custom_status: Option<String>,
        /// How often it was set.
        custom_status_version: u64,
    },
    /// It failed, or was cancelled.
    Failed {
        /// Why.
        details: ErrorDetails,
        /// The custom status.
        custom_status: Option<String>,
        /// How often it was set.
        custom_status_version: u64,
    },
}

impl OrchestrationStatus {
    /// Whether the instance has ended.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. })
    }

    /// How often the custom status was set.
    pub(crate) fn custom_status_version(&self) -> u64 {
        match self {
            Self::NotFound => 0,
            Self::Running { custom_status_version, .. }
            | Self::Completed { custom_status_version, .. }
            | Self::Failed { custom_status_version, .. } => *custom_status_version,
        }
    }
}

impl From<Option<StatusSnapshot>> for OrchestrationStatus {
    fn from(snapshot: Option<StatusSnapshot>) -> Self {
        let Some(snapshot) = snapshot else { return Self::NotFound };
        let StatusSnapshot { terminal_event, custom_status, custom_status_version, .. } = snapshot;
        match terminal_event.map(|event| event.kind) {
            Some(EventKind::OrchestrationCompleted { output }) => {
                Self::Completed { output, custom_status, custom_status_version }
            }
            Some(EventKind::OrchestrationFailed { details }) => {
                Self::Failed { details, custom_status, custom_status_version }
            }
            _ => Self::Running { custom_status, custom_status_version },
        }
    }
}

/// The kind of a work item, for logs. Queue messages keep the name they are stored under in histories.
pub fn kind_of(item: &WorkItem) -> &'static str {
    match item {
        WorkItem::QueueMessage { .. } => "ExternalRaisedPersistent",
        other => other.kind(),
    }
}
