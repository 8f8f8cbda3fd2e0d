//! The queued work of an instance.

use duroxide::providers::{QueuedActivityInfo, QueuedMessageInfo, QueuedWork, SessionLease, short_node_name};
use serde_json::Value;

use crate::{
    PayloadKind,
    format::{Moment, ShownPayload},
    redact::Redact,
};

/// The queued work of an instance, as it is shown.
#[derive(Debug, Default)]
pub(super) struct QueuedView {
    pub(super) messages: Vec<Message>,
    pub(super) messages_total: u64,
    pub(super) activities: Vec<Activity>,
    pub(super) activities_total: u64,
}

/// A message to the instance.
#[derive(Debug)]
pub(super) struct Message {
    /// The kind of work item, such as `ExternalRaised` or `TimerFired`.
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) enqueued: Moment,
    pub(super) visible: String,
    pub(super) attempts: u32,
    pub(super) payload: ShownPayload,
}

/// An activity of the instance.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) event_id: u64,
    pub(super) name: String,
    pub(super) tag: String,
    pub(super) attempts: u32,
    pub(super) state: String,
}

impl QueuedView {
    pub(super) fn new(queued: &QueuedWork, instance: &str, redact: &Redact, bytes_max: usize) -> Self {
        let message = |message| Message::new(message, instance, queued.now_ms, redact, bytes_max);
        Self {
            messages: queued.messages.iter().map(message).collect(),
            messages_total: queued.messages_total,
            activities: queued.activities.iter().map(|activity| Activity::new(activity, queued)).collect(),
            activities_total: queued.activities_total,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages_total == 0 && self.activities_total == 0
    }
}

impl Message {
    fn new(
        message: &QueuedMessageInfo,
        instance: &str,
        now_ms: u64,
        redact: &Redact,
        bytes_max: usize,
    ) -> Self {
        let (kind, name) = kind_and_name(&message.data);
        let visible = message.visible_at_ms.filter(|at| *at > now_ms);
        let shown = redact.shown(instance, PayloadKind::Message, &name, &message.data);
        Self {
            enqueued: Moment::new(message.enqueued_at_ms, now_ms),
            visible: visible.map_or_else(|| "now".to_owned(), |at| Moment::new(at, now_ms).relative),
            attempts: message.attempts,
            payload: ShownPayload::new(&shown, bytes_max),
            kind,
            name,
        }
    }
}

/// Kind and name of a work item. Its JSON is an object with one key, the kind.
fn kind_and_name(data: &str) -> (String, String) {
    let item = serde_json::from_str::<Value>(data).unwrap_or_default();
    let Some((kind, fields)) = item.as_object().and_then(|item| item.iter().next()) else {
        return ("unknown".to_owned(), String::new());
    };
    let name = ["name", "orchestration"].iter().find_map(|field| fields.get(field)?.as_str());
    (kind.clone(), name.unwrap_or_default().to_owned())
}

impl Activity {
    fn new(activity: &QueuedActivityInfo, queued: &QueuedWork) -> Self {
        let now_ms = queued.now_ms;
        let is_its_session = |lease: &&SessionLease| Some(&lease.session_id) == activity.session_id.as_ref();
        let session = queued.sessions.iter().find(is_its_session);
        let hidden = activity.hidden_until_ms.filter(|until| *until > now_ms);
        let state = match (&activity.lock, hidden) {
            (Some(lock), _) => {
                let node = lock.node.as_deref().map_or("an unknown node", short_node_name);
                format!("runs on {node}, lease ends {}", Moment::new(lock.until_ms, now_ms).relative)
            }
            (None, Some(until)) => format!("hidden, shown again {}", Moment::new(until, now_ms).relative),
            (None, None) => match session {
                Some(lease) => format!(
                    "waits for session {}, held by {}, lease ends {}",
                    lease.session_id,
                    short_node_name(&lease.owner),
                    Moment::new(lease.until_ms, now_ms).relative
                ),
                None => "waits for a worker".to_owned(),
            },
        };
        let stop = if activity.stop_requested { "; asked to stop" } else { "" };
        Self {
            event_id: activity.activity_id,
            name: activity.name.clone(),
            tag: activity.tag.clone().unwrap_or_default(),
            attempts: activity.attempts,
            state: format!("{state}{stop}"),
        }
    }
}
