//! Finds the reasons in the facts. Pure: values in, an [`Explanation`] out.

mod activity;
mod nodes;
mod own_work;

use std::collections::BTreeSet;

use duroxide_core::{
    AppErrorKind, CallTarget, ErrorDetails, Event, EventKind, OpenCall, OpenCalls, WorkItem,
    build_child_instance_id,
};
use duroxide_provider::InstanceQuery;

use self::nodes::LiveNodes;
use super::{
    Explanation, Finding,
    gather::{self, Facts, Message},
    spelling::closest,
};

/// How many open calls are shown.
const CALLS_MAX: usize = 100;

/// Explains an instance from its facts.
pub(super) fn explain(facts: Facts) -> Explanation {
    let (findings, more_calls) = Deciding::new(&facts).findings();
    Explanation {
        instance: facts.info.instance_id,
        name: facts.info.orchestration_name,
        version: facts.info.orchestration_version,
        execution_id: facts.info.current_execution_id,
        status: facts.info.status,
        now_ms: facts.now_ms,
        findings,
        more_calls,
    }
}

/// The facts, with values that several findings need.
struct Deciding<'a> {
    facts: &'a Facts,
    messages: Vec<Message>,
    nodes: LiveNodes<'a>,
}

impl<'a> Deciding<'a> {
    fn new(facts: &'a Facts) -> Self {
        let messages = facts.work.as_ref().map(gather::messages).unwrap_or_default();
        Self { facts, messages, nodes: LiveNodes::new(&facts.nodes, facts.now_ms) }
    }

    fn findings(&self) -> (Vec<Finding>, u64) {
        if let Some(end) = &self.facts.end {
            let mut findings: Vec<Finding> = ended(end).into_iter().collect();
            findings.extend(self.dead_letters());
            return (findings, 0);
        }
        let mut findings = self.own_work();
        findings.extend(self.cancel_requested());
        findings.extend(self.dead_letters());
        let (calls, more) = self.open_calls();
        findings.extend(calls);
        if findings.is_empty() && self.facts.work.is_some() {
            findings.push(Finding::Nothing);
        }
        (findings, more)
    }

    /// Whether the store has returned all messages of the instance.
    fn has_all_messages(&self) -> bool {
        self.facts.work.as_ref().is_some_and(|work| work.messages_total == work.messages.len() as u64)
    }

    fn dead_letters(&self) -> impl Iterator<Item = Finding> {
        let letters = self.facts.work.iter().flat_map(|work| &work.dead_letters);
        letters.map(|letter| Finding::DeadLetter { id: letter.id.clone(), reason: letter.reason.clone() })
    }

    fn cancel_requested(&self) -> Option<Finding> {
        let queued = self.messages.iter().find_map(|message| {
            let WorkItem::CancelInstance { .. } = message.item else { return None };
            Some(message.enqueued_at_ms)
        });
        let recorded = || {
            self.history().iter().find_map(|event| {
                let EventKind::OrchestrationCancelRequested { .. } = event.kind else { return None };
                Some(event.timestamp_ms)
            })
        };
        let since_ms = queued.or_else(recorded)?;
        Some(Finding::CancelRequested { since_ms })
    }

    fn history(&self) -> &'a [Event] {
        self.facts.history.as_deref().unwrap_or_default()
    }

    // ---- open calls --------------------------------------------------------------------------------------------

    /// The open calls of the code: first those that no node can carry out. Also returns how many calls are left out.
    fn open_calls(&self) -> (Vec<Finding>, u64) {
        if let Err(error) = &self.facts.history {
            return (vec![Finding::Unreadable { error: error.clone() }], 0);
        }
        let open = OpenCalls::of(self.history());
        let mut found: Vec<Finding> =
            open.calls.iter().filter_map(|call| self.open_call(call, &open)).collect();
        // The only thing that is waited for, so that the sentence in front of it is clear.
        if let [Finding::Timer { .. }] = found[..] {
            found.extend(open.calls.last().and_then(|timer| self.failed_before(timer)));
        }
        found.sort_by_key(|finding| !activity::is_stuck(finding));
        let more = found.len().saturating_sub(CALLS_MAX) as u64;
        found.truncate(CALLS_MAX);
        (found, more)
    }

    fn open_call(&self, call: &OpenCall<'_>, open: &OpenCalls<'_>) -> Option<Finding> {
        let since_ms = call.since_ms;
        match call.target {
            CallTarget::Activity { name, .. } => Some(self.activity(call, name)),
            CallTarget::Child { name, instance } => Some(self.child(name, instance, since_ms)),
            CallTarget::Event { name } => Some(self.event(name, since_ms, open)),
            CallTarget::Cancellation => Some(Finding::AwaitsCancellation { since_ms }),
            CallTarget::Queue { name } => Some(self.queue(name, since_ms, open)),
            CallTarget::Timer { fire_at_ms } => self.timer(call, fire_at_ms),
        }
    }

    fn child(&self, name: &str, instance: &str, since_ms: u64) -> Finding {
        let instance = build_child_instance_id(&self.facts.info.instance_id, instance);
        let explanation = self.facts.children.get(&instance).cloned().map(Box::new);
        Finding::Child { name: name.to_owned(), since_ms, explanation, instance }
    }

    /// A message that is still queued counts too: a node that cannot take the instance leaves it there.
    fn event(&self, name: &str, since_ms: u64, open: &OpenCalls<'_>) -> Finding {
        let awaited: BTreeSet<&str> = open.calls.iter().filter_map(awaited_event).collect();
        let queued = self.messages.iter().filter_map(|message| {
            let WorkItem::ExternalRaised { name, .. } = &message.item else { return None };
            Some(name.as_str()).filter(|name| !awaited.contains(name))
        });
        let raised: Vec<&str> = open.missed_events.iter().copied().chain(queued).collect();
        let last_raised = closest(name, &raised).map(str::to_owned);
        Finding::Event { name: name.to_owned(), since_ms, last_raised }
    }

    fn queue(&self, name: &str, since_ms: u64, open: &OpenCalls<'_>) -> Finding {
        let queued = self.messages.iter().filter_map(|message| {
            let WorkItem::QueueMessage { name: queue, .. } = &message.item else { return None };
            Some(queue.as_str()).filter(|queue| *queue != name)
        });
        let unread: Vec<&str> = open.unread_messages.iter().copied().chain(queued).collect();
        let last_enqueued = closest(name, &unread).map(str::to_owned);
        Finding::Queue { name: name.to_owned(), since_ms, last_enqueued }
    }

    /// No finding for a timer that the code has dropped: its message was deleted.
    fn timer(&self, call: &OpenCall<'_>, due_ms: u64) -> Option<Finding> {
        let current = self.facts.info.current_execution_id;
        let is_queued = self.messages.iter().any(|message| {
            let WorkItem::TimerFired { execution_id, id, .. } = message.item else { return false };
            (execution_id, id) == (current, call.event_id)
        });
        (is_queued || !self.has_all_messages()).then_some(Finding::Timer { due_ms, since_ms: call.since_ms })
    }

    /// The activity whose failure the code answered with this timer.
    fn failed_before(&self, timer: &OpenCall<'_>) -> Option<Finding> {
        let history = self.history();
        let position = history.iter().position(|event| event.event_id == timer.event_id)?;
        let failure = history.get(position.checked_sub(1)?)?;
        let EventKind::ActivityFailed { details } = &failure.kind else { return None };
        let schedule = history.iter().find(|event| Some(event.event_id) == failure.source_event_id)?;
        let EventKind::ActivityScheduled { name, .. } = &schedule.kind else { return None };
        Some(Finding::FailedBefore {
            name: name.clone(),
            error: details.to_string(),
            at_ms: failure.timestamp_ms,
        })
    }

    /// Whether no node has begun the instance.
    fn is_pending(&self) -> bool {
        self.facts.info.status == InstanceQuery::PENDING
    }
}

fn awaited_event<'a>(call: &OpenCall<'a>) -> Option<&'a str> {
    let CallTarget::Event { name } = call.target else { return None };
    Some(name)
}

/// How an instance ended. Any other event does not end one.
fn ended(end: &Event) -> Option<Finding> {
    let at_ms = end.timestamp_ms;
    if let EventKind::OrchestrationCompleted { .. } = end.kind {
        return Some(Finding::Completed { at_ms });
    }
    let EventKind::OrchestrationFailed { details } = &end.kind else { return None };
    Some(match details {
        ErrorDetails::Poison { attempt_count, .. } => {
            let what = match details.poison_reason() {
                Some(reason) => format!("{details}: {reason}"),
                None => details.to_string(),
            };
            Finding::Poisoned { what, attempts: *attempt_count, at_ms }
        }
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. } => {
            Finding::Cancelled { reason: reason.clone(), at_ms }
        }
        ErrorDetails::Application { .. }
        | ErrorDetails::Infrastructure { .. }
        | ErrorDetails::Configuration { .. } => Finding::Failed { error: details.to_string(), at_ms },
    })
}
