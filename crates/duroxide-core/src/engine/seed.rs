//! The input of a new execution: [`Seed`], [`Setup`], and its first event.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{Generation, Identity};
use crate::{
    Clock, Event, EventKind, INITIAL_EVENT_ID, KvEntry, OrchestrationHandlerRef, ParentLink, RuntimeLimits,
    Timestamp, TracedInput, WorkItem, version::BUILD_VERSION,
};

/// The input of a new execution: its start and the queue messages it inherits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The id of the instance.
    pub instance: String,
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The orchestration's name.
    pub name: String,
    /// The handler version, resolved.
    pub version: String,
    /// The input, with its trace context: see [`TracedInput`].
    pub input: String,
    /// The parent's call, if this is a child.
    pub parent: Option<ParentLink>,
    /// Queue messages (name, data) that the previous execution left unread.
    pub carried: Vec<(String, String)>,
    /// The custom status that the previous execution left.
    pub custom_status: Option<String>,
}

impl Seed {
    /// The seed that a `StartOrchestration` or `ContinueAsNew` item asks for; `None` for any other item.
    pub fn from_item(item: WorkItem, execution_id: u64, version: String) -> Option<Self> {
        let parent = item.parent_link();
        match item {
            WorkItem::StartOrchestration { instance, orchestration: name, input, .. } => Some(Self {
                instance,
                execution_id,
                name,
                version,
                input,
                parent,
                carried: Vec::new(),
                custom_status: None,
            }),
            WorkItem::ContinueAsNew {
                instance,
                orchestration: name,
                input,
                carry_forward_events: carried,
                initial_custom_status: custom_status,
                ..
            } => Some(Self { instance, execution_id, name, version, input, parent, carried, custom_status }),
            WorkItem::ActivityExecute { .. }
            | WorkItem::ActivityCompleted { .. }
            | WorkItem::ActivityFailed { .. }
            | WorkItem::TimerFired { .. }
            | WorkItem::ExternalRaised { .. }
            | WorkItem::QueueMessage { .. }
            | WorkItem::SubOrchCompleted { .. }
            | WorkItem::SubOrchFailed { .. }
            | WorkItem::CancelInstance { .. } => None,
        }
    }

    /// The seed's events: OrchestrationStarted with id 1, then the carried messages.
    pub fn into_events(self, now: Timestamp) -> Vec<Event> {
        let parent = self.parent;
        let started = EventKind::OrchestrationStarted {
            name: self.name,
            version: self.version,
            input: self.input,
            parent_instance: parent.as_ref().map(|link| link.instance.clone()),
            parent_id: parent.as_ref().map(|link| link.event_id),
            parent_execution_id: parent.and_then(|link| link.execution_id),
            carry_forward_events: (!self.carried.is_empty()).then(|| self.carried.clone()),
            initial_custom_status: self.custom_status,
        };
        let carried =
            self.carried.into_iter().map(|(name, data)| EventKind::QueueEventDelivered { name, data });
        std::iter::once(started)
            .chain(carried)
            .zip(INITIAL_EVENT_ID..)
            .map(|(kind, event_id)| Event {
                event_id,
                source_event_id: None,
                instance_id: self.instance.clone(),
                execution_id: self.execution_id,
                timestamp_ms: now.as_millis(),
                duroxide_version: BUILD_VERSION.to_owned(),
                kind,
            })
            .collect()
    }
}

/// The runtime's arguments for an execution.
pub struct Setup {
    /// The code.
    pub handler: OrchestrationHandlerRef,
    /// The clock of timers, key-value changes and events.
    pub clock: Arc<dyn Clock>,
    /// Limits checked before a turn is returned.
    pub limits: RuntimeLimits,
    /// The worker that runs it, for traces.
    pub worker_id: Option<String>,
    /// The key-value state that earlier executions left.
    pub kv: BTreeMap<String, KvEntry>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The facts in the first event of an execution.
pub(super) struct StartFacts {
    pub(super) identity: Identity,
    pub(super) input: String,
    pub(super) custom_status: Option<String>,
}

impl StartFacts {
    pub(super) fn of(first: Option<Event>, worker_id: Option<String>) -> Self {
        let generation =
            Generation::of(first.as_ref().map_or(BUILD_VERSION, |first| &first.duroxide_version));
        let (instance, execution_id, kind) = match first {
            Some(first) => (first.instance_id, first.execution_id, Some(first.kind)),
            None => (String::new(), 0, None),
        };
        let (name, version, input, custom_status) =
            if let Some(EventKind::OrchestrationStarted {
                name, version, input, initial_custom_status, ..
            }) = kind
            {
                (name, version, TracedInput::from_text(input).input, initial_custom_status)
            } else {
                (String::new(), String::new(), String::new(), None)
            };
        let identity = Identity { instance, execution_id, name, version, generation, worker_id };
        Self { identity, input, custom_status }
    }
}
