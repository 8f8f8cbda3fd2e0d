//! The validation of client calls.

use std::collections::BTreeMap;

use duroxide_core::WorkItem;
use serde::{Serialize, Serializer};

use super::*;

fn start(instance: &str, input: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: input.to_owned(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn refusal<T: fmt::Debug>(result: Result<T, ClientError>) -> String {
    match result.unwrap_err() {
        ClientError::InvalidInput { message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_start_becomes_one_message_without_parent() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    client.start_orchestration("order-1", "Order", "apples").await.unwrap();
    client.start_orchestration_versioned("order-2", "Order", "2.0.0", "pears").await.unwrap();
    assert_eq!(
        store.enqueued(),
        [start("order-1", "apples", None), start("order-2", "pears", Some("2.0.0"))]
    );
}

#[tokio::test]
async fn typed_strings_travel_bare_and_everything_else_as_json() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    client.start_orchestration_typed("order-1", "Order", "apples").await.unwrap();
    client.start_orchestration_versioned_typed("order-2", "Order", "2.0.0", vec![1, 2]).await.unwrap();
    client.raise_event_typed("order-1", "paid", &true).await.unwrap();
    client.enqueue_event_typed("order-1", "inbox", &"hello".to_owned()).await.unwrap();
    let instance = "order-1".to_owned();
    assert_eq!(
        store.enqueued(),
        [
            start("order-1", "apples", None),
            start("order-2", "[1,2]", Some("2.0.0")),
            WorkItem::ExternalRaised {
                instance: instance.clone(),
                name: "paid".to_owned(),
                data: "true".to_owned()
            },
            WorkItem::QueueMessage { instance, name: "inbox".to_owned(), data: "hello".to_owned() },
        ]
    );
}

struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no such form"))
    }
}

#[tokio::test]
async fn a_value_that_does_not_encode_is_refused() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    assert_eq!(
        refusal(client.start_orchestration_typed("o", "Order", Unwritable).await),
        "encode: no such form"
    );
    assert_eq!(refusal(client.raise_event_typed("o", "e", &Unwritable).await), "encode: no such form");
    let keyed_by_pairs = BTreeMap::from([((1, 2), 3)]);
    assert!(refusal(client.enqueue_event_typed("o", "q", &keyed_by_pairs).await).starts_with("encode: "));
    assert!(store.enqueued().is_empty());
}

/// 20.1
#[tokio::test]
async fn ids_of_automatic_children_are_refused() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    for id in ["sub::1", "order::sub::2"] {
        let expected = format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'");
        assert_eq!(refusal(client.start_orchestration(id, "Order", "").await), expected);
        assert_eq!(refusal(client.start_orchestration_versioned(id, "Order", "1.0.0", "").await), expected);
        assert_eq!(refusal(client.start_orchestration_typed(id, "Order", 1).await), expected);
    }
    assert!(store.enqueued().is_empty());

    client.raise_event("order::sub::2", "paid", "").await.unwrap();
    client.cancel_instance("order::sub::2", "enough").await.unwrap();
    assert_eq!(store.enqueued().len(), 2, "children that exist can be signalled and cancelled");
}

#[tokio::test]
async fn empty_names_and_malformed_versions_are_refused() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    assert_eq!(refusal(client.start_orchestration("", "Order", "").await), "instance id is empty");
    assert_eq!(refusal(client.start_orchestration("o", "", "").await), "orchestration name is empty");
    assert_eq!(refusal(client.raise_event("", "paid", "").await), "instance id is empty");
    assert_eq!(refusal(client.cancel_instance("", "enough").await), "instance id is empty");
    let refused = refusal(client.start_orchestration_versioned("o", "Order", "two", "").await);
    assert!(refused.starts_with("'two' is not a semantic version: "), "{refused}");
    assert!(store.enqueued().is_empty());
}

/// Ids and names are keys, so their length has a limit of its own. Children, whose ids begin with those of their
/// parents, can still be addressed.
#[tokio::test]
async fn overlong_ids_and_names_are_refused() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    let (fits, long) = ("x".repeat(1_024), "x".repeat(1_025));
    client.start_orchestration(&fits, &fits, "").await.unwrap();
    let child = format!("{fits}::sub::2");
    client.raise_event(&child, &fits, "").await.unwrap();
    client.enqueue_event(&child, &fits, "").await.unwrap();
    client.cancel_instance(&child, "enough").await.unwrap();
    assert_eq!(store.enqueued().len(), 4);
    let too_long = |what: &str| format!("{what} size (1025 bytes) exceeds limit (1024 bytes)");
    assert_eq!(refusal(client.start_orchestration(&long, "Order", "").await), too_long("instance id"));
    assert_eq!(refusal(client.start_orchestration_if_new(&long, "Order", "").await), too_long("instance id"));
    assert_eq!(refusal(client.start_orchestration("o", &long, "").await), too_long("orchestration name"));
    assert_eq!(refusal(client.raise_event("o", &long, "").await), too_long("event name"));
    assert_eq!(refusal(client.enqueue_event("o", &long, "").await), too_long("queue message name"));
    let nowhere = "x".repeat(4_097);
    let unreachable = "instance id size (4097 bytes) exceeds limit (4096 bytes)";
    assert_eq!(refusal(client.raise_event(&nowhere, "e", "").await), unreachable);
    assert_eq!(refusal(client.cancel_instance(&nowhere, "enough").await), unreachable);
    assert_eq!(store.enqueued().len(), 4);
}

/// 15.3, I20
#[tokio::test]
async fn large_payloads_are_refused_before_anything_is_stored() {
    let store = FakeStore::telling();
    let limits = RuntimeLimits { max_payload_bytes: Some(10), ..Default::default() };
    let client = Client::with_limits(Arc::clone(&store) as Arc<dyn Provider>, limits);
    let (fits, too_large) = ("x".repeat(10), "x".repeat(11));
    let over = |what: &str| format!("{what} size (11 bytes) exceeds limit (10 bytes)");

    assert_eq!(
        refusal(client.start_orchestration("o", "Order", too_large.clone()).await),
        over("orchestration input")
    );
    assert_eq!(refusal(client.raise_event("o", "paid", too_large.clone()).await), over("event data"));
    assert_eq!(
        refusal(client.enqueue_event("o", "inbox", too_large.clone()).await),
        over("queue message data")
    );
    assert_eq!(refusal(client.enqueue_event("o", too_large.clone(), "").await), over("queue message name"));
    assert_eq!(refusal(client.cancel_instance("o", too_large.clone()).await), over("cancellation reason"));
    assert_eq!(refusal(client.start_orchestration(too_large, "Order", "").await), over("instance id"));
    assert!(store.enqueued().is_empty());

    client.start_orchestration("o", "Order", fits.clone()).await.unwrap();
    client.enqueue_event("o", "inbox", fits).await.unwrap();
    assert_eq!(store.enqueued().len(), 2, "the limit itself is allowed");
}

/// 15.3
#[tokio::test]
async fn the_payload_limit_has_a_default_and_can_be_switched_off() {
    let store = FakeStore::telling();
    let large = "x".repeat((16 << 20) + 1);
    let refused = refusal(client_on(&store).raise_event("o", "paid", large.clone()).await);
    assert_eq!(refused, "event data size (16777217 bytes) exceeds limit (16777216 bytes)");
    let unlimited = RuntimeLimits { max_payload_bytes: None, ..Default::default() };
    let client = Client::with_limits(Arc::clone(&store) as Arc<dyn Provider>, unlimited);
    client.raise_event("o", "paid", large).await.unwrap();
}

/// 15.3, I20
#[tokio::test]
async fn an_instance_with_too_many_messages_gets_no_more_of_them() {
    let store = FakeStore::telling();
    let limits = RuntimeLimits { max_mailbox_messages: Some(2), ..Default::default() };
    let client = Client::with_limits(Arc::clone(&store) as Arc<dyn Provider>, limits);
    client.raise_event("o", "paid", "").await.unwrap();
    client.enqueue_event("o", "inbox", "").await.unwrap();
    let full = "instance 'o' has reached the limit of waiting messages (2 messages)";
    assert_eq!(refusal(client.raise_event("o", "paid", "").await), full);
    assert_eq!(refusal(client.enqueue_event_typed("o", "inbox", &1).await), full);
    assert_eq!(store.enqueued().len(), 2);

    client.raise_event("other", "paid", "").await.unwrap();
    client.start_orchestration("o", "Order", "").await.unwrap();
    client.cancel_instance("o", "enough").await.unwrap();
    assert_eq!(store.enqueued().len(), 5, "other instances, starts and cancellations are not held up");
}

/// 15.3: without a limit the mailbox is not counted.
#[tokio::test]
async fn the_mailbox_limit_can_be_switched_off() {
    let store = FakeStore::telling();
    let limits = RuntimeLimits { max_mailbox_messages: None, ..Default::default() };
    let client = Client::with_limits(Arc::clone(&store) as Arc<dyn Provider>, limits);
    client.raise_event("o", "paid", "").await.unwrap();
    assert_eq!(store.calls(), ["enqueue_for_orchestrator"]);
}

#[tokio::test]
#[expect(deprecated, reason = "the older name still works")]
async fn the_older_name_of_enqueue_event_still_works() {
    let store = FakeStore::telling();
    client_on(&store).raise_event_persistent("o", "inbox", "hello").await.unwrap();
    assert!(matches!(store.enqueued().as_slice(), [WorkItem::QueueMessage { .. }]));
}
