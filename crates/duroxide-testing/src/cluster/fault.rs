//! [`StoreFault`]: calls to the store that fail.

use std::sync::{Mutex, PoisonError};

use duroxide_provider::ProviderError;

/// Calls to the store that fail, for [`TestCluster::store_fails`](super::TestCluster::store_fails).
///
/// ```
/// # use duroxide_testing::StoreFault;
/// let unreachable = StoreFault::next(3);
/// let lost_commit = StoreFault::next(1).of("commit_round").answer_lost();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFault {
    calls: u32,
    method: Option<&'static str>,
    answer_lost: bool,
}

impl StoreFault {
    /// The next calls of nodes fail, as if the store could not be reached. Nothing is written.
    pub fn next(calls: u32) -> Self {
        Self { calls, method: None, answer_lost: false }
    }

    /// Only calls of this method of [`Provider`](duroxide_provider::Provider) fail, such as `commit_round`.
    #[must_use]
    pub fn of(mut self, method: &'static str) -> Self {
        self.method = Some(method);
        self
    }

    /// The store carries the calls out, and only their answers are lost.
    #[must_use]
    pub fn answer_lost(mut self) -> Self {
        self.answer_lost = true;
        self
    }

    fn matches(&self, method: &str) -> bool {
        self.method.is_none_or(|only| only == method)
    }
}

/// The faults of a cluster, oldest first.
#[derive(Debug, Default)]
pub(super) struct Faults {
    faults: Mutex<Vec<StoreFault>>,
}

/// The outcome that the faults decide for one call.
pub(super) enum Fate {
    Made,
    Refused(ProviderError),
    AnswerLost(ProviderError),
}

impl Faults {
    pub(super) fn add(&self, fault: StoreFault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }

    /// Decides the outcome of the next call of `method`.
    pub(super) fn fate(&self, method: &'static str) -> Fate {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.retain(|fault| fault.calls > 0);
        let Some(fault) = faults.iter_mut().find(|fault| fault.matches(method)) else { return Fate::Made };
        fault.calls -= 1;
        let error = ProviderError::retryable(method, "the test makes this call fail");
        if fault.answer_lost { Fate::AnswerLost(error) } else { Fate::Refused(error) }
    }
}
