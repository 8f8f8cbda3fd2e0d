//! Fetches return only work for which the node has handlers (extended: S3.3, 17.7).
//!
//! A provider that keeps the default batch fetches ignores handlers; these validations check nothing for it.

use std::collections::BTreeMap;

use duroxide_provider::{
    HandlerCapability, OrchestrationClaim, OrchestrationFetch, SemverRange, TagFilter, WorkClaim, WorkFetch,
};
use semver::Version;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE},
    message::{activity, raised, start, start_of},
};

/// A fixture, if the provider serves batch fetches itself.
async fn batch_fixture<F: ProviderFactory + ?Sized>(factory: &F) -> Option<Fixture> {
    let fixture = Fixture::new(factory).await;
    fixture.provider.serves_batches().then_some(fixture)
}

fn orchestrations(entries: &[(&str, &str)]) -> HandlerCapability {
    let mut supported: BTreeMap<String, Vec<SemverRange>> = BTreeMap::new();
    for (name, version) in entries {
        let version: Version = version.parse().expect("the validations use valid versions");
        supported.entry((*name).to_owned()).or_default().push(SemverRange::new(version.clone(), version));
    }
    HandlerCapability { supported_orchestrations: Some(supported), supported_activities: None }
}

fn activities(names: &[&str]) -> HandlerCapability {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    HandlerCapability { supported_orchestrations: None, supported_activities: Some(names) }
}

async fn claims(fixture: &Fixture, handlers: &HandlerCapability) -> Vec<OrchestrationClaim> {
    let request = OrchestrationFetch::new(LONG_LEASE, std::time::Duration::ZERO)
        .with_handlers(Some(handlers))
        .with_max(10, 10);
    fixture.provider.fetch_orchestration_items(&request).await.expect("fetch_orchestration_items must work")
}

fn instances(claims: &[OrchestrationClaim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.instance.as_str()).collect()
}

async fn work(fixture: &Fixture, handlers: &HandlerCapability) -> Vec<WorkClaim> {
    let request = WorkFetch::new(LONG_LEASE, std::time::Duration::ZERO, &TagFilter::Any)
        .with_handlers(Some(handlers))
        .with_max(10, 10);
    fixture.provider.fetch_work_items(&request).await.expect("fetch_work_items must work")
}

/// Starts of orchestrations that the node does not have are held back: not locked, and no attempt counted (S3.3, 17.7).
pub async fn test_starts_without_handler_are_held_back<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = batch_fixture(factory).await else { return };
    fixture.send(start_of("other", "Other", Some("1.0.0"))).await;
    fixture.send(start_of("newer", "Mine", Some("2.0.0"))).await;
    fixture.send(start_of("mine", "Mine", Some("1.0.0"))).await;
    fixture.send(start_of("any", "Mine", None)).await;
    let mine = orchestrations(&[("Mine", "1.0.0")]);
    assert_eq!(instances(&claims(&fixture, &mine).await), ["mine", "any"]);

    let rest = claims(&fixture, &HandlerCapability::default()).await;
    assert_eq!(instances(&rest), ["other", "newer"], "what was held back must still be free");
    assert!(rest.iter().all(|claim| claim.attempt_count == 1), "what was held back must not be counted");
}

/// Executions whose name and version the node does not have are held back (S3.3, 17.7).
pub async fn test_executions_without_handler_are_held_back<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = batch_fixture(factory).await else { return };
    fixture.running("runs").await;
    fixture.send(raised("runs", "wake")).await;
    assert!(
        claims(&fixture, &orchestrations(&[("Other", "1.0.0")])).await.is_empty(),
        "the name is not there"
    );
    let wrong = orchestrations(&[("Conformance", "2.0.0")]);
    assert!(claims(&fixture, &wrong).await.is_empty(), "the version is not there");
    let right = orchestrations(&[("Conformance", "2.0.0"), ("Conformance", "1.0.0")]);
    assert_eq!(instances(&claims(&fixture, &right).await), ["runs"]);
}

/// Activities that the node does not have are held back; built-in activities always pass (S3.3, 17.7).
pub async fn test_activities_without_handler_are_held_back<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = batch_fixture(factory).await else { return };
    fixture.schedule(activity("i", 1, 2)).await;
    fixture.schedule(built_in(3)).await;
    let items = |claims: Vec<WorkClaim>| claims.into_iter().map(|claim| claim.item).collect::<Vec<_>>();
    let other = work(&fixture, &activities(&["Other"])).await;
    assert_eq!(items(other), [built_in(3)], "only the built-in activity passes");
    let own = work(&fixture, &activities(&["Other", "Work"])).await;
    assert_eq!(items(own), [activity("i", 1, 2)]);
}

fn built_in(id: u64) -> duroxide_core::WorkItem {
    let mut item = activity("i", 1, id);
    if let duroxide_core::WorkItem::ActivityExecute { name, .. } = &mut item {
        duroxide_core::SYSCALL_NEW_GUID.clone_into(name);
    }
    item
}

/// A batch fetch locks several instances, each once, oldest first, with the positions of their histories (A17.3).
pub async fn test_batch_fetch_takes_each_instance_once<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = batch_fixture(factory).await else { return };
    for instance in ["a", "b", "c"] {
        fixture.send(start(instance)).await;
    }
    let everything = HandlerCapability::default();
    let taken = claims(&fixture, &everything).await;
    assert_eq!(instances(&taken), ["a", "b", "c"], "the oldest must come first");
    assert!(claims(&fixture, &everything).await.is_empty(), "all instances are locked");
    let tokens: std::collections::BTreeSet<&str> =
        taken.iter().map(|claim| claim.lock_token.as_str()).collect();
    assert_eq!(tokens.len(), 3, "each instance must have a lock of its own");
    for claim in &taken {
        let round = crate::round::first_round(&claim.instance);
        fixture.provider.commit_round(&claim.lock_token, round).await.expect("each lock can be committed");
    }
}
