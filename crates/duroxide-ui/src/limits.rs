//! [`Limits`]: what one request may cost.

use std::time::Duration;

/// What one request may cost. Every list, body and stream of the console has a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Instances on a page. A URL may ask for fewer, not for more.
    pub page_size_max: u32,
    /// Events of a history on a page.
    pub events_per_page: usize,
    /// Bytes of one payload on a page; the page of the event has all of it.
    pub payload_bytes_max: usize,
    /// Bytes of a form.
    pub body_bytes_max: usize,
    /// Instances that one bulk action changes.
    pub bulk_max: u32,
    /// Live streams at the same time. One more is answered with 503, and the page stays as it is.
    pub streams_max: usize,
    /// How long a live stream lasts. The browser opens the next one, and is asked for its credentials again.
    pub stream_lifetime: Duration,
    /// How often a live stream looks for changes.
    pub stream_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            page_size_max: 200,
            events_per_page: 200,
            payload_bytes_max: 4 * 1024,
            body_bytes_max: 1024 * 1024,
            bulk_max: 1_000,
            streams_max: 32,
            stream_lifetime: Duration::from_secs(600),
            stream_interval: Duration::from_secs(2),
        }
    }
}
