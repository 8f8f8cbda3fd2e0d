//! Continue-as-new makes the next execution; earlier executions stay as they are.

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::{continuation_start, raised},
    round::{activity_scheduled, completion, continuation, next_execution_round, turn_round},
};

/// Each execution has a history of its own, numbered from 1 (3.1, I03).
pub async fn test_execution_isolation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("isolated").await;
    fixture.turn("isolated", turn_round(1, vec![activity_scheduled("isolated", 1, 2)])).await;
    fixture.continue_as_new("isolated", 1, 3).await;

    let first =
        fixture.provider.read_with_execution("isolated", 1).await.expect("execution 1 must be readable");
    let second =
        fixture.provider.read_with_execution("isolated", 2).await.expect("execution 2 must be readable");
    let ids = |history: &[duroxide_core::Event]| {
        history.iter().map(|event| (event.execution_id, event.event_id)).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), [(1, 1), (1, 2), (1, 3)], "execution 1 must hold its own events only");
    assert_eq!(ids(&second), [(2, 1)], "execution 2 must hold its own events only");
    let missing =
        fixture.provider.read_with_execution("isolated", 3).await.expect("a read of nothing must work");
    assert!(missing.is_empty(), "an execution that does not exist has no history");
}

/// `read` and fetch show the latest execution (A11).
pub async fn test_latest_execution_detection<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("latest").await;
    fixture.continue_as_new("latest", 1, 2).await;
    fixture.continue_as_new("latest", 2, 2).await;

    let history = fixture.provider.read("latest").await.expect("read must work");
    assert_eq!(history.len(), 1, "read must return the latest execution only");
    assert_eq!(history[0].execution_id, 3, "read must return the latest execution");
    fixture.send(raised("latest", "wake")).await;
    let claim = fixture.claim_instance("latest").await;
    assert_eq!(claim.item.execution_id, 3, "a fetch must return the latest execution");
    assert_eq!(claim.item.history, history, "a fetch must load the history of the latest execution");
    if let Some(admin) = fixture.provider.as_management_capability() {
        let latest = admin.latest_execution_id("latest").await.expect("latest_execution_id must work");
        assert_eq!(latest, 3, "latest_execution_id must name the latest execution");
    }
}

/// The runtime numbers executions. The provider raises the current execution id to that of a round, and never lowers
/// it (I16, A11).
pub async fn test_execution_id_sequencing<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("sequence").await;
    for execution_id in 1..4 {
        fixture.send(raised("sequence", "look")).await;
        let claim = fixture.claim_instance("sequence").await;
        assert_eq!(claim.item.execution_id, execution_id, "a fetch must return the current execution id");
        fixture.commit(&claim, turn_round(execution_id, vec![])).await;
        fixture.continue_as_new("sequence", execution_id, 2).await;
    }
    if let Some(admin) = fixture.provider.as_management_capability() {
        let executions = admin.list_executions("sequence").await.expect("list_executions must work");
        assert_eq!(executions, [1, 2, 3, 4], "executions must be listed in ascending order, without gaps");
    }
}

/// The end of an execution and the work item that starts the next one are committed together; the round of that item
/// creates the next execution (8.5, S4.19).
pub async fn test_continue_as_new_creates_new_execution<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("continued").await;
    fixture.turn("continued", continuation("continued", 1, 2)).await;

    let claim = fixture.claim_instance("continued").await;
    assert_eq!(
        claim.item.messages,
        [continuation_start("continued")],
        "the ContinueAsNew item must be delivered"
    );
    fixture.commit(&claim, next_execution_round("continued", 2)).await;
    fixture.turn("continued", completion("continued", 2, 2, "done")).await;

    let history = fixture.provider.read("continued").await.expect("read must work");
    assert_eq!(history.len(), 2, "the new execution must have its own history");
    assert!(history[1].is_terminal(), "the new execution must hold its own end");
    if let Some(admin) = fixture.provider.as_management_capability() {
        let first = admin.get_execution_info("continued", 1).await.expect("execution 1 must be known");
        assert_eq!(first.status, "ContinuedAsNew", "the old execution must keep its status");
        assert_eq!(first.output.as_deref(), Some("next"), "the old execution's output is the next input");
        let second = admin.get_execution_info("continued", 2).await.expect("execution 2 must be known");
        assert_eq!(second.status, "Completed", "the new execution must have its own status");
    }
}

/// The history of an execution that ended stays as it was (I03).
pub async fn test_execution_history_persistence<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("kept").await;
    fixture.turn("kept", continuation("kept", 1, 2)).await;
    let before = fixture.provider.read_with_execution("kept", 1).await.expect("execution 1 must be readable");
    let claim = fixture.claim_instance("kept").await;
    fixture.commit(&claim, next_execution_round("kept", 2)).await;
    fixture.turn("kept", completion("kept", 2, 2, "done")).await;

    let after = fixture.provider.read_with_execution("kept", 1).await.expect("execution 1 must be readable");
    assert_eq!(after.len(), 2, "the history of execution 1 must still be there");
    assert_eq!(after, before, "later executions must not change the history of execution 1");
}
