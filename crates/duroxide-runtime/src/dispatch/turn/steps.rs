//! Steps that run in place: their work, and waiting for it under the lock of the instance.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use duroxide_core::{
    WorkItem,
    engine::{Execution, Outcome, StepResult, StepWork, Turn},
};
use futures_util::future::{Either, select};
use tokio::sync::Notify;

use super::{InstanceWork, run::Source};
use crate::{
    cache::CachedExecution,
    dispatch::decide::is_wake_up,
    env::{Env, Moment},
};

/// How long the result of a step waits for the results of other steps, to be committed together.
const SHARED_COMMIT_MAX: Duration = Duration::from_millis(5);

/// How long a claim waits for a step before it is given back, so that messages for the instance, such as a cancellation, are
/// received.
const STEP_WAIT_MAX: Duration = Duration::from_millis(500);

/// The steps of an execution that have begun. Dropping them ends their work.
#[derive(Default)]
pub(crate) struct RunningSteps {
    steps: Vec<RunningStep>,
    woken: Arc<Woken>,
}

struct RunningStep {
    number: u64,
    name: String,
    work: StepWork,
}

/// The waker of a step. Steps are polled on turn threads only, because they are user code and may block.
#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl fmt::Debug for RunningSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.steps.iter().map(|step| (step.number, &step.name));
        f.debug_map().entries(names).finish()
    }
}

impl RunningSteps {
    /// Drops the steps that the code gave up. Their work may hold connections and memory.
    pub(super) fn drop_given_up(&mut self, execution: &Execution) {
        let given_up: Vec<_> =
            self.steps.extract_if(.., |step| !execution.waits_for_step(step.number)).collect();
        // Destructors are user code and may panic.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(given_up)));
    }

    /// Begins the steps that the code waits for.
    fn begin(&mut self, execution: &mut Execution) {
        for step in execution.begin_steps() {
            self.steps.push(RunningStep { number: step.number, name: step.name, work: (step.begin)() });
        }
    }

    /// Polls all steps. Returns those that have ended, in the order in which they were called.
    fn poll(&mut self) -> Vec<(u64, String, StepResult)> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut cx = Context::from_waker(&waker);
        let mut ended = Vec::new();
        self.steps.retain_mut(|step| match step.work.as_mut().poll(&mut cx) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                ended.push((step.number, std::mem::take(&mut step.name), result));
                false
            }
        });
        ended
    }
}

/// Runs the steps that a turn leads to, as long as they are quick. Returns the turn with the turns of their results. Must be
/// called on a turn thread.
pub(super) fn run_quick_steps(live: &mut CachedExecution, mut turn: Turn, env: &dyn Env) -> Turn {
    let begun = env.moment();
    while turn.outcome == Outcome::Running && live.execution.has_open_steps() {
        live.steps.begin(&mut live.execution);
        if env.moment().since(begun) >= SHARED_COMMIT_MAX {
            // Steps that were not polled yet are polled in the next turn.
            live.steps.woken.0.notify_one();
            break;
        }
        let ended = live.steps.poll();
        if ended.is_empty() {
            break;
        }
        turn = turn.followed_by(live.execution.steps_ended(ended));
        live.steps.drop_given_up(&live.execution);
    }
    turn
}

impl InstanceWork {
    /// Waits a moment for steps that a turn has begun, and runs the turns of their results: all are committed together.
    pub(super) async fn wait_for_quick_steps(
        &mut self,
        mut live: Box<CachedExecution>,
        mut turn: Box<Turn>,
        begun: Moment,
    ) -> Option<(Box<CachedExecution>, Box<Turn>)> {
        while turn.outcome == Outcome::Running && live.execution.has_open_steps() {
            let spent = self.node.env.moment().since(begun);
            // An execution that is not cached loses its steps with the commit, so they are awaited before it.
            let left = if self.node.cache.keeps(&live) {
                SHARED_COMMIT_MAX.saturating_sub(spent)
            } else {
                Duration::MAX
            };
            if left.is_zero() || !self.step_woken(Arc::clone(&live.steps.woken), left).await {
                break;
            }
            let (ran, next) = self.run_code(Source::Live(live), Vec::new(), None).await?;
            (live, *turn) = (ran, turn.followed_by(*next));
        }
        Some((live, turn))
    }

    /// Waits under the lock for a step that takes long. Gives the claim back, without charging an attempt, if nothing
    /// happened for a while: the next claim brings the messages that have come meanwhile. `None` if it was given back.
    pub(super) async fn wait_for_long_steps(&mut self, source: Source) -> Option<Source> {
        let only_woken = self.claim.messages.iter().all(is_wake_up);
        let Source::Live(live) = source else { return Some(source) };
        if !only_woken || !live.execution.has_open_steps() {
            return Some(Source::Live(live));
        }
        // Other claims may run: this one runs no code while it waits.
        self.slot.submit(0);
        if self.step_woken(Arc::clone(&live.steps.woken), STEP_WAIT_MAX).await || self.lease.ended().is_some()
        {
            return Some(Source::Live(live));
        }
        self.node.drop_on_turn_thread(self.node.cache.put(&self.claim.instance, live));
        self.abandon(None, true).await;
        None
    }

    /// Waits until a step can go on. `false` if none can within `limit`.
    async fn step_woken(&mut self, woken: Arc<Woken>, limit: Duration) -> bool {
        let waited = self.node.env.sleep(limit);
        let notified = Box::pin(async move { woken.0.notified().await });
        matches!(self.lease.renew_during(select(notified, waited)).await, Either::Left(_))
    }

    /// The message that brings an execution back whose steps still run.
    pub(super) fn wake_up(&self, live: &CachedExecution) -> Option<WorkItem> {
        live.execution.has_open_steps().then(|| WorkItem::StartOrchestration {
            instance: self.claim.instance.clone(),
            orchestration: live.name.to_string(),
            input: String::new(),
            version: Some(live.version.to_string()),
            parent_instance: None,
            // Without a parent this marks a wake-up: see `is_wake_up`.
            parent_id: Some(0),
            parent_execution_id: None,
            execution_id: live.execution_id,
        })
    }
}
