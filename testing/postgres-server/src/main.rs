//! Runs a command with a throw-away PostgreSQL server that all tests below it share:
//! `cargo run -p postgres-server -- cargo nextest run -p duroxide-postgres`.
#![expect(clippy::print_stderr, reason = "a program for a terminal")]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: postgres-server <command> [arguments]");
        return ExitCode::FAILURE;
    };
    // Where PostgreSQL is missing, the tests themselves skip or fail.
    let server = postgres_server::Server::own();
    let mut command = Command::new(program);
    command.args(words).envs(server.as_ref().map(|server| server.address().variable()));
    match command.status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("cannot run {command:?}: {error}");
            ExitCode::FAILURE
        }
    }
}
