//! Steps in place, in virtual time.

use std::{cell::Cell, time::Duration};

use duroxide::{OrchestrationContext, testing::TestCluster, typed::Handlers};

/// Longer than any lock, and than many claims wait.
const LONG: Duration = Duration::from_secs(120);

thread_local! {
    /// How often the work of a step began and was dropped before its end. A cluster has one thread.
    static BEGUN: Cell<u32> = const { Cell::new(0) };
    static DROPPED: Cell<u32> = const { Cell::new(0) };
}

/// Counts work that is dropped before it has ended.
struct Unfinished;

impl Drop for Unfinished {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

async fn work() -> Result<String, String> {
    BEGUN.set(BEGUN.get() + 1);
    let unfinished = Unfinished;
    tokio::time::sleep(LONG).await;
    std::mem::forget(unfinished);
    Ok("done".to_owned())
}

#[duroxide::orchestration]
async fn slow(ctx: OrchestrationContext) -> Result<String, String> {
    Ok(ctx.step("work", work).await?)
}

#[duroxide::orchestration]
async fn impatient(ctx: OrchestrationContext) -> Result<String, String> {
    let work = ctx.step("work", work).into_future();
    ctx.select2(work, ctx.schedule_timer(Duration::from_secs(5))).await;
    Ok(ctx.schedule_wait("go on").await)
}

fn handlers() -> Handlers {
    Handlers::new().orchestration::<slow>().orchestration::<impatient>()
}

/// A claim that waits for a step is given back now and then. Those are no attempts at the instance's messages.
#[test]
fn a_step_that_takes_long_is_no_poison() {
    let cluster = TestCluster::builder().handlers(handlers()).options(|options| options.max_attempts = 2);
    cluster.run(async |cluster| {
        let ended = cluster.client().start_and_wait::<slow>("i", ()).await.unwrap();
        assert_eq!(ended.unwrap(), "done");
        assert_eq!(cluster.elapsed(), LONG);
    });
    assert_eq!(BEGUN.get(), 1);
}

/// Without a cache a claim waits until its step has ended. The lock is renewed meanwhile, so that no other node runs the step.
#[test]
fn a_step_keeps_the_lock_of_its_instance_alive() {
    let cluster = TestCluster::builder().handlers(handlers()).handlers(handlers());
    cluster.options(|options| options.execution_cache_size = 0).run(async |cluster| {
        let ended = cluster.client().start_and_wait::<slow>("i", ()).await.unwrap();
        assert_eq!(ended.unwrap(), "done");
    });
    assert_eq!(BEGUN.get(), 1);
}

/// The work of a step that lost a race may hold connections and memory: it is dropped when the race is over.
#[test]
fn a_step_that_was_given_up_is_dropped_at_once() {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        let instance = cluster.client().start::<impatient>("i", ()).await.unwrap();
        cluster.sleep(Duration::from_secs(6)).await;
        assert_eq!((BEGUN.get(), DROPPED.get()), (1, 1));
        instance.raise("go on", &"now").await.unwrap();
        instance.result().await.unwrap().unwrap();
    });
}
