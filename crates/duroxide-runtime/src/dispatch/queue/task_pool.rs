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

use super::slot_guard::Seat;
use crate::env::{Moment, Tasks, lock};

/// Tasks that wait for an item at the same time. A group commit sends many at once to wait; those beyond end.
const IDLE_MAX: usize = 256;

/// What is done with the items of a queue.
pub(crate) trait Work: Send + Sync + 'static {
    /// A locked item.
    type Claim: Send + 'static;

    /// Runs a claim that was received at `received`.
    fn run(&self, claim: Self::Claim, received: Moment, seat: Seat) -> impl Future<Output = ()> + Send;
}

/// The tasks of a queue. When it is dropped, they finish what was handed to them and end.
pub(super) struct Crew<W: Work> {
    tasks: Tasks,
    label: &'static str,
    desk: Arc<Desk<W>>,
}

/// Where the tasks get their items.
struct Desk<W: Work> {
    work: Arc<W>,
    state: Mutex<State<W::Claim>>,
    /// A permit for each waiting task that was called. It is closed when the crew is gone.
    calls: Semaphore,
}

struct State<C> {
    /// Items whose tasks were called or started and have not come for them yet.
    errands: VecDeque<Errand<C>>,
    /// Tasks that wait, apart from those called.
    idle: usize,
}

struct Errand<C> {
    claim: C,
    received: Moment,
    seat: Seat,
}

impl<W: Work> Crew<W> {
    pub(super) fn new(work: Arc<W>, tasks: Tasks, label: &'static str) -> Self {
        let state = Mutex::new(State { errands: VecDeque::new(), idle: 0 });
        Self { tasks, label, desk: Arc::new(Desk { work, state, calls: Semaphore::new(0) }) }
    }

    /// Has an item run at once, beside all others. A panic of it ends its task and nothing else.
    pub(super) fn run(&self, claim: W::Claim, received: Moment, seat: Seat) {
        let mut state = lock(&self.desk.state);
        state.errands.push_back(Errand { claim, received, seat });
        if let Some(idle) = state.idle.checked_sub(1) {
            state.idle = idle;
            drop(state);
            self.desk.calls.add_permits(1);
        } else {
            drop(state);
            self.tasks.spawn(self.label, Arc::clone(&self.desk).serve());
        }
    }
}

impl<W: Work> Drop for Crew<W> {
    fn drop(&mut self) {
        self.desk.calls.close();
    }
}

impl<W: Work> Desk<W> {
    /// The life of one task.
    async fn serve(self: Arc<Self>) {
        while let Some(Errand { claim, received, seat }) = self.next() {
            self.work.run(claim, received, seat).await;
            if !self.called().await {
                return;
            }
        }
    }

    /// `None` only if the crew is gone and all its items are taken: else there is one for each task that comes.
    fn next(&self) -> Option<Errand<W::Claim>> {
        lock(&self.state).errands.pop_front()
    }

    /// Waits to be called. `false` if enough others wait already.
    async fn called(&self) -> bool {
        {
            let mut state = lock(&self.state);
            if state.idle >= IDLE_MAX {
                return false;
            }
            state.idle += 1;
        }
        if let Ok(call) = self.calls.acquire().await {
            call.forget();
        }
        true
    }
}
