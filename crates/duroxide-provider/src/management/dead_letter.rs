//! [`DeadLetter`]: a message that no node can process, and events as they are stored.

use serde::Serialize;

/// A message that was taken out of its queue because no node could process it. Messages are never deleted silently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// Names the dead letter in `retry_dead_letter` and `discard_dead_letter`.
    pub id: String,
    /// The queue it came from.
    pub queue: DeadLetterQueue,
    /// The instance it was sent to, if that could be read.
    pub instance_id: Option<String>,
    /// The stored text.
    pub payload: String,
    /// Why it is here.
    pub reason: String,
    /// How often it was fetched.
    pub attempt_count: u32,
    /// When it was put here.
    pub dead_lettered_at_ms: u64,
}

/// The queue a dead letter came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum DeadLetterQueue {
    /// Messages to instances.
    Orchestrator,
    /// Activities.
    Worker,
}

/// A stored event, decodable or not.
#[derive(Debug, Clone)]
pub struct RawEvent {
    /// Its position.
    pub event_id: u64,
    /// The `type` of the stored text; empty if it has none.
    pub event_type: String,
    /// The stored text.
    pub data: String,
}
