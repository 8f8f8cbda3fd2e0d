//! `ui`: serves the console of a store on loopback, behind a link that works once.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
};

use crate::fixture::{Shop, program, run};

/// A console that ends with the test.
struct Console {
    process: Child,
    /// `127.0.0.1:port`
    host: String,
    /// The path of the link.
    path: String,
}

impl Console {
    fn open(shop: &Shop, args: &[&str]) -> Self {
        let mut command = program();
        command.args(["--store", &shop.url(), "ui", "-o", "ids"]).args(args).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut link = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let (host, path) = link.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { process, host: host.to_owned(), path: format!("/{path}") }
    }

    /// Sends a request and returns the whole response.
    fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.host)
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Follows the link, and returns the `Cookie` header of the session.
    fn sign_in(&self) -> String {
        let answer = self.get(&self.path, "");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.unwrap_or_else(|| panic!("no cookie: {answer}"));
        format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_the_console_works_once() {
    let shop = Shop::closed().await;
    let console = Console::open(&shop, &[]);
    assert!(console.host.starts_with("127.0.0.1:"), "{}", console.host);
    let cookie = console.sign_in();
    assert!(console.get("/instances", &cookie).contains("waiting-1"));
    let again = console.get(&console.path, "");
    assert!(!again.contains("set-cookie: "), "{again}");
    assert!(!console.get("/instances", "").contains("waiting-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_to_look_at_offers_no_change() {
    let shop = Shop::closed().await;
    let console = Console::open(&shop, &["--read-only"]);
    let cookie = console.sign_in();
    let page = console.get("/instance?id=waiting-1", &cookie);
    assert!(page.contains("waiting-1") && !page.contains("<summary>Cancel</summary>"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_an_error_that_says_what_to_do() {
    let shop = Shop::closed().await;
    let console = Console::open(&shop, &[]);
    let port = console.host.rsplit(':').next().unwrap();
    let ran = run(program().args(["--store", &shop.url(), "ui", "--port", port]), "");
    ran.ended(1, "choose another port");
}
