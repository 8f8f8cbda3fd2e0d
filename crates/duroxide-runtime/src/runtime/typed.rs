//! Typed handlers, the builder that registers them, and handles of the instances they run as.

mod activity;
mod builder;
mod client;
mod handle;
mod orchestration;

pub use activity::{ActivityCode, ActivityService, ServiceActivity};
pub use builder::{BuildError, RuntimeBuilder};
pub use handle::{Handle, TypedStatus};
