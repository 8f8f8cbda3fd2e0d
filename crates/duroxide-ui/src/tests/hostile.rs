//! Payloads, ids and names are hostile input.

use super::fixture::{Answer, Fixture, TIMEOUT, tokens};

const HOSTILE: &str =
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}\u{202e}</pre></details>";

fn assert_harmless(answer: &Answer, page: &str) {
    for part in ["<script>alert", "<img src=x", "</pre></details>\"", "onerror=alert(2)>"] {
        assert!(!answer.text.contains(part), "{part} on {page}");
    }
    assert!(!answer.text.contains("style=") && !answer.text.contains(" onclick"), "inline on {page}");
    let scripts = answer.text.matches("<script").count();
    assert_eq!(scripts, answer.text.matches("<script src=\"").count(), "inline script on {page}");
}

#[tokio::test]
async fn hostile_texts_are_shown_as_texts() {
    let fixture = Fixture::new(tokens()).await;
    let id = "evil<script>alert(1)</script>\"'>";
    fixture.failed(id, HOSTILE).await;
    fixture.client.start_orchestration("queue", "Queue", HOSTILE).await.unwrap();
    fixture.client.enqueue_event("queue", "inbox", HOSTILE).await.unwrap();
    fixture.ended("queue").await;
    fixture.client.start_orchestration("pending", HOSTILE, HOSTILE).await.unwrap();
    let encoded = crate::links::encode(id);
    let hostile = crate::links::encode(HOSTILE);
    let pages = [
        "/overview".to_owned(),
        "/instances".to_owned(),
        format!("/instances?prefix={hostile}&name={hostile}&version={hostile}&parent={hostile}"),
        format!("/instance?id={encoded}"),
        "/instance?id=queue".to_owned(),
        "/instance?id=pending".to_owned(),
        format!("/instance?id={hostile}"),
        format!("/event?id={encoded}&event=1"),
        "/event?id=queue&event=3".to_owned(),
        "/failures".to_owned(),
        format!("/nodes?done={hostile}"),
        format!("/overview?range={hostile}"),
        format!("/instances?from={hostile}"),
        format!("/instances?cursor={hostile}"),
    ];
    for page in &pages {
        assert_harmless(&fixture.get(page).await, page);
    }
    let shown = fixture.get(&format!("/instance?id={encoded}")).await.text;
    assert!(
        shown.contains("alert(2)") && shown.contains("&#60;script&#62;") || shown.contains("&lt;script&gt;"),
        "{shown}"
    );
    fixture.end().await;
}

#[tokio::test]
async fn hidden_payloads_are_on_no_page() {
    let hide =
        |payload: &crate::Payload<'_>| payload.text.contains("secret").then(|| "hidden by hook".to_owned());
    let fixture = Fixture::with(tokens(), |console| console.redact(hide)).await;
    fixture.client.start_orchestration("order", "Order", "secret input").await.unwrap();
    fixture.client.wait_for_kv_value("order", "stage", TIMEOUT).await.unwrap();
    fixture.client.raise_event("order", "Approval", "secret approval").await.unwrap();
    fixture.ended("order").await;
    fixture.failed("failed", "a secret error").await;
    fixture.client.start_orchestration("queue", "Queue", "").await.unwrap();
    fixture.client.enqueue_event("queue", "inbox", "secret message").await.unwrap();
    fixture.ended("queue").await;
    fixture.client.cancel_instance("absent", "secret reason").await.unwrap();
    let mut pages =
        vec!["/overview".to_owned(), "/instances".to_owned(), "/failures".to_owned(), "/nodes".to_owned()];
    for id in ["order", "failed", "queue"] {
        pages.push(format!("/instance?id={id}"));
        pages.extend((1..9).map(|event| format!("/event?id={id}&event={event}")));
    }
    let mut hidden = 0;
    for page in &pages {
        let text = fixture.get(page).await.text;
        assert!(!text.contains("secret"), "{page}: {text}");
        hidden += text.matches("hidden by hook").count();
    }
    assert!(hidden > 8, "{hidden}");
    let export = fixture.get("/export?id=order").await;
    assert_eq!(export.status, 403);
    assert!(!export.text.contains("secret"));
    fixture.end().await;
}
