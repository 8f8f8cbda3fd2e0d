//! Every example runs, and prints the expected output.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]

#[path = "examples/observability.rs"]
mod observability;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn activities() {
    check(
        "activities",
        r#"hello Ada | price 60 | charged 60 in attempt 3 | survey: Err("timeout: activity timed out")"#,
    );
}

#[test]
fn typed() {
    check(
        "typed",
        "1200 cents are paid
order-1: shipped a box with 1 teapot, approved by Ada
order-2: another card than the stolen card, please
1200 cents are given back
order-3: nobody approved it",
    );
}

#[cfg(feature = "testing")]
#[test]
fn testing() {
    check(
        "testing",
        r#"order-1: nobody approved
virtual time: 120 s
refunded: ["receipt"]
order-2: receipt, approved by Ada
attempts: 3
51 runs ended well, one of them without a crash
some ran the activity twice: true"#,
    );
}

#[test]
fn explain() {
    check(
        "explain",
        "approval-1 waits: no live node runs orchestrations
approval-1 waits for `Approved`, and somebody raised `approved`
reminder-1 sleeps for 3 h
order-1 waits for `Charge`, which 1 node has no handler for",
    );
}

#[cfg(feature = "testing")]
#[test]
fn changing_code() {
    check(
        "changing_code",
        r#"today's code replays 1 history
1 of 1 histories cannot be replayed:
order-7.json: event 2: history says ActivityScheduled { name: "charge", input: "7", session_id: None, tag: None }; the code asked for ActivityScheduled { name: "reserve", input: "7", session_id: None, tag: None } at tomorrow.rs:18:13

careless: 200 checked, 200 cannot go on
order 1.0.0: 200 instances

careful: 200 checked, 0 cannot go on"#,
    );
}

#[test]
fn saga() {
    check(
        "saga",
        r#"booked a flight
booked a hotel
trip-1: Ok("bon voyage")
booked a flight
booked a train
gave a train back
gave a flight back
trip-2: Err(Failed("no room"))
booked a flight
booked a slow car, too late
gave a slow car back
gave a flight back
trip-3: Err(Cancelled { reason: "changed plans" })"#,
    );
}

#[test]
fn steps() {
    check(
        "steps",
        "900 cents, in stock, label for teapot and cup
1 OrchestrationStarted
2 StepEnded
3 StepEnded
4 StepEnded
5 StepEnded
6 TimerCreated
7 TimerFired
8 StepEnded
9 ActivityScheduled
10 ActivityCompleted
11 OrchestrationCompleted",
    );
}

#[cfg(feature = "fs")]
#[test]
fn plain_files() {
    check(
        "plain_files",
        "shipped teapot from shelf 3
a second user: refused
1 OrchestrationStarted
2 ActivityScheduled
3 ActivityCompleted
4 TimerCreated
5 TimerFired
6 ActivityScheduled
7 ActivityCompleted
8 OrchestrationCompleted",
    );
}

#[test]
fn timers() {
    check("timers", "the first runtime is gone\nthe tea is ready (not early)");
}

#[test]
fn external_events() {
    check("external_events", "lunch: approved\nyacht: nobody answered in time");
}

#[test]
fn event_queues() {
    check(
        "event_queues",
        "day 1: 1 tea, 2 coffee
day 2: 3 mate, 4 cocoa
day 3: 5 milk, 6 juice
complaint: the tea was cold
complaint: the music was loud
executions: [1, 2, 3]",
    );
}

#[test]
fn sub_orchestrations() {
    check(
        "sub_orchestrations",
        r#"automatic id: parent::sub::2 v2.0.0
given id: child-a v2.0.0
old version: parent::sub::6 v1.0.0
both given: child-b v1.0.0
areas 12 and 12
[Ok("1"), Err("2 is even"), Ok("3")]"#,
    );
}

#[test]
fn detached_orchestrations() {
    check(
        "detached_orchestrations",
        "sign-up: Ada is signed up
mail-Ada: wrote to Ada
statistics: 6
audit: audited Ada with v1.0.0",
    );
}

#[test]
fn continue_as_new() {
    check(
        "continue_as_new",
        "after 5 years: 1610
execution 1: ContinuedAsNew with 4 events
execution 2: ContinuedAsNew with 4 events
execution 3: ContinuedAsNew with 4 events
execution 4: ContinuedAsNew with 4 events
execution 5: ContinuedAsNew with 4 events
execution 6: Completed with 2 events",
    );
}

#[test]
fn key_value_store() {
    check(
        "key_value_store",
        r#"the running cart goes to 7 Mill Lane
its coupon is Some("SUMMER")
cart: ["address", "customer", "label"], 2 pruned, left ["label"]
after its end: {"label": "7 Mill Lane"}
parcel: to 7 Mill Lane"#,
    );
}

#[test]
fn custom_status() {
    check(
        "custom_status",
        "version 1: saved disk-1
version 2: saved disk-1 disk-2
version 3: saved disk-1 disk-2 disk-3
version 4: None, 3 disks saved",
    );
}

#[test]
fn cancellation() {
    check(
        "cancellation",
        "downloading a.iso
removed the half of a.iso
parent: canceled: not needed any more
child: canceled: parent canceled
downloading b.iso
removed the half of b.iso
impatient: gave up: found it elsewhere",
    );
}

#[test]
fn versioned_handlers() {
    check(
        "versioned_handlers",
        "old: v1: confirmed
new: v2: no confirmation needed
asked: v1: confirmed
migrate: data moved to v2",
    );
}

#[test]
fn system_values() {
    check(
        "system_values",
        "ticket-1: id shape [8, 4, 4, 4, 12], used after it was issued: true
ticket-2: id shape [8, 4, 4, 4, 12], used after it was issued: true",
    );
}

#[test]
fn sessions() {
    check(
        "sessions",
        "Emma 1, Emma 2, Emma 3, Emma 4
Ulysses 1, Ulysses 2, Ulysses 3, Ulysses 4
Walden 1, Walden 2, Walden 3, Walden 4
Dracula 1, Dracula 2, Dracula 3, Dracula 4
Middlemarch 1, Middlemarch 2, Middlemarch 3, Middlemarch 4",
    );
}

#[test]
fn tags() {
    check(
        "tags",
        r#"Running { custom_status: Some("waiting for a machine with a gpu"), custom_status_version: 1 }
WriteTitles: the titles on the office machine, tag None
Render: the film on the render farm, tag Some("gpu")
Upload: the result on the office machine, tag None"#,
    );
}

/// S3.3, S3.46, S3.48
#[test]
fn capability_routing() {
    check(
        "capability_routing",
        "order-3: bill for a vase printed at the till
the till has passed work over: true
order-1 waits: orchestration Ship@latest is not registered on any node
order-2 waits: orchestration Shpi@latest is not registered on any node
order-1: bill for a lamp printed at the till, a lamp packed in the warehouse
order-2: unsupported version: work item could not be processed on this node (orchestration not registered here, or \
         execution history is unsupported): orchestration Shpi@latest is not registered on any node, attempt 1 (max 10)
given back by the till: 0
given back by the warehouse: 0",
    );
}

#[test]
fn management() {
    check(
        "management",
        r#"a page of 3
  import-d: Completed, attempt 1
  import-c: Completed, attempt 2
  import-b: Failed, gave up
a page of 1
  import-a: Completed, attempt 1
import-b is in execution 3
  1: ContinuedAsNew, 4 events
  2: ContinuedAsNew, 4 events
  3: Failed, 4 events
  its tree: ["import-b", "check-1-of-import-b", "check-2-of-import-b", "check-3-of-import-b"]
1 execution pruned, left [2, 3]
4 instances deleted, left 7
dead letter for imprt-a: no such instance"#,
    );
}

/// The lines carry random worker ids, so only their texts are compared.
#[test]
fn replay_safe_tracing() {
    let output = run("replay_safe_tracing");
    assert!(output.ends_with("the code ran 4 times from its first line\n"), "{output}");
    for text in [
        "baking a lemon cake",
        "working on mix",
        "mix is done",
        "working on bake",
        "bake is done",
        "working on decorate",
        "decorate is done",
        "the cake is hot",
    ] {
        assert_eq!(output.matches(text).count(), 1, "`{text}` must come out once:\n{output}");
    }
}

/// The example itself counts the runs of each activity and fails if a count is wrong.
#[test]
fn crash_and_resume() {
    let output = run("crash_and_resume");
    assert!(output.contains("killed worker 1 with SIGKILL, in the middle of FraudCheck"), "{output}");
    assert!(output.contains("Result: 99 euros charged, approved, tracking number 4711"), "{output}");
    assert!(output.contains("Every result was recorded exactly once, and no timer fired early."), "{output}");
    assert!(output.contains("ms after the kill; the dead worker's lease was 30 s."), "{output}");
    let store = output.split("duroxide --store sqlite:").nth(1).and_then(|rest| rest.split(' ').next());
    let store = Path::new(store.expect("it says how to look into the store"));
    assert!(store.is_file() && output.contains(" ui\n"), "{output}");
    assert!(output.trim_end().ends_with(" history order-1001"), "{output}");
    fs::remove_dir_all(store.parent().expect("a folder of its own")).expect("the test cleans up");
}

#[test]
fn in_your_transaction() {
    check(
        "in_your_transaction",
        "order-1 is stored, and nothing runs before the commit
order-1: teapot is paid with card 17 and shipped
order-2 was rolled back: no order, no workflow",
    );
}

#[cfg(feature = "postgres")]
#[test]
fn in_your_transaction_postgres() {
    if postgres_server::server().is_none() {
        return;
    }
    check(
        "in_your_transaction_postgres",
        "order-1 is stored, and nothing runs before the commit
order-1: teapot is paid with card 17 and shipped
order-2 was rolled back: no order, no workflow",
    );
}

/// Three processes on PostgreSQL: the example itself checks that nothing was lost or recorded twice.
#[cfg(feature = "postgres")]
#[test]
fn cluster() {
    if postgres_server::server().is_none() {
        return;
    }
    let output = run("cluster");
    assert_cluster(&output);
}

/// A database that is named by its connection string, on a server that takes encrypted connections only.
#[cfg(any(feature = "postgres-rustls", feature = "postgres-native-tls"))]
#[test]
fn examples_on_postgres_take_a_connection_string_and_encrypt() {
    let Some(server) = postgres_server::Server::own() else { return };
    server.offer_tls(
        include_str!("../../duroxide-postgres/tests/certificates/server.pem"),
        include_str!("../../duroxide-postgres/tests/certificates/server.key"),
    );
    server.require_tls();
    assert_cluster(&run_with("cluster", &[&server.tcp_url()]));
    let output = run_with("in_your_transaction_postgres", &[&server.tcp_url()]);
    assert!(output.contains("order-2 was rolled back"), "{output}");
}

#[cfg(feature = "postgres")]
fn assert_cluster(output: &str) {
    for expected in [
        "bela was killed with SIGKILL",
        "cleo was shut down; dora, build 2.0.0, takes its place",
        "240 orders were done by version 1.0.0.",
        "60 orders were done by version 2.0.0.",
        "Each of 1200 steps is recorded once.",
    ] {
        assert!(output.contains(expected), "{output}");
    }
}

#[track_caller]
fn check(example: &str, expected: &str) {
    assert_eq!(run(example).trim_end(), expected);
}

#[track_caller]
fn run(example: &str) -> String {
    run_with(example, &[])
}

#[track_caller]
fn run_with(example: &str, arguments: &[&str]) -> String {
    let program = program(example);
    let output =
        Command::new(&program).args(arguments).env("RUST_LOG", "off").output().expect("the example starts");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {}\n{stdout}\n{stderr}", output.status);
    stdout
}

/// The compiled example. `cargo test` without a target kind builds it; `cargo test --test examples` does not, so it is
/// built here if it is missing or older than its source.
fn program(example: &str) -> PathBuf {
    let this_test = std::env::current_exe().expect("a test knows its own path");
    let profile = this_test.ancestors().nth(2).expect("tests are in <profile>/deps");
    let program = profile.join("examples").join(example).with_extension(std::env::consts::EXE_EXTENSION);
    if !sources(example).iter().all(|source| is_newer(&program, source)) {
        build(example, profile.ends_with("release"));
    }
    program
}

/// The package of an example, and the folder of its source.
fn home(example: &str) -> (&'static str, PathBuf) {
    let duroxide = Path::new(env!("CARGO_MANIFEST_DIR"));
    match example {
        "crash_and_resume" => ("crash-and-resume-example", duroxide.join("../../examples")),
        "opentelemetry" => ("opentelemetry-example", duroxide.join("../../examples/opentelemetry")),
        "prometheus" => ("prometheus-example", duroxide.join("../../examples/prometheus")),
        _ => ("duroxide", duroxide.join("examples")),
    }
}

fn sources(example: &str) -> Vec<PathBuf> {
    let folder = home(example).1.join(example);
    match folder.read_dir() {
        Ok(files) => files.map(|file| file.expect("the folder is readable").path()).collect(),
        Err(_) => vec![folder.with_extension("rs")],
    }
}

fn is_newer(program: &Path, source: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    match (modified(program), modified(source)) {
        (Ok(program), Ok(source)) => program >= source,
        _ => false,
    }
}

fn build(example: &str, release: bool) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", home(example).0, "--all-features", "--example", example]);
    if release {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo starts").success(), "{example} does not build");
}
