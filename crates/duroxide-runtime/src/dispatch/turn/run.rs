//! Runs a turn: finds or builds its execution and waits for a turn thread.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide_core::{
    ConfigErrorKind, ErrorDetails, Event, KvEntry, OrchestrationHandlerRef, ParentLink, TraceContext,
    TracedInput, WorkItem,
    engine::{Execution, Outcome, Setup, Turn},
};
use duroxide_provider::{LoadedExecution, VersionTriple};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;
use tracing::{error, warn};

use super::{
    InstanceWork, RunningSteps,
    commit::TurnResult,
    round::{Notice, refused_starts},
    steps::run_quick_steps,
    trace::carry_trace,
};
use crate::{
    cache::{CachedExecution, HistoryPosition},
    dispatch::{
        decide::{Run, Unprocessable, is_seed_only, recorded_parent, recorded_trace, start_item},
        measure::{End, Facts},
        quarantine::{RunPermit, SUSPECT_RETRY_DELAY, StartGuard},
    },
    env::RunningTurn,
    observability::{TurnOf, turn_outcome, turn_span},
};

/// The execution of a turn.
pub(super) enum Source {
    Live(Box<CachedExecution>),
    Cold(Box<Cold>),
}

/// The source of a new execution: its start, or its history.
pub(super) struct Cold {
    pub run: Run,
    pub setup: Setup,
    pub execution_id: u64,
    pub history: Vec<Event>,
    pub position: HistoryPosition,
    pub turns: u64,
    pub trace: Option<TraceContext>,
}

impl Source {
    /// The version stamp of the start event, if it is not a valid version.
    fn unreadable_pin(&self) -> Option<&str> {
        match self {
            Self::Live(live) => live.unreadable_pin.as_deref(),
            Self::Cold(cold) => cold.run.unreadable_pin.as_deref(),
        }
    }

    /// The version that started the execution, if it is to be replayed and the version is later than this build.
    fn later_pin(&self) -> Option<VersionTriple> {
        match self {
            Self::Live(_) => None,
            Self::Cold(cold) => cold.run.later_pin,
        }
    }

    fn is_first_turn(&self) -> bool {
        match self {
            Self::Live(live) => live.turns == 0,
            Self::Cold(cold) => !cold.replays(),
        }
    }

    fn turn_of<'a>(&'a self, instance_id: &'a str) -> TurnOf<'a> {
        let (execution_id, name, version, turns, replays, trace) = match self {
            Self::Live(live) => {
                (live.execution_id, &*live.name, &*live.version, live.turns, false, &live.trace)
            }
            Self::Cold(cold) => {
                let Run { name, version, .. } = &cold.run;
                (cold.execution_id, &**name, &**version, cold.turns, cold.replays(), &cold.trace)
            }
        };
        TurnOf {
            instance_id,
            execution_id,
            orchestration_name: name,
            orchestration_version: version,
            turn: turns + 1,
            replays,
            trace: trace.as_ref(),
        }
    }

    /// Where the execution comes from, for metrics.
    fn label(&self) -> &'static str {
        match self {
            Self::Live(_) => "cache",
            Self::Cold(cold) if cold.replays() => "replay",
            Self::Cold(_) => "new",
        }
    }

    /// The execution. A replay runs user code, so this must be called on a turn thread.
    fn build(self) -> Box<CachedExecution> {
        let cold = match self {
            Self::Live(live) => return live,
            Self::Cold(cold) => *cold,
        };
        let Run { seed, name, version, unreadable_pin, replayable, .. } = cold.run;
        let execution = match seed {
            Some(seed) => Execution::start(seed, cold.setup),
            None => Execution::replay(cold.history, cold.setup),
        };
        Box::new(CachedExecution {
            execution,
            execution_id: cold.execution_id,
            name: name.into(),
            version: version.into(),
            turns: cold.turns,
            unreadable_pin,
            replayable,
            trace: cold.trace,
            position: cold.position,
            steps: RunningSteps::default(),
        })
    }
}

impl Cold {
    /// Whether the code first replays recorded events.
    fn replays(&self) -> bool {
        self.run.seed.is_none() && !is_seed_only(&self.history)
    }
}

impl InstanceWork {
    /// An execution that is built from its start or its history.
    pub(super) fn cold(&self, run: Run, loaded: LoadedExecution) -> Source {
        let setup = self.setup(Arc::clone(&run.handler), loaded.kv_snapshot.into_iter().collect());
        let (execution_id, stored, trace) = match &run.seed {
            Some(seed) => (seed.execution_id, &[][..], TracedInput::context_of(&seed.input)),
            None => (self.claim.execution_id, &*loaded.history, recorded_trace(&loaded.history)),
        };
        let mut cold = Box::new(Cold {
            execution_id,
            position: HistoryPosition::of(&self.claim, stored),
            turns: 0,
            trace,
            run,
            setup,
            history: loaded.history,
        });
        if cold.replays() {
            cold.turns = self.claim.position.map_or(0, |position| position.turns);
        }
        Source::Cold(cold)
    }

    pub(super) fn setup(&self, handler: OrchestrationHandlerRef, kv: BTreeMap<String, KvEntry>) -> Setup {
        Setup {
            handler,
            clock: Arc::clone(&self.node.clock),
            limits: self.node.options.limits.clone(),
            worker_id: Some(format!("orch-{}-{}", self.slot.number(), self.node.id)),
            kv,
        }
    }

    /// The messages to parents whose child starts are not accepted.
    pub(super) fn refuse_starts(
        &self,
        accepted: Option<&WorkItem>,
        recorded: Option<&ParentLink>,
    ) -> Vec<Notice> {
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

    /// The messages to parents whose child starts the turn does not accept.
    fn collisions(&self, source: &Source) -> Vec<Notice> {
        match source {
            Source::Live(live) => self.refuse_starts(None, live.execution.parent()),
            Source::Cold(cold) => match &cold.run.seed {
                Some(seed) => self.refuse_starts(start_item(&self.claim.messages), seed.parent.as_ref()),
                None => self.refuse_starts(None, recorded_parent(&cold.history).as_ref()),
            },
        }
    }

    /// Runs a turn. `None` if there is no result to commit; then the claim was abandoned or is left to its lease.
    pub(super) async fn run_turn(&mut self, source: Source) -> Option<Box<TurnResult>> {
        let (collisions, first_turn) = (self.collisions(&source), source.is_first_turn());
        if let Some(stamp) = source.unreadable_pin() {
            warn!(
                target: "duroxide::runtime",
                instance = self.claim.instance, pinned_version = stamp,
                "Invalid pinned version on OrchestrationStarted, treating it as compatible"
            );
        }
        // Held until the round is committed, because the turn may crash the process.
        let mut permit = match &self.suspect {
            None => None,
            Some(suspect) => {
                match self.lease.renew_during(Box::pin(suspect.run_permit(&self.node.env))).await {
                    Some(permit) => Some(permit),
                    None => {
                        Box::pin(self.abandon_suspect(source)).await;
                        return None;
                    }
                }
            }
        };
        let source = self.wait_for_long_steps(source).await?;
        let later_pin = source.later_pin();
        let messages = std::mem::take(&mut self.claim.messages);
        let starting = permit.as_mut().and_then(RunPermit::starting);
        self.node.metrics.record_turn(source.label());
        let begun = self.node.env.moment();
        let (mut live, mut turn) = self.run_code(source, messages, starting).await?;
        if live.execution.has_open_steps() {
            (live, turn) = Box::pin(self.wait_for_quick_steps(live, turn, begun)).await?;
        }
        if self.lease.ended().is_some() {
            self.node.drop_on_turn_thread([*live]);
            self.lock_lost("during a turn");
            return None;
        }
        if let Some(other_rules) = later_pin.and_then(|pinned| other_rules(pinned, &turn)) {
            self.node.drop_on_turn_thread([*live]);
            Box::pin(self.abandon_unprocessable(other_rules)).await;
            return None;
        }
        let facts = Facts {
            name: Arc::clone(&live.name),
            version: Arc::clone(&live.version),
            execution_id: live.execution_id,
            first_turn,
            end: End::of(&turn.outcome),
            turns: live.turns + 1,
            history_events: live.execution.last_event_id(),
            started_at_ms: Some(live.execution.started_at_ms()),
            parent: turn.parent.clone(),
            ended: None,
        };
        Some(Box::new(TurnResult { turn, facts, collisions, live: Some(live) }))
    }

    /// Abandons the claim without charging an attempt, because other suspects run. The claim is fetched again later.
    async fn abandon_suspect(&mut self, source: Source) {
        if let Source::Live(live) = source {
            self.node.drop_on_turn_thread([*live]);
        }
        self.abandon(Some(SUSPECT_RETRY_DELAY), true).await;
    }

    /// Runs user code on a turn thread. `None` if the turn did not return in time, or panicked. The claim is then left
    /// to its lease, so that the attempt counts.
    pub(super) async fn run_code(
        &mut self,
        source: Source,
        messages: Vec<WorkItem>,
        starting: Option<StartGuard>,
    ) -> Option<(Box<CachedExecution>, Box<Turn>)> {
        let (answer, mut answered) = oneshot::channel();
        let running = self.node.turns.begin(self.claim.instance.clone());
        let span = turn_span(&source.turn_of(&self.claim.instance));
        let env = Arc::clone(&self.node.env);
        let job = move || {
            let _running = running;
            if let Some(starting) = &starting {
                starting.begin();
            }
            let (live, mut turn) = span.in_scope(|| {
                let mut live = source.build();
                let mut turn = live.execution.turn(messages);
                live.steps.drop_given_up(&live.execution);
                if live.execution.has_open_steps() {
                    turn = run_quick_steps(&mut live, turn, env.as_ref());
                }
                (live, turn)
            });
            drop(starting);
            carry_trace(&mut turn, live.trace.as_ref(), &span);
            span.record("outcome", turn_outcome(&turn.outcome));
            // Closes the span before the result is sent.
            drop(span);
            // If the receiver was dropped, the execution is dropped here, on a turn thread.
            drop(answer.send((live, Box::new(turn))));
        };
        let ticket = self.node.env.run_turn(Box::new(job));
        let limit = self.node.options.turn_timeout;
        let begins_within = limit.unwrap_or(Duration::MAX).min(self.slot.unstarted_max());
        let waited = self.node.env.sleep(begins_within);
        let done = match self.lease.renew_during(select(&mut answered, waited)).await {
            Either::Left((done, _)) => done,
            Either::Right(_) if ticket.withdraw() => {
                // All turn threads are busy. Nothing ran, and another node may have a free thread.
                Box::pin(self.abandon(None, true)).await;
                return None;
            }
            Either::Right(_) => {
                Box::pin(self.long_turn(ticket.as_ref(), limit, begins_within, &mut answered)).await?
            }
        };
        if done.is_err() {
            let instance = &self.claim.instance;
            error!(target: "duroxide::runtime", instance, "a turn panicked; its lock ends with its lease");
            self.node.locks.remove(&self.claim.lock_token);
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
        let Some(limit) = limit else { return Some(self.lease.renew_during(answered).await) };
        let rest = self.node.env.sleep(limit.saturating_sub(waited));
        match self.lease.renew_during(select(&mut *answered, rest)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => {
                self.give_up_turn(ticket.give_up(), limit, answered).await;
                None
            }
        }
    }

    /// Stops waiting for a turn that took too long. Its lock is no longer renewed.
    async fn give_up_turn<T>(
        &mut self,
        given_up: bool,
        limit: Duration,
        answered: &mut oneshot::Receiver<T>,
    ) {
        let instance = &self.claim.instance;
        let turn_timeout_ms = limit.as_millis() as u64;
        self.node.locks.remove(&self.claim.lock_token);
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

/// The reason to abandon an execution of a later version that does not match its history. The cause may be this older
/// engine, so a node that knows the later rules runs it instead of failing it here.
fn other_rules(pinned: VersionTriple, turn: &Turn) -> Option<Unprocessable> {
    let Outcome::Failed { details } = &turn.outcome else { return None };
    let nondeterminism =
        matches!(details, ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, .. });
    nondeterminism.then(|| Unprocessable::OtherRules { pinned, mismatch: details.display_message() })
}
