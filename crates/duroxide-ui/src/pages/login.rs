//! Signing in with a token or a link, and out.

use askama::Template;
use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};

use crate::{
    auth::{COOKIE, Kind, SignIn},
    failure::Failure,
    visit::{Visit, show},
};

/// Leads on to the overview. A redirect would not do: a browser that comes from another site would not send the cookie.
#[derive(Template)]
#[template(path = "signed.html")]
struct SignedPage<'a> {
    root: &'a str,
    is_in: bool,
}

/// `GET /login?link=…`: a link that works once. Without a link it is the login form.
pub(crate) async fn by_link(headers: HeaderMap, visit: Visit) -> Result<Response, Failure> {
    match visit.query.one("link") {
        Some(code) => sign_in(&headers, &visit, &SignIn::Link(code)),
        None => Err(stranger(&visit, false)),
    }
}

/// `POST /login`: a token from the form.
pub(crate) async fn by_token(headers: HeaderMap, visit: Visit) -> Result<Response, Failure> {
    let token = visit.form.one("token").unwrap_or_default();
    sign_in(&headers, &visit, &SignIn::Token(token.trim()))
}

/// `POST /logout`.
pub(crate) async fn sign_out(headers: HeaderMap, visit: Visit) -> Result<Response, Failure> {
    let page = show(&SignedPage { root: &visit.root, is_in: false })?;
    with_cookie(page, &headers, "", 0)
}

fn sign_in(headers: &HeaderMap, visit: &Visit, shown: &SignIn<'_>) -> Result<Response, Failure> {
    let Kind::Tokens(tokens) = &visit.console.auth.0 else { return Err(stranger(visit, false)) };
    let Some(value) = tokens.sign_in(shown) else {
        return Err(stranger(visit, matches!(shown, SignIn::Link(_))));
    };
    let page = show(&SignedPage { root: &visit.root, is_in: true })?;
    with_cookie(page, headers, &value, crate::auth::SESSION_SECONDS)
}

fn stranger(visit: &Visit, link_was_used: bool) -> Failure {
    let has_login = matches!(visit.console.auth.0, Kind::Tokens(_));
    Failure::Unauthorized { has_login, link_was_used }
}

/// Sets the session cookie. Without a `Path` the cookie belongs to the folder of this URL, which is the console's
/// folder under every prefix.
fn with_cookie(page: Response, headers: &HeaderMap, value: &str, seconds: u64) -> Result<Response, Failure> {
    let is_encrypted = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let secure = if is_encrypted { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={value}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::from_str(&cookie).map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(([(header::SET_COOKIE, cookie)], page).into_response())
}
