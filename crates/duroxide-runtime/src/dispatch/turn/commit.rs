//! Commits the round of a turn, acts on the store's answer, and caches the execution of the next turn.

use std::{pin::pin, sync::Arc};

use duroxide_core::{
    INITIAL_EXECUTION_ID, ParentLink, WorkItem,
    engine::{Ending, Execution, Outcome, Turn, end_without_code},
};
use duroxide_provider::{NextExecution, ProviderError, Round, ScheduledActivityIdentifier};
use tracing::{debug, error, warn};

use super::{
    InstanceWork, RunningSteps, UNREADABLE_DELAY,
    ending::{labels_of, record_of, seed_of},
    round::{
        ExecutionRef, Notice, Successor, child_cancellations, notice_of, refused_starts, round, round_bytes,
    },
};
use crate::{
    cache::CachedExecution,
    dispatch::{
        decide::{EndTarget, Handlers, incompatible_pin, recorded_handler},
        failure_log::{FailedExecution, execution_failed},
        locks::CallOutcome,
        measure::{End, Facts, count},
        provider_call,
        store_call::was_committed,
    },
};

/// The result of a turn, or of an end without one.
pub(super) struct TurnResult {
    pub turn: Box<Turn>,
    pub facts: Facts,
    /// Messages to parents whose child starts were not accepted.
    pub collisions: Vec<Notice>,
    /// The execution, if it ran.
    pub live: Option<Box<CachedExecution>>,
}

impl InstanceWork {
    /// Commits a turn and caches its execution for the next one.
    pub(super) async fn commit_turn(&mut self, result: Box<TurnResult>) {
        let notices: Vec<Notice> = result.collisions.iter().cloned().chain(notice_of(&result.turn)).collect();
        let Ok(items) = self.address(notices).await else {
            self.node.drop_on_turn_thread(result.live.map(|live| *live));
            return Box::pin(self.abandon(None, true)).await;
        };
        let TurnResult { turn, facts, collisions, mut live } = *result;
        let successor = self.successor(&turn, &facts.name);
        let execution = ExecutionRef {
            instance: &self.claim.instance,
            execution_id: facts.execution_id,
            name: &facts.name,
        };
        let mut round = Box::new(round(execution, *turn, &successor, self.node.now()));
        round.orchestrator_items.extend(items);
        if facts.end.is_none() {
            round.orchestrator_items.extend(live.as_ref().and_then(|live| self.wake_up(live)));
        }
        if let Some(live) = &mut live {
            live.advance(&round.history_delta);
        }
        let (instance, execution_id) = (&self.claim.instance, facts.execution_id);
        if !(round.worker_items.is_empty() && round.orchestrator_items.is_empty()) {
            let incarnation = self.claim.position.map(|position| position.incarnation);
            self.node.descriptors.remember(instance, execution_id, incarnation, &facts.name, &facts.version);
        }
        let node = Arc::clone(&self.node);
        let goes_on = facts.end.as_ref().is_none_or(|end| !end.ends_instance());
        let comes_back = goes_on && live.is_some();
        let _expected = comes_back.then(|| node.cache.expect_return(&self.claim.instance)).flatten();
        match self.commit_round(&round).await {
            CallOutcome::Done(()) => {
                let next = live.and_then(|live| self.execution_to_cache(live, &facts, &mut round));
                self.committed(&round, &facts, next).await;
            }
            CallOutcome::LockLost { unanswered } => {
                self.node.drop_on_turn_thread(live.map(|live| *live));
                if unanswered && Box::pin(was_committed(&node, &self.claim.instance, &round)).await {
                    self.committed(&round, &facts, None).await;
                } else {
                    self.lock_lost("during a commit");
                }
            }
            CallOutcome::Unavailable { error, panicked } => {
                self.node.drop_on_turn_thread(live.map(|live| *live));
                let instance = &self.claim.instance;
                warn!(target: "duroxide::runtime", instance, %error, "commit failed for a whole lock timeout, abandoning the claim");
                Box::pin(self.abandon(None, !panicked)).await;
            }
            CallOutcome::Refused(error) => {
                self.node.drop_on_turn_thread(live.map(|live| *live));
                Box::pin(self.fail_round(error, *round, facts, collisions)).await;
            }
        }
    }

    /// Commits a round. The slot is free meanwhile, because user code is done.
    async fn commit_round(&mut self, round: &Round) -> CallOutcome<()> {
        let processing = self.slot.elapsed();
        self.node.metrics.record_orch_dispatcher_processing_duration(processing.as_millis() as u64);
        self.slot.submit(round_bytes(round));
        let (store, token) = (&self.node.store, &self.claim.lock_token);
        self.lease.retry("commit_round", || store.commit_round_ref(token, round)).await
    }

    /// Acts on a confirmed commit: cancels activities, caches the execution, logs and counts.
    async fn committed(&mut self, round: &Round, facts: &Facts, live: Option<Box<CachedExecution>>) {
        let node = &self.node;
        node.locks.remove(&self.claim.lock_token);
        for activity in &round.cancelled_activities {
            node.running.cancel(activity);
        }
        for stop in &round.metadata.stop_activities {
            node.running.stop(&ScheduledActivityIdentifier {
                instance: self.claim.instance.clone(),
                execution_id: round.execution_id,
                activity_id: stop.activity_id,
            });
        }
        if facts.end.is_some() {
            node.descriptors.forget(&self.claim.instance, facts.execution_id);
        }
        if let Some(live) = live {
            node.drop_on_turn_thread(node.cache.put(&self.claim.instance, live));
        }
        if let Some(End::Failed(details)) = &facts.end {
            execution_failed(&FailedExecution {
                instance: &self.claim.instance,
                execution_id: facts.execution_id,
                orchestration_name: &facts.name,
                version: &facts.version,
                event_id: round.history_delta.last().map_or(0, |event| event.event_id),
                details,
                ended: facts.ended.as_ref(),
            });
        }
        count(node, facts).await;
    }

    /// The execution of the instance's next turn: the one that just ran, or the successor that its round has started.
    fn execution_to_cache(
        &self,
        live: Box<CachedExecution>,
        facts: &Facts,
        round: &mut Round,
    ) -> Option<Box<CachedExecution>> {
        match facts.end {
            None => return Some(live),
            Some(End::Completed) => return None,
            Some(End::Failed(_) | End::ContinuedAsNew) => {}
        }
        let successor = round.next_execution.take().and_then(|next| self.successor_to_cache(&live, next));
        // Code that has not returned is still suspended, and dropping it runs user destructors.
        self.node.drop_on_turn_thread([*live]);
        successor
    }

    /// The successor that was just committed. Reading it back from the store would give the same execution, at a cost
    /// that grows with the messages it inherits (8.3).
    fn successor_to_cache(
        &self,
        predecessor: &CachedExecution,
        next: NextExecution,
    ) -> Option<Box<CachedExecution>> {
        let NextExecution { execution_id, history_delta, .. } = next;
        let (name, version) = recorded_handler(&history_delta)?;
        let (name, version) = (Arc::from(name), Arc::from(version));
        let (_, handler) = Handlers::find(&self.node.orchestrations, &name, Some(&version))?;
        let position = predecessor.position.of_successor(&history_delta);
        let setup = self.setup(handler, predecessor.execution.key_values());
        let supported = &self.node.filter.supported_duroxide_versions;
        Some(Box::new(CachedExecution {
            replayable: incompatible_pin(&history_delta, supported).is_none(),
            execution: Execution::replay(history_delta, setup),
            execution_id,
            name,
            version,
            turns: 0,
            unreadable_pin: None,
            trace: predecessor.trace.clone(),
            position,
            steps: RunningSteps::default(),
        }))
    }

    /// Whether this node starts the successor of an execution that continued as new (8.2, 8.5).
    fn successor(&self, turn: &Turn, name: &str) -> Successor {
        let Outcome::ContinuedAsNew(continuation) = &turn.outcome else { return Successor::Elsewhere };
        if !self.node.store.commits_rounds() {
            return Successor::Elsewhere;
        }
        match Handlers::find(&self.node.orchestrations, name, continuation.version.as_deref()) {
            Some((version, _)) => Successor::Here { version },
            None => Successor::Elsewhere,
        }
    }

    /// Builds the messages to parents. A link of older data does not name the execution that made the call; then the
    /// parent's current execution is read.
    async fn address(&mut self, notices: Vec<Notice>) -> Result<Vec<WorkItem>, ()> {
        let mut items = Vec::with_capacity(notices.len());
        for notice in notices {
            let parent_execution = match notice.link.execution_id {
                Some(known) => known,
                None => Box::pin(self.current_execution(&notice.link)).await?,
            };
            items.push(notice.into_item(parent_execution));
        }
        Ok(items)
    }

    async fn current_execution(&mut self, link: &ParentLink) -> Result<u64, ()> {
        let store = Arc::clone(&self.node.store);
        match self.lease.retry("read_status", || store.read_status(&link.instance)).await {
            CallOutcome::Done(status) => {
                Ok(status.map_or(INITIAL_EXECUTION_ID, |status| status.execution_id))
            }
            CallOutcome::Refused(_) => Ok(INITIAL_EXECUTION_ID),
            CallOutcome::LockLost { .. } | CallOutcome::Unavailable { .. } => Err(()),
        }
    }

    /// Fails the execution of a round that the store refuses permanently, with a single attempt (16.5).
    async fn fail_round(
        &mut self,
        error: ProviderError,
        refused: Round,
        facts: Facts,
        collisions: Vec<Notice>,
    ) {
        let instance = self.claim.instance.clone();
        error!(target: "duroxide::runtime", instance, %error, "the store refused a round, failing the execution");
        if self.try_to_fail(&error, &refused, facts, collisions).await.is_err() {
            self.abandon(Some(UNREADABLE_DELAY), false).await;
        }
    }

    async fn try_to_fail(
        &mut self,
        error: &ProviderError,
        refused: &Round,
        mut facts: Facts,
        collisions: Vec<Notice>,
    ) -> Result<(), ()> {
        let node = Arc::clone(&self.node);
        let instance = self.claim.instance.clone();
        let (target, history) = match seed_of(&refused.history_delta) {
            Some(seed) => (EndTarget::Unstarted(seed), Vec::new()),
            None => {
                let call = provider_call(
                    "load_execution",
                    node.store.load_execution(&instance, refused.execution_id),
                );
                let loaded = self.lease.renew_during(pin!(call)).await.map_err(drop)?;
                let readable = loaded.history_error.is_none();
                (if readable { EndTarget::Stored } else { EndTarget::Unreadable }, loaded.history)
            }
        };
        let last_event_id = self.claim.position.map(|position| position.last_event_id);
        let record = record_of(target, &instance, refused.execution_id, history, last_event_id);
        let turn = end_without_code(record, Ending::Failed(error.to_infrastructure_error()), node.now());
        facts.end = End::of(&turn.outcome);
        facts.ended = None;
        let notices = collisions.into_iter().chain(notice_of(&turn)).collect();
        let items = self.address(notices).await?;
        let execution =
            ExecutionRef { instance: &instance, execution_id: refused.execution_id, name: &facts.name };
        let mut round = round(execution, turn, &Successor::Elsewhere, node.now());
        round.orchestrator_items.extend(items.into_iter().chain(child_cancellations(refused)));
        let token = self.claim.lock_token.clone();
        let call = provider_call("commit_round", node.store.commit_round_ref(&token, &round));
        self.lease.renew_during(pin!(call)).await.map_err(drop)?;
        self.committed(&round, &facts, None).await;
        Ok(())
    }

    // ---- messages that write no event ------------------------------------------------------------------------

    /// Drops the messages of an instance that has ended. A child that was to start under this id fails.
    pub(super) async fn drop_for_ended(&mut self, recorded: Option<&ParentLink>) {
        let (instance, messages) = (self.claim.instance.clone(), std::mem::take(&mut self.claim.messages));
        let refused = refused_starts(&instance, &messages, None, recorded, true);
        warn!(
            target: "duroxide::runtime",
            instance, messages = ?labels_of(&messages), "dropping messages for an instance that has ended"
        );
        self.drop_messages(refused.notices).await;
    }

    /// Drops the messages of an instance that never existed.
    pub(super) async fn drop_for_unknown(&mut self) {
        let (instance, messages) = (&self.claim.instance, labels_of(&self.claim.messages));
        warn!(target: "duroxide::runtime", instance, ?messages, "dropping messages for an unknown instance");
        self.drop_messages(Vec::new()).await;
    }

    async fn drop_messages(&mut self, notices: Vec<Notice>) {
        let Ok(items) = self.address(notices).await else { return self.abandon(None, true).await };
        let execution_id = self.claim.execution_id;
        let round = Round { execution_id, orchestrator_items: items, ..Round::default() };
        match self.commit_round(&round).await {
            CallOutcome::Done(()) => self.node.locks.remove(&self.claim.lock_token),
            CallOutcome::LockLost { .. } => self.lock_lost("while messages were dropped"),
            CallOutcome::Unavailable { panicked, .. } => self.abandon(None, !panicked).await,
            CallOutcome::Refused(error) => {
                debug!(target: "duroxide::runtime", %error, "the store refused to drop messages");
                self.abandon(Some(UNREADABLE_DELAY), false).await;
            }
        }
    }
}
