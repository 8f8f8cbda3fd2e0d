//! Typed handlers, the builder that registers them, and handles of the instances they run as.

mod activity;
mod builder;
mod client;
mod frozen;
mod handle;
mod handlers;
mod orchestration;

pub use activity::{ActivityCode, ActivityService, ServiceActivity};
pub use builder::RuntimeBuilder;
pub use frozen::FrozenError;
pub use handle::{Handle, TypedStatus};
pub use handlers::{BuildError, Handlers};
