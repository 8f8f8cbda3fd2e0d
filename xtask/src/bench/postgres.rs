//! `cargo xtask bench --postgres`: ours and two registry crates on one PostgreSQL server.

mod cases;
mod delay;
mod report;

use std::{path::Path, process::Command};

use postgres_server::Server;

use self::{
    cases::{Route, Side},
    delay::DelayingProxy,
    report::Measured,
};
use super::{Scratch, machine, program};
use crate::step::Step;

/// Where results are kept.
const RESULTS: &str = "bench/results/postgres.md";
/// How often everything is measured.
const ROUNDS: usize = 3;
/// Tells a workload where the database is.
const URL: &str = "DUROXIDE_BENCH_POSTGRES";
/// Only commits that wait for the disk are compared. The other settings are the usual ones of a production server.
const SETTINGS: &str = "shared_buffers = 256MB
max_connections = 100
max_wal_size = 2GB
synchronous_commit = on";

/// Builds the packages, starts a server, measures every case and prints a table.
pub(super) fn run(only: &[String], repeat: Option<usize>, ours_only: bool) -> Result<(), String> {
    let cases = cases::chosen(only)?;
    let sides: Vec<Side> = Side::ALL.into_iter().filter(|side| !ours_only || *side == Side::Ours).collect();
    for side in &sides {
        build(*side)?;
    }
    let machine = machine::describe();
    let server = Server::own().ok_or("PostgreSQL is not installed")?;
    server.configure(SETTINGS);
    server.restart_immediately();
    let scratch = Scratch::new()?;
    let servers = Servers::new(server.address().port)?;
    let rounds = repeat.unwrap_or(ROUNDS);
    let mut measured: Vec<Measured<'_>> = cases.iter().map(Measured::of).collect();
    for round in 1..=rounds {
        // Rows are compared with each other, too: a busy minute of the machine hits all of them.
        for measured in &mut measured {
            eprintln!("[{round}/{rounds}] {}", measured.case.title);
            measure(measured, &sides, &servers, &scratch.0);
        }
    }
    let text = report::render(&measured, &machine);
    println!("{text}");
    if !only.is_empty() || ours_only {
        return Ok(());
    }
    std::fs::write(RESULTS, text + "\n").map_err(|error| format!("cannot write {RESULTS}: {error}"))?;
    println!("wrote {RESULTS}");
    Ok(())
}

fn build(side: Side) -> Result<(), String> {
    let build = match side {
        Side::DuroxidePg => {
            "build --release --locked --manifest-path bench/duroxide-pg/Cargo.toml --target-dir bench/target"
        }
        Side::Durare => super::build::DURARE,
        Side::Ours => "build --release --manifest-path bench/ours/Cargo.toml --target-dir bench/target",
    };
    Step::cargo(format!("Building the workloads against {}", side.package()), build).run()
}

/// The ways to the server.
struct Servers {
    port: u16,
    delayed: DelayingProxy,
}

impl Servers {
    fn new(port: u16) -> Result<Self, String> {
        let delayed = DelayingProxy::start(port).map_err(|error| format!("no proxy: {error}"))?;
        Ok(Self { port, delayed })
    }

    fn url(&self, route: Route) -> String {
        let port = match route {
            Route::Direct => self.port,
            Route::Delayed => self.delayed.port(),
        };
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }
}

/// Each implementation once.
fn measure(measured: &mut Measured<'_>, sides: &[Side], servers: &Servers, scratch: &Path) {
    let case = measured.case;
    for side in sides {
        let Some(args) = case.args(*side) else { continue };
        let mut command = Command::new(format!("bench/target/release/bench-{}", side.package()));
        command.args(args.split_whitespace()).args(["--store", "postgres"]);
        command.arg("--folder").arg(scratch).env(URL, servers.url(case.route));
        let result = program::report(command);
        eprintln!("    {:<11} {}", side.package(), report::brief(&result, case));
        measured.add(*side, result);
    }
}
