//! One claimed instance: prepare, run a turn, commit it.

mod settle;
mod stranded;
mod terminate;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide_core::{
    Event, KvEntry, ParentLink, WorkItem,
    engine::{Execution, Setup, Turn},
};
use duroxide_provider::{LoadedExecution, OrchestrationClaim, StorePosition};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;
use tracing::{debug, error, warn};

use super::{
    admit::{Admission, Claimed, Policy, Run, Unprocessable, admit},
    batch::start_item,
    commit::{Insisted, insist},
    guarded,
    held::LockKind,
    measure::{End, Facts},
    node::Node,
    orchestration::ClaimedInstance,
    plan::UNSTARTED_MAX,
    quarantine::{GIVE_WAY, Suspect},
    queue::Seat,
    record::{is_seed_only, recorded_parent},
    renewal::Lease,
    round::{Notice, refused_starts},
};
use crate::{
    backoff_log::{UnregisteredOrchestration, warn_unregistered_orchestration},
    cache::{CachedExecution, Lookup, Stand},
    env::{Moment, RunningTurn, clock_of},
    observability::{TurnOf, turn_outcome, turn_span},
};
use settle::Decided;

/// How long a claim rests that this node cannot read or replay.
const UNREADABLE_DELAY: Duration = Duration::from_secs(1);

/// A claimed instance on its way through this node.
pub(crate) struct InstanceWork {
    node: Arc<Node>,
    claim: OrchestrationClaim,
    lease: Lease,
    seat: Seat,
    suspect: Option<Suspect>,
}

/// An execution that is about to run a turn, alive or still to be made.
enum Source {
    Live(Box<CachedExecution>),
    Cold(Box<Cold>),
}

struct Cold {
    run: Run,
    setup: Setup,
    execution_id: u64,
    history: Vec<Event>,
    stand: Stand,
    turns: u64,
}

impl InstanceWork {
    pub(crate) fn new(node: Arc<Node>, claimed: ClaimedInstance, received: Moment, seat: Seat) -> Self {
        let ClaimedInstance { claim, suspect } = claimed;
        let lease = Lease::new(Arc::clone(&node), LockKind::Instance, claim.lock_token.clone(), received);
        Self { node, claim, lease, seat, suspect }
    }

    /// Carries the claim to its end: committed, given back, or left to its lease.
    pub(crate) async fn run(mut self) {
        let exhausted = self.claim.attempt_count > self.node.options.max_attempts;
        match self.node.cache.take(&self.claim) {
            Lookup::Live(live) if !exhausted => return self.resume(live).await,
            Lookup::Live(unused) | Lookup::Stale(unused) => self.node.retire([*unused]),
            Lookup::Absent => {}
        }
        // What is rare is boxed, so that the common way through a claim needs little memory.
        let loaded =
            if self.is_new() { Some(LoadedExecution::default()) } else { Box::pin(self.load()).await };
        let Some(loaded) = loaded else { return };
        let ended = exhausted && loaded.history_error.is_some() && Box::pin(self.has_ended()).await;
        match self.admit(&loaded, ended) {
            Admission::Run(run) => self.begin(run, loaded).await,
            Admission::Bounce(reason) => Box::pin(self.bounce(reason)).await,
            Admission::End(termination) => Box::pin(self.terminate(termination, loaded, ended)).await,
            Admission::Drain => Box::pin(self.drain(recorded_parent(&loaded.history).as_ref())).await,
            Admission::Stray => Box::pin(self.drop_strays()).await,
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

    fn admit(&self, loaded: &LoadedExecution, ended: bool) -> Admission {
        admit(self.claimed(loaded, ended), &self.policy())
    }

    fn policy(&self) -> Policy<'_> {
        Policy {
            max_attempts: self.node.options.max_attempts,
            supported: &self.node.filter.supported_duroxide_versions,
            handlers: &self.node.orchestrations,
            cancel_only_fallback: self.node.options.cancel_only_fallback,
        }
    }

    /// Whether nothing of it can be stored yet.
    fn is_new(&self) -> bool {
        let nothing_stored = |position: StorePosition| position.last_event_id == 0;
        self.claim.loaded.is_none()
            && self.claim.execution_id <= 1
            && self.claim.position.is_some_and(nothing_stored)
    }

    /// History and key-value state: as the claim brought them, or from the store. `None` if the claim was given
    /// up meanwhile.
    async fn load(&mut self) -> Option<LoadedExecution> {
        if let Some(loaded) = self.claim.loaded.take() {
            return Some(loaded);
        }
        let (store, timeout) = (Arc::clone(&self.node.store), self.node.options.orchestrator_lock_timeout);
        let (instance, execution_id) = (self.claim.instance.clone(), self.claim.execution_id);
        let call = || store.load_execution(&instance, execution_id);
        match insist(&self.node, &mut self.lease, timeout, "load_execution", call).await {
            Insisted::Done(loaded) if self.stands_as_claimed(&loaded) => Some(loaded),
            Insisted::Done(_) | Insisted::LockLost => {
                self.lost("while its history was read");
                None
            }
            Insisted::Refused(error) => {
                Some(LoadedExecution { history_error: Some(error.message), ..LoadedExecution::default() })
            }
            Insisted::Unavailable { error, panicked } => {
                warn!(target: "duroxide::runtime", instance, %error, "history could not be read, giving back");
                self.give_back(None, !panicked).await;
                None
            }
        }
    }

    /// The lock keeps a history as it was claimed. If it moved, somebody else has the lock.
    fn stands_as_claimed(&self, loaded: &LoadedExecution) -> bool {
        let last = loaded.history.last().map_or(0, |event| event.event_id);
        loaded.history_error.is_some()
            || self.claim.position.is_none_or(|position| position.last_event_id == last)
    }

    /// Whether the instance has ended, asked of the status because the history cannot be decoded.
    async fn has_ended(&mut self) -> bool {
        let status = guarded("read_status", self.node.store.read_status(&self.claim.instance)).await;
        matches!(status, Ok(Some(status)) if status.terminal_event.is_some())
    }

    // ---- giving up ------------------------------------------------------------------------------------------

    async fn give_back(&mut self, delay: Option<Duration>, ignore_attempt: bool) {
        self.seat.submit(0);
        self.node.abandon(LockKind::Instance, &self.claim.lock_token, delay, ignore_attempt).await;
    }

    fn lost(&self, when: &str) {
        warn!(target: "duroxide::runtime", instance = self.claim.instance, "lock lost {when}");
        self.node.held.let_go(&self.claim.lock_token);
    }

    /// Gives the claim back, attempt counted: a later attempt or another node may do better.
    async fn bounce(&mut self, reason: Unprocessable) {
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
            Unprocessable::UndecodableHistory { error } => {
                warn!(target: "duroxide::runtime", instance, error, attempt_count, "history cannot be decoded");
                UNREADABLE_DELAY
            }
            Unprocessable::WaitingForSuccessor => {
                debug!(target: "duroxide::runtime", instance, attempt_count, "waiting for the successor's start");
                backoff
            }
        };
        self.give_back(Some(delay), false).await;
    }

    // ---- turns ----------------------------------------------------------------------------------------------

    /// Goes on with a live execution.
    async fn resume(&mut self, live: Box<CachedExecution>) {
        let collisions = self.refuse_starts(None, live.execution.parent());
        self.turn(Source::Live(live), false, collisions).await;
    }

    /// Makes an execution from its start or its history.
    async fn begin(&mut self, run: Run, loaded: LoadedExecution) {
        let accepted = run.seed.is_some().then(|| start_item(&self.claim.messages)).flatten();
        let recorded =
            run.seed.as_ref().map_or_else(|| recorded_parent(&loaded.history), |seed| seed.parent.clone());
        let collisions = self.refuse_starts(accepted, recorded.as_ref());
        let first_turn = run.seed.is_some() || is_seed_only(&loaded.history);
        let setup = Setup {
            handler: Arc::clone(&run.handler),
            clock: clock_of(&self.node.env),
            limits: self.node.options.limits.clone(),
            worker_id: Some(format!("orch-{}-{}", self.seat.slot(), self.node.id)),
            kv: kv_of(loaded.kv_snapshot),
        };
        let cold = Cold {
            execution_id: run.seed.as_ref().map_or(self.claim.execution_id, |seed| seed.execution_id),
            stand: Stand::of(&self.claim, if run.seed.is_some() { &[] } else { &loaded.history }),
            turns: self.claim.position.filter(|_| !first_turn).map_or(0, |position| position.turns),
            run,
            setup,
            history: loaded.history,
        };
        self.turn(Source::Cold(Box::new(cold)), first_turn, collisions).await;
    }

    /// What the parents are told whose child starts are not accepted.
    fn refuse_starts(&self, accepted: Option<&WorkItem>, recorded: Option<&ParentLink>) -> Vec<Notice> {
        let refused = refused_starts(&self.claim.instance, &self.claim.messages, accepted, recorded, false);
        if refused.duplicates > 0 {
            warn!(
                target: "duroxide::runtime",
                instance = self.claim.instance, duplicates = refused.duplicates,
                "ignoring a start of an instance that has already started"
            );
        }
        refused.notices
    }

    async fn turn(&mut self, source: Source, first_turn: bool, collisions: Vec<Notice>) {
        if let Some(stamp) = source.unreadable_pin() {
            warn!(
                target: "duroxide::runtime",
                instance = self.claim.instance, pinned_version = stamp,
                "Invalid pinned version on OrchestrationStarted, treating it as compatible"
            );
        }
        // Until its round is committed: what comes next may be a killer.
        let _stay = match &self.suspect {
            None => None,
            Some(suspect) => match self.lease.beside(suspect.enter(&self.node.env)).await {
                Some(stay) => Some(stay),
                None => return Box::pin(self.give_way(source)).await,
            },
        };
        let messages = std::mem::take(&mut self.claim.messages);
        let Some((live, turn)) = self.run_turn(source, messages).await else { return };
        if self.lease.ended().is_some() {
            self.node.retire([*live]);
            return self.lost("during a turn");
        }
        let facts = Facts {
            name: live.name.clone(),
            version: live.version.clone(),
            execution_id: live.execution_id,
            first_turn,
            end: End::of(&turn.outcome),
            turns: live.turns + 1,
            history_events: live.execution.last_event_id(),
            started_at_ms: Some(live.execution.started_at_ms()),
            parent: turn.parent.clone(),
        };
        self.settle(Decided { turn, facts, collisions, live: Some(live) }).await;
    }

    /// Another suspect runs: this one comes back when that is over, its attempt not counted.
    async fn give_way(&mut self, source: Source) {
        if let Source::Live(live) = source {
            self.node.retire([*live]);
        }
        self.give_back(Some(GIVE_WAY), true).await;
    }

    /// Runs user code on a turn thread. `None` if it did not come back in time, or not at all; the claim is then
    /// left to its lease, so that the attempt counts.
    async fn run_turn(
        &mut self,
        source: Source,
        messages: Vec<WorkItem>,
    ) -> Option<(Box<CachedExecution>, Turn)> {
        let (answer, mut answered) = oneshot::channel();
        let running = self.node.turns.enter(&self.claim.instance);
        let span = turn_span(&source.turn_of(&self.claim.instance));
        let job = move || {
            let _running = running;
            let (live, turn) = span.in_scope(|| source.run(messages));
            span.record("outcome", turn_outcome(&turn.outcome));
            // It ends before anybody learns of the turn.
            drop(span);
            // If nobody waits any more, the execution is dropped here, where user code belongs.
            drop(answer.send((live, turn)));
        };
        let ticket = self.node.env.run_turn(Box::new(job));
        let limit = self.node.options.turn_timeout;
        let begins_within = limit.map_or(UNSTARTED_MAX, |limit| limit.min(UNSTARTED_MAX));
        let waited = self.node.env.sleep(begins_within);
        let done = match self.lease.beside(select(&mut answered, waited)).await {
            Either::Left((done, _)) => done,
            Either::Right(_) if ticket.withdraw() => {
                // All turn threads are held up. Nothing ran, and another node may be free.
                Box::pin(self.give_back(None, true)).await;
                return None;
            }
            Either::Right(_) => {
                Box::pin(self.long_turn(ticket.as_ref(), limit, begins_within, &mut answered)).await?
            }
        };
        if done.is_err() {
            let instance = &self.claim.instance;
            error!(target: "duroxide::runtime", instance, "a turn panicked; its lease will end it");
            self.node.held.let_go(&self.claim.lock_token);
        }
        done.ok()
    }

    /// Waits for a turn that has begun and is not quick. `None` if it took too long.
    async fn long_turn<T>(
        &mut self,
        ticket: &dyn RunningTurn,
        limit: Option<Duration>,
        waited: Duration,
        answered: &mut oneshot::Receiver<T>,
    ) -> Option<Result<T, oneshot::error::RecvError>> {
        let Some(limit) = limit else { return Some(self.lease.beside(answered).await) };
        let rest = self.node.env.sleep(limit.saturating_sub(waited));
        match self.lease.beside(select(&mut *answered, rest)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => {
                self.give_up_turn(ticket.give_up(), limit, answered).await;
                None
            }
        }
    }

    /// The turn took too long: nobody waits for it and nobody renews its lock.
    async fn give_up_turn<T>(
        &mut self,
        given_up: bool,
        limit: Duration,
        answered: &mut oneshot::Receiver<T>,
    ) {
        let instance = &self.claim.instance;
        let turn_timeout_ms = limit.as_millis() as u64;
        self.node.held.let_go(&self.claim.lock_token);
        warn!(target: "duroxide::runtime", instance, turn_timeout_ms, "turn timed out, its result is ignored");
        if !given_up {
            error!(
                target: "duroxide::runtime",
                instance, "too many turns are stuck in user code; this one keeps its slot"
            );
            let _late = answered.await;
        }
    }
}

impl Source {
    fn unreadable_pin(&self) -> Option<&str> {
        match self {
            Self::Live(live) => live.unreadable_pin.as_deref(),
            Self::Cold(cold) => cold.run.unreadable_pin.as_deref(),
        }
    }

    fn turn_of<'a>(&'a self, instance_id: &'a str) -> TurnOf<'a> {
        let (execution_id, name, version, turns, replays) = match self {
            Self::Live(live) => (live.execution_id, &live.name, &live.version, live.turns, false),
            Self::Cold(cold) => {
                let Run { name, version, seed, .. } = &cold.run;
                let replays = seed.is_none() && !is_seed_only(&cold.history);
                (cold.execution_id, name, version, cold.turns, replays)
            }
        };
        TurnOf {
            instance_id,
            execution_id,
            orchestration_name: name,
            orchestration_version: version,
            turn: turns + 1,
            replays,
        }
    }

    fn run(self, messages: Vec<WorkItem>) -> (Box<CachedExecution>, Turn) {
        let mut live = self.into_live();
        let turn = live.execution.turn(messages);
        (live, turn)
    }

    fn into_live(self) -> Box<CachedExecution> {
        match self {
            Self::Live(live) => live,
            Self::Cold(cold) => Box::new(cold.into_live()),
        }
    }
}

impl Cold {
    fn into_live(self) -> CachedExecution {
        let Run { seed, name, version, unreadable_pin, replayable, .. } = self.run;
        let execution = match seed {
            Some(seed) => Execution::start(seed, self.setup),
            None => Execution::replay(self.history, self.setup),
        };
        CachedExecution {
            execution,
            execution_id: self.execution_id,
            name,
            version,
            turns: self.turns,
            unreadable_pin,
            replayable,
            stand: self.stand,
        }
    }
}

fn kv_of(snapshot: std::collections::HashMap<String, KvEntry>) -> BTreeMap<String, KvEntry> {
    snapshot.into_iter().collect()
}
