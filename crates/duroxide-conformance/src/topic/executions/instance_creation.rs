//! The commit of the first round creates an instance.

use duroxide_core::Event;

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::{ORCHESTRATION, child_start, raised, start, start_of},
    round::{first_round, started},
};

/// The first round creates the instance with the name and version of its metadata (A11).
pub async fn test_instance_creation_via_metadata<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start_of("created", "Requested", Some("9.9.9"))).await;
    let claim = fixture.claim_instance("created").await;
    assert_eq!(
        (claim.item.orchestration_name.as_str(), claim.item.version.as_str(), claim.item.execution_id),
        ("Requested", "9.9.9", 1),
        "before the first round name and version must come from the start message"
    );
    assert_eq!(claim.item.history, Vec::<Event>::new(), "an instance without rounds has no history");
    fixture.commit(&claim, first_round("created")).await;

    fixture.send(raised("created", "wake")).await;
    let claim = fixture.claim_instance("created").await;
    assert_eq!(
        (claim.item.orchestration_name.as_str(), claim.item.version.as_str(), claim.item.execution_id),
        (ORCHESTRATION, "1.0.0", 1),
        "after the first round name and version must be those of its metadata"
    );
}

/// An enqueued start creates no instance (A11, enqueue_for_orchestrator).
pub async fn test_no_instance_creation_on_enqueue<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("only-queued")).await;

    let history = fixture.provider.read("only-queued").await.expect("read of an unknown instance must work");
    assert_eq!(history, Vec::<Event>::new(), "an enqueued start must not write history");
    let status = fixture.provider.read_status("only-queued").await.expect("read_status must work");
    assert_eq!(status, None, "an enqueued start must not create an instance");
    let stats =
        fixture.provider.get_instance_stats("only-queued").await.expect("get_instance_stats must work");
    assert!(stats.is_none(), "an enqueued start must not create an instance, but has {stats:?}");
    if let Some(admin) = fixture.provider.as_management_capability() {
        let listed = admin.list_instances().await.expect("list_instances must work");
        assert!(listed.is_empty(), "an instance that has not run must not be listed, but {listed:?} is");
    }
}

/// A start without a version is fetched as `unknown`, and the metadata of the first round has the resolved version
/// (A11, 18.1).
pub async fn test_null_version_handling<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start_of("any-version", ORCHESTRATION, None)).await;
    let claim = fixture.claim_instance("any-version").await;
    assert_eq!(claim.item.version, "unknown", "a start without version must be fetched as version `unknown`");
    fixture.commit(&claim, first_round("any-version")).await;

    fixture.send(raised("any-version", "wake")).await;
    let claim = fixture.claim_instance("any-version").await;
    assert_eq!(claim.item.version, "1.0.0", "the version of the first round must be stored");
}

/// A child's start is an ordinary message; its first round stores the parent, which no later round changes (6.4,
/// A11).
pub async fn test_sub_orchestration_instance_creation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("parent");
    round.orchestrator_items = vec![child_start("parent", 2, "child")];
    fixture.running_with("parent", round).await;

    let claim = fixture.claim_instance("child").await;
    assert_eq!(
        claim.item.messages,
        [child_start("parent", 2, "child")],
        "the child's start must be delivered"
    );
    let mut round = first_round("child");
    round.metadata.parent_instance_id = Some("parent".to_owned());
    fixture.commit(&claim, round).await;

    let history = fixture.provider.read("child").await.expect("read must work");
    assert_eq!(history.len(), 1, "the child has a history of its own");
    assert_eq!(history[0].kind, started("child", 1).kind, "events must be stored as given");
    if let Some(admin) = fixture.provider.as_management_capability() {
        let parent = admin.get_parent_id("child").await.expect("get_parent_id must work");
        assert_eq!(parent.as_deref(), Some("parent"), "the parent of the first round must be stored");
        let children = admin.list_children("parent").await.expect("list_children must work");
        assert_eq!(children, ["child"], "the parent must list its child");
    }
}
