//! [`StartOutcome`]: the answer of `start_if_new`.

/// Whether an instance existed before a start: the answer of [`Provider::start_if_new`](crate::Provider::start_if_new).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOutcome {
    /// The instance did not exist. This call created it: its start is queued.
    Created,
    /// The instance exists, and was started with the same orchestration name and the same input. Nothing was queued.
    Found,
    /// The instance exists, and was started with another orchestration name or another input. Nothing was queued.
    FoundDifferent,
    /// The instance exists, but how it was started is no longer stored, because its first execution was pruned. Nothing was
    /// queued.
    FoundUnknown,
}
