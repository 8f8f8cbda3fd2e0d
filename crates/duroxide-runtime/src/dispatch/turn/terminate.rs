//! Ends an execution without running its code: by a decision about its claim, or because no node can run it.

use std::sync::Arc;

use duroxide_core::{ParentLink, engine::end_without_code};
use duroxide_provider::LoadedExecution;

use super::{
    InstanceWork,
    commit::TurnResult,
    ending::{call_in_history, link_of_automatic_id, record_of},
};
use crate::{
    cache::Lookup,
    dispatch::{
        decide::{
            Decision, EndTarget, StrandedEnd, Termination, decide_stranded, recorded_handler,
            recorded_parent, start_item, successor_item,
        },
        failure_log::RuntimeEnd,
        measure::{End, Facts},
        provider_call,
    },
};

impl InstanceWork {
    /// Ends an instance that no node can run, without running its code.
    pub(crate) async fn end_stranded(mut self, stranded_end: &StrandedEnd) {
        if let Lookup::Live(unused) | Lookup::Stale(unused) = self.node.cache.take(&self.claim) {
            self.node.drop_on_turn_thread([*unused]);
        }
        let Some(loaded) = self.load().await else { return };
        let ended = match &loaded.history_error {
            None => false,
            Some(_) => {
                let Some(ended) = self.has_ended().await else { return };
                ended
            }
        };
        let decision = decide_stranded(self.claimed(&loaded, ended), &self.policy(&[]), stranded_end);
        match decision {
            Some(Decision::End(termination)) => self.terminate(termination, loaded).await,
            Some(Decision::DropEnded) => self.drop_for_ended(recorded_parent(&loaded.history).as_ref()).await,
            Some(Decision::DropUnknown) => self.drop_for_unknown().await,
            Some(Decision::Run(_) | Decision::Abandon(_)) | None => self.abandon(None, true).await,
        }
    }

    pub(super) async fn terminate(&mut self, termination: Termination, loaded: LoadedExecution) {
        let Termination { target, ending, cause } = termination;
        let mut facts = self.facts_of(&target, &loaded);
        facts.ended = Some(RuntimeEnd {
            cause,
            attempt_count: self.claim.attempt_count,
            max_attempts: self.node.options.max_attempts,
            node: self.node.id.clone(),
        });
        let (accepted, recorded, unreadable_parent) = match &target {
            // A plain start among the messages does not start the successor of an execution that continued as new.
            EndTarget::Unstarted(seed) if loaded.history.is_empty() => {
                (start_item(&self.claim.messages), seed.parent.clone(), None)
            }
            EndTarget::Unstarted(seed) => (successor_item(&self.claim.messages), seed.parent.clone(), None),
            EndTarget::Stored => (None, recorded_parent(&loaded.history), None),
            EndTarget::Unreadable => {
                let parent = self.find_parent(&loaded).await;
                (None, parent.clone(), parent)
            }
        };
        let collisions = self.refuse_starts(accepted, recorded.as_ref());
        let last_event_id = self.last_event_id(&target).await;
        let claim = &self.claim;
        let record = record_of(target, &claim.instance, claim.execution_id, loaded.history, last_event_id);
        let mut turn = end_without_code(record, ending, self.node.now());
        turn.parent = turn.parent.or(unreadable_parent);
        facts.end = End::of(&turn.outcome);
        facts.history_events = turn.delta.last().map_or(0, |event| event.event_id);
        facts.parent.clone_from(&turn.parent);
        self.commit_turn(Box::new(TurnResult { turn: Box::new(turn), facts, collisions, live: None })).await;
    }

    fn facts_of(&self, target: &EndTarget, loaded: &LoadedExecution) -> Facts {
        let claim = &self.claim;
        let (name, version, unstarted) = match target {
            EndTarget::Unstarted(seed) => (&*seed.name, &*seed.version, Some(seed.execution_id)),
            EndTarget::Stored | EndTarget::Unreadable => {
                let claimed = (&*claim.orchestration_name, &*claim.version);
                let (name, version) = recorded_handler(&loaded.history).unwrap_or(claimed);
                (name, version, None)
            }
        };
        let earlier_turns =
            claim.position.filter(|_| unstarted.is_none()).map_or(0, |position| position.turns);
        let started_at_ms = match unstarted {
            Some(_) => Some(self.node.now().as_millis()),
            None => loaded.history.first().map(|event| event.timestamp_ms),
        };
        Facts {
            name: name.into(),
            version: version.into(),
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

    /// The last stored event id of a history that cannot be decoded.
    async fn last_event_id(&mut self, target: &EndTarget) -> Option<u64> {
        if *target != EndTarget::Unreadable {
            return None;
        }
        if let Some(position) = self.claim.position {
            return Some(position.last_event_id);
        }
        let claim = &self.claim;
        let call = self.node.store.last_event_id(&claim.instance, claim.execution_id);
        provider_call("last_event_id", call).await.ok().flatten()
    }

    /// The parent of an instance whose first event cannot be read: by the automatic id of the child, else by the
    /// parent's history (6.6).
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
        let parent = provider_call("get_parent_id", admin.get_parent_id(child)).await.ok()??;
        let executions = provider_call("list_executions", admin.list_executions(&parent)).await.ok()?;
        for execution in executions.into_iter().rev() {
            let read =
                provider_call("read_with_execution", store.read_with_execution(&parent, execution)).await;
            if let Some(link) = call_in_history(&read.unwrap_or_default(), child) {
                return Some(link);
            }
        }
        None
    }
}
