//! [`Changed`]: the answer to a change: back to a page, which says what was done. Also other ways to another page.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::failure::Failure;

/// Where the browser goes after a change, from the console's root.
#[derive(Debug)]
pub(crate) struct Changed {
    to: String,
}

impl Changed {
    /// Goes to `page`.
    pub(crate) fn to(root: &str, page: &str) -> Self {
        Self { to: format!("{root}{page}") }
    }

    /// Goes to `page`, which tells what was done by a word of [`notice`].
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

/// What a page says after a change. The URL has only the word, so nobody can make the console say something else.
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
