//! Signing in and out.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};

use super::fixture::{Fixture, OPERATOR, form, tokens, with_cookie};
use crate::{ServeOptions, serve};

fn login(token: &str) -> Request<Body> {
    Request::post("/login").body(Body::from(form(&[("token", token)]))).unwrap()
}

#[tokio::test]
async fn a_token_gives_a_session_that_scripts_and_other_sites_do_not_get() {
    let fixture = Fixture::new(tokens()).await;
    let answer = fixture.send(login(OPERATOR)).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("Path") && !cookie.contains("Secure"), "{cookie}");
    assert!(!cookie.contains(OPERATOR));
    let mut encrypted = login(OPERATOR);
    encrypted.headers_mut().insert("x-forwarded-proto", "https".parse().unwrap());
    let cookie = fixture.send(encrypted).await.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains("Secure"), "{cookie}");
    fixture.end().await;
}

#[tokio::test]
async fn a_wrong_token_gives_the_form_again() {
    let fixture = Fixture::new(tokens()).await;
    for token in ["", "wrong", "the operators' toke"] {
        let answer = fixture.send(login(token)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(!answer.headers.contains_key(header::SET_COOKIE));
        assert!(answer.text.contains("name=\"token\""));
    }
    fixture.end().await;
}

#[tokio::test]
async fn signing_out_removes_the_cookie() {
    let fixture = Fixture::new(tokens()).await;
    let cookie = fixture.sign_in(OPERATOR).await;
    let answer =
        fixture.send(with_cookie(Request::post("/logout"), &cookie).body(Body::empty()).unwrap()).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("duroxide_console=; Max-Age=0"), "{cookie}");
    fixture.end().await;
}

#[tokio::test]
async fn a_form_that_is_too_large_is_refused() {
    let fixture = Fixture::new(tokens()).await;
    let answer = fixture.send(login(&"x".repeat(2 * 1024 * 1024))).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    fixture.end().await;
}

#[tokio::test]
async fn a_served_console_listens_on_loopback_and_its_link_works_once() {
    let fixture = Fixture::new(tokens()).await;
    let served = serve(fixture.client.clone(), &ServeOptions::default()).await.unwrap();
    assert!(served.address().ip().is_loopback());
    let path = served.link().split(&served.address().to_string()).nth(1).unwrap().to_owned();
    assert!(path.starts_with("/login?link="), "{path}");
    let answers = [http_get(served.address(), &path).await, http_get(served.address(), &path).await];
    assert!(answers[0].starts_with("HTTP/1.1 200") && answers[0].contains("set-cookie"), "{}", answers[0]);
    assert!(answers[1].starts_with("HTTP/1.1 401") && answers[1].contains("has been used"), "{}", answers[1]);
    assert!(http_get(served.address(), "/").await.starts_with("HTTP/1.1 401"));
    let taken = ServeOptions { port: served.address().port(), ..ServeOptions::default() };
    let refused = serve(fixture.client.clone(), &taken).await.unwrap_err().to_string();
    assert!(refused.contains("another port"), "{refused}");
    fixture.end().await;
}

async fn http_get(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
