//! Dead letters.

use duroxide_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::LaneId;
use crate::store::MessageKind;

/// A message or activity that no node could process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterRow {
    /// The instance it was for.
    pub instance_id: Option<String>,
    /// Its JSON.
    pub payload: String,
    /// Why it could not be processed.
    pub reason: String,
    /// How often it was claimed.
    pub attempts: u32,
    /// When it became a dead letter.
    pub dead_lettered_at: Timestamp,
    /// Where it came from, and goes back to.
    pub origin: Origin,
}

/// Where a dead letter came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A message to an instance.
    Message {
        /// Its kind.
        kind: MessageKind,
        /// Its idempotency key.
        key: Option<String>,
    },
    /// An activity.
    Activity {
        /// The number of the execution, from 1.
        execution_id: u64,
        /// The event id of the schedule.
        activity_id: u64,
        /// Its lane.
        #[serde(skip)]
        lane: LaneId,
        /// Its session.
        session_id: Option<String>,
    },
}
