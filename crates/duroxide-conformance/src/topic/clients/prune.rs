//! Removing old executions.

use duroxide_provider::{InstanceFilter, PruneOptions, PruneResult};

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    round::{completion, continuation},
};

/// An instance with this many executions; the last one runs.
async fn with_executions(fixture: &Fixture, instance: &str, executions: u64) {
    fixture.running(instance).await;
    for execution_id in 1..executions {
        fixture.continue_as_new(instance, execution_id, 2).await;
    }
}

async fn prune(fixture: &Fixture, instance: &str, options: PruneOptions) -> PruneResult {
    fixture.admin().prune_executions(instance, options).await.expect("prune_executions must work")
}

async fn executions(fixture: &Fixture, instance: &str) -> Vec<u64> {
    fixture.admin().list_executions(instance).await.expect("list_executions must work")
}

fn keep(keep_last: u32) -> PruneOptions {
    PruneOptions { keep_last: Some(keep_last), ..PruneOptions::default() }
}

/// `keep_last` keeps the newest executions; `None`, 0 and 1 mean the same; `completed_before` narrows it (19.3).
pub async fn test_prune_options_combinations<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    with_executions(&fixture, "kept", 5).await;
    let pruned = prune(&fixture, "kept", keep(3)).await;
    assert_eq!((pruned.instances_processed, pruned.executions_deleted, pruned.events_deleted), (1, 2, 4));
    assert_eq!(executions(&fixture, "kept").await, [3, 4, 5], "the newest three must stay");
    let early = PruneOptions { keep_last: Some(1), completed_before: Some(1) };
    assert_eq!(
        prune(&fixture, "kept", early).await.executions_deleted,
        0,
        "none ended before the given time"
    );
    let late = PruneOptions { keep_last: None, completed_before: Some(u64::MAX / 2) };
    assert_eq!(
        prune(&fixture, "kept", late).await.executions_deleted,
        2,
        "all but the current one ended before"
    );

    for (n, options) in [PruneOptions::default(), keep(0), keep(1)].into_iter().enumerate() {
        let instance = format!("same-{n}");
        with_executions(&fixture, &instance, 3).await;
        prune(&fixture, &instance, options.clone()).await;
        assert_eq!(
            executions(&fixture, &instance).await,
            [3],
            "{options:?} must keep the current execution only"
        );
    }
}

/// The current execution is never removed, in any status; the rest of the instance stays (19.3).
pub async fn test_prune_safety<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    with_executions(&fixture, "runs", 2).await;
    prune(&fixture, "runs", keep(0)).await;
    assert_eq!(executions(&fixture, "runs").await, [2], "a running execution must stay");
    assert_eq!(
        prune(&fixture, "runs", keep(0)).await.executions_deleted,
        0,
        "there is nothing left to prune"
    );

    fixture.turn("runs", completion("runs", 2, 2, "done")).await;
    prune(&fixture, "runs", keep(0)).await;
    assert_eq!(executions(&fixture, "runs").await, [2], "the current execution must stay when it has ended");
    let history = fixture.provider.read("runs").await.expect("read must work");
    assert_eq!(history.len(), 2, "the history of the current execution must stay");

    fixture.running("between").await;
    fixture.turn("between", continuation("between", 1, 2)).await;
    prune(&fixture, "between", keep(0)).await;
    assert_eq!(
        executions(&fixture, "between").await,
        [1],
        "an execution that waits for its successor is current"
    );
}

/// A bulk prune prunes the instances of its filter (19.3).
pub async fn test_prune_bulk<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for instance in ["a", "b", "c"] {
        with_executions(&fixture, instance, 3).await;
        fixture.turn(instance, completion(instance, 3, 2, "done")).await;
    }
    let filter = InstanceFilter {
        instance_ids: Some(vec!["a".to_owned(), "b".to_owned()]),
        ..InstanceFilter::default()
    };
    let pruned =
        fixture.admin().prune_executions_bulk(filter, keep(1)).await.expect("a bulk prune must work");
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (2, 4));
    assert_eq!(executions(&fixture, "a").await, [3]);
    assert_eq!(executions(&fixture, "c").await, [1, 2, 3], "an instance not named must stay as it is");
}

/// A bulk prune also prunes running instances (19.3).
pub async fn test_prune_bulk_includes_running_instances<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    with_executions(&fixture, "eternal", 4).await;
    let pruned = fixture
        .admin()
        .prune_executions_bulk(InstanceFilter::default(), keep(2))
        .await
        .expect("a bulk prune must work");
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (1, 2));
    assert_eq!(executions(&fixture, "eternal").await, [3, 4], "old executions of a running instance must go");
}
