//! [`TaskPool`]: tasks that process one claim after the other.
//!
//! The future that processes a claim has more than 1 KiB, and a group commit brings a hundred claims at once. Spawning a
//! task for each of them costs more than most claims do. So a task that has finished its claim waits for the next one, and
//! a new task is spawned only if none waits.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use tokio::sync::Semaphore;

use super::{Started, WorkQueue};
use crate::env::{Tasks, lock};

/// How many tasks may wait for a claim. Further tasks end with their claims.
const IDLE_MAX: usize = 256;

/// Tasks that process the claims of a queue. When the pool is dropped, they finish the claims that it was given, and end.
pub(super) struct TaskPool<Q: WorkQueue> {
    tasks: Tasks,
    shared: Arc<Shared<Q>>,
}

struct Shared<Q: WorkQueue> {
    queue: Arc<Q>,
    state: Mutex<State<Q::Claim>>,
    /// A permit for each waiting task that has a claim to process. Closed when the pool is dropped.
    woken: Semaphore,
}

struct State<C> {
    /// Claims that no task has begun to process. A task was woken or spawned for each of them.
    started: VecDeque<Started<C>>,
    /// Tasks that wait, without those that were woken.
    idle: usize,
}

impl<Q: WorkQueue> TaskPool<Q> {
    pub(super) fn new(queue: Arc<Q>, tasks: Tasks) -> Self {
        let state = Mutex::new(State { started: VecDeque::new(), idle: 0 });
        Self { tasks, shared: Arc::new(Shared { queue, state, woken: Semaphore::new(0) }) }
    }

    /// Processes a claim at once, in a task of its own or in one that waits. If that panics, only its task ends.
    pub(super) fn spawn(&self, started: Started<Q::Claim>) {
        let mut state = lock(&self.shared.state);
        state.started.push_back(started);
        if let Some(idle) = state.idle.checked_sub(1) {
            state.idle = idle;
            drop(state);
            self.shared.woken.add_permits(1);
        } else {
            drop(state);
            self.tasks.spawn(Q::NAME, Arc::clone(&self.shared).process_claims());
        }
    }
}

impl<Q: WorkQueue> Drop for TaskPool<Q> {
    fn drop(&mut self) {
        self.shared.woken.close();
    }
}

impl<Q: WorkQueue> Shared<Q> {
    /// The body of one task.
    async fn process_claims(self: Arc<Self>) {
        loop {
            let next = lock(&self.state).started.pop_front();
            // There is none only if the pool was dropped and all its claims have begun.
            let Some(started) = next else { return };
            Arc::clone(&self.queue).process(started).await;
            if !self.wait().await {
                return;
            }
        }
    }

    /// Waits until there is a claim for this task, or the pool is dropped. Returns `false` if enough tasks wait already.
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
