//! The server runs while its test process does, and not a moment longer.

use std::{
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Set for the copy of this program that only starts a server and waits to be killed.
const WAITS: &str = "POSTGRES_SERVER_TEST_WAITS";

#[test]
fn a_server_takes_connections() {
    let Some(server) = postgres_server::server() else { return };
    let port = server.tcp_url().split("port=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(server.folder().join("data/postmaster.pid").is_file());
    assert_ne!(server.fresh_schema(), server.fresh_schema());
}

/// The program that [`a_killed_process_leaves_no_server`] kills.
#[test]
fn waits_to_be_killed() {
    if std::env::var(WAITS).is_err() {
        return;
    }
    // Of its own: the tests of one run may share a server.
    let Some(server) = postgres_server::Server::own() else { return };
    println!("folder={}", server.folder().display());
    std::thread::park();
}

#[test]
fn a_server_of_its_own_ends_when_it_is_dropped() {
    let Some(server) = postgres_server::Server::own() else { return };
    let port = server.address().port;
    server.restart_immediately();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    drop(server);
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

#[test]
fn a_killed_process_leaves_no_server() {
    if postgres_server::server().is_none() {
        return;
    }
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "waits_to_be_killed", "--nocapture"])
        .env(WAITS, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let folder = lines.filter_map(|line| Some(line.split_once("folder=")?.1.to_owned())).next().unwrap();
    let postmaster = std::fs::read_to_string(Path::new(&folder).join("data/postmaster.pid")).unwrap();
    let pid = postmaster.lines().next().unwrap().to_owned();
    process.kill().unwrap();
    process.wait().unwrap();
    // There is no notification of the end of a process that is not our child, so the test polls.
    let begin = Instant::now();
    while Path::new(&folder).exists() || Path::new("/proc").join(&pid).exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "server {pid} is still there: {folder}");
        std::thread::yield_now();
    }
}
