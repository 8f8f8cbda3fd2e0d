//! [`AuditEntry`]: a change, its user and its time.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// A change that a user of the console made or tried to make. It contains no payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// When the change was answered.
    pub at: SystemTime,
    /// The [`Principal`](crate::Principal)'s name.
    pub who: String,
    /// The requested change: `raise`, `enqueue`, `cancel`, `delete`, `start-again`, `retry-dead-letter`,
    /// `discard-dead-letter`, or a bulk action such as `bulk cancel`.
    pub action: String,
    /// The ids of the instances or dead letters that the change was for.
    pub subjects: Vec<String>,
    /// The outcome of the change.
    pub outcome: AuditOutcome,
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditOutcome {
    /// The change was made.
    Done,
    /// The change was allowed, and failed.
    Failed,
    /// The change was not allowed: the role is too low, the console is read-only, or the form was forged.
    Refused,
}

impl fmt::Display for AuditOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
        })
    }
}

pub(crate) type AuditHook = Arc<dyn Fn(&AuditEntry) + Send + Sync>;

/// Writes an entry to the log, and calls the program's hook with it.
pub(crate) fn write(entry: &AuditEntry, hook: Option<&AuditHook>) {
    let at_ms = entry.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    tracing::info!(
        target: "duroxide::ui::audit",
        who = %entry.who,
        action = %entry.action,
        subjects = ?entry.subjects,
        outcome = %entry.outcome,
        at_ms = %at_ms,
        "console change"
    );
    if let Some(hook) = hook {
        hook(entry);
    }
}
