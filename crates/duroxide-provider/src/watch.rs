use async_trait::async_trait;

/// Tells a waiting client that an instance may have another status, or another custom status.
#[async_trait]
pub trait InstanceWatch: Send {
    /// Resolves when an execution of the instance may have ended, or its custom status may have changed, since the
    /// watch was made or last resolved. It may resolve too often, never too seldom: a change before the call counts.
    async fn changed(&mut self);
}
