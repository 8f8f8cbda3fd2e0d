//! [`AnswerTimeout`]: the time limit of round trips.

use std::{future::Future, time::Duration};

use tokio::{runtime::Runtime, time::timeout};

use crate::database_error::DatabaseError;

/// The time limit of a connection's round trips. Only this limit detects a server or network that takes requests and never answers,
/// because the operating systems on both sides still acknowledge packets.
#[derive(Debug)]
pub(super) struct AnswerTimeout {
    limit: Duration,
    /// Whether an answer is missing. A later answer could belong to any request, so no further request is sent.
    has_expired: bool,
}

impl AnswerTimeout {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, has_expired: false }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(super) fn has_expired(&self) -> bool {
        self.has_expired
    }

    /// Refuses a request on a connection that was given up.
    pub(super) fn check(&self) -> Result<(), DatabaseError> {
        if self.has_expired { Err(silent(self.limit)) } else { Ok(()) }
    }

    /// Waits for an answer, and gives the connection up if there is none within `limit`.
    pub(super) fn wait<T>(
        &mut self,
        runtime: &Runtime,
        limit: Duration,
        answer: impl Future<Output = T>,
    ) -> Result<T, DatabaseError> {
        self.check()?;
        // The timer belongs to the runtime.
        let waited = runtime.block_on(async { timeout(limit, answer).await });
        waited.map_err(|_| {
            self.has_expired = true;
            tracing::warn!(target: "duroxide::providers::postgres", ?limit, "the server does not answer");
            silent(limit)
        })
    }
}

fn silent(limit: Duration) -> DatabaseError {
    DatabaseError::unavailable(format!("no answer within {limit:?}"))
}
