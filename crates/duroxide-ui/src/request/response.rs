//! Completes every response: adds security headers, and replaces a bare error by a page.

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

use crate::{failure::Failure, links};

/// Allows only content of the console itself: no inline script, no inline style, no frame, no other host.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
];

pub(crate) async fn complete(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let root = links::root_of(&parts);
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(failure) = failure_of(&response) {
        let allow = response.headers_mut().remove(header::ALLOW);
        response = failure.page(&root);
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Pages contain payloads, which no cache may keep. Assets set another value.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The failure of a handler, or an error of the router itself.
fn failure_of(response: &Response) -> Option<Failure> {
    let ours = response.extensions().get::<Failure>().cloned();
    ours.or_else(|| match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => Some(Failure::MethodNotAllowed),
        _ => None,
    })
}
