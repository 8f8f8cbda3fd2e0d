//! Every route with every method, without, with wrong, with viewer's and with operator's credentials.

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};

use super::fixture::{Fixture, OPERATOR, VIEWER, form, tokens, with_cookie};
use crate::{
    AuditOutcome, Auth, Principal, Role,
    routes::{Access, ROUTES},
};

/// The access of every route, written down a second time, so that a route opened by mistake is found.
const TABLE: &[(&str, Access)] = &[
    ("/", Access::Read),
    ("/overview", Access::Read),
    ("/instances", Access::Read),
    ("/instance", Access::Read),
    ("/event", Access::Read),
    ("/export", Access::Read),
    ("/failures", Access::Read),
    ("/nodes", Access::Read),
    ("/live", Access::Read),
    ("/raise", Access::Change),
    ("/enqueue", Access::Change),
    ("/cancel", Access::Change),
    ("/delete", Access::Change),
    ("/start-again", Access::Change),
    ("/retry-dead-letter", Access::Change),
    ("/discard-dead-letter", Access::Change),
    ("/bulk-preview", Access::Preview),
    ("/bulk", Access::Change),
    ("/login", Access::Public),
    ("/logout", Access::Public),
    ("/assets/{file}", Access::Public),
];

#[test]
fn the_routes_are_those_of_the_table() {
    let routes: Vec<_> = ROUTES.iter().map(|route| (route.path, route.access)).collect();
    assert_eq!(routes, TABLE);
}

const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
];

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    WrongToken,
    WrongCookie,
    Viewer,
    Operator,
    /// An operator's session without the token of a form.
    ForgedOperator,
    /// An operator's session with the token, from another site.
    OtherSite,
}

const ALL: [Who; 7] = [
    Who::Nobody,
    Who::WrongToken,
    Who::WrongCookie,
    Who::Viewer,
    Who::Operator,
    Who::ForgedOperator,
    Who::OtherSite,
];

/// The response that a route must give. 400 and 404 come from handlers, because the walk sends no sensible input.
fn expected(access: Access, path: &str, method: &Method, who: Who) -> Expected {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let posts = *method == Method::POST;
    let known = matches!(who, Who::Viewer | Who::Operator | Who::ForgedOperator | Who::OtherSite);
    match access {
        Access::Public => match path {
            "/assets/{file}" if reads => Expected::LetIn,
            "/login" if reads || posts => Expected::Login,
            "/logout" if posts => Expected::LetIn,
            _ => Expected::Status(StatusCode::METHOD_NOT_ALLOWED),
        }
        .unless(who == Who::OtherSite && posts),
        _ if !known => Expected::Status(StatusCode::UNAUTHORIZED),
        Access::Read if reads => Expected::LetIn,
        Access::Read => Expected::Status(StatusCode::METHOD_NOT_ALLOWED),
        Access::Preview | Access::Change if who == Who::Viewer => Expected::Status(StatusCode::FORBIDDEN),
        Access::Preview | Access::Change if posts && who == Who::Operator => Expected::LetIn,
        Access::Preview | Access::Change if posts => Expected::Status(StatusCode::FORBIDDEN),
        Access::Preview | Access::Change => Expected::Status(StatusCode::METHOD_NOT_ALLOWED),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    LetIn,
    /// The login form (200 or 401), or a new session (200).
    Login,
    Status(StatusCode),
}

impl Expected {
    fn unless(self, is_forged: bool) -> Self {
        if is_forged { Self::Status(StatusCode::FORBIDDEN) } else { self }
    }

    fn is(&self, status: StatusCode) -> bool {
        let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::METHOD_NOT_ALLOWED];
        match self {
            Self::LetIn => !refused.contains(&status) && !status.is_server_error(),
            Self::Login => matches!(status, StatusCode::OK | StatusCode::UNAUTHORIZED),
            Self::Status(expected) => *expected == status,
        }
    }
}

struct Walker {
    fixture: Fixture,
    operator: String,
    viewer: String,
    csrf: String,
}

impl Walker {
    async fn new() -> Self {
        let fixture = Fixture::new(tokens()).await;
        let (operator, viewer) = (fixture.sign_in(OPERATOR).await, fixture.sign_in(VIEWER).await);
        let page = with_cookie(Request::get("/instances"), &operator).body(Body::empty()).unwrap();
        let csrf = fixture.send(page).await.csrf();
        assert!(!csrf.is_empty());
        Self { fixture, operator, viewer, csrf }
    }

    fn request(&self, path: &str, method: &Method, who: Who) -> Request<Body> {
        let path = path.replace("{file}", "console.css");
        let builder = Request::builder().method(method).uri(format!("{path}?id=x&view=overview"));
        let builder = match who {
            Who::Nobody => builder,
            Who::WrongToken => builder.header(header::AUTHORIZATION, "Bearer not the operators' token"),
            Who::WrongCookie => with_cookie(builder, &self.operator.replace("=0.", "=1.")),
            Who::Viewer => with_cookie(builder, &self.viewer),
            Who::Operator | Who::ForgedOperator | Who::OtherSite => with_cookie(builder, &self.operator),
        };
        let site = if who == Who::OtherSite { "cross-site" } else { "same-origin" };
        let has_token = matches!(who, Who::Operator | Who::OtherSite);
        let csrf = if has_token { self.csrf.as_str() } else { "forged" };
        let fields = form(&[("_csrf", csrf), ("id", "x"), ("action", "cancel"), ("token", "wrong")]);
        builder.header("sec-fetch-site", site).body(Body::from(fields)).unwrap()
    }
}

#[tokio::test]
async fn every_route_answers_each_user_as_the_table_says() {
    let walker = Walker::new().await;
    let mut walked = 0;
    for route in ROUTES {
        for method in METHODS {
            for who in ALL {
                let request = walker.request(route.path, &method, who);
                // Checks only the head of the response, because a stream would not end.
                let response =
                    tower::ServiceExt::oneshot(walker.fixture.router.clone(), request).await.unwrap();
                let expected = expected(route.access, route.path, &method, who);
                let status = response.status();
                assert!(
                    expected.is(status),
                    "{method} {} by {who:?}: {status}, not {expected:?}",
                    route.path
                );
                for name in [
                    "content-security-policy",
                    "x-frame-options",
                    "x-content-type-options",
                    "referrer-policy",
                ] {
                    assert!(response.headers().contains_key(name), "{name} of {method} {}", route.path);
                }
                walked += 1;
            }
        }
    }
    assert_eq!(walked, ROUTES.len() * METHODS.len() * ALL.len());
    walker.fixture.end().await;
}

#[tokio::test]
async fn every_change_that_a_known_user_tries_is_audited() {
    let walker = Walker::new().await;
    let changes = || ROUTES.iter().filter(|route| route.access == Access::Change);
    for route in changes() {
        for who in ALL {
            walker.fixture.send(walker.request(route.path, &Method::POST, who)).await;
        }
    }
    let audit = walker.fixture.audit.lock().unwrap().clone();
    for route in changes() {
        let action = route.path.trim_start_matches('/').replace("bulk", "bulk cancel");
        let audited: Vec<_> = audit
            .iter()
            .filter(|entry| entry.action == action)
            .map(|entry| (entry.who.as_str(), entry.outcome == AuditOutcome::Refused))
            .collect();
        assert_eq!(audited, [("eyes", true), ("ops", false), ("ops", true), ("ops", true)], "{action}");
    }
    assert!(audit.iter().all(|entry| entry.subjects == ["x"]), "{audit:?}");
    walker.fixture.end().await;
}

#[tokio::test]
async fn a_read_only_console_refuses_every_change_and_shows_no_form() {
    let fixture = Fixture::with(tokens(), crate::Console::read_only).await;
    let operator = fixture.sign_in(OPERATOR).await;
    for route in ROUTES.iter().filter(|route| matches!(route.access, Access::Change | Access::Preview)) {
        let request = Request::post(route.path).header(header::AUTHORIZATION, format!("Bearer {OPERATOR}"));
        let answer = fixture.send(request.body(Body::from("id=x")).unwrap()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", route.path);
        assert!(answer.text.contains("read-only"));
    }
    fixture.waiting_order("order-1").await;
    let request = with_cookie(Request::get("/instance?id=order-1"), &operator).body(Body::empty()).unwrap();
    let page = fixture.send(request).await.text;
    assert!(page.contains("Export") && !page.contains("action=\"./raise\""), "{page}");
    fixture.end().await;
}

#[tokio::test]
async fn a_layer_identifies_users_and_requests_without_one_are_refused() {
    let fixture = Fixture::new(Auth::layer()).await;
    let answer = fixture.send(Request::get("/").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let mut request = Request::get("/instances").body(Body::empty()).unwrap();
    request.extensions_mut().insert(Principal::new("ada", Role::Operator));
    let page = fixture.send(request).await;
    assert_eq!(page.status, StatusCode::OK);
    for (csrf, name, expected) in
        [(page.csrf(), "ada", true), (page.csrf(), "bob", false), (String::new(), "ada", false)]
    {
        let body = form(&[("_csrf", &csrf), ("id", "x")]);
        let mut request = Request::post("/cancel").body(Body::from(body)).unwrap();
        request.extensions_mut().insert(Principal::new(name, Role::Operator));
        let status = fixture.send(request).await.status;
        assert_eq!(status == StatusCode::SEE_OTHER, expected, "{name}: {status}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn on_a_trusted_network_forms_of_other_sites_are_still_refused() {
    let fixture = Fixture::new(Auth::trust_this_network()).await;
    fixture.waiting_order("order-1").await;
    let forged = Request::post("/cancel").body(Body::from("id=order-1")).unwrap();
    assert_eq!(fixture.send(forged).await.status, StatusCode::FORBIDDEN);
    assert_eq!(fixture.post("/cancel", &[("id", "order-1")], "").await.status, StatusCode::SEE_OTHER);
    fixture.end().await;
}
