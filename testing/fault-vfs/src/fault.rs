//! Which operations fail, and how.

/// An operation that changes a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new file.
    Create,
    /// Bytes written to a file.
    Write,
    /// A file cut to a length.
    Truncate,
    /// A file synced.
    Sync,
    /// A file removed.
    Delete,
}

/// How an operation fails. It then has no effect, except that the changes of a failed sync never become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskError {
    /// `SQLITE_IOERR_*`.
    Io,
    /// `SQLITE_FULL`.
    Full,
}

/// A failure to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which operations are counted and fail; `None` counts all.
    pub on: Option<Operation>,
    /// The first that fails, counted from 1.
    pub nth: u64,
    /// How many fail in a row; `None` for all from then on.
    pub times: Option<u64>,
    /// How they fail.
    pub error: DiskError,
}

impl Fault {
    /// The n-th operation from now on fails, of any kind.
    pub fn once_at(nth: u64, error: DiskError) -> Self {
        Self { on: None, nth, times: Some(1), error }
    }

    /// The n-th operation from now on fails, and all after it.
    pub fn from_then_on(nth: u64, error: DiskError) -> Self {
        Self { times: None, ..Self::once_at(nth, error) }
    }

    /// Counts and fails only operations of this kind.
    #[must_use]
    pub fn on(self, operation: Operation) -> Self {
        Self { on: Some(operation), ..self }
    }

    /// Lets an operation happen, and says whether it fails.
    pub(crate) fn strikes(&mut self, operation: Operation) -> Option<DiskError> {
        if self.on.is_some_and(|on| on != operation) {
            return None;
        }
        if self.nth > 1 {
            self.nth -= 1;
            return None;
        }
        match &mut self.times {
            None => Some(self.error),
            Some(0) => None,
            Some(left) => {
                *left -= 1;
                Some(self.error)
            }
        }
    }
}
