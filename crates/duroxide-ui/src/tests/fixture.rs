//! A node, a console and a user of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode, header},
    response::Response,
};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    runtime::{Runtime, registry::ActivityRegistry},
};
use duroxide_store::MemoryProvider;
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::{AuditEntry, Auth, Console, Role};

pub(super) const OPERATOR: &str = "the operators' token";
pub(super) const VIEWER: &str = "the viewers' token!!";

/// Longer than any test takes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Fixture {
    pub(super) client: Client,
    pub(super) router: Router,
    pub(super) audit: Arc<Mutex<Vec<AuditEntry>>>,
    runtime: Arc<Runtime>,
}

/// The response to a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

pub(super) fn tokens() -> Auth {
    let auth = Auth::token("ops", OPERATOR, Role::Operator).unwrap();
    auth.and_token("eyes", VIEWER, Role::Viewer).unwrap()
}

impl Fixture {
    pub(super) async fn new(auth: Auth) -> Self {
        Self::with(auth, |console| console).await
    }

    pub(super) async fn with(auth: Auth, set: impl FnOnce(Console) -> Console) -> Self {
        let store = Arc::new(MemoryProvider::new());
        let runtime = Runtime::start_with_store(store.clone(), activities(), orchestrations()).await;
        let client = Client::new(store);
        let audit = Arc::new(Mutex::new(Vec::new()));
        let entries = Arc::clone(&audit);
        let console = set(Console::new(client.clone(), auth))
            .audit(move |entry| entries.lock().unwrap().push(entry.clone()));
        Self { client, router: console.router(), audit, runtime }
    }

    /// An order that waits for its approval.
    pub(super) async fn waiting_order(&self, id: &str) {
        self.client.start_orchestration(id, "Order", "{\"item\":\"teapot\"}").await.unwrap();
        let waited = self.client.wait_for_status_change(id, 0, Duration::from_millis(10), TIMEOUT).await;
        assert!(matches!(waited.unwrap(), OrchestrationStatus::Running { .. }));
    }

    pub(super) async fn ended(&self, id: &str) -> OrchestrationStatus {
        self.client.wait_for_orchestration(id, TIMEOUT).await.unwrap()
    }

    /// An instance that has failed with this error.
    pub(super) async fn failed(&self, id: &str, error: &str) {
        self.client.start_orchestration(id, "Fail", error).await.unwrap();
        assert!(matches!(self.ended(id).await, OrchestrationStatus::Failed { .. }));
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(
            Request::get(path)
                .header(header::AUTHORIZATION, format!("Bearer {OPERATOR}"))
                .body(Body::empty())
                .unwrap(),
        )
        .await
    }

    /// Sends a form as a browser does, with the token of a page of this console, in the session of `cookie`.
    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)], cookie: &str) -> Answer {
        let page =
            self.send(with_cookie(Request::get("/instances"), cookie).body(Body::empty()).unwrap()).await;
        let mut fields = fields.to_vec();
        let csrf = page.csrf();
        fields.push(("_csrf", &csrf));
        let request = with_cookie(Request::post(path), cookie).header("sec-fetch-site", "same-origin");
        self.send(request.body(Body::from(form(&fields))).unwrap()).await
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    /// Signs in with this token, and returns the cookie of the session.
    pub(super) async fn sign_in(&self, token: &str) -> String {
        let request = Request::builder().method(Method::POST).uri("/login");
        let answer = self.send(request.body(Body::from(form(&[("token", token)]))).unwrap()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(super) async fn end(self) {
        self.runtime.shutdown(None).await;
    }
}

pub(super) fn with_cookie(
    request: axum::http::request::Builder,
    cookie: &str,
) -> axum::http::request::Builder {
    if cookie.is_empty() { request } else { request.header(header::COOKIE, cookie) }
}

pub(super) fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

impl Answer {
    pub(super) async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Self {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    /// The token of the page's forms.
    pub(super) fn csrf(&self) -> String {
        let rest = self.text.split("name=\"_csrf\" value=\"").nth(1).unwrap_or_default();
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    pub(super) fn location(&self) -> &str {
        self.headers.get(header::LOCATION).map_or("", |value| value.to_str().unwrap())
    }
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_kv_value("stage", "asked");
            ctx.set_custom_status("waits for approval");
            let approval = ctx.schedule_wait("Approval").await;
            let charged = ctx.schedule_activity("Charge", input).await?;
            Ok(format!("{charged} {approval}"))
        })
        .register("Queue", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.dequeue_event("inbox").await)
        })
        .register("Fail", |_: OrchestrationContext, error: String| async move { Err::<String, _>(error) })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration_with_id("Order", "the-child", input).await
        })
        .register("Twice", |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "again" => Ok("done".to_owned()),
                _ => ctx.continue_as_new("again").await,
            }
        })
        .build()
}

fn activities() -> ActivityRegistry {
    let charge = |_: ActivityContext, input: String| async move { Ok(format!("charged {input}")) };
    ActivityRegistry::builder().register("Charge", charge).build()
}
