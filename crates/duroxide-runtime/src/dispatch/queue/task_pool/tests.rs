//! Tests of the task pool.

use tokio::{
    sync::{oneshot, watch},
    task::yield_now,
};

use duroxide_provider::{Demand, ProviderError, Wanted};

use super::*;
use crate::{
    dispatch::{
        locks::LockKind,
        node::Node,
        queue::{SlotGuard, slots::Slots},
    },
    env::{BoxFuture, Env, RealEnv},
};

/// A queue whose claims are futures.
struct Futures;

impl WorkQueue for Futures {
    type Claim = BoxFuture;

    const NAME: &'static str = "futures";
    const LOCK: LockKind = LockKind::Activity;

    async fn process(self: Arc<Self>, started: Started<BoxFuture>) {
        started.claim.await;
    }

    fn lock_token(_: &BoxFuture) -> &str {
        unreachable!("the pool only processes claims")
    }

    fn node(&self) -> &Arc<Node> {
        unreachable!("the pool only processes claims")
    }

    fn slots(&self) -> usize {
        0
    }

    fn extra_slots(&self) -> usize {
        0
    }

    fn has_shared_fetch(&self) -> bool {
        false
    }

    fn slots_with_own_fetch(&self, _: &Slots) -> Vec<usize> {
        Vec::new()
    }

    fn lacks_own_fetch(&self, _: &Slots) -> bool {
        false
    }

    fn fetch(
        &self,
        _: Option<usize>,
        _: Wanted,
        _: Option<Arc<dyn Demand>>,
    ) -> BoxFuture<Result<Vec<BoxFuture>, ProviderError>> {
        unreachable!("the pool only processes claims")
    }

    fn receive(&self, _: &BoxFuture, _: Option<usize>) -> Option<usize> {
        None
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
        let pool = TaskPool::new(Arc::new(Futures), tasks.clone());
        Self { env, tasks, pool }
    }

    fn run(&self, claim: impl Future<Output = ()> + Send + 'static) {
        let (claim, received) = (Box::pin(claim), self.env.moment());
        self.pool.spawn(Started { claim, received, slot: SlotGuard::detached(&self.env).unwrap() });
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
    let fixture = Fixture::new();
    fixture.run_one().await;
    let Fixture { tasks, pool, .. } = fixture;
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
    let Fixture { tasks, pool, .. } = fixture;
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
