//! Runs the example: its own route, its console, a change, and the audit entry that it prints.

#![allow(clippy::unwrap_used, missing_docs, reason = "this is a test")]

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn send(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn console() {
    let program: PathBuf =
        std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples/console");
    let mut child = Command::new(program).env("CONSOLE_TOKEN", TOKEN).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _example = Example(child);
    let first = lines.next().unwrap().unwrap();
    let address = first.split("http://").nth(1).unwrap().to_owned();
    assert!(lines.next().unwrap().unwrap().ends_with("/duroxide"));
    lines.next();

    assert!(send(&address, "POST /orders/order-2", "").await.contains("order-2 is on its way"));
    let page = send(&address, "GET /duroxide/instance?id=order-1", "").await;
    assert!(page.contains("Why it does not move") && page.contains("Approval"), "{page}");
    let answer = send(&address, "POST /duroxide/raise", "id=order-1&name=Approval&data=yes").await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert_eq!(lines.next().unwrap().unwrap(), "audit: operators raise [\"order-1\"]: done");
}
