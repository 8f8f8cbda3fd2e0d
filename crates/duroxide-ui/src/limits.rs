//! [`Limits`]: bounds of one request.

use std::time::Duration;

/// Bounds the cost of one request. Every list, body and stream of the console has a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of instances on a page. A URL may ask for fewer.
    pub page_size_max: u32,
    /// Events of a history on a page.
    pub events_per_page: usize,
    /// Bytes of one payload that a page shows; the page of the event shows the whole payload.
    pub payload_bytes_max: usize,
    /// Bytes of a form.
    pub body_bytes_max: usize,
    /// Instances that one bulk action changes.
    pub bulk_max: u32,
    /// Maximum number of live streams. A further stream is answered with 503, and its page does not update itself.
    pub streams_max: usize,
    /// Lifetime of a live stream. The browser opens the next one, which checks the credentials again.
    pub stream_lifetime: Duration,
    /// Interval at which a live stream reads the store for changes.
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
