//! [`TaskPool`]: tasks that run one item after the other.
//!
//! The future that runs a claim has more than 1 KiB, and a group commit brings a hundred claims at once. Spawning a task for each of
//! them costs more than most items do. So a task that has finished its item waits for the next one, and a new task is spawned
//! only if none waits.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, Mutex},
};

use tokio::sync::Semaphore;

use crate::env::{Tasks, lock};

/// How many tasks may wait for an item. The others end when they have finished theirs.
const IDLE_MAX: usize = 256;

/// What the tasks of a pool do.
pub(super) trait Work: Send + Sync + 'static {
    type Item: Send + 'static;

    fn run(self: Arc<Self>, item: Self::Item) -> impl Future<Output = ()> + Send;
}

/// Tasks that run items. When the pool is dropped, they finish the items that it was given, and end.
pub(super) struct TaskPool<W: Work> {
    tasks: Tasks,
    label: &'static str,
    shared: Arc<Shared<W>>,
}

struct Shared<W: Work> {
    work: Arc<W>,
    state: Mutex<State<W::Item>>,
    /// A permit for each waiting task that has an item to run. Closed when the pool is dropped.
    woken: Semaphore,
}

struct State<T> {
    /// Items that no task has begun to run. A task was woken or spawned for each of them.
    items: VecDeque<T>,
    /// Tasks that wait, without those that were woken.
    idle: usize,
}

impl<W: Work> TaskPool<W> {
    pub(super) fn new(work: Arc<W>, tasks: Tasks, label: &'static str) -> Self {
        let state = Mutex::new(State { items: VecDeque::new(), idle: 0 });
        Self { tasks, label, shared: Arc::new(Shared { work, state, woken: Semaphore::new(0) }) }
    }

    /// Runs an item at once, beside all others. If the item panics, only its task ends.
    pub(super) fn run(&self, item: W::Item) {
        let mut state = lock(&self.shared.state);
        state.items.push_back(item);
        if let Some(idle) = state.idle.checked_sub(1) {
            state.idle = idle;
            drop(state);
            self.shared.woken.add_permits(1);
        } else {
            drop(state);
            self.tasks.spawn(self.label, Arc::clone(&self.shared).run_items());
        }
    }
}

impl<W: Work> Drop for TaskPool<W> {
    fn drop(&mut self) {
        self.shared.woken.close();
    }
}

impl<W: Work> Shared<W> {
    /// The body of one task.
    async fn run_items(self: Arc<Self>) {
        while let Some(item) = self.next_item() {
            Arc::clone(&self.work).run(item).await;
            if !self.wait().await {
                return;
            }
        }
    }

    /// The next item. `None` only if the pool was dropped and all its items have begun.
    fn next_item(&self) -> Option<W::Item> {
        lock(&self.state).items.pop_front()
    }

    /// Waits until there is an item for this task, or the pool is dropped. Returns `false` if enough tasks wait already.
    async fn wait(&self) -> bool {
        {
            let mut state = lock(&self.state);
            if state.idle >= IDLE_MAX {
                return false;
            }
            state.idle += 1;
        }
        if let Ok(permit) = self.woken.acquire().await {
            permit.forget();
        }
        true
    }
}
