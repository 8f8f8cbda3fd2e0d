//! A store that cannot be written for a while.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions, runtime::registry::ActivityRegistry,
};

use crate::{
    faults::{Fault, Faults},
    fixture::{File, ended, final_snapshot, node, output, quick_options},
};

fn echo() -> ActivityRegistry {
    ActivityRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build()
}

fn callers() -> OrchestrationRegistry {
    let calls =
        |ctx: OrchestrationContext, input: String| async move { ctx.schedule_activity("Echo", input).await };
    OrchestrationRegistry::builder().register("Calls", calls).build()
}

/// B4, 16.5: commits fail for 12 s with a lock of 10 s. The lock is given back, and the instance goes on within 2 s of the
/// store's recovery instead of waiting for a lease to end.
#[tokio::test]
async fn an_instance_goes_on_as_soon_as_commits_work_again() {
    let file = File::new();
    let store = file.open().await;
    let faults = Faults::default();
    faults.inject(|method, _| (method == "commit_round").then_some(Fault::Retryable));
    let options = RuntimeOptions { orchestrator_lock_timeout: Duration::from_secs(10), ..quick_options() };
    let runtime = node(&faults.around(&store), echo(), callers(), options).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Calls", "done").await.unwrap();
    faults.until_called("commit_round", 1).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(faults.reached("commit_round"), 0);
    assert!(faults.reached("abandon_orchestration_item") >= 1, "the lock was given back");
    faults.heal();
    let healed = Instant::now();
    assert_eq!(output(ended(&client, "i").await), "done");
    assert!(healed.elapsed() < Duration::from_secs(2), "{:?}", healed.elapsed());
    runtime.shutdown(None).await;
}

/// B17, 16.5, 16.9: 30 commits and 30 acknowledgements fail, and each item is given back more often than it may be
/// attempted. An outage is no attempt.
#[tokio::test]
async fn an_outage_poisons_nothing() {
    const INSTANCES: usize = 2;
    const FAILURES: u32 = 30;
    /// Five times as long as a commit is tried before its item is given back.
    const OUTAGE: Duration = Duration::from_secs(7);
    let file = File::new();
    let store = file.open().await;
    let faults = Faults::default();
    let mut began = BTreeMap::new();
    faults.inject(move |method, nth| {
        if !matches!(method, "commit_round" | "ack_work_item") {
            return None;
        }
        let lasts = began.entry(method).or_insert_with(Instant::now).elapsed() < OUTAGE;
        (lasts || nth <= FAILURES).then_some(Fault::Retryable)
    });
    let lock = Duration::from_millis(1_500);
    let options = RuntimeOptions {
        orchestrator_lock_timeout: lock,
        worker_lock_timeout: lock,
        max_attempts: 3,
        ..quick_options()
    };
    let client = Client::new(Arc::clone(&store));
    let most_attempts = Arc::new(AtomicU32::new(0));
    let runtime = node(&faults.around(&store), echo(), callers(), options).await;
    for n in 0..INSTANCES {
        client.start_orchestration(&format!("i-{n}"), "Calls", n.to_string()).await.unwrap();
    }
    let looking = async {
        loop {
            for instance in file.snapshot().instances {
                let messages = instance.messages.iter().map(|message| message.attempt_count);
                let activities = instance.activities.iter().map(|activity| activity.attempt_count);
                let most = messages.chain(activities).max().unwrap_or(0);
                most_attempts.fetch_max(most, Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ending = async {
        for n in 0..INSTANCES {
            assert_eq!(output(ended(&client, &format!("i-{n}")).await), n.to_string());
        }
    };
    tokio::select! { biased; () = ending => (), never = looking => never }
    assert!(faults.called("commit_round") > FAILURES && faults.called("ack_work_item") > FAILURES);
    let most_attempts = most_attempts.load(Ordering::SeqCst);
    assert!((1..=3).contains(&most_attempts), "{most_attempts}");
    let counted = final_snapshot(runtime).await;
    assert_eq!((counted.orch_poison, counted.activity_poison), (0, 0));
}
