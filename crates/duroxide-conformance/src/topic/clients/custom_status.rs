//! The custom status of an instance and its version.

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    round::{activity_scheduled, first_round, status_updated, turn_round},
};

/// An instance whose first turn set the status `working`.
async fn with_status<F: ProviderFactory + ?Sized>(factory: &F) -> Fixture {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("i");
    round.history_delta.push(status_updated("i", 1, 2, Some("working")));
    fixture.running_with("i", round).await;
    fixture
}

/// The status, if its version is above `last_seen`.
async fn status(fixture: &Fixture, last_seen: u64) -> Option<(Option<String>, u64)> {
    let read = fixture.provider.get_custom_status("i", last_seen).await;
    read.expect("get_custom_status must work")
}

fn text(status: &str, version: u64) -> Option<(Option<String>, u64)> {
    Some((Some(status.to_owned()), version))
}

/// A status event sets the status, at version 1 (12.1).
pub async fn test_custom_status_set<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_status(factory).await;
    assert_eq!(status(&fixture, 0).await, text("working", 1));
}

/// Resetting the status removes it and raises the version (12.1).
pub async fn test_custom_status_clear<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_status(factory).await;
    fixture.turn("i", turn_round(1, vec![status_updated("i", 1, 3, None)])).await;
    assert_eq!(status(&fixture, 0).await, Some((None, 2)));
}

/// A round without status event leaves status and version as they are (12.1).
pub async fn test_custom_status_none_preserves<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_status(factory).await;
    fixture.turn("i", turn_round(1, vec![activity_scheduled("i", 1, 3)])).await;
    assert_eq!(status(&fixture, 0).await, text("working", 1));
    fixture.continue_as_new("i", 1, 4).await;
    assert_eq!(status(&fixture, 0).await, text("working", 1), "the status must survive continue-as-new");
}

/// The version rises by one per round that sets the status, however often it does; the last status counts (12.1).
pub async fn test_custom_status_version_increments<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_status(factory).await;
    let twice = vec![status_updated("i", 1, 3, Some("ignored")), status_updated("i", 1, 4, Some("second"))];
    fixture.turn("i", turn_round(1, twice)).await;
    assert_eq!(status(&fixture, 0).await, text("second", 2));
    fixture.turn("i", turn_round(1, vec![status_updated("i", 1, 5, Some("third"))])).await;
    assert_eq!(status(&fixture, 2).await, text("third", 3));
}

/// A caller that has seen the current version gets nothing (A11).
pub async fn test_custom_status_polling_no_change<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_status(factory).await;
    assert_eq!(status(&fixture, 1).await, None, "the version is not above what was seen");
    assert_eq!(status(&fixture, 99).await, None, "the version is not above what was seen");
}

/// An unknown instance has no status (A11).
pub async fn test_custom_status_nonexistent_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    assert_eq!(status(&fixture, 0).await, None, "an unknown instance has no status");
}

/// A new instance has version 0 and no status (12.1).
pub async fn test_custom_status_default_on_new_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("i").await;
    assert_eq!(status(&fixture, 0).await, None, "a new instance has no status");
}
