//! Messages, activities and events as a store keeps them: the public JSON, and the few values that a store may read.

pub(super) mod intake;

use std::{sync::Arc, time::Duration};

use duroxide_core::{Event, WorkItem};
use serde::{Deserialize, Serialize};

use super::Refusal;

/// The prefix of the JSON of a cancellation, by which a store recognizes it without decoding.
pub const CANCELLATION: &str = "{\"CancelInstance\":";

/// From this many bytes of JSON on an item is large: a store that caches the decoded item besides its JSON has to bound
/// the cache.
pub const LARGE_ITEM_BYTES: usize = 2 << 10;

/// An event to append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// Its position.
    pub event_id: u64,
    /// Its JSON.
    pub data: String,
}

impl EventRow {
    /// The row of an event.
    pub fn new(event: &Event) -> Self {
        Self { event_id: event.event_id, data: to_json(event) }
    }
}

/// When an event was made, by its JSON; `None` if that cannot be read.
pub fn recorded_at_ms(event: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Stamp {
        timestamp_ms: u64,
    }
    serde_json::from_str::<Stamp>(event).ok().map(|stamp| stamp.timestamp_ms)
}

/// A message to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// The instance whose mailbox gets the message.
    pub instance: String,
    /// The kind, as far as a store distinguishes it.
    pub kind: MessageKind,
    /// Idempotency key: while a row with this key is queued for the instance, another is not inserted.
    pub key: Option<String>,
    /// When it becomes visible.
    pub visible: Visibility,
    /// For starts: which handler will be asked for.
    pub start: Option<StartTarget>,
    /// Its JSON.
    pub data: String,
    /// The decoded message, if it is at hand: an engine that claims a message it has just stored need not decode it.
    pub item: Option<Arc<WorkItem>>,
    /// The message is not inserted if the mailbox holds at least this many messages of clients.
    pub mailbox_max: Option<u64>,
}

/// The kinds of messages that a store distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MessageKind {
    /// `StartOrchestration`: makes an instance without history fetchable.
    Start,
    /// `ContinueAsNew`: starts the next execution.
    ContinueAsNew,
    /// `QueueMessage`: kept in order behind hidden ones; a dead letter at the next claim if the instance does not exist.
    Queue,
    /// `TimerFired`: deleted by `cancelled_timers`.
    Timer,
    /// Anything else.
    Other,
}

impl MessageKind {
    /// The number under which tables store the kind. Starts have the lowest numbers, so that an index finds them.
    pub const fn number(self) -> i64 {
        match self {
            Self::Start => 0,
            Self::ContinueAsNew => 1,
            Self::Queue => 2,
            Self::Timer => 3,
            Self::Other => 4,
        }
    }

    /// The kind that is stored under a number. An unknown number, as a later version may store, is [`Self::Other`].
    pub const fn of_number(number: i64) -> Self {
        match number {
            0 => Self::Start,
            1 => Self::ContinueAsNew,
            2 => Self::Queue,
            3 => Self::Timer,
            _ => Self::Other,
        }
    }
}

/// When a row becomes visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// At once. Stored as 0, not as the current time: a clock that is set back must not hide work.
    Now,
    /// At this time, in milliseconds since the epoch.
    At(u64),
    /// This long after the transaction's time.
    After(Duration),
}

/// Which handler a start asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTarget {
    /// The orchestration's name.
    pub name: String,
    /// The version asked for.
    pub version: Option<String>,
}

impl MessageRow {
    /// The row of a message.
    ///
    /// # Errors
    /// [`Refusal::InvalidWorkItemType`] for an `ActivityExecute`, which belongs into the worker queue.
    pub fn new(item: impl Into<Arc<WorkItem>>, delay: Option<Duration>) -> Result<Self, Refusal> {
        let item = item.into();
        let (kind, start) = match &*item {
            WorkItem::ActivityExecute { .. } => {
                return Err(Refusal::InvalidWorkItemType { kind: item.kind() });
            }
            WorkItem::StartOrchestration { orchestration, version, .. } => {
                (MessageKind::Start, Some((orchestration, version)))
            }
            WorkItem::ContinueAsNew { orchestration, version, .. } => {
                (MessageKind::ContinueAsNew, Some((orchestration, version)))
            }
            WorkItem::QueueMessage { .. } => (MessageKind::Queue, None),
            WorkItem::TimerFired { .. } => (MessageKind::Timer, None),
            WorkItem::ActivityCompleted { .. }
            | WorkItem::ActivityFailed { .. }
            | WorkItem::ExternalRaised { .. }
            | WorkItem::SubOrchCompleted { .. }
            | WorkItem::SubOrchFailed { .. }
            | WorkItem::CancelInstance { .. } => (MessageKind::Other, None),
        };
        let data = to_json(&*item);
        Ok(Self {
            instance: item.target_instance().to_owned(),
            kind,
            key: idempotency_key(&item),
            visible: visibility(&item, delay),
            start: start.map(|(name, version)| StartTarget { name: name.clone(), version: version.clone() }),
            item: Some(item),
            data,
            mailbox_max: None,
        })
    }
}

impl MessageRow {
    /// Its item, unless that is large: for a store that caches decoded items without counting bytes.
    pub fn small_item(&self) -> Option<Arc<WorkItem>> {
        self.item.clone().filter(|_| self.data.len() < LARGE_ITEM_BYTES)
    }

    /// The row of a start that is visible at once.
    ///
    /// # Errors
    /// [`Refusal::InvalidWorkItemType`] for anything but a `StartOrchestration`.
    pub fn start(item: impl Into<Arc<WorkItem>>) -> Result<Self, Refusal> {
        let item = item.into();
        let WorkItem::StartOrchestration { .. } = *item else {
            return Err(Refusal::InvalidWorkItemType { kind: item.kind() });
        };
        Self::new(item, None)
    }

    /// The row of an activity's completion. Nothing else may take an activity's place.
    ///
    /// # Errors
    /// [`Refusal::InvalidWorkItemType`] for anything but `ActivityCompleted` and `ActivityFailed`.
    pub fn completion(item: impl Into<Arc<WorkItem>>) -> Result<Self, Refusal> {
        let item = item.into();
        let (WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. }) = *item else {
            return Err(Refusal::InvalidWorkItemType { kind: item.kind() });
        };
        Self::new(item, None)
    }
}

fn visibility(item: &WorkItem, delay: Option<Duration>) -> Visibility {
    if let Some(delay) = delay.filter(|delay| !delay.is_zero()) {
        return Visibility::After(delay);
    }
    let WorkItem::TimerFired { fire_at_ms, .. } = item else { return Visibility::Now };
    Visibility::At(*fire_at_ms)
}

/// The key of semantics 16.14; `None` for messages of clients, which are never deduplicated.
pub(crate) fn idempotency_key(item: &WorkItem) -> Option<String> {
    match item {
        WorkItem::ActivityCompleted { execution_id, id, .. } => Some(format!("AC/{execution_id}/{id}")),
        WorkItem::ActivityFailed { execution_id, id, .. } => Some(format!("AF/{execution_id}/{id}")),
        WorkItem::TimerFired { execution_id, id, .. } => Some(timer_key(*execution_id, *id)),
        WorkItem::SubOrchCompleted { parent_execution_id, parent_id, .. } => {
            Some(format!("SC/{parent_execution_id}/{parent_id}"))
        }
        WorkItem::SubOrchFailed { parent_execution_id, parent_id, .. } => {
            Some(format!("SF/{parent_execution_id}/{parent_id}"))
        }
        WorkItem::ContinueAsNew { .. } => Some("CN".to_owned()),
        WorkItem::StartOrchestration {
            parent_instance: Some(parent),
            parent_id: Some(id),
            parent_execution_id,
            ..
        } => Some(format!("ST/{parent}/{}/{id}", parent_execution_id.unwrap_or(0))),
        // A start of a later execution is the wake-up of a continue-as-new; client starts begin with the first.
        WorkItem::StartOrchestration { execution_id, .. } if *execution_id > 1 => {
            Some(format!("WU/{execution_id}"))
        }
        WorkItem::StartOrchestration { .. }
        | WorkItem::ActivityExecute { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::CancelInstance { .. } => None,
    }
}

/// The parent whose call a child start carries out, by the key of its message.
pub fn calling_parent(key: &str) -> Option<&str> {
    // Ids may hold slashes, the two numbers behind them do not.
    key.strip_prefix("ST/")?.rsplitn(3, '/').nth(2)
}

/// The key of a timer's message, by which a round that cancels the timer finds it.
pub fn timer_key(execution_id: u64, timer_id: u64) -> String {
    format!("TF/{execution_id}/{timer_id}")
}

/// An activity in the worker queue. (instance, execution, activity id) is its idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityRow {
    /// The instance that scheduled it.
    pub instance: String,
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub activity_id: u64,
    /// The activity's name.
    pub name: String,
    /// Its routing tag.
    pub tag: Option<String>,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// Its JSON.
    pub data: String,
    /// The decoded item, as with a message.
    #[serde(skip)]
    pub item: Option<Arc<WorkItem>>,
}

impl ActivityRow {
    /// Its item, unless that is large, as with a message.
    pub fn small_item(&self) -> Option<Arc<WorkItem>> {
        self.item.clone().filter(|_| self.data.len() < LARGE_ITEM_BYTES)
    }

    /// The row of an activity.
    ///
    /// # Errors
    /// [`Refusal::InvalidWorkItemType`] for anything but an `ActivityExecute`.
    pub fn new(item: impl Into<Arc<WorkItem>>) -> Result<Self, Refusal> {
        let item = item.into();
        let WorkItem::ActivityExecute { instance, execution_id, id, name, session_id, tag, .. } = &*item
        else {
            return Err(Refusal::InvalidWorkItemType { kind: item.kind() });
        };
        let data = to_json(&*item);
        Ok(Self {
            instance: instance.clone(),
            execution_id: *execution_id,
            activity_id: *id,
            name: name.clone(),
            tag: tag.clone(),
            session_id: session_id.clone(),
            item: Some(Arc::clone(&item)),
            data,
        })
    }
}

/// Events and work items are plain data with text keys, for which `serde_json` cannot fail.
fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_message_is_read_as_it_was_stored() {
        let kinds = (0..=MessageKind::Other.number()).map(MessageKind::of_number);
        assert!(kinds.enumerate().all(|(number, kind)| kind.number() == number as i64));
    }
}
