//! Tools to test store engines with, behind the feature `testing`.
//!
//! * [`Scenario`]: drives one engine in virtual time, one small transaction per call.
//! * [`stories`]: short stories that every engine must tell the same way;
//!   [`engine_stories!`](crate::engine_stories) makes a test of each.
//!
//! ```ignore
//! duroxide_provider::engine_stories!(MyEngine::new());
//! ```
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a broken expectation is a failed test"
)]

pub mod items;
pub mod scenario;
pub mod stories;
mod turn;

pub use scenario::Scenario;
pub use turn::Turn;
