//! Commands about whole stores.

pub mod check;
#[cfg(feature = "postgres")]
pub mod copy;
pub mod export;
pub mod verify;
