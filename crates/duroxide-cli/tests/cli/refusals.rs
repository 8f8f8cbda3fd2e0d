//! Bad input: the exit code, an error that says what to do, and nothing is created or changed.

use std::fs;

use duroxide::providers::sqlite::SqliteProvider;

use crate::fixture::{Shop, program, run};

#[test]
fn a_store_must_be_named() {
    run(program().arg("list"), "").ended(2, "--store or DUROXIDE_STORE");
    run(program().args(["list", "--store", "mysql://db"]), "").ended(2, "sqlite:orders.db");
    run(program().args(["list", "--store", "sqlite:"]), "").ended(3, "there is no store");
    run(program().args(["list", "--store", "sqlite::memory:"]), "").ended(1, "name a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_may_be_named_in_the_environment() {
    let shop = Shop::closed().await;
    let ran = run(
        program().args(["list", "-o", "ids", "--status", "failed"]).env("DUROXIDE_STORE", shop.url()),
        "",
    );
    assert_eq!(ran.stdout, "failed-1\n");
    // Help shows the name of the variable, and not its value.
    let ran = run(program().arg("--help").env("DUROXIDE_STORE", "postgres://app:hunter2@db/app"), "");
    assert!(ran.stdout.contains("DUROXIDE_STORE") && !ran.stdout.contains("hunter2"), "{ran:?}");
}

#[test]
fn a_missing_store_is_not_made_by_any_command() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("missing.db").display());
    for command in [
        &["list"][..],
        &["show", "a"],
        &["start", "Echo", "a"],
        &["raise", "a", "b"],
        &["delete", "a", "--yes"],
        &["cancel", "a", "--yes"],
        &["dead-letters", "retry", "1"],
        &["check"],
        &["watch", "--count", "1"],
    ] {
        let ran = run(program().args(["--store", &url]).args(command), "");
        ran.ended(3, "start your program on this path once");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_store_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "not a database. ".repeat(100)).unwrap();
    let url = format!("sqlite:{}", path.display());
    for command in [&["list"][..], &["start", "Echo", "a"]] {
        run(program().args(["--store", &url]).args(command), "").ended(1, "not a SQLite database");
    }
    assert!(fs::read_to_string(&path).unwrap().starts_with("not a database"));

    let path = folder.path().join("older.db");
    let url = format!("sqlite:{}", path.display());
    drop(SqliteProvider::new(&url, None).await.unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 2).unwrap();
    for command in [&["list"][..], &["start", "Echo", "a"]] {
        run(program().args(["--store", &url]).args(command), "")
            .ended(1, "start a node of this release on it once");
    }
}

#[test]
fn usage_errors_end_with_two() {
    for (command, said) in [
        (&["lst"][..], "unrecognized subcommand"),
        (&["list", "--status", "odd"], "possible values"),
        (&["list", "--created-after", "yesterday"], "write 2026-11-17"),
        (&["list", "-o", "yaml"], "possible values"),
        (&["list", "--limit", "0"], "limit"),
        (&["show"], "required"),
        (&["watch", "--interval", "5"], "write 500ms"),
        (&["delete", "a", "--yes", "--dry-run"], "cannot be used with"),
        (&["list", "--schema", "x", "--store", "sqlite:a.db"], "a SQLite file has none"),
    ] {
        run(program().args(command), "").ended(2, said);
    }
}

/// `duroxide list | head -1` is no failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_ends_quietly() {
    let shop = Shop::closed().await;
    let args = ["--store", &shop.url(), "watch", "--interval", "1ms"];
    let mut child = program()
        .args(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
