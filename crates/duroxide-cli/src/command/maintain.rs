//! Commands about whole stores.

pub mod check;
#[cfg(feature = "postgres")]
pub mod copy;
pub mod export;
#[cfg(feature = "ui")]
pub mod ui;
pub mod verify;
