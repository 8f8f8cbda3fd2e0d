//! [`Process`]: the tasks of one run of a node, which can be killed and frozen.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use duroxide_runtime::env::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;

use crate::dice::Dice;

/// One in this many polls is postponed behind the other tasks that can run, so that seeds try different orders.
const POLLS_PER_DELAY: u64 = 4;

/// A planned crash of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrashPlan {
    /// The node that reaches this await dies there. Awaits of all nodes are counted, from 0.
    pub(crate) at_await: u64,
}

/// State that the processes of a cluster share: the count of awaits and the order of tasks.
pub(super) struct World {
    state: Mutex<WorldState>,
    /// Sends the number of a node that the plan has killed.
    crashed: UnboundedSender<usize>,
}

struct WorldState {
    awaits: u64,
    plan: Option<CrashPlan>,
    /// Decides which polls are postponed; `None` runs tasks in the order in which they become ready.
    order: Option<Dice>,
}

impl World {
    /// With seed 0 tasks run in the order in which they become ready.
    pub(super) fn new(seed: u64, plan: Option<CrashPlan>, crashed: UnboundedSender<usize>) -> Self {
        let order = (seed != 0).then(|| Dice::new(seed, u64::MAX));
        Self { state: Mutex::new(WorldState { awaits: 0, plan, order }), crashed }
    }

    /// The number of awaits that nodes have reached.
    pub(super) fn awaits(&self) -> u64 {
        lock(&self.state).awaits
    }

    fn is_delayed(&self) -> bool {
        lock(&self.state).order.as_mut().is_some_and(|order| order.below(POLLS_PER_DELAY) == 0)
    }

    /// Counts an await. Returns whether the node dies here.
    fn reached_await(&self, node: usize) -> bool {
        let mut state = lock(&self.state);
        let number = state.awaits;
        state.awaits += 1;
        let dies = state.plan.is_some_and(|plan| plan.at_await == number);
        if dies {
            let _ = self.crashed.send(node);
        }
        dies
    }
}

/// The tasks of one run of a node.
pub(super) struct Process {
    node: usize,
    world: Arc<World>,
    state: Mutex<ProcessState>,
}

#[derive(Default)]
struct ProcessState {
    dead: bool,
    paused: bool,
    next: u64,
    tasks: BTreeMap<u64, Arc<TaskCell>>,
    /// Tasks that were polled while the process was frozen.
    parked: Vec<Waker>,
}

/// A task's future; `None` while it is polled, and when it has ended.
type TaskCell = Mutex<Option<BoxFuture>>;

impl Process {
    pub(super) fn new(node: usize, world: Arc<World>) -> Arc<Self> {
        Arc::new(Self { node, world, state: Mutex::default() })
    }

    pub(super) fn node(&self) -> usize {
        self.node
    }

    pub(super) fn is_alive(&self) -> bool {
        !lock(&self.state).dead
    }

    /// Spawns a task. A dead process drops it.
    pub(super) fn spawn(self: &Arc<Self>, future: BoxFuture) {
        let mut state = lock(&self.state);
        if state.dead {
            drop(state);
            return drop(future);
        }
        let cell = Arc::new(Mutex::new(Some(future)));
        let id = state.next;
        state.next += 1;
        state.tasks.insert(id, Arc::clone(&cell));
        drop(state);
        tokio::spawn(Member { id, cell, process: Arc::clone(self) });
    }

    /// Drops every task where it awaits. A task that is being polled is dropped when the poll returns.
    pub(super) fn kill(&self) {
        let tasks = {
            let mut state = lock(&self.state);
            state.dead = true;
            state.parked.clear();
            std::mem::take(&mut state.tasks)
        };
        for cell in tasks.into_values() {
            let future = lock(&cell).take();
            drop(future);
        }
    }

    pub(super) fn pause(&self) {
        lock(&self.state).paused = true;
    }

    pub(super) fn resume(&self) {
        let parked = {
            let mut state = lock(&self.state);
            state.paused = false;
            std::mem::take(&mut state.parked)
        };
        parked.into_iter().for_each(Waker::wake);
    }

    /// Whether the process is frozen. If so, [`Self::resume`] wakes the task.
    fn is_parked(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.state);
        if state.paused {
            state.parked.push(waker.clone());
        }
        state.paused
    }
}

/// A task of a process.
struct Member {
    id: u64,
    cell: Arc<TaskCell>,
    process: Arc<Process>,
}

impl Future for Member {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let process = &self.process;
        if process.is_parked(cx.waker()) {
            return Poll::Pending;
        }
        if process.world.is_delayed() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(mut future) = lock(&self.cell).take() else { return Poll::Ready(()) };
        if future.as_mut().poll(cx).is_ready() {
            lock(&process.state).tasks.remove(&self.id);
            return Poll::Ready(());
        }
        if process.is_alive() && process.world.reached_await(process.node) {
            process.kill();
        }
        if !process.is_alive() {
            return Poll::Ready(());
        }
        *lock(&self.cell) = Some(future);
        Poll::Pending
    }
}

/// Nothing that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
