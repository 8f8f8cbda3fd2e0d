//! [`View`]: an instance as it is shown.

use std::collections::BTreeSet;

use duroxide::{Explanation, InstanceQuery};
use duroxide_core::{CallTarget, OpenCalls};

use super::{
    describe,
    family::FamilyView,
    hints::{Hint, hints},
    history::Described,
    queued::QueuedView,
    read::Read,
};
use crate::{
    Limits, PayloadKind,
    charts::gantt::{Gantt, gantt},
    console::Console,
    format::{self, Moment, ShownPayload},
    links,
    pages::instances::status_class,
    redact::Redact,
};

/// Maximum number of bars in the chart.
const BARS_MAX: usize = 60;
/// Maximum number of executions linked.
const EXECUTIONS_MAX: usize = 20;
/// Maximum number of key-values shown.
const KEY_VALUES_MAX: usize = 100;

/// Maximum number of event names suggested.
const WAITS_MAX: usize = 50;

/// An instance as it is shown.
#[derive(Debug)]
pub(super) struct View {
    pub(super) id: String,
    pub(super) encoded_id: String,
    pub(super) name: String,
    pub(super) name_link: String,
    pub(super) version: String,
    pub(super) pinned: String,
    pub(super) status: String,
    pub(super) class: &'static str,
    pub(super) is_open: bool,
    pub(super) is_pending: bool,
    pub(super) is_child: bool,
    /// Whether the history can be exported. A history with hidden payloads would not replay.
    pub(super) can_export: bool,
    pub(super) created: Moment,
    pub(super) updated: Moment,
    /// Sentences in parts: whether the part is a name, and its text.
    pub(super) explanation: Vec<Vec<(bool, String)>>,
    pub(super) hints: Vec<Hint>,
    pub(super) unexplained: Option<String>,
    pub(super) execution_id: u64,
    pub(super) executions: Vec<u64>,
    pub(super) executions_left_out: usize,
    pub(super) gantt: Option<Gantt>,
    pub(super) events: Vec<Described>,
    pub(super) events_total: String,
    pub(super) unreadable: Option<String>,
    pub(super) pages: Pages,
    pub(super) output: Option<(&'static str, ShownPayload)>,
    pub(super) custom_status: Option<ShownPayload>,
    pub(super) key_values: Vec<(String, ShownPayload)>,
    pub(super) key_values_left_out: usize,
    pub(super) family: FamilyView,
    pub(super) queued: QueuedView,
    pub(super) waits: Vec<String>,
}

/// The pages of a history.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pages {
    pub(super) current: usize,
    pub(super) count: usize,
}

impl Pages {
    /// Shows the newest page by default, because users look for the latest events.
    fn new(events: usize, per_page: usize, asked: Option<usize>) -> Self {
        let count = events.div_ceil(per_page.max(1)).max(1);
        Self { current: asked.unwrap_or(count).clamp(1, count), count }
    }

    fn of<'a, T>(&self, items: &'a [T], per_page: usize) -> &'a [T] {
        let per_page = per_page.max(1);
        let begin = (self.current - 1) * per_page;
        items.get(begin..items.len().min(begin + per_page)).unwrap_or_default()
    }

    pub(super) fn previous(&self) -> Option<usize> {
        (self.current > 1).then(|| self.current - 1)
    }

    pub(super) fn next(&self) -> Option<usize> {
        (self.current < self.count).then(|| self.current + 1)
    }
}

impl View {
    pub(super) fn new(read: &Read, page: Option<usize>, console: &Console) -> Self {
        let (limits, redact) = (&console.limits, &console.redact);
        let info = &read.info;
        let history = read.history.as_deref().unwrap_or_default();
        let pages = Pages::new(history.len(), limits.events_per_page, page);
        let shown = pages.of(history, limits.events_per_page);
        let executions: Vec<u64> = read.executions.iter().rev().copied().collect();
        let payload = |kind, name: &str, text: &str| {
            let shown = redact.shown(&info.instance_id, kind, name, text);
            ShownPayload::new(&shown, limits.payload_bytes_max)
        };
        let is_open = !matches!(info.status.as_str(), "Completed" | "Failed");
        let key_values = read.key_values.iter().take(KEY_VALUES_MAX);
        Self {
            encoded_id: links::encode(&info.instance_id),
            id: info.instance_id.clone(),
            name_link: format!("instances?name={}", links::encode(&info.orchestration_name)),
            name: info.orchestration_name.clone(),
            version: info.orchestration_version.clone(),
            pinned: history.first().map(|first| first.duroxide_version.clone()).unwrap_or_default(),
            class: status_class(&info.status),
            status: info.status.clone(),
            is_open,
            is_pending: info.status == InstanceQuery::PENDING,
            can_export: !redact.is_set(),
            is_child: info.parent_instance_id.is_some(),
            created: Moment::new(info.created_at, read.now_ms),
            updated: Moment::new(info.updated_at, read.now_ms),
            explanation: explanation(read, redact),
            hints: read.explanation.as_ref().map(hints).unwrap_or_default(),
            unexplained: read.explanation.as_ref().err().cloned(),
            execution_id: read.execution_id,
            executions_left_out: executions.len().saturating_sub(EXECUTIONS_MAX),
            executions: executions.into_iter().take(EXECUTIONS_MAX).collect(),
            gantt: (!shown.is_empty()).then(|| gantt(history, shown, read.now_ms, BARS_MAX)),
            events: events(read, shown, redact, limits),
            events_total: format::number(history.len() as u64),
            unreadable: read.history.as_ref().err().cloned(),
            pages,
            output: output(read, &payload),
            custom_status: read
                .custom_status
                .as_ref()
                .map(|status| payload(PayloadKind::CustomStatus, &info.orchestration_name, status)),
            key_values: key_values
                .map(|(key, value)| (key.clone(), payload(PayloadKind::KeyValue, key, value)))
                .collect(),
            key_values_left_out: read.key_values.len().saturating_sub(KEY_VALUES_MAX),
            family: FamilyView::new(&read.family, info, redact, read.now_ms),
            queued: queued(read, redact, limits),
            waits: open_waits(read),
        }
    }
}

/// The sentences of the explanation, redacted. A sentence about an end repeats the error, which is a payload.
fn explanation(read: &Read, redact: &Redact) -> Vec<Vec<(bool, String)>> {
    let lines = read.explanation.as_ref().map(Explanation::lines).unwrap_or_default();
    let info = &read.info;
    let shown = |line: &String| {
        format::sentence(&redact.shown(&info.instance_id, PayloadKind::Error, &info.orchestration_name, line))
    };
    lines.iter().map(shown).collect()
}

fn events(read: &Read, shown: &[duroxide::Event], redact: &Redact, limits: &Limits) -> Vec<Described> {
    let history = read.history.as_deref().unwrap_or_default();
    shown.iter().map(|event| describe(history, event, redact, limits.payload_bytes_max)).collect()
}

/// The output of the execution on the page.
fn output(
    read: &Read,
    payload: &impl Fn(PayloadKind, &str, &str) -> ShownPayload,
) -> Option<(&'static str, ShownPayload)> {
    let execution = read.execution.as_ref()?;
    let text = execution.output.as_deref()?;
    let (label, kind) = match execution.status == "Failed" {
        true => ("error", PayloadKind::Error),
        false => ("output", PayloadKind::Output),
    };
    Some((label, payload(kind, &read.info.orchestration_name, text)))
}

fn queued(read: &Read, redact: &Redact, limits: &Limits) -> QueuedView {
    let queued = read.queued.as_ref();
    queued
        .map(|queued| QueuedView::new(queued, &read.info.instance_id, redact, limits.payload_bytes_max))
        .unwrap_or_default()
}

/// Names of the events that the instance waits for. The form that raises an event suggests them.
fn open_waits(read: &Read) -> Vec<String> {
    let open = OpenCalls::of(read.history.as_deref().unwrap_or_default());
    let names = open.calls.iter().filter_map(|call| match call.target {
        CallTarget::Event { name } => Some(name),
        CallTarget::Activity { .. }
        | CallTarget::Child { .. }
        | CallTarget::Cancellation
        | CallTarget::Queue { .. }
        | CallTarget::Timer { .. } => None,
    });
    names.collect::<BTreeSet<_>>().into_iter().take(WAITS_MAX).map(str::to_owned).collect()
}
