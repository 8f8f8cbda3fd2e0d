//! Every action end to end.

use std::{
    future::Future,
    task::{Context, Waker},
};

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use duroxide::{Client, ClientError, OrchestrationStatus};
use tower::ServiceExt;

use super::fixture::{Fixture, OPERATOR, TIMEOUT, tokens};
use crate::AuditOutcome;

async fn is_gone(client: &Client, id: &str) -> bool {
    matches!(client.get_instance_info(id).await, Err(ClientError::InstanceNotFound { .. }))
}

#[tokio::test]
async fn an_event_that_is_raised_arrives() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    fixture.waiting_order("order/1").await;
    let fields = [("id", "order/1"), ("name", "Approval"), ("data", "by <Ada>")];
    let answer = fixture.post("/raise", &fields, &cookie).await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "./instance?id=order%2F1&done=raise")
    );
    let OrchestrationStatus::Completed { output, .. } = fixture.ended("order/1").await else { panic!() };
    assert!(output.ends_with("by <Ada>"), "{output}");
    let page = fixture.get("/instance?id=order%2F1&done=raise").await.text;
    assert!(page.contains("Event sent."));
    let audit = fixture.audit.lock().unwrap().clone();
    assert_eq!(audit.len(), 1);
    assert_eq!((audit[0].who.as_str(), audit[0].action.as_str()), ("ops", "raise"));
    assert_eq!(
        (audit[0].subjects.as_slice(), audit[0].outcome),
        (["order/1".to_owned()].as_slice(), AuditOutcome::Done)
    );
    assert!(!format!("{audit:?}").contains("Ada"), "no payload is written down");
    fixture.end().await;
}

/// A closed tab must leave neither half a change nor an unaudited one.
#[tokio::test]
async fn a_change_is_made_and_audited_although_its_browser_disconnects() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("a").await;
    fixture.waiting_order("b").await;
    let request = Request::post("/bulk").header(header::AUTHORIZATION, format!("Bearer {OPERATOR}"));
    let request = request.body(Body::from("action=cancel&id=a&id=b")).unwrap();
    let mut answer = Box::pin(fixture.router.clone().oneshot(request));
    let first = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending(), "the store has not answered yet");
    drop(answer);
    for id in ["a", "b"] {
        assert!(matches!(fixture.ended(id).await, OrchestrationStatus::Failed { .. }));
    }
    let written = async {
        while fixture.audit.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, written).await.unwrap();
    assert_eq!(fixture.audit.lock().unwrap()[0].outcome, AuditOutcome::Done);
    fixture.end().await;
}

#[tokio::test]
async fn a_message_that_is_enqueued_arrives() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    fixture.client.start_orchestration("queue", "Queue", "").await.unwrap();
    fixture.post("/enqueue", &[("id", "queue"), ("name", "inbox"), ("data", "hello")], &cookie).await;
    let OrchestrationStatus::Completed { output, .. } = fixture.ended("queue").await else { panic!() };
    assert_eq!(output, "hello");
    fixture.end().await;
}

#[tokio::test]
async fn an_instance_is_cancelled_started_again_and_deleted() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    fixture.waiting_order("order").await;
    fixture.post("/cancel", &[("id", "order"), ("reason", "enough")], &cookie).await;
    let OrchestrationStatus::Failed { details, .. } = fixture.ended("order").await else { panic!() };
    assert_eq!(details.display_message(), "canceled: enough");

    let answer = fixture.post("/start-again", &[("id", "order")], &cookie).await;
    assert_eq!(answer.location(), "./instance?id=order-again-1&done=start-again");
    let answer = fixture.post("/start-again", &[("id", "order")], &cookie).await;
    assert_eq!(answer.location(), "./instance?id=order-again-2&done=start-again");
    fixture.client.raise_event("order-again-1", "Approval", "yes").await.unwrap();

    let unsure = fixture.post("/delete", &[("id", "order")], &cookie).await;
    assert_eq!(unsure.status, StatusCode::BAD_REQUEST);
    let answer = fixture.post("/delete", &[("id", "order"), ("sure", "yes")], &cookie).await;
    assert_eq!(answer.location(), "./instances?done=delete");
    assert!(is_gone(&fixture.client, "order").await);
    fixture.end().await;
}

#[tokio::test]
async fn a_running_instance_is_deleted_only_by_force() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    fixture.waiting_order("order").await;
    let answer = fixture.post("/delete", &[("id", "order"), ("sure", "yes")], &cookie).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(fixture.audit.lock().unwrap()[0].outcome, AuditOutcome::Failed);
    fixture.post("/delete", &[("id", "order"), ("sure", "yes"), ("force", "yes")], &cookie).await;
    assert!(is_gone(&fixture.client, "order").await);
    fixture.end().await;
}

#[tokio::test]
async fn an_action_changes_exactly_the_instances_of_its_preview() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    for id in ["a-1", "a-2"] {
        fixture.waiting_order(id).await;
    }
    fixture.failed("a-3", "no").await;
    let filter = [("action", "cancel"), ("all", "yes"), ("prefix", "a-")];
    let preview = fixture.post("/bulk-preview", &filter, &cookie).await.text;
    assert!(preview.contains("Cancel: 2 instances") && preview.contains("has ended already"), "{preview}");
    assert!(fixture.audit.lock().unwrap().is_empty(), "a preview is no change");
    // An instance that starts after the preview is not changed, although it matches.
    fixture.waiting_order("a-4").await;
    let answer = fixture.post("/bulk", &[("action", "cancel"), ("id", "a-1"), ("id", "a-2")], &cookie).await;
    assert_eq!(answer.location(), "./instances?done=bulk-cancel");
    for id in ["a-1", "a-2"] {
        assert!(matches!(fixture.ended(id).await, OrchestrationStatus::Failed { .. }));
    }
    let open = fixture.client.get_orchestration_status("a-4").await.unwrap();
    assert!(matches!(open, OrchestrationStatus::Running { .. }));
    let audit = fixture.audit.lock().unwrap().clone();
    assert_eq!((audit[0].action.as_str(), audit[0].subjects.len()), ("bulk cancel", 2));
    fixture.end().await;
}

#[tokio::test]
async fn failed_instances_are_started_again_and_deleted_in_bulk() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    for id in ["f-1", "f-2"] {
        fixture.failed(id, "no").await;
    }
    let both = [("action", "retry"), ("id", "f-1"), ("id", "f-2")];
    let preview = fixture.post("/bulk-preview", &both, &cookie).await.text;
    assert!(preview.contains("Start again: 2 instances"), "{preview}");
    fixture.post("/bulk", &both, &cookie).await;
    assert!(matches!(fixture.ended("f-1-again-1").await, OrchestrationStatus::Failed { .. }));
    assert!(matches!(fixture.ended("f-2-again-1").await, OrchestrationStatus::Failed { .. }));
    fixture.post("/bulk", &[("action", "delete"), ("id", "f-1"), ("id", "f-2")], &cookie).await;
    assert!(is_gone(&fixture.client, "f-1").await && is_gone(&fixture.client, "f-2").await);
    let missing =
        fixture.post("/bulk", &[("action", "delete"), ("id", "f-1"), ("id", "f-1-again-1")], &cookie).await;
    assert_eq!(missing.status, StatusCode::CONFLICT);
    assert!(missing.text.contains("Done for 1 of 2"), "{}", missing.text);
    fixture.end().await;
}

#[tokio::test]
async fn nothing_selected_too_much_selected_and_unknown_actions_are_refused() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    let many: Vec<String> = (0..1_001).map(|n| n.to_string()).collect();
    let mut too_many: Vec<(&str, &str)> = many.iter().map(|id| ("id", id.as_str())).collect();
    too_many.push(("action", "cancel"));
    for fields in [vec![("action", "cancel")], vec![("action", "explode"), ("id", "x")], too_many] {
        for path in ["/bulk-preview", "/bulk"] {
            assert_eq!(fixture.post(path, &fields, &cookie).await.status, StatusCode::BAD_REQUEST);
        }
    }
    fixture.end().await;
}
