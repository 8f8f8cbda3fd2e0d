//! [`Changed`]: the response to a change, a redirect to a page that says what was done. Also other redirects.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::failure::Failure;

/// A redirect to a page of the console.
#[derive(Debug)]
pub(crate) struct Changed {
    to: String,
}

impl Changed {
    /// Redirects to `page`.
    pub(crate) fn to(root: &str, page: &str) -> Self {
        Self { to: format!("{root}{page}") }
    }

    /// Redirects to `page`, which shows the [`notice`] of `done`.
    pub(crate) fn then(root: &str, page: &str, done: &str) -> Self {
        let joint = if page.contains('?') { '&' } else { '?' };
        Self { to: format!("{root}{page}{joint}done={done}") }
    }
}

impl IntoResponse for Changed {
    fn into_response(self) -> Response {
        match HeaderValue::from_str(&self.to) {
            Ok(to) => (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response(),
            Err(error) => Failure::Internal(error.to_string()).into_response(),
        }
    }
}

/// The text that a page shows after a change. The URL has only a keyword, so a link cannot make up a text.
pub(crate) fn notice(done: &str) -> Option<&'static str> {
    Some(match done {
        "raise" => "Event sent. The instance receives it with its next turn.",
        "enqueue" => "Message added to the queue.",
        "cancel" => "Cancellation requested. The instance ends with its next turn.",
        "delete" => "Deleted, with all descendants.",
        "start-again" => "Started again. This is the new instance.",
        "retry-dead-letter" => "Put back into its queue.",
        "discard-dead-letter" => "Discarded.",
        "bulk-cancel" => "Cancellation requested for all selected instances.",
        "bulk-delete" => "All selected instances were deleted, with their descendants.",
        "bulk-retry" => "All selected instances were started again under new ids.",
        _ => return None,
    })
}
