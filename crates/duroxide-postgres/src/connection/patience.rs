//! How long a connection waits for answers of the server.

use std::{future::Future, time::Duration};

use tokio::{runtime::Runtime, time::timeout};

use crate::database_error::DatabaseError;

/// The time limit of a connection's round trips. A server, or a network, that takes requests and answers none is found by
/// nothing else: the operating systems on both sides go on to confirm what they receive.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    /// An answer is missing. The next one that arrives may belong to any request, so there must not be another request.
    is_exhausted: bool,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, is_exhausted: false }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Refuses a request on a connection that was given up.
    pub(super) fn check(&self) -> Result<(), DatabaseError> {
        if self.is_exhausted { Err(silent(self.limit)) } else { Ok(()) }
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
            self.is_exhausted = true;
            tracing::warn!(target: "duroxide::providers::postgres", ?limit, "the server does not answer");
            silent(limit)
        })
    }
}

fn silent(limit: Duration) -> DatabaseError {
    DatabaseError::unavailable(format!("no answer within {limit:?}"))
}
