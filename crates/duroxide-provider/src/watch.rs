use async_trait::async_trait;

/// Tells a waiting client that an instance may have changed.
#[async_trait]
pub trait InstanceWatch: Send {
    /// Resolves when the instance may have changed since the watch was made or last resolved. It may resolve too
    /// often, never too seldom: a change before the call counts.
    async fn changed(&mut self);
}
