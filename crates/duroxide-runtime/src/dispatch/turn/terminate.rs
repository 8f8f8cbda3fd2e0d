//! Ending an execution without running its code.

use std::sync::Arc;

use duroxide_core::{EventKind, ParentLink, engine::end_without_code};
use duroxide_provider::LoadedExecution;

use super::{
    InstanceWork,
    ending::{call_in_history, link_of_automatic_id, record_of},
    settle::Decided,
};
use crate::dispatch::{
    decide::{Subject, Termination, recorded_parent, start_item, successor_item},
    failure_log::RuntimeEnd,
    guarded,
    measure::{End, Facts},
};

impl InstanceWork {
    pub(super) async fn terminate(&mut self, termination: Termination, loaded: LoadedExecution) {
        let Termination { subject, ending, cause } = termination;
        let mut facts = self.facts_of(&subject, &loaded);
        facts.ended = Some(RuntimeEnd {
            cause,
            attempt_count: self.claim.attempt_count,
            max_attempts: self.node.options.max_attempts,
            node: self.node.id.clone(),
        });
        let (accepted, recorded, unreadable_parent) = match &subject {
            // The successor of an execution that continued as new is not started by a plain start in its batch.
            Subject::Unstarted(seed) if loaded.history.is_empty() => {
                (start_item(&self.claim.messages), seed.parent.clone(), None)
            }
            Subject::Unstarted(seed) => (successor_item(&self.claim.messages), seed.parent.clone(), None),
            Subject::Stored => (None, recorded_parent(&loaded.history), None),
            Subject::Unreadable => {
                let parent = self.find_parent(&loaded).await;
                (None, parent.clone(), parent)
            }
        };
        let collisions = self.refuse_starts(accepted, recorded.as_ref());
        let last_event_id = self.last_event_id(&subject).await;
        let claim = &self.claim;
        let record = record_of(subject, &claim.instance, claim.execution_id, loaded.history, last_event_id);
        let mut turn = end_without_code(record, ending, self.node.now());
        turn.parent = turn.parent.or(unreadable_parent);
        facts.end = End::of(&turn.outcome);
        facts.history_events = turn.delta.last().map_or(0, |event| event.event_id);
        facts.parent.clone_from(&turn.parent);
        self.settle(Decided { turn, facts, collisions, live: None }).await;
    }

    fn facts_of(&self, subject: &Subject, loaded: &LoadedExecution) -> Facts {
        let claim = &self.claim;
        let first = loaded.history.first();
        let (name, version) = match (subject, first.map(|event| &event.kind)) {
            (Subject::Unstarted(seed), _) => (seed.name.clone(), seed.version.clone()),
            (_, Some(EventKind::OrchestrationStarted { name, version, .. })) => {
                (name.clone(), version.clone())
            }
            _ => (claim.orchestration_name.clone(), claim.version.clone()),
        };
        let unstarted = match subject {
            Subject::Unstarted(seed) => Some(seed.execution_id),
            Subject::Stored | Subject::Unreadable => None,
        };
        let earlier_turns =
            claim.position.filter(|_| unstarted.is_none()).map_or(0, |position| position.turns);
        let started_at_ms = match unstarted {
            Some(_) => Some(self.node.now().as_millis()),
            None => first.map(|event| event.timestamp_ms),
        };
        Facts {
            name,
            version,
            execution_id: unstarted.unwrap_or(claim.execution_id),
            first_turn: unstarted.is_some(),
            end: None,
            turns: earlier_turns + 1,
            history_events: 0,
            started_at_ms,
            parent: None,
            ended: None,
        }
    }

    /// The last stored event of a history that cannot be decoded.
    async fn last_event_id(&mut self, subject: &Subject) -> Option<u64> {
        if *subject != Subject::Unreadable {
            return None;
        }
        if let Some(position) = self.claim.position {
            return Some(position.last_event_id);
        }
        let claim = &self.claim;
        let call = self.node.store.last_event_id(&claim.instance, claim.execution_id);
        guarded("last_event_id", call).await.ok().flatten()
    }

    /// Whose child this is, where its own first event cannot be read: by its automatic id, else by the parent's
    /// own history (semantics 6.6).
    async fn find_parent(&mut self, loaded: &LoadedExecution) -> Option<ParentLink> {
        if !loaded.history.is_empty() {
            return recorded_parent(&loaded.history);
        }
        let child = &self.claim.instance;
        if let Some(link) = link_of_automatic_id(child) {
            return Some(link);
        }
        let store = Arc::clone(&self.node.store);
        let admin = store.as_management_capability()?;
        let parent = guarded("get_parent_id", admin.get_parent_id(child)).await.ok()??;
        let executions = guarded("list_executions", admin.list_executions(&parent)).await.ok()?;
        for execution in executions.into_iter().rev() {
            let read = guarded("read_with_execution", store.read_with_execution(&parent, execution)).await;
            if let Some(link) = call_in_history(&read.unwrap_or_default(), child) {
                return Some(link);
            }
        }
        None
    }
}
