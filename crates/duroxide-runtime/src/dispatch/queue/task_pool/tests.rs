//! Tests of the task pool.

use tokio::{
    sync::{oneshot, watch},
    task::yield_now,
};

use super::*;
use crate::env::{BoxFuture, RealEnv};

/// Runs items that are futures.
struct RunFutures;

impl Work for RunFutures {
    type Item = BoxFuture;

    async fn run(self: Arc<Self>, item: BoxFuture) {
        item.await;
    }
}

struct Fixture {
    tasks: Tasks,
    pool: TaskPool<RunFutures>,
}

impl Fixture {
    fn new() -> Self {
        let tasks = Tasks::new(Arc::new(RealEnv::new(1)));
        let pool = TaskPool::new(Arc::new(RunFutures), tasks.clone(), "item");
        Self { tasks, pool }
    }

    fn run(&self, item: impl Future<Output = ()> + Send + 'static) {
        self.pool.run(Box::pin(item));
    }

    /// Runs an item to its end.
    async fn run_one(&self) {
        let (done, ended) = oneshot::channel();
        self.run(async move { done.send(()).unwrap() });
        ended.await.unwrap();
        // The executor of the test has one thread: the task waits again before this one continues.
        yield_now().await;
    }

    /// How many tasks there are, and how many of them wait.
    fn alive_and_idle(&self) -> (usize, usize) {
        (self.tasks.labels().len(), lock(&self.pool.shared.state).idle)
    }
}

#[tokio::test]
async fn a_task_that_has_finished_runs_the_next_item() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.run_one().await;
        assert_eq!(fixture.alive_and_idle(), (1, 1));
    }
}

#[tokio::test]
async fn an_item_that_does_not_end_delays_no_other() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    fixture.run(std::future::pending());
    fixture.run_one().await;
    fixture.run_one().await;
    assert_eq!(fixture.alive_and_idle(), (2, 1));
}

#[tokio::test]
async fn a_panic_ends_only_its_own_task() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    fixture.run(async move {
        let _inside = inside;
        panic!("an item");
    });
    fixture.run_one().await;
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(fixture.alive_and_idle(), (1, 1));
}

#[tokio::test]
async fn a_bounded_number_of_tasks_waits() {
    let fixture = Fixture::new();
    let gate = watch::Sender::new(false);
    for _ in 0..IDLE_MAX + 10 {
        let mut opened = gate.subscribe();
        fixture.run(async move {
            opened.wait_for(|opened| *opened).await.unwrap();
        });
    }
    assert_eq!(fixture.alive_and_idle(), (IDLE_MAX + 10, 0));
    gate.send_replace(true);
    gate.closed().await;
    yield_now().await;
    assert_eq!(fixture.alive_and_idle(), (IDLE_MAX, IDLE_MAX));
    fixture.run_one().await;
    assert_eq!(fixture.alive_and_idle(), (IDLE_MAX, IDLE_MAX));
}

#[tokio::test]
async fn waiting_tasks_end_with_the_pool() {
    let Fixture { tasks, pool } = Fixture::new();
    let (done, ended) = oneshot::channel();
    pool.run(Box::pin(async move { done.send(()).unwrap() }));
    ended.await.unwrap();
    drop(pool);
    tasks.ended().await;
}

/// 21.1: items that a node has started go on while it shuts down.
#[tokio::test]
async fn items_run_although_their_pool_was_dropped() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    let (by_waiting_task, first) = oneshot::channel();
    let (by_new_task, second) = oneshot::channel();
    fixture.run(async move { by_waiting_task.send(()).unwrap() });
    fixture.run(async move { by_new_task.send(()).unwrap() });
    let Fixture { tasks, pool } = fixture;
    drop(pool);
    first.await.unwrap();
    second.await.unwrap();
    tasks.ended().await;
}

#[tokio::test]
async fn an_aborted_item_is_dropped() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    fixture.run(async move {
        let _inside = inside;
        std::future::pending::<()>().await;
    });
    yield_now().await;
    fixture.tasks.abort_all();
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(fixture.tasks.labels().is_empty());
}
