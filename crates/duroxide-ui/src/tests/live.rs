//! Live streams.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
    response::Response,
};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::fixture::{Fixture, OPERATOR, TIMEOUT, tokens};
use crate::Limits;

fn limits(streams_max: usize) -> Limits {
    Limits { streams_max, stream_interval: Duration::from_millis(10), ..Limits::default() }
}

async fn open(fixture: &Fixture, query: &str) -> Response {
    let request =
        Request::get(format!("/live?{query}")).header(header::AUTHORIZATION, format!("Bearer {OPERATOR}"));
    fixture.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn next(stream: &mut Body) -> String {
    let frame = tokio::time::timeout(TIMEOUT, stream.frame()).await.unwrap().unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_stream_says_when_an_instance_changed_and_not_what() {
    let fixture = Fixture::with(tokens(), |console| console.limits(limits(9))).await;
    fixture.waiting_order("order").await;
    for query in ["view=instance&id=order", "view=instances&prefix=or"] {
        let response = open(&fixture, query).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        let mut stream = response.into_body();
        assert!(next(&mut stream).await.contains("event: begin"));
        fixture.client.raise_event("order", "Approval", "secret").await.unwrap();
        let change = next(&mut stream).await;
        assert!(change.contains("event: change") && change.contains("data: now"), "{change}");
        assert!(!change.contains("secret"), "{change}");
        fixture.ended("order").await;
        fixture.client.delete_instance("order", false).await.unwrap();
        fixture.waiting_order("order").await;
    }
    fixture.end().await;
}

#[tokio::test]
async fn a_change_between_the_page_and_its_stream_is_reported() {
    let fixture = Fixture::with(tokens(), |console| console.limits(limits(9))).await;
    fixture.waiting_order("order").await;
    for page in ["/instance?id=order", "/instances?prefix=or", "/failures"] {
        let text = fixture.get(page).await.text;
        let link = text.split("data-live=\"./live?").nth(1).unwrap().split('"').next().unwrap();
        let link = link.replace("&amp;", "&").replace("&#38;", "&");
        fixture.client.cancel_instance("order", "enough").await.unwrap();
        fixture.ended("order").await;
        let mut stream = open(&fixture, &link).await.into_body();
        assert!(next(&mut stream).await.contains("event: begin"));
        assert!(next(&mut stream).await.contains("event: change"), "{page}");
        fixture.client.delete_instance("order", false).await.unwrap();
        fixture.waiting_order("order").await;
    }
    fixture.end().await;
}

#[tokio::test]
async fn the_number_of_streams_is_bounded_and_one_that_ends_makes_room() {
    let fixture = Fixture::with(tokens(), |console| console.limits(limits(1))).await;
    let first = open(&fixture, "view=overview").await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(open(&fixture, "view=overview").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(first);
    assert_eq!(open(&fixture, "view=failures").await.status(), StatusCode::OK);
    fixture.end().await;
}

#[tokio::test]
async fn a_stream_ends_after_its_lifetime() {
    let short = Limits { stream_lifetime: Duration::from_millis(30), ..limits(1) };
    let fixture = Fixture::with(tokens(), |console| console.limits(short)).await;
    let stream = open(&fixture, "view=failures").await.into_body();
    let all = tokio::time::timeout(TIMEOUT, stream.collect()).await.unwrap().unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&all).contains("event: begin"));
    fixture.end().await;
}
