//! Listings of instances, page by page.

use duroxide_provider::{InstancePage, InstanceQuery};

use super::next_millisecond;
use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::start,
    round::{completion, failure, first_round},
};

async fn page(fixture: &Fixture, query: &InstanceQuery) -> InstancePage {
    fixture.admin().query_instances(query).await.expect("query_instances must work")
}

fn ids(page: &InstancePage) -> Vec<&str> {
    page.instances.iter().map(|info| info.instance_id.as_str()).collect()
}

/// Creates these instances, each in a millisecond of its own.
async fn create(fixture: &Fixture, instances: &[&str]) {
    for instance in instances {
        fixture.running(instance).await;
        next_millisecond().await;
    }
}

/// Pages go from the newest instance to the oldest; the last one has no cursor (A17.3).
pub async fn test_query_instances_pages<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let empty = page(&fixture, &InstanceQuery::default()).await;
    assert!(empty.instances.is_empty() && empty.next.is_none(), "an empty store has one empty page");
    create(&fixture, &["a", "b", "c", "d", "e"]).await;
    fixture.send(crate::message::raised("mailbox", "early")).await;

    let query = InstanceQuery::default().limit(2);
    let first = page(&fixture, &query).await;
    assert_eq!(ids(&first), ["e", "d"], "the newest come first");
    let second = page(&fixture, &query.clone().after(first.next.expect("there is more"))).await;
    assert_eq!(ids(&second), ["c", "b"]);
    let last = page(&fixture, &query.after(second.next.expect("there is more"))).await;
    assert_eq!(ids(&last), ["a"]);
    assert_eq!(last.next, None, "nothing comes behind the last page");

    let full = page(&fixture, &InstanceQuery::default().limit(5)).await;
    assert_eq!((full.instances.len(), full.next), (5, None), "a full page can be the last");
    let none = page(&fixture, &InstanceQuery::default().limit(0)).await;
    assert_eq!(ids(&none), ["e"], "a page holds at least one instance, or paging would not end");
}

/// Each criterion selects alone and together with the others (A17.3).
pub async fn test_query_instances_filters<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    create(&fixture, &["order-1", "order-2"]).await;
    fixture.turn("order-1", completion("order-1", 1, 2, "done")).await;
    next_millisecond().await;
    fixture.turn("order-2", failure("order-2", 1, 2, "broken")).await;
    let mut round = first_round("child");
    round.metadata.orchestration_name = Some("Bill".to_owned());
    round.metadata.orchestration_version = Some("2.0.0".to_owned());
    round.metadata.parent_instance_id = Some("order-1".to_owned());
    fixture.running_with("child", round).await;
    let admin = fixture.admin();
    let child = admin.get_instance_info("child").await.expect("a known instance must be described");
    let order = admin.get_instance_info("order-2").await.expect("a known instance must be described");

    let all = InstanceQuery::default;
    for (query, expected) in [
        (all(), vec!["child", "order-2", "order-1"]),
        (all().status("Completed"), vec!["order-1"]),
        (all().status("Nonsense"), vec![]),
        (all().orchestration_name("Bill"), vec!["child"]),
        (all().orchestration_version("1.0.0"), vec!["order-2", "order-1"]),
        (all().id_prefix("order-"), vec!["order-2", "order-1"]),
        (all().id_prefix("order-2").status("Failed"), vec!["order-2"]),
        (all().id_prefix("order-2").status("Running"), vec![]),
        (all().parent("order-1"), vec!["child"]),
        (all().roots_only(), vec!["order-2", "order-1"]),
        (all().created_from(child.created_at), vec!["child"]),
        (all().created_before(order.created_at), vec!["order-1"]),
        (all().updated_before(1), vec![]),
        (all().updated_from(order.updated_at).orchestration_name("Conformance"), vec!["order-2"]),
    ] {
        let page = page(&fixture, &query).await;
        assert_eq!(ids(&page), expected, "{query:?}");
    }
}

/// Instances that are created, changed or deleted between two pages make no other instance appear twice or disappear
/// (A17.3).
pub async fn test_query_instances_cursor_is_stable<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    create(&fixture, &["a", "b", "c", "d", "e"]).await;
    let query = InstanceQuery::default().limit(2);
    let first = page(&fixture, &query).await;
    assert_eq!(ids(&first), ["e", "d"]);

    create(&fixture, &["new"]).await;
    fixture.turn("e", completion("e", 1, 2, "done")).await;
    fixture.turn("b", completion("b", 1, 2, "done")).await;
    let gone = fixture.admin().delete_instance("d", true).await.expect("delete_instance must work");
    assert_eq!(gone.instances_deleted, 1, "the instance at the cursor is deleted");
    create(&fixture, &["d"]).await;

    let second = page(&fixture, &query.clone().after(first.next.expect("there is more"))).await;
    assert_eq!(ids(&second), ["c", "b"], "the page behind a cursor does not move");
    let last = page(&fixture, &query.after(second.next.expect("there is more"))).await;
    assert_eq!((ids(&last), &last.next), (vec!["a"], &None));
}

/// A cursor that no page returned is a permanent error, which names the cursor (A17.3).
pub async fn test_query_instances_refuses_unknown_cursors<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("a").await;
    for cursor in ["", "a", "nonsense", "1", "-", "\u{1f600}"] {
        let refused = fixture.admin().query_instances(&InstanceQuery::default().after(cursor)).await;
        let error = refused.expect_err("a cursor that no page had must be refused");
        assert!(error.is_invalid_cursor() && !error.is_retryable(), "{cursor:?} was refused with {error:?}");
    }
}

async fn holds(fixture: &Fixture, at_least: u64) -> Option<bool> {
    fixture.provider.mailbox_holds("full", at_least).await.expect("mailbox_holds must work")
}

/// Messages of clients are counted until they are consumed, locked or not. Starts, timers and completions are not
/// counted. A provider may not support this (15.3, A17.3).
pub async fn test_mailbox_holds<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    if holds(&fixture, 1).await.is_none() {
        return;
    }
    assert_eq!(holds(&fixture, 0).await, Some(true), "every mailbox holds at least nothing");
    assert_eq!(holds(&fixture, 1).await, Some(false), "an unknown instance has no messages");
    fixture.send(start("full")).await;
    fixture.send(crate::message::activity_completed("full", 1, 9)).await;
    fixture.send_later(crate::message::timer_fired("full", 9, 1), std::time::Duration::from_secs(600)).await;
    assert_eq!(holds(&fixture, 1).await, Some(false), "only what clients send besides starts counts");
    fixture.send(crate::message::raised("full", "one")).await;
    fixture.send(crate::message::queue_message("full", "two")).await;
    fixture.send(crate::message::raised("other", "three")).await;
    assert_eq!([holds(&fixture, 2).await, holds(&fixture, 3).await], [Some(true), Some(false)]);

    let claim = fixture.claim_instance("full").await;
    assert_eq!(holds(&fixture, 2).await, Some(true), "what a turn has taken still waits for its commit");
    fixture.commit(&claim, first_round("full")).await;
    assert_eq!(holds(&fixture, 1).await, Some(false), "what was consumed waits no longer");
}

/// A message of a client is queued only while fewer than the given number wait. A refused message changes nothing (15.3, I20).
pub async fn test_enqueue_within<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    if holds(&fixture, 1).await.is_none() {
        return;
    }
    fixture.send(start("full")).await;
    let mut queued = Vec::new();
    for data in ["one", "two", "three"] {
        let sent = fixture.provider.enqueue_within(crate::message::raised("full", data), 2).await;
        queued.push(sent.expect("enqueue_within must work"));
    }
    assert_eq!(queued, [true, true, false], "the third message finds two");
    let claim = fixture.claim_instance("full").await;
    assert_eq!(claim.item.messages.len(), 3, "the start and two events");
}
