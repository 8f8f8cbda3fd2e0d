//! Tasks that the runtime owns: it can abort each of them, and wait until all have ended.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;
use tracing::error;

use super::{BoxFuture, Env, lock, wait_for};

/// A group of tasks.
///
/// The caller of an abort drops the task's future at once, instead of the executor when it next polls the task. So all
/// resources of the tasks are released when `abort_all` has returned, even if the executor is not running.
#[derive(Clone)]
pub(crate) struct Tasks {
    env: Arc<dyn Env>,
    group: Arc<Group>,
    are_user_code: bool,
}

#[derive(Default)]
struct Group {
    members: Mutex<Members>,
    ended: Notify,
}

#[derive(Default)]
struct Members {
    next: u64,
    alive: BTreeMap<u64, Arc<Cell>>,
    closed: bool,
}

struct Cell {
    label: Cow<'static, str>,
    state: Mutex<CellState>,
}

#[derive(Default)]
struct CellState {
    future: Option<BoxFuture>,
    waker: Option<Waker>,
    polling: bool,
    aborted: bool,
}

/// One task of a group.
pub(crate) struct Task {
    id: u64,
    group: Arc<Group>,
}

impl Tasks {
    pub(crate) fn new(env: Arc<dyn Env>) -> Self {
        Self { env, group: Arc::default(), are_user_code: false }
    }

    /// A group of tasks that may block their threads.
    pub(crate) fn of_user_code(env: Arc<dyn Env>) -> Self {
        Self { are_user_code: true, ..Self::new(env) }
    }

    /// Spawns a task. After [`Self::abort_all`] the task is dropped instead.
    pub(crate) fn spawn(
        &self,
        label: impl Into<Cow<'static, str>>,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        let state = CellState { future: Some(Box::pin(future)), ..CellState::default() };
        let cell = Arc::new(Cell { label: label.into(), state: Mutex::new(state) });
        let mut members = lock(&self.group.members);
        let id = members.next;
        members.next += 1;
        if !members.closed {
            members.alive.insert(id, Arc::clone(&cell));
            drop(members);
            let owned = Box::pin(Owned { id, cell, group: Arc::clone(&self.group) });
            if self.are_user_code { self.env.spawn_user_code(owned) } else { self.env.spawn(owned) }
        }
        Task { id, group: Arc::clone(&self.group) }
    }

    /// Aborts every task. A task that is being polled is dropped when that poll returns.
    pub(crate) fn abort_all(&self) {
        let cells: Vec<(u64, Arc<Cell>)> = {
            let mut members = lock(&self.group.members);
            members.closed = true;
            members.alive.iter().map(|(id, cell)| (*id, Arc::clone(cell))).collect()
        };
        for (id, cell) in cells {
            self.group.abort(id, &cell);
        }
    }

    /// Resolves when all tasks have ended.
    pub(crate) async fn ended(&self) {
        wait_for(&self.group.ended, || lock(&self.group.members).alive.is_empty()).await;
    }

    /// The labels of the tasks that have not ended.
    pub(crate) fn labels(&self) -> Vec<String> {
        lock(&self.group.members).alive.values().map(|cell| cell.label.to_string()).collect()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.labels()).finish()
    }
}

impl Task {
    /// Aborts the task. If it is being polled, it is dropped when that poll returns.
    pub(crate) fn abort(&self) {
        let cell = lock(&self.group.members).alive.get(&self.id).cloned();
        if let Some(cell) = cell {
            self.group.abort(self.id, &cell);
        }
    }
}

impl Group {
    fn abort(&self, id: u64, cell: &Cell) {
        let mut state = lock(&cell.state);
        state.aborted = true;
        if state.polling {
            return;
        }
        let (future, waker) = (state.future.take(), state.waker.take());
        drop(state);
        self.finish(id, &cell.label, future);
        // Lets the executor drop its empty shell.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Drops the future. Destructors are foreign code, whose panic must not reach the caller.
    fn finish(&self, id: u64, label: &str, future: Option<BoxFuture>) {
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            error!(target: "duroxide::runtime", task = label, "a task panicked while it was dropped");
        }
        lock(&self.members).alive.remove(&id);
        self.ended.notify_waiters();
    }
}

/// The future that the executor polls: a shell around the cell, which owns the task's future.
struct Owned {
    id: u64,
    cell: Arc<Cell>,
    group: Arc<Group>,
}

impl Future for Owned {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut future) = self.begin_poll(cx) else { return Poll::Ready(()) };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        if polled.is_err() {
            error!(target: "duroxide::runtime", task = &*self.cell.label, "a task panicked");
        }
        let pending = matches!(polled, Ok(Poll::Pending));
        let mut state = lock(&self.cell.state);
        state.polling = false;
        if pending && !state.aborted {
            state.future = Some(future);
            return Poll::Pending;
        }
        drop(state);
        self.group.finish(self.id, &self.cell.label, Some(future));
        Poll::Ready(())
    }
}

impl Owned {
    fn begin_poll(&self, cx: &Context<'_>) -> Option<BoxFuture> {
        let mut state = lock(&self.cell.state);
        let future = state.future.take()?;
        state.polling = true;
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Some(future)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // The executor was dropped, or this task has ended. In the second case nothing is left to do.
        let future = lock(&self.cell.state).future.take();
        if future.is_some() {
            self.group.finish(self.id, &self.cell.label, future);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::RealEnv;

    fn tasks() -> Tasks {
        Tasks::new(Arc::new(RealEnv::new(1)))
    }

    #[tokio::test]
    async fn an_aborted_task_holds_nothing_when_abort_returns() {
        let tasks = tasks();
        let held = Arc::new(());
        let inside = Arc::clone(&held);
        tasks.spawn("parked", async move {
            let _inside = inside;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        tasks.abort_all();
        assert_eq!(Arc::strong_count(&held), 1);
        tasks.ended().await;
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_task() {
        let tasks = tasks();
        tasks.spawn("broken", async { panic!("foreign code") });
        let (done, second) = tokio::sync::oneshot::channel();
        tasks.spawn("healthy", async move { done.send(()).unwrap() });
        second.await.unwrap();
        tasks.ended().await;
        assert!(tasks.labels().is_empty());
    }

    #[test]
    fn tasks_end_with_their_executor() {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = executor.block_on(async { tasks() });
        tasks.spawn("parked", std::future::pending());
        assert_eq!(tasks.labels(), ["parked"]);
        drop(executor);
        assert!(tasks.labels().is_empty());
    }

    #[test]
    fn tasks_can_be_aborted_where_nothing_drives_their_executor() {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = executor.block_on(async { tasks() });
        tasks.spawn("parked", std::future::pending());
        tasks.abort_all();
        assert!(tasks.labels().is_empty());
    }

    #[tokio::test]
    async fn nothing_starts_after_the_end() {
        let tasks = tasks();
        tasks.abort_all();
        let (never, dropped) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn("late", async move {
            let _ = never.send(());
        });
        assert!(dropped.await.is_err());
    }
}
