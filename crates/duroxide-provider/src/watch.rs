//! [`InstanceWatch`]: notifies a waiting client that an instance may have changed.

use async_trait::async_trait;

use crate::StatusSnapshot;

/// Notifies a waiting client that an instance may have another status, another custom status or other values.
#[async_trait]
pub trait InstanceWatch: Send {
    /// Resolves when an execution of the instance may have ended, or its custom status or its key-value store may have
    /// changed, since the watch was made or last resolved. It may resolve too often, never too seldom: a change before the
    /// call counts.
    async fn changed(&mut self);

    /// The status after the last change; returned at most once. It equals the answer of
    /// [`Provider::read_status`](crate::Provider::read_status) right after the last reported change, which is durable
    /// by then. With `None`, as by default, the client reads.
    fn told(&mut self) -> Option<StatusSnapshot> {
        None
    }

    /// Whether the instance, when the watch was made, was known to exist and not to have ended. A caller that waits
    /// only for the end then need not read; [`Self::changed`] reports the end. With `false`, as by default, the client
    /// reads.
    fn has_not_ended(&self) -> bool {
        false
    }
}
