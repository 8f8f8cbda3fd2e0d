//! [`OrchestrationStatus`]: the status of an instance as clients see it.

use duroxide_core::{ErrorDetails, ExecutionEnd, WorkItem};
use duroxide_provider::StatusSnapshot;

/// The status of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// The instance does not exist.
    NotFound,
    /// The instance has not ended, or is between two executions.
    Running {
        /// The custom status, if the code has set one.
        custom_status: Option<String>,
        /// The number of times it was set.
        custom_status_version: u64,
    },
    /// The orchestration returned a result.
    Completed {
        /// The result.
        output: String,
        /// The custom status, if the code has set one.
        custom_status: Option<String>,
        /// The number of times it was set.
        custom_status_version: u64,
    },
    /// The orchestration failed or was cancelled.
    Failed {
        /// The reason.
        details: ErrorDetails,
        /// The custom status, if the code has set one.
        custom_status: Option<String>,
        /// The number of times it was set.
        custom_status_version: u64,
    },
}

impl OrchestrationStatus {
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. })
    }

    pub(crate) fn custom_status(&self) -> Option<&str> {
        match self {
            Self::NotFound => None,
            Self::Running { custom_status, .. }
            | Self::Completed { custom_status, .. }
            | Self::Failed { custom_status, .. } => custom_status.as_deref(),
        }
    }

    /// The number of times the custom status was set.
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
        match terminal_event.and_then(|event| event.kind.into_end()) {
            Some(ExecutionEnd::Completed { output }) => {
                Self::Completed { output, custom_status, custom_status_version }
            }
            Some(ExecutionEnd::Failed { details }) => {
                Self::Failed { details, custom_status, custom_status_version }
            }
            Some(ExecutionEnd::ContinuedAsNew { .. }) | None => {
                Self::Running { custom_status, custom_status_version }
            }
        }
    }
}

/// The kind of a work item, for logs. Queue messages have the name under which histories store them.
pub fn kind_of(item: &WorkItem) -> &'static str {
    if matches!(item, WorkItem::QueueMessage { .. }) { "ExternalRaisedPersistent" } else { item.kind() }
}

#[cfg(test)]
mod tests {
    use duroxide_core::EventKind;

    use super::*;
    use crate::fixture::fake_store::{completed, ended, running};

    #[test]
    fn an_unknown_instance_is_not_found() {
        assert_eq!(OrchestrationStatus::from(None), OrchestrationStatus::NotFound);
    }

    #[test]
    fn the_custom_status_comes_with_every_status() {
        let with_custom_status = |snapshot| {
            OrchestrationStatus::from(Some(StatusSnapshot {
                custom_status: Some("half way".to_owned()),
                custom_status_version: 3,
                ..snapshot
            }))
        };
        let custom_status = Some("half way".to_owned());
        assert_eq!(
            with_custom_status(running()),
            OrchestrationStatus::Running { custom_status: custom_status.clone(), custom_status_version: 3 }
        );
        let output = "done".to_owned();
        assert_eq!(
            with_custom_status(completed("done")),
            OrchestrationStatus::Completed {
                output,
                custom_status: custom_status.clone(),
                custom_status_version: 3
            }
        );
        let details = ErrorDetails::orchestration_failed("no stock");
        assert_eq!(
            with_custom_status(ended(EventKind::OrchestrationFailed { details: details.clone() })),
            OrchestrationStatus::Failed { details, custom_status, custom_status_version: 3 }
        );
    }

    /// 20.2
    #[test]
    fn between_two_executions_an_instance_runs() {
        let waiting = ended(EventKind::OrchestrationContinuedAsNew { input: "next".to_owned() });
        assert!(!OrchestrationStatus::from(Some(waiting)).is_terminal());
    }

    #[test]
    fn kinds_are_variant_names_except_for_queue_messages() {
        let text = || "x".to_owned();
        let raised = WorkItem::ExternalRaised { instance: text(), name: text(), data: text() };
        let queued = WorkItem::QueueMessage { instance: text(), name: text(), data: text() };
        assert_eq!(kind_of(&raised), "ExternalRaised");
        assert_eq!(kind_of(&queued), "ExternalRaisedPersistent");
    }
}
