//! [`Frame`]: where a round trip begins and ends its transaction.

/// Which ends of a transaction a round trip contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Neither: its statements run inside or outside of a transaction, like those before.
    Plain,
    /// The beginning of a transaction that writes.
    Begin,
    /// The commit.
    Commit,
    /// Both: a whole transaction.
    BeginAndCommit,
    /// A whole transaction of one statement, which PostgreSQL begins and commits by itself. Behind a pooler both are sent, because
    /// the transaction needs settings.
    Single,
    /// A whole transaction that reads one state.
    Read,
}

impl Frame {
    /// The statement in front. Behind a pooler each transaction has its own settings, because its connection is used by other
    /// clients, too.
    pub(super) fn first(self, is_pooled: bool) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Commit => None,
            Self::Begin | Self::BeginAndCommit | Self::Single if is_pooled => Some(BEGIN_POOLED),
            Self::Single => None,
            Self::Begin | Self::BeginAndCommit => Some("BEGIN ISOLATION LEVEL READ COMMITTED"),
            Self::Read => Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
        }
    }

    /// The statement behind.
    pub(super) fn last(self, is_pooled: bool) -> Option<&'static str> {
        match self {
            Self::Single if is_pooled => Some("COMMIT"),
            Self::Plain | Self::Begin | Self::Single => None,
            Self::Commit | Self::BeginAndCommit | Self::Read => Some("COMMIT"),
        }
    }

    pub(super) fn commits(self) -> bool {
        matches!(self, Self::Commit | Self::BeginAndCommit | Self::Single)
    }
}

/// A connection of a pooler has none of our settings: the time limit of idle transactions, and those of the planner.
const BEGIN_POOLED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL idle_in_transaction_session_timeout = '5s';
    SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
    SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan";

#[cfg(test)]
mod tests {
    use super::*;

    /// A role may have another isolation level by default.
    #[test]
    fn whatever_writes_behind_a_pooler_is_read_committed() {
        for frame in [Frame::Begin, Frame::BeginAndCommit, Frame::Single] {
            assert_eq!(frame.first(true), Some(BEGIN_POOLED));
        }
        assert_eq!((Frame::Single.last(true), Frame::Single.last(false)), (Some("COMMIT"), None));
    }
}
