//! Tests of the task pool.

use std::sync::Arc;

use tokio::{
    sync::{oneshot, watch},
    task::yield_now,
};

use super::*;
use crate::env::{BoxFuture, Env, RealEnv};

/// A queue whose items are futures.
struct Futures;

impl Runner for Futures {
    type Claim = BoxFuture;

    async fn run(&self, claim: BoxFuture, _received: Moment, slot: SlotGuard) {
        let _seat = slot;
        claim.await;
    }
}

struct Fixture {
    env: Arc<dyn Env>,
    tasks: Tasks,
    pool: TaskPool<Futures>,
}

impl Fixture {
    fn new() -> Self {
        let env: Arc<dyn Env> = Arc::new(RealEnv::new(1));
        let tasks = Tasks::new(Arc::clone(&env));
        let pool = TaskPool::new(Arc::new(Futures), tasks.clone(), "pool");
        Self { env, tasks, pool }
    }

    fn run(&self, item: impl Future<Output = ()> + Send + 'static) {
        let slot = SlotGuard::detached(&self.env).unwrap();
        self.pool.run(Box::pin(item), Moment::default(), slot);
    }

    async fn run_one(&self) {
        let (done, ended) = oneshot::channel();
        self.run(async move { done.send(()).unwrap() });
        ended.await.unwrap();
        // The finished task becomes idle before this task is polled again.
        yield_now().await;
    }

    fn alive(&self) -> usize {
        self.tasks.labels().len()
    }

    fn idle(&self) -> usize {
        lock(&self.pool.shared.state).idle
    }
}

#[tokio::test]
async fn a_task_that_is_done_takes_the_next_item() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.run_one().await;
        assert_eq!((fixture.alive(), fixture.idle()), (1, 1));
    }
}

#[tokio::test]
async fn an_item_that_does_not_end_holds_up_no_other() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    fixture.run(std::future::pending());
    fixture.run_one().await;
    fixture.run_one().await;
    assert_eq!((fixture.alive(), fixture.idle()), (2, 1));
}

#[tokio::test]
async fn a_panic_costs_neither_its_slot_nor_another_item() {
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
    assert_eq!((fixture.alive(), fixture.idle()), (1, 1));
}

#[tokio::test]
async fn only_so_many_tasks_wait() {
    let fixture = Fixture::new();
    let gate = watch::Sender::new(false);
    for _ in 0..IDLE_MAX + 10 {
        let mut opened = gate.subscribe();
        fixture.run(async move {
            opened.wait_for(|opened| *opened).await.unwrap();
        });
    }
    assert_eq!(fixture.alive(), IDLE_MAX + 10);
    gate.send_replace(true);
    gate.closed().await;
    yield_now().await;
    assert_eq!((fixture.alive(), fixture.idle()), (IDLE_MAX, IDLE_MAX));
    fixture.run_one().await;
    assert_eq!(fixture.alive(), IDLE_MAX);
}

#[tokio::test]
async fn tasks_that_wait_end_with_the_pool() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    let Fixture { tasks, pool, .. } = fixture;
    drop(pool);
    tasks.ended().await;
}

/// 21.1: what has started goes on until the deadline.
#[tokio::test]
async fn what_was_handed_in_is_done_although_the_pool_is_gone() {
    let fixture = Fixture::new();
    fixture.run_one().await;
    let (by_one_that_waits, first) = oneshot::channel();
    let (by_a_new_one, second) = oneshot::channel();
    fixture.run(async move { by_one_that_waits.send(()).unwrap() });
    fixture.run(async move { by_a_new_one.send(()).unwrap() });
    let Fixture { tasks, pool, .. } = fixture;
    drop(pool);
    first.await.unwrap();
    second.await.unwrap();
    tasks.ended().await;
}

#[tokio::test]
async fn an_aborted_item_holds_nothing() {
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
    assert_eq!(fixture.alive(), 0);
}
