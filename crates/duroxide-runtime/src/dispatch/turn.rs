//! Processes one claimed instance: loads its execution, runs a turn, commits the round.

mod audit;
mod commit;
mod ending;
mod round;
mod run;
mod steps;
mod terminate;
mod trace;

pub(crate) use round::event_bytes;
pub(super) use round::item_bytes;
pub(crate) use steps::RunningSteps;

use std::{pin::pin, sync::Arc, time::Duration};

use duroxide_provider::{JoinedNode, LoadedExecution, OrchestrationClaim, ProviderError, StorePosition};
use futures_util::future::select;
use tracing::{debug, warn};

use super::{
    backoff_log::{UnregisteredOrchestration, warn_unregistered_orchestration},
    decide::{Claimed, Decision, Policy, Unprocessable, decide, joined_nodes, recorded_parent, start_item},
    locks::{CallOutcome, Lease, LockKind},
    node::Node,
    provider_call,
    quarantine::Suspect,
    queue::{ClaimedInstance, SlotGuard},
};
use crate::{
    cache::{CachedExecution, Lookup},
    env::Moment,
};

use run::Source;

/// The delay of an abandoned claim that this node cannot read or replay.
const UNREADABLE_DELAY: Duration = Duration::from_secs(1);

/// How long a claim waits for the execution that the previous turn returns to the cache. If the store takes longer to
/// answer, the history is loaded instead.
const RETURN_WAIT_MAX: Duration = Duration::from_secs(1);

/// A claimed instance that this node processes.
pub(crate) struct InstanceWork {
    node: Arc<Node>,
    claim: Box<OrchestrationClaim>,
    lease: Lease,
    slot: SlotGuard,
    suspect: Option<Suspect>,
}

impl InstanceWork {
    pub(crate) fn new(node: Arc<Node>, claimed: ClaimedInstance, received: Moment, slot: SlotGuard) -> Self {
        let ClaimedInstance { claim, suspect } = claimed;
        let lease =
            Lease::new(Arc::clone(&node), LockKind::Instance, claim.lock_token.clone(), received, None);
        Self { node, claim, lease, slot, suspect }
    }

    /// Processes the claim until it is committed, abandoned, or left to its lease.
    ///
    /// Rare paths are boxed, so that the future, which the tasks of a pool keep, stays small.
    pub(crate) async fn process(mut self) {
        let Some(source) = self.source().await else { return };
        let Some(mut result) = self.run_turn(source).await else { return };
        if self.node.options.audit.fraction > 0.0 {
            let Some(audited) = Box::pin(self.audited(result)).await else { return };
            result = audited;
        }
        self.commit_turn(result).await;
    }

    /// The execution of the turn. `None` if the claim ends without a turn; then it has been processed already.
    async fn source(&mut self) -> Option<Source> {
        let exhausted = self.claim.attempt_count > self.node.options.max_attempts;
        if let Some(live) = self.cached(exhausted).await {
            return Some(Source::Live(live));
        }
        if !self.is_new() && Box::pin(self.is_for_ended_instance()).await {
            Box::pin(self.drop_for_ended(None)).await;
            return None;
        }
        let loaded = if self.is_new() { LoadedExecution::default() } else { Box::pin(self.load()).await? };
        let ended = exhausted && loaded.history_error.is_some() && Box::pin(self.has_ended()).await?;
        let joined = if exhausted { Box::pin(joined_nodes(&self.node)).await } else { Vec::new() };
        let decision = decide(self.claimed(&loaded, ended), &self.policy(&joined));
        match decision {
            Decision::Run(run) => return Some(self.cold(run, loaded)),
            Decision::Abandon(reason) => Box::pin(self.abandon_unprocessable(reason)).await,
            Decision::End(termination) => Box::pin(self.terminate(termination, loaded)).await,
            Decision::DropEnded => {
                Box::pin(self.drop_for_ended(recorded_parent(&loaded.history).as_ref())).await;
            }
            Decision::DropUnknown => Box::pin(self.drop_for_unknown()).await,
        }
        None
    }

    /// The instance's cached execution, or the one that the previous turn is about to return, if the turn can use it.
    async fn cached(&mut self, exhausted: bool) -> Option<Box<CachedExecution>> {
        let node = Arc::clone(&self.node);
        let mut found = node.cache.take(&self.claim);
        if matches!(found, Lookup::Absent) && !self.is_new() {
            let returned = pin!(node.cache.wait_for_return(&self.claim.instance));
            let waited = node.env.sleep(RETURN_WAIT_MAX);
            self.lease.renew_during(select(returned, waited)).await;
            found = node.cache.take(&self.claim);
        }
        match found {
            Lookup::Live(live) if !exhausted => Some(live),
            Lookup::Live(unused) | Lookup::Stale(unused) => {
                node.drop_on_turn_thread([*unused]);
                None
            }
            Lookup::Absent => None,
        }
    }

    fn claimed<'a>(&'a self, loaded: &'a LoadedExecution, ended: bool) -> Claimed<'a> {
        Claimed {
            instance: &self.claim.instance,
            name: &self.claim.orchestration_name,
            execution_id: self.claim.execution_id,
            messages: &self.claim.messages,
            attempt_count: self.claim.attempt_count,
            history: &loaded.history,
            history_error: loaded.history_error.as_deref(),
            ended,
        }
    }

    fn policy<'a>(&'a self, joined: &'a [JoinedNode]) -> Policy<'a> {
        Policy {
            max_attempts: self.node.options.max_attempts,
            supported: &self.node.filter.supported_duroxide_versions,
            handlers: &self.node.orchestrations,
            node: &self.node.id,
            joined,
            cancel_only_fallback: self.node.options.cancel_only_fallback,
        }
    }

    /// Whether the store can have no event of the instance.
    fn is_new(&self) -> bool {
        let nothing_stored = |position: StorePosition| position.last_event_id == 0;
        self.claim.loaded.is_none()
            && self.claim.execution_id <= 1
            && self.claim.position.is_some_and(nothing_stored)
    }

    /// History and key-value state, from the claim or from the store. `None` if the claim was given up meanwhile.
    async fn load(&mut self) -> Option<LoadedExecution> {
        if let Some(loaded) = self.claim.loaded.take() {
            return Some(loaded);
        }
        let store = Arc::clone(&self.node.store);
        let (instance, execution_id) = (self.claim.instance.clone(), self.claim.execution_id);
        let call = || store.load_execution(&instance, execution_id);
        match self.lease.retry("load_execution", call).await {
            CallOutcome::Done(loaded) if self.is_as_claimed(&loaded) => Some(loaded),
            CallOutcome::Done(_) | CallOutcome::LockLost { .. } => {
                self.lock_lost("while its history was read");
                None
            }
            CallOutcome::Refused(error) => {
                Some(LoadedExecution { history_error: Some(error.message), ..LoadedExecution::default() })
            }
            CallOutcome::Unavailable { error, panicked } => {
                warn!(target: "duroxide::runtime", instance, %error, "history could not be read, abandoning the claim");
                self.abandon(None, !panicked).await;
                None
            }
        }
    }

    /// Whether the history is the claimed one. The lock prevents changes, so a changed history means that the lock is
    /// lost.
    fn is_as_claimed(&self, loaded: &LoadedExecution) -> bool {
        let last = loaded.history.last().map_or(0, |event| event.event_id);
        loaded.history_error.is_some()
            || self.claim.position.is_none_or(|position| position.last_event_id == last)
    }

    /// Whether the instance has ended by its stored status, for a history that cannot be decoded. If the store does not
    /// know it, abandons the claim without charging an attempt and returns `None`, because an ended instance must not
    /// fail again.
    async fn has_ended(&mut self) -> Option<bool> {
        let answer = self.read_has_ended().await;
        if let Err(error) = &answer {
            let instance = &self.claim.instance;
            warn!(target: "duroxide::runtime", instance, %error, "cannot tell whether the instance has ended, abandoning the claim");
            self.abandon(Some(UNREADABLE_DELAY), true).await;
        }
        answer.ok()
    }

    /// Management calls read the status without decoding an event. A provider without them has only `read_status`.
    async fn read_has_ended(&mut self) -> Result<bool, ProviderError> {
        let (store, instance) = (Arc::clone(&self.node.store), &self.claim.instance);
        if let Some(admin) = store.as_management_capability() {
            let info = provider_call("get_instance_info", admin.get_instance_info(instance)).await;
            if !info.as_ref().is_err_and(|error| !error.is_retryable()) {
                return info.map(|info| matches!(info.status.as_str(), "Completed" | "Failed"));
            }
        }
        let status = provider_call("read_status", store.read_status(instance)).await?;
        Ok(status.is_some_and(|status| status.terminal_event.is_some()))
    }

    /// Whether the messages can be dropped because the instance has ended. Reads the status, which is one row, before a
    /// history that may be long. Messages with a start need the history, because a parent may have to be notified.
    async fn is_for_ended_instance(&mut self) -> bool {
        if self.claim.loaded.is_some() || start_item(&self.claim.messages).is_some() {
            return false;
        }
        let (node, instance) = (Arc::clone(&self.node), self.claim.instance.clone());
        let read = pin!(provider_call("read_status", node.store.read_status(&instance)));
        let status = self.lease.renew_during(read).await;
        matches!(status, Ok(Some(status)) if status.terminal_event.is_some())
    }

    async fn abandon(&mut self, delay: Option<Duration>, ignore_attempt: bool) {
        self.slot.submit(0);
        self.node.abandon(LockKind::Instance, &self.claim.lock_token, delay, ignore_attempt).await;
    }

    fn lock_lost(&self, when: &str) {
        warn!(target: "duroxide::runtime", instance = self.claim.instance, "lock lost {when}");
        self.node.metrics.record_lock_loss("orchestrator");
        self.node.locks.remove(&self.claim.lock_token);
    }

    /// Abandons the claim and charges the attempt: a later attempt or another node may be able to process it.
    async fn abandon_unprocessable(&mut self, reason: Unprocessable) {
        let (node, instance) = (Arc::clone(&self.node), self.claim.instance.clone());
        let attempt_count = self.claim.attempt_count;
        let backoff = node.options.unregistered_backoff.delay(attempt_count);
        let delay = match &reason {
            Unprocessable::UnregisteredOrchestration { name, version } => {
                warn_unregistered_orchestration(&UnregisteredOrchestration {
                    instance: &instance,
                    orchestration_name: name,
                    version: version.as_deref(),
                    attempt_count,
                    max_attempts: node.options.max_attempts,
                    backoff,
                });
                node.metrics.record_unregistered_orchestration_backoff();
                backoff
            }
            Unprocessable::IncompatibleVersion { pinned, supported } => {
                warn!(
                    target: "duroxide::runtime",
                    instance, pinned_version = %pinned, supported_range = supported, attempt_count,
                    "Execution pinned at incompatible version, abandoning (runtime-side check)"
                );
                node.metrics.record_incompatible_version_abandoned();
                UNREADABLE_DELAY
            }
            Unprocessable::OtherRules { pinned, mismatch } => {
                warn!(
                    target: "duroxide::runtime",
                    instance, pinned_version = %pinned, mismatch, attempt_count,
                    "Execution of a later version does not replay here, abandoning"
                );
                node.metrics.record_incompatible_version_abandoned();
                UNREADABLE_DELAY
            }
            Unprocessable::UndecodableHistory { error } => {
                warn!(
                    target: "duroxide::runtime",
                    instance, execution_id = self.claim.execution_id,
                    orchestration_name = self.claim.orchestration_name, version = self.claim.version,
                    error, attempt_count, "history cannot be decoded"
                );
                UNREADABLE_DELAY
            }
            Unprocessable::WaitingForSuccessor => {
                debug!(target: "duroxide::runtime", instance, attempt_count, "waiting for the successor's start");
                backoff
            }
        };
        self.abandon(Some(delay), false).await;
    }
}
