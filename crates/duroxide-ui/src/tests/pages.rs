//! The content of the pages.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use duroxide::client::RecordedHistory;

use super::fixture::{Fixture, VIEWER, tokens, with_cookie};
use crate::{
    Console, Limits,
    pages::failures::{Bounds, FailureCache},
};

#[tokio::test]
async fn the_page_of_an_instance_says_what_it_waits_for() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("order-1").await;
    let text = fixture.get("/instance?id=order-1").await.text;
    for part in
        ["Why it does not move", "Approval", "stage", "waits for approval", "teapot", "Raise an event"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("value=\"Approval\""), "the form suggests the awaited event");
    fixture.end().await;
}

#[tokio::test]
async fn a_pending_start_has_a_page() {
    let fixture = Fixture::new(tokens()).await;
    fixture.client.start_orchestration("early", "Nobody knows it", "x").await.unwrap();
    let answer = fixture.get("/instance?id=early").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(answer.text.contains("Pending") && answer.text.contains("Nobody knows it"), "{}", answer.text);
    fixture.end().await;
}

#[tokio::test]
async fn unknown_things_are_not_found_and_say_so() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("order-1").await;
    for path in [
        "/instance?id=absent",
        "/instance?id=order-1&execution=7",
        "/event?id=order-1&event=99",
        "/export?id=absent",
        "/assets/other.js",
        "/nowhere",
    ] {
        let answer = fixture.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {}", answer.text);
        assert!(answer.text.contains("Not found"), "{path}");
    }
    for path in [
        "/instance",
        "/instances?limit=x",
        "/instances?status=Odd",
        "/live?view=x",
        "/instance?id=order-1&page=x",
    ] {
        assert_eq!(fixture.get(path).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn pages_of_the_list_show_each_instance_once() {
    let fixture = Fixture::new(tokens()).await;
    for n in 0..7 {
        fixture.failed(&format!("i-{n}"), "no").await;
    }
    let mut path = "/instances?limit=3&status=Failed".to_owned();
    let mut found = Vec::new();
    loop {
        let text = fixture.get(&path).await.text;
        found.extend((0..7).filter(|n| text.contains(&format!("Select i-{n}\""))));
        let Some(next) = text.split("rel=\"next\" href=\".").nth(1) else { break };
        path = next.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
    }
    assert_eq!(found, [4, 5, 6, 1, 2, 3, 0].to_vec().into_iter().collect::<Vec<_>>());
    let exact = fixture.get("/instances?prefix=i-3").await.text;
    assert!(exact.contains("Select i-3\"") && !exact.contains("Select i-4\""));
    fixture.end().await;
}

#[tokio::test]
async fn a_long_history_is_shown_in_pages_the_newest_first() {
    let few = Limits { events_per_page: 3, ..Limits::default() };
    let fixture = Fixture::with(tokens(), |console| console.limits(few)).await;
    fixture.waiting_order("order-1").await;
    fixture.client.raise_event("order-1", "Approval", "yes").await.unwrap();
    fixture.ended("order-1").await;
    let last = fixture.get("/instance?id=order-1").await.text;
    assert!(last.contains("page 3 of 3") && last.contains("completed"), "{last}");
    assert!(!last.contains("id=\"event-1\""));
    let first = fixture.get("/instance?id=order-1&page=1").await.text;
    assert!(first.contains("id=\"event-1\"") && !first.contains("id=\"event-4\""), "{first}");
    fixture.end().await;
}

#[tokio::test]
async fn executions_and_family_are_linked() {
    let fixture = Fixture::new(tokens()).await;
    fixture.client.start_orchestration("twice", "Twice", "").await.unwrap();
    fixture.ended("twice").await;
    let text = fixture.get("/instance?id=twice").await.text;
    assert!(text.contains("execution=1\""), "{text}");
    let first = fixture.get("/instance?id=twice&execution=1").await.text;
    assert!(first.contains("continues as new"), "{first}");

    fixture.client.start_orchestration("parent", "Parent", "x").await.unwrap();
    let child = fixture.client.wait_for_kv_value("the-child", "stage", super::fixture::TIMEOUT).await;
    assert_eq!(child.unwrap(), "asked");
    let parent = fixture.get("/instance?id=parent").await.text;
    assert!(parent.contains("Family") && parent.contains("instance?id=the-child"), "{parent}");
    let child = fixture.get("/instance?id=the-child").await.text;
    assert!(child.contains("instance?id=parent") && !child.contains("action=\"./delete\""), "{child}");
    fixture.end().await;
}

#[tokio::test]
async fn an_export_is_a_history_that_a_test_can_replay() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("order/1").await;
    let answer = fixture.get("/export?id=order%2F1").await;
    assert_eq!(answer.headers[header::CONTENT_DISPOSITION], "attachment; filename=\"order_1.json\"");
    let history = RecordedHistory::from_json(&answer.text).unwrap();
    assert_eq!((history.instance.as_str(), history.orchestration.as_str()), ("order/1", "Order"));
    fixture.end().await;
}

/// An instance that no node has begun has nothing to export or to delete, and its page links to the nodes.
#[tokio::test]
async fn the_page_of_a_pending_instance_offers_only_possible_actions() {
    let fixture = Fixture::new(tokens()).await;
    fixture.client.start_orchestration("order-1", "Oder", "").await.unwrap();
    let text = loop {
        let text = fixture.get("/instance?id=order-1").await.text;
        if text.contains("no live node has handler") {
            break text;
        }
        tokio::task::yield_now().await;
    };
    assert!(text.contains("What each node can do") && text.contains("No node has begun it."), "{text}");
    assert!(!text.contains("Export as a replay test") && !text.contains("I am sure"), "{text}");
    assert!(fixture.get("/instances?prefix=order-1").await.text.contains("order-1"), "the exact id is found");
    fixture.end().await;
}

#[tokio::test]
async fn failures_are_grouped() {
    let fixture = Fixture::new(tokens()).await;
    for n in 0..3 {
        fixture.failed(&format!("f-{n}"), &format!("order {n} has no stock")).await;
    }
    fixture.failed("other", "something else").await;
    let text = fixture.get("/failures").await.text;
    assert!(text.contains("3×") && text.contains("1×") && text.contains("something else"), "{text}");
    fixture.end().await;
}

/// More failures than fit on one page are read in the background, and the page says how many were read.
#[tokio::test]
async fn all_failures_are_grouped_and_not_only_the_newest() {
    for (total, says) in
        [(1_000, "7 failed instances, grouped"), (4, "The newest 4 failed instances, grouped")]
    {
        let bounds = Bounds { page: 2, total };
        let fixture =
            Fixture::with(tokens(), |console| Console { failures: FailureCache::with(bounds), ..console })
                .await;
        for n in 0..7 {
            fixture.failed(&format!("f-{n}"), &format!("order {n} has no stock")).await;
        }
        let text = loop {
            let text = fixture.get("/failures").await.text;
            if !text.contains("The others are being read.") {
                break text;
            }
            assert!(text.contains("The newest 2 failed instances"), "what is there is shown at once: {text}");
            tokio::task::yield_now().await;
        };
        let count = total.min(7);
        assert!(text.contains(says) && text.contains(&format!("{count}×")), "{text}");
        assert_eq!(text.contains("All of them"), total == 4, "{text}");
        fixture.end().await;
    }
}

#[tokio::test]
async fn the_overview_counts_and_the_nodes_page_judges() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("order-1").await;
    fixture.failed("failed", "no").await;
    let text = fixture.get("/overview").await.text;
    for part in [
        "Running",
        "Completed",
        "Failed",
        "By name and version",
        "Order",
        "Started and ended",
        "Oldest that still runs",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = fixture.get("/nodes").await.text;
    assert!(text.contains("Not safe to retire") && text.contains("1 of Order"), "{text}");
    fixture.end().await;
}

#[tokio::test]
async fn viewers_see_everything_and_no_button_that_changes() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("order-1").await;
    fixture.failed("failed", "no").await;
    let viewer = fixture.sign_in(VIEWER).await;
    for path in
        ["/overview", "/instances", "/instance?id=order-1", "/instance?id=failed", "/failures", "/nodes"]
    {
        let request = with_cookie(Request::get(path), &viewer).body(Body::empty()).unwrap();
        let answer = fixture.send(request).await;
        assert_eq!(answer.status, StatusCode::OK);
        let posts: Vec<&str> = answer.text.split("<form method=\"post\" action=\"").skip(1).collect();
        let buttons = answer.text.matches("type=\"submit\" class=\"danger\"").count();
        assert!(
            posts.iter().all(|form| form.contains("logout\"")
                || !form.split("</form>").next().unwrap().contains("<button")),
            "{path}"
        );
        assert_eq!(buttons, 0, "{path}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn pages_are_not_kept_by_caches_and_assets_are() {
    let fixture = Fixture::new(tokens()).await;
    assert_eq!(fixture.get("/instances").await.headers[header::CACHE_CONTROL], "no-store");
    let css = fixture.get("/assets/console.css").await;
    assert!(css.headers[header::CACHE_CONTROL].to_str().unwrap().contains("max-age"));
    assert_eq!(css.headers[header::CONTENT_TYPE], "text/css; charset=utf-8");
    fixture.end().await;
}
