//! [`TaskPool`]: the tasks that run the items of a queue.
//!
//! The future of such a task is large, and allocating one for each item costs more than most items do. So a task that
//! has finished an item waits for the next one, and a new task is spawned only if none waits.

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

/// Idle tasks kept. A group commit finishes many items at once; tasks beyond this number end.
const IDLE_MAX: usize = 256;

/// Runs the items of a queue.
pub(crate) trait Runner: Send + Sync + 'static {
    type Claim: Send + 'static;

    /// Runs a claim that was fetched at `received`.
    fn run(&self, claim: Self::Claim, received: Moment, slot: SlotGuard) -> impl Future<Output = ()> + Send;
}

/// The tasks of a queue. After the pool is dropped, its tasks finish the items handed to them and end.
pub(super) struct TaskPool<W: Runner> {
    tasks: Tasks,
    label: &'static str,
    shared: Arc<Shared<W>>,
}

/// What the pool and its tasks share.
struct Shared<W: Runner> {
    work: Arc<W>,
    state: Mutex<State<W::Claim>>,
    /// One permit for each idle task that was woken. Closed when the pool is dropped.
    wakeups: Semaphore,
}

struct State<C> {
    /// Items for tasks that were woken or spawned and have not taken them yet.
    queued: VecDeque<QueuedItem<C>>,
    /// Idle tasks, without those that were woken.
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

    /// Runs an item at once, concurrently with all others. If it panics, only its task ends.
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
    /// Runs items one after the other: the body of one task.
    async fn run_items(self: Arc<Self>) {
        while let Some(QueuedItem { claim, received, slot }) = self.next() {
            self.work.run(claim, received, slot).await;
            if !self.wait_for_item().await {
                return;
            }
        }
    }

    /// `None` only after the pool was dropped and all items are taken. Otherwise there is an item for each woken task.
    fn next(&self) -> Option<QueuedItem<W::Claim>> {
        lock(&self.state).queued.pop_front()
    }

    /// Waits until the task is woken for an item. Returns `false` at once if enough tasks are idle.
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
