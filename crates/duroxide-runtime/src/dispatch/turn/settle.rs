//! Committing what a turn decided, and what follows from the answer.

use std::sync::Arc;

use duroxide_core::{
    INITIAL_EXECUTION_ID, ParentLink, WorkItem,
    engine::{Ending, Outcome, Turn, end_without_code},
};
use duroxide_provider::{ProviderError, Round, ScheduledActivityIdentifier};
use tracing::{debug, error, warn};

use super::{
    InstanceWork, UNREADABLE_DELAY,
    ending::{labels_of, record_of, seed_of},
    round::{
        Identity, Notice, Successor, child_cancellations, empty_round, notice_of, refused_starts, round,
        round_bytes,
    },
};
use crate::{
    cache::CachedExecution,
    dispatch::{
        decide::{Handlers, Subject},
        failure_log::{FailedExecution, execution_failed},
        guarded,
        measure::{End, Facts, count},
        store_call::{Insisted, insist, was_committed},
    },
};

/// What a turn, or an end without one, decided.
pub(super) struct Decided {
    pub turn: Turn,
    pub facts: Facts,
    /// Parents whose child starts were not accepted.
    pub collisions: Vec<Notice>,
    /// The execution, if it ran.
    pub live: Option<Box<CachedExecution>>,
}

impl InstanceWork {
    /// Commits a turn and keeps its execution alive for the next one.
    pub(super) async fn settle(&mut self, decided: Decided) {
        let Decided { turn, facts, collisions, mut live } = decided;
        let notices: Vec<Notice> = collisions.iter().cloned().chain(notice_of(&turn)).collect();
        let Ok(items) = self.address(notices).await else {
            self.node.retire(live.map(|live| *live));
            return Box::pin(self.give_back(None, true)).await;
        };
        let successor = self.successor(&turn, &facts.name);
        let who =
            Identity { instance: &self.claim.instance, execution_id: facts.execution_id, name: &facts.name };
        let mut round = round(who, turn, &successor, self.node.now());
        round.orchestrator_items.extend(items);
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
        let _expected = comes_back.then(|| node.cache.expect(&self.claim.instance)).flatten();
        match self.commit(&round).await {
            Insisted::Done(()) => {
                let next = live.and_then(|live| self.next(live, &facts, &mut round));
                self.committed(&round, &facts, next).await;
            }
            Insisted::LockLost { unanswered } => {
                self.node.retire(live.map(|live| *live));
                if unanswered && Box::pin(was_committed(&node, &self.claim.instance, &round)).await {
                    self.committed(&round, &facts, None).await;
                } else {
                    self.lost("during a commit");
                }
            }
            Insisted::Unavailable { error, panicked } => {
                self.node.retire(live.map(|live| *live));
                let instance = &self.claim.instance;
                warn!(target: "duroxide::runtime", instance, %error, "commit failed too long, giving back");
                Box::pin(self.give_back(None, !panicked)).await;
            }
            Insisted::Refused(error) => {
                self.node.retire(live.map(|live| *live));
                Box::pin(self.fail_round(error, round, facts, collisions)).await;
            }
        }
    }

    /// User code is done: the slot is free while the round is on its way.
    async fn commit(&mut self, round: &Round) -> Insisted<()> {
        let processing = self.seat.elapsed();
        self.node.metrics.record_orch_dispatcher_processing_duration(processing.as_millis() as u64);
        self.seat.submit(round_bytes(round));
        let (store, token) = (&self.node.store, &self.claim.lock_token);
        let timeout = self.node.options.orchestrator_lock_timeout;
        let call = || store.commit_round_ref(token, round);
        insist(&self.node, &mut self.lease, timeout, "commit_round", call).await
    }

    /// What follows from a confirmed commit.
    async fn committed(&mut self, round: &Round, facts: &Facts, live: Option<Box<CachedExecution>>) {
        let node = &self.node;
        node.held.let_go(&self.claim.lock_token);
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
            node.retire(node.cache.put(&self.claim.instance, live));
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

    /// Whether this node begins the successor of an execution that continued as new (semantics 8.2, 8.5).
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

    /// Makes messages to parents. A link of older data does not say which execution made the call; then the
    /// parent's current one is asked for.
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
        let (store, timeout) = (Arc::clone(&self.node.store), self.node.options.orchestrator_lock_timeout);
        let call = || store.read_status(&link.instance);
        match insist(&self.node, &mut self.lease, timeout, "read_status", call).await {
            Insisted::Done(status) => Ok(status.map_or(INITIAL_EXECUTION_ID, |status| status.execution_id)),
            Insisted::Refused(_) => Ok(INITIAL_EXECUTION_ID),
            Insisted::LockLost { .. } | Insisted::Unavailable { .. } => Err(()),
        }
    }

    /// The store will never take this round: the execution it was for fails, in one try (semantics 16.5).
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
            self.give_back(Some(UNREADABLE_DELAY), false).await;
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
        let (subject, history) = match seed_of(&refused.history_delta) {
            Some(seed) => (Subject::Unstarted(seed), Vec::new()),
            None => {
                let call =
                    guarded("load_execution", node.store.load_execution(&instance, refused.execution_id));
                let loaded = self.lease.beside(call).await.map_err(drop)?;
                let readable = loaded.history_error.is_none();
                (if readable { Subject::Stored } else { Subject::Unreadable }, loaded.history)
            }
        };
        let last_event_id = self.claim.position.map(|position| position.last_event_id);
        let record = record_of(subject, &instance, refused.execution_id, history, last_event_id);
        let turn = end_without_code(record, Ending::Failed(error.to_infrastructure_error()), node.now());
        facts.end = End::of(&turn.outcome);
        facts.ended = None;
        let notices = collisions.into_iter().chain(notice_of(&turn)).collect();
        let items = self.address(notices).await?;
        let who = Identity { instance: &instance, execution_id: refused.execution_id, name: &facts.name };
        let mut round = round(who, turn, &Successor::Elsewhere, node.now());
        round.orchestrator_items.extend(items.into_iter().chain(child_cancellations(refused)));
        let token = self.claim.lock_token.clone();
        let call = guarded("commit_round", node.store.commit_round_ref(&token, &round));
        self.lease.beside(call).await.map_err(drop)?;
        self.committed(&round, &facts, None).await;
        Ok(())
    }

    // ---- batches that make no event -------------------------------------------------------------------------

    /// The instance has ended: its messages are dropped. A child that was to start under its id may not.
    pub(super) async fn drain(&mut self, recorded: Option<&ParentLink>) {
        let (instance, messages) = (self.claim.instance.clone(), std::mem::take(&mut self.claim.messages));
        let refused = refused_starts(&instance, &messages, None, recorded, true);
        warn!(
            target: "duroxide::runtime",
            instance, messages = ?labels_of(&messages), "dropping messages for an instance that has ended"
        );
        self.drop_batch(refused.notices).await;
    }

    /// Nothing ever started this instance, and nothing in the batch does.
    pub(super) async fn drop_strays(&mut self) {
        let (instance, messages) = (&self.claim.instance, labels_of(&self.claim.messages));
        warn!(target: "duroxide::runtime", instance, ?messages, "dropping messages for an unknown instance");
        self.drop_batch(Vec::new()).await;
    }

    async fn drop_batch(&mut self, notices: Vec<Notice>) {
        let Ok(items) = self.address(notices).await else { return self.give_back(None, true).await };
        let mut round = empty_round(self.claim.execution_id);
        round.orchestrator_items = items;
        match self.commit(&round).await {
            Insisted::Done(()) => self.node.held.let_go(&self.claim.lock_token),
            Insisted::LockLost { .. } => self.lost("while messages were dropped"),
            Insisted::Unavailable { panicked, .. } => self.give_back(None, !panicked).await,
            Insisted::Refused(error) => {
                debug!(target: "duroxide::runtime", %error, "the store refused to drop messages");
                self.give_back(Some(UNREADABLE_DELAY), false).await;
            }
        }
    }
}
