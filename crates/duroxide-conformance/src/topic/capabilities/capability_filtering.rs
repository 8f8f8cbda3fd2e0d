//! A node receives only executions that its engine can replay: the pinned version is checked before lock and load.

use std::sync::Arc;

use duroxide_core::EventKind;
use duroxide_provider::{DispatcherCapabilityFilter, Round, SemverRange};
use futures_util::future::join_all;
use semver::Version;

use crate::{
    factory::ProviderFactory,
    fixture::{Claim, Fixture},
    message::{raised, start},
    round::{continuation, event, failure, next_execution_round, pinned_round, turn_round},
};

fn version(text: &str) -> Version {
    text.parse().expect("the validations use valid versions")
}

/// A filter with these ranges, both ends included.
fn supports(ranges: &[(&str, &str)]) -> DispatcherCapabilityFilter {
    DispatcherCapabilityFilter {
        supported_duroxide_versions: ranges
            .iter()
            .map(|(min, max)| SemverRange::new(version(min), version(max)))
            .collect(),
    }
}

fn supports_1x() -> DispatcherCapabilityFilter {
    supports(&[("1.0.0", "1.9.99")])
}

fn supports_2x() -> DispatcherCapabilityFilter {
    supports(&[("2.0.0", "2.9.99")])
}

/// An instance pinned to a version that has a message waiting.
async fn ready_and_pinned(fixture: &Fixture, instance: &str, pinned: &str) {
    fixture.running_with(instance, pinned_round(instance, version(pinned))).await;
    fixture.send(raised(instance, "wake")).await;
}

async fn expect_filtered(fixture: &Fixture, filter: &DispatcherCapabilityFilter, why: &str) {
    if let Some(claim) = fixture.try_claim_filtered(filter).await {
        panic!("{why}: the filter must hold {} back", claim.item.instance);
    }
}

async fn expect_passed(fixture: &Fixture, filter: &DispatcherCapabilityFilter, instance: &str) -> Claim {
    let claim = fixture.try_claim_filtered(filter).await;
    let claim = claim.unwrap_or_else(|| panic!("the filter must let {instance} pass"));
    assert_eq!(claim.item.instance, instance, "the filter must let {instance} pass");
    claim
}

/// S3.T1, S3.13: without a filter every instance is returned.
pub async fn test_fetch_with_filter_none_returns_any_item<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "pinned", "1.2.3").await;
    let claim = fixture.try_claim().await.expect("no filter must let everything pass");
    assert_eq!(claim.item.instance, "pinned");
}

/// S3.T2, S3.14: an execution in the range is returned.
pub async fn test_fetch_with_compatible_filter_returns_item<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "pinned", "1.2.3").await;
    expect_passed(&fixture, &supports_1x(), "pinned").await;
}

/// S3.T3: an execution outside the range is not returned (`Ok(None)`), not locked, and its attempts are not counted.
pub async fn test_fetch_with_incompatible_filter_skips_item<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "pinned", "1.2.3").await;
    expect_filtered(&fixture, &supports_2x(), "1.2.3 is not in 2.0.0 to 2.9.99").await;
    let claim = expect_passed(&fixture, &supports_1x(), "pinned").await;
    assert_eq!(claim.attempts, 1, "a fetch that was filtered must not count as an attempt");
}

/// S3.T4: a fetch returns an execution in its range, even if an execution outside the range is older in the queue.
pub async fn test_fetch_filter_skips_incompatible_selects_compatible<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    fixture.running_with("A", pinned_round("A", version("1.0.0"))).await;
    fixture.running_with("B", pinned_round("B", version("2.0.0"))).await;
    fixture.send(raised("A", "wake")).await;
    fixture.send(raised("B", "wake")).await;
    expect_passed(&fixture, &supports_2x(), "B").await;
    expect_passed(&fixture, &supports_1x(), "A").await;
}

/// S3.T5, S3.15: the filter is applied before the lock, so a skipped instance stays unlocked.
pub async fn test_fetch_filter_does_not_lock_skipped_instances<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "skipped", "1.2.3").await;
    for _ in 0..3 {
        expect_filtered(&fixture, &supports_2x(), "1.2.3 is not in 2.0.0 to 2.9.99").await;
    }
    let claim = fixture.try_claim().await.expect("a skipped instance must not be locked");
    assert_eq!(claim.attempts, 1, "a skipped instance must not be counted");
    fixture.commit(&claim, turn_round(1, vec![])).await;
}

/// S3.T6, 17.3: an execution without a pin, and an instance that has not started, pass every range.
pub async fn test_fetch_filter_null_pinned_version_always_compatible<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    fixture.running("unpinned").await;
    fixture.send(raised("unpinned", "wake")).await;
    expect_passed(&fixture, &supports(&[("98.0.0", "99.0.0")]), "unpinned").await;
    fixture.send(start("new")).await;
    expect_passed(&fixture, &supports(&[("98.0.0", "99.0.0")]), "new").await;
}

/// S3.T7, S3.26, C11: both ends belong to the range, and the comparison is numeric in every component.
pub async fn test_fetch_filter_boundary_versions<F: ProviderFactory + ?Sized>(factory: &F) {
    let cases = [
        ("1.0.0", ("1.0.0", "1.9.99"), true),
        ("1.9.99", ("1.0.0", "1.9.99"), true),
        ("2.0.0", ("1.0.0", "1.9.99"), false),
        ("0.9.99", ("1.0.0", "1.9.99"), false),
        ("1.0.5000", ("1.0.0", "1.9.99"), true),
        ("1.1000.0", ("1.0.0", "1.999999.999999"), true),
        ("1.1000.0", ("1.0.0", "1.9.99"), false),
        ("1.1000000.4000000", ("1.0.0", "2.0.0"), true),
        ("1.9.100", ("1.0.0", "1.9.99"), false),
    ];
    let fixture = Fixture::new(factory).await;
    for (n, (pinned, range, inside)) in cases.into_iter().enumerate() {
        let instance = format!("case-{n}");
        ready_and_pinned(&fixture, &instance, pinned).await;
        let filter = supports(&[range]);
        if inside {
            let claim = expect_passed(&fixture, &filter, &instance).await;
            fixture.commit(&claim, turn_round(1, vec![])).await;
        } else {
            expect_filtered(&fixture, &filter, &format!("{pinned} is not in {range:?}")).await;
            let claim = fixture.claim_instance(&instance).await;
            fixture.commit(&claim, turn_round(1, vec![])).await;
        }
    }
}

/// S3.T8, S3.23: the pinned version is that of the round's metadata; the version stamps of the events do not matter.
pub async fn test_pinned_version_stored_via_ack_metadata<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = pinned_round("told", version("3.1.4"));
    round.history_delta[0].duroxide_version = "1.0.0".to_owned();
    fixture.running_with("told", round).await;
    fixture.send(raised("told", "wake")).await;
    expect_filtered(&fixture, &supports_1x(), "the pin is 3.1.4").await;
    expect_passed(&fixture, &supports(&[("3.1.4", "3.1.4")]), "told").await;
}

/// S3.T9, S3.6: rounds without a pinned version in their metadata leave the stored one as it is.
pub async fn test_pinned_version_immutable_across_ack_cycles<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "stays", "1.2.3").await;
    for event_id in 2..5 {
        let claim = expect_passed(&fixture, &supports_1x(), "stays").await;
        let noted = event("stays", 1, event_id, EventKind::ExternalSubscribed { name: "wake".to_owned() });
        fixture.commit(&claim, turn_round(1, vec![noted])).await;
        fixture.send(raised("stays", "wake")).await;
        expect_filtered(&fixture, &supports_2x(), "the pin is still 1.2.3").await;
    }
}

/// S3.T10, S3.T11, S3.7: the next execution has the pinned version of its own start, not that of the execution before.
pub async fn test_continue_as_new_execution_gets_own_pinned_version<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    fixture.running_with("upgraded", pinned_round("upgraded", version("1.0.0"))).await;
    fixture.turn("upgraded", continuation("upgraded", 1, 2)).await;
    let claim = fixture.claim_instance("upgraded").await;
    let mut round = next_execution_round("upgraded", 2);
    round.metadata.pinned_duroxide_version = Some(version("2.0.0"));
    fixture.commit(&claim, round).await;

    fixture.send(raised("upgraded", "wake")).await;
    expect_filtered(&fixture, &supports_1x(), "the second execution is pinned to 2.0.0").await;
    let claim = expect_passed(&fixture, &supports_2x(), "upgraded").await;
    fixture.commit(&claim, continuation("upgraded", 2, 2)).await;
    let claim = fixture.claim_instance("upgraded").await;
    fixture.commit(&claim, next_execution_round("upgraded", 3)).await;
    fixture.send(raised("upgraded", "wake")).await;
    expect_passed(&fixture, &supports(&[("7.0.0", "7.0.0")]), "upgraded").await;
}

/// S3.T22, 17.3: no execution passes a filter without ranges.
pub async fn test_filter_with_empty_supported_versions_returns_nothing<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "pinned", "1.2.3").await;
    expect_filtered(&fixture, &supports(&[]), "there is no range").await;
    let claim = fixture.claim_instance("pinned").await;
    assert_eq!(claim.attempts, 1, "a fetch that was filtered must not count as an attempt");
}

/// S3.T23, I08: of several concurrent fetches with filters exactly one locks the instance.
pub async fn test_concurrent_filtered_fetch_no_double_lock<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Arc::new(Fixture::new(factory).await);
    ready_and_pinned(&fixture, "wanted", "1.5.0").await;
    let fetches = (0..8).map(|n| {
        let fixture = Arc::clone(&fixture);
        let filter = if n % 2 == 0 { supports_1x() } else { supports(&[("1.4.0", "3.0.0")]) };
        tokio::spawn(async move { fixture.try_claim_filtered(&filter).await.is_some() })
    });
    let winners =
        join_all(fetches).await.into_iter().filter(|won| *won.as_ref().expect("no fetch panics")).count();
    assert_eq!(winners, 1, "exactly one of eight concurrent fetches must lock the instance");
}

/// S3.T43, S3.33: the filter is applied before the history is decoded.
pub async fn test_fetch_filter_applied_before_history_deserialization<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "future", "99.0.0").await;
    factory.corrupt_instance_history("future").await;
    expect_filtered(&fixture, &supports_1x(), "99.0.0 is not supported").await;
}

/// S3.T44, S3.27, C13: an execution passes if any range contains its version, and the oldest instance comes first.
pub async fn test_fetch_single_range_only_uses_first_range<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running_with("A", pinned_round("A", version("1.0.0"))).await;
    fixture.running_with("B", pinned_round("B", version("3.0.0"))).await;
    fixture.send(raised("A", "wake")).await;
    fixture.send(raised("B", "wake")).await;
    let both = supports(&[("1.0.0", "1.9.99"), ("3.0.0", "3.9.99")]);
    expect_passed(&fixture, &both, "A").await;
    expect_passed(&fixture, &both, "B").await;
}

/// S3.T45: a pinned version in the metadata of a later round is stored.
pub async fn test_ack_stores_pinned_version_via_metadata_update<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("later").await;
    fixture.turn("later", pinning_round("1.2.3")).await;
    fixture.send(raised("later", "wake")).await;
    expect_filtered(&fixture, &supports_2x(), "the pin is 1.2.3").await;
    expect_passed(&fixture, &supports_1x(), "later").await;
}

/// S3.T46, 17.1: the provider overwrites the pinned version if a round's metadata has another one.
pub async fn test_provider_updates_pinned_version_when_told<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running_with("moved", pinned_round("moved", version("1.0.0"))).await;
    fixture.turn("moved", pinning_round("2.0.0")).await;
    fixture.send(raised("moved", "wake")).await;
    expect_filtered(&fixture, &supports_1x(), "the pin is 2.0.0 now").await;
    expect_passed(&fixture, &supports_2x(), "moved").await;
}

/// A round that appends nothing and has this pinned version in its metadata.
fn pinning_round(pinned: &str) -> Round {
    let mut round = turn_round(1, vec![]);
    round.metadata.pinned_duroxide_version = Some(version(pinned));
    round
}

/// S3.T39, S3.35, S3.37, C9: a fetch whose filter excludes an instance does not touch its undecodable history; a fetch
/// without filter returns the instance with the position of the error.
pub async fn test_fetch_corrupted_history_filtered_vs_unfiltered<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "corrupt", "99.0.0").await;
    factory.corrupt_instance_history("corrupt").await;
    expect_filtered(&fixture, &supports_1x(), "99.0.0 is not supported").await;

    let claim = fixture.claim_instance("corrupt").await;
    let error = claim.item.history_error.expect("an undecodable history must be reported as history_error");
    for part in ["Failed to deserialize event at position", "corrupt"] {
        assert!(error.contains(part), "history_error must contain {part:?}, but is {error:?}");
    }
}

/// S3.T41, S3.36: the attempt is counted before the history is loaded.
pub async fn test_fetch_deserialization_error_increments_attempt_count<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "corrupt", "1.0.0").await;
    factory.corrupt_instance_history("corrupt").await;
    for attempt in 1..=3 {
        let claim = fixture.claim_instance("corrupt").await;
        assert!(claim.item.history_error.is_some(), "the history stays undecodable");
        assert_eq!(claim.attempts, attempt, "every fetch of an undecodable history must count");
        fixture.abandon(&claim, None, false).await;
    }
}

/// S3.T42, S3.38: the attempts on an undecodable history pass any maximum, and the failure can be committed.
pub async fn test_fetch_deserialization_error_eventually_reaches_poison<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "corrupt", "1.0.0").await;
    factory.corrupt_instance_history("corrupt").await;
    let max_attempts = 3;
    let mut claim = fixture.claim_instance("corrupt").await;
    while claim.attempts <= max_attempts {
        fixture.abandon(&claim, None, false).await;
        claim = fixture.claim_instance("corrupt").await;
    }
    assert_eq!(claim.attempts, max_attempts + 1, "the fetch after max_attempts must show it");
    fixture.commit(&claim, failure("corrupt", 1, 2, "poison")).await;
    fixture.expect_no_claim("the poisoned message is consumed").await;
}

/// S3.T47, S3.4: a provider only stores and queues. A commit never reads stored events, so an instance with an
/// undecodable history can still be ended.
pub async fn test_ack_appends_event_to_corrupted_history<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    ready_and_pinned(&fixture, "corrupt", "1.0.0").await;
    factory.corrupt_instance_history("corrupt").await;
    let claim = fixture.claim_instance("corrupt").await;
    fixture.commit(&claim, failure("corrupt", 1, 99_999, "undecodable")).await;
    if let Some(admin) = fixture.provider.as_management_capability() {
        let info = admin.get_instance_info("corrupt").await.expect("a corrupt instance must be listed");
        assert_eq!(info.status, "Failed", "the status of the committed round must be stored");
        assert_eq!(info.output.as_deref(), Some("undecodable"), "the output must be stored");
    }
}
