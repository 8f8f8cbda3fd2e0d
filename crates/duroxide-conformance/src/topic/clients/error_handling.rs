//! Bad input gets a permanent error and changes nothing.

use duroxide_core::Event;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, assert_permanent, assert_refused},
    message::{raised, start},
    round::{activity_scheduled, completion, first_round, started, turn_round},
};

/// An ack with an unknown token is the permanent error `Invalid lock token` and writes nothing (16.1, I09).
pub async fn test_invalid_lock_token_on_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("unlocked")).await;

    let result = fixture.ack("no-such-token", first_round("unlocked")).await;
    assert_refused(result, "Invalid lock token", "an ack under an unknown token");
    let history = fixture.provider.read("unlocked").await.expect("read must work");
    assert_eq!(history, Vec::<Event>::new(), "a refused ack must append nothing");
    let claim = fixture.claim_instance("unlocked").await;
    assert_eq!(claim.attempts, 1, "a refused ack must not touch the queue");
}

/// An event id that is already stored is a permanent error, and the stored event stays as it is (C16, S4.6, S4.13, I03).
pub async fn test_duplicate_event_id_rejection<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("twice").await;
    let before = fixture.provider.read("twice").await.expect("read must work");

    fixture.send(raised("twice", "wake")).await;
    let claim = fixture.claim_instance("twice").await;
    let result = fixture.ack(&claim.token, turn_round(1, vec![activity_scheduled("twice", 1, 1)])).await;
    assert_permanent(result, "an ack with a stored event id must fail");
    let result = fixture.provider.append_with_execution("twice", 1, vec![started("twice", 1)]).await;
    assert_permanent(result, "an append with a stored event id must fail");

    let after = fixture.provider.read("twice").await.expect("read must work");
    assert_eq!(after, before, "a refused event must not replace the stored one");
}

/// A first round without name and version is stored, and the instance is known by its history afterwards (16.11, A11).
pub async fn test_missing_instance_metadata<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("nameless")).await;
    let claim = fixture.claim_instance("nameless").await;
    fixture.commit(&claim, turn_round(1, vec![started("nameless", 1)])).await;

    fixture.send(raised("nameless", "wake")).await;
    let claim = fixture.claim_instance("nameless").await;
    assert_eq!(claim.item.history.len(), 1, "the history of an instance without row must be loaded");
    assert_eq!(
        (claim.item.orchestration_name.as_str(), claim.item.version.as_str(), claim.item.execution_id),
        ("Conformance", "1.0.0", 1),
        "name, version and execution must come from OrchestrationStarted if there is no row"
    );
}

/// An undecodable history stops only its own instance, which is returned with a diagnosis; other instances are not
/// affected (Q1, S3.34, S3.35).
pub async fn test_corrupted_serialization_data<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("corrupt").await;
    factory.corrupt_instance_history("corrupt").await;
    fixture.send(raised("corrupt", "wake")).await;
    fixture.send(start("healthy")).await;

    let corrupt = fixture.claim_instance("corrupt").await;
    let error = corrupt.item.history_error.expect("an undecodable history must be reported as history_error");
    assert!(
        error.contains("Failed to deserialize event at position 0"),
        "history_error must name the position of the first undecodable event, but is {error:?}"
    );
    assert_eq!(
        corrupt.item.history,
        Vec::<Event>::new(),
        "only the events before the undecodable one are returned"
    );
    assert_eq!(
        corrupt.item.messages,
        [raised("corrupt", "wake")],
        "the messages must be returned all the same"
    );

    let healthy = fixture.claim_instance("healthy").await;
    assert_eq!(healthy.item.history_error, None, "other instances must not be affected");
    fixture.commit(&healthy, first_round("healthy")).await;
}

/// An ack after the end of the lease is a permanent error and writes nothing, even if no other node has taken the
/// instance over (16.1, I09).
pub async fn test_lock_expiration_during_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("late")).await;
    let claim = fixture.claim_for(fixture.lease).await;
    claim.times.lease_ends(fixture.lease).await;

    let result = fixture.ack(&claim.token, first_round("late")).await;
    assert_permanent(result, "an ack after the lease ended must fail");
    let history = fixture.provider.read("late").await.expect("read must work");
    assert_eq!(history, Vec::<Event>::new(), "an ack after the lease ended must write nothing");

    let again = fixture.claim_instance("late").await;
    assert_eq!(again.attempts, 2, "the messages must be delivered again, attempt counted");
    fixture.commit(&again, first_round("late")).await;
    fixture.turn("late", completion("late", 1, 2, "done")).await;
}

/// `read` fails if it cannot decode an event; it never skips one (S3.40).
pub async fn test_read_corrupted_history_returns_error<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("corrupt").await;
    factory.corrupt_instance_history("corrupt").await;
    assert_permanent(fixture.provider.read("corrupt").await, "read of an undecodable history must fail");
}

/// `read_with_execution` fails if it cannot decode an event; it never skips one (S3.40).
pub async fn test_read_with_execution_corrupted_history_returns_error<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    fixture.running("corrupt").await;
    factory.corrupt_instance_history("corrupt").await;
    let result = fixture.provider.read_with_execution("corrupt", 1).await;
    assert_permanent(result, "read_with_execution of an undecodable history must fail");
}
