//! Chromium over WebDriver, and stores with many instances: for tests, pictures and measurements of the console.

// A harness may panic: a test that cannot go on fails by it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

pub mod crowd;
pub mod driver;
pub mod page;
pub mod served;
pub mod shop;
