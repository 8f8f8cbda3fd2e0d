//! Links are right under every prefix.

use std::collections::BTreeSet;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header},
};
use tower::ServiceExt;

use super::fixture::{Answer, Fixture, OPERATOR, tokens};

fn mounted(router: &Router, prefix: &str) -> Router {
    if prefix.is_empty() { router.clone() } else { Router::new().nest(prefix, router.clone()) }
}

async fn get(router: &Router, path: &str) -> Answer {
    let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {OPERATOR}"));
    Answer::of(router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()).await
}

/// The URL that a browser asks for when it follows `link` on the page `page`.
fn resolve(page: &str, link: &str) -> String {
    let folder = page.split(['?', '#']).next().unwrap().rsplit_once('/').unwrap().0;
    let mut segments: Vec<&str> = folder.split('/').skip(1).collect();
    let mut rest = link;
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            segments.pop();
            rest = after;
        } else {
            break;
        }
    }
    let folder: String = segments.iter().map(|segment| format!("/{segment}")).collect();
    format!("{folder}/{rest}")
}

fn links(text: &str) -> BTreeSet<String> {
    let attributes = ["href=\"", "src=\"", "data-live=\""];
    let found = attributes.iter().flat_map(|attribute| text.split(attribute).skip(1));
    let values =
        found.map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&"));
    values.filter(|link| !link.starts_with('#')).collect()
}

#[tokio::test]
async fn every_link_of_every_page_leads_somewhere_under_every_prefix() {
    let fixture = Fixture::new(tokens()).await;
    fixture.waiting_order("order 1/a?&é").await;
    fixture.failed("failed-1", "no stock").await;
    fixture.client.start_orchestration("twice", "Twice", "").await.unwrap();
    fixture.ended("twice").await;
    for prefix in ["", "/duroxide", "/a/b"] {
        let router = mounted(&fixture.router, prefix);
        let mut open = vec![if prefix.is_empty() { "/".to_owned() } else { prefix.to_owned() }];
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        while let Some(mut page) = open.pop() {
            if page.contains("/live?") {
                continue;
            }
            let mut answer = get(&router, &page).await;
            if answer.status == StatusCode::SEE_OTHER {
                page = resolve(&page, answer.location());
                answer = get(&router, &page).await;
            }
            assert_eq!(answer.status, StatusCode::OK, "{page}");
            if !answer.text.contains("<!doctype html>") {
                continue;
            }
            for link in links(&answer.text) {
                let url = resolve(&page, &link);
                assert!(url.starts_with(&format!("{prefix}/")), "{link} on {page} leads to {url}");
                let url = url.split('#').next().unwrap().to_owned();
                if seen.insert(url.clone()) {
                    open.push(url);
                }
            }
        }
        let seen_page = |name: &str| seen.iter().any(|url| url.starts_with(&format!("{prefix}/{name}")));
        for name in [
            "instances?",
            "instance?",
            "event?",
            "export?",
            "failures",
            "nodes",
            "assets/console.css",
            "live?",
        ] {
            assert!(seen_page(name), "{name} was not reached under {prefix:?}: {seen:?}");
        }
    }
    fixture.end().await;
}

#[tokio::test]
async fn the_address_itself_leads_to_the_overview() {
    let fixture = Fixture::new(tokens()).await;
    for (prefix, path) in [("", "/"), ("/duroxide", "/duroxide"), ("/a/b", "/a/b")] {
        let answer = get(&mounted(&fixture.router, prefix), path).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
        assert_eq!(resolve(path, answer.location()), format!("{prefix}/overview"), "{path}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn failures_are_styled_under_every_prefix() {
    let fixture = Fixture::new(tokens()).await;
    for (prefix, path, root) in
        [("", "/x/y", "../"), ("/duroxide", "/duroxide/none", "./"), ("/a/b", "/a/b/none", "./")]
    {
        let answer = get(&mounted(&fixture.router, prefix), path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert!(answer.text.contains(&format!("{root}assets/console.css")), "{}", answer.text);
    }
    let stranger = Request::get("/duroxide").body(Body::empty()).unwrap();
    let answer = Answer::of(mounted(&fixture.router, "/duroxide").oneshot(stranger).await.unwrap()).await;
    assert!(answer.text.contains("action=\"./duroxide/login\""), "{}", answer.text);
    fixture.end().await;
}
