//! The tasks that run what the loop of a queue has fetched.
//!
//! The future of a task is large, and to make one for each item costs more than what most items do. So a task that is done
//! with an item waits for the next, and another one is started only if none waits.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, Mutex},
};

use tokio::sync::Semaphore;

use super::slot_guard::SlotGuard;
use crate::env::{Moment, Tasks, lock};

/// Tasks that wait for an item at the same time. A group commit sends many at once to wait; those beyond end.
const IDLE_MAX: usize = 256;

/// What is done with the items of a queue.
pub(crate) trait Runner: Send + Sync + 'static {
    /// A locked item.
    type Claim: Send + 'static;

    /// Runs a claim that was received at `received`.
    fn run(&self, claim: Self::Claim, received: Moment, slot: SlotGuard) -> impl Future<Output = ()> + Send;
}

/// The tasks of a queue. When it is dropped, they finish what was handed to them and end.
pub(super) struct TaskPool<W: Runner> {
    tasks: Tasks,
    label: &'static str,
    shared: Arc<Shared<W>>,
}

/// Where the tasks get their items.
struct Shared<W: Runner> {
    work: Arc<W>,
    state: Mutex<State<W::Claim>>,
    /// A permit for each waiting task that was wait_for_item. It is closed when the pool is gone.
    wakeups: Semaphore,
}

struct State<C> {
    /// Items whose tasks were wait_for_item or started and have not come for them yet.
    queued: VecDeque<QueuedItem<C>>,
    /// Tasks that wait, apart from those wait_for_item.
    idle: usize,
}

struct QueuedItem<C> {
    claim: C,
    received: Moment,
    slot: SlotGuard,
}

impl<W: Runner> TaskPool<W> {
    pub(super) fn new(work: Arc<W>, tasks: Tasks, label: &'static str) -> Self {
        let state = Mutex::new(State { queued: VecDeque::new(), idle: 0 });
        Self { tasks, label, shared: Arc::new(Shared { work, state, wakeups: Semaphore::new(0) }) }
    }

    /// Has an item run at once, beside all others. A panic of it ends its task and nothing else.
    pub(super) fn run(&self, claim: W::Claim, received: Moment, slot: SlotGuard) {
        let mut state = lock(&self.shared.state);
        state.queued.push_back(QueuedItem { claim, received, slot });
        if let Some(idle) = state.idle.checked_sub(1) {
            state.idle = idle;
            drop(state);
            self.shared.wakeups.add_permits(1);
        } else {
            drop(state);
            self.tasks.spawn(self.label, Arc::clone(&self.shared).run_items());
        }
    }
}

impl<W: Runner> Drop for TaskPool<W> {
    fn drop(&mut self) {
        self.shared.wakeups.close();
    }
}

impl<W: Runner> Shared<W> {
    /// The life of one task.
    async fn run_items(self: Arc<Self>) {
        while let Some(QueuedItem { claim, received, slot }) = self.next() {
            self.work.run(claim, received, slot).await;
            if !self.wait_for_item().await {
                return;
            }
        }
    }

    /// `None` only if the pool is gone and all its items are taken: else there is one for each task that comes.
    fn next(&self) -> Option<QueuedItem<W::Claim>> {
        lock(&self.state).queued.pop_front()
    }

    /// Waits to be wait_for_item. `false` if enough others wait already.
    async fn wait_for_item(&self) -> bool {
        {
            let mut state = lock(&self.state);
            if state.idle >= IDLE_MAX {
                return false;
            }
            state.idle += 1;
        }
        if let Ok(wakeup) = self.wakeups.acquire().await {
            wakeup.forget();
        }
        true
    }
}
