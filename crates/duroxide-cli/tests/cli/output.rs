//! How results are printed: folded payloads, no colour without a terminal, no control characters, completions.

use crate::fixture::{LONG, Shop, program, run};

#[tokio::test(flavor = "multi_thread")]
async fn long_payloads_are_folded_unless_all_of_them_is_wanted() {
    let mut shop = Shop::open().await;
    let long = "x".repeat(500);
    shop.client.start_orchestration("long-1", "Echo", long.as_str()).await.unwrap();
    shop.client.wait_for_orchestration("long-1", LONG).await.unwrap();
    let folded = format!("{}… (500 bytes)", "x".repeat(80));
    for command in [["show", "long-1"], ["history", "long-1"]] {
        let ran = shop.cli(&command);
        ran.printed(&[&folded]);
        assert!(!ran.stdout.contains(&long), "{ran:?}");
        shop.cli(&[&command[..], &["--full"]].concat()).printed(&[&long]);
    }
    assert_eq!(shop.json(&["show", "long-1"])["output"], long.as_str(), "JSON has all of it");
    shop.close().await;
}

/// Ids, names and payloads are untrusted input.
#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_store_reaches_a_terminal_escaped() {
    let mut shop = Shop::open().await;
    let hostile = "\x1b[2J\x07evil\u{202e}\r\n";
    shop.client.start_orchestration(hostile, "Echo", hostile).await.unwrap();
    shop.client.wait_for_orchestration(hostile, LONG).await.unwrap();
    shop.client.start_orchestration("\x1b]0;name\x07", "Fail", hostile).await.unwrap();
    shop.client.wait_for_orchestration("\x1b]0;name\x07", LONG).await.unwrap();
    for command in [
        &["list"][..],
        &["show", hostile],
        &["show", hostile, "--full"],
        &["history", hostile],
        &["history", hostile, "--raw"],
        &["tree", hostile],
        &["explain", hostile],
        &["watch", "--count", "1"],
        &["show", "\x1b not there"],
        &["delete", hostile, "--dry-run"],
    ] {
        let ran = shop.cli(command);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!all.contains(is_harmful), "{command:?}: {ran:?}");
    }
    // A program that reads lines would read an id with a line break as two ids.
    let ids = shop.cli(&["list", "-o", "ids"]);
    ids.ended(0, "left out an id with a line break");
    assert!(!ids.stdout.contains("evil"), "{ids:?}");
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_colour_without_a_terminal() {
    let shop = Shop::closed().await;
    for command in
        [&["list"][..], &["show", "failed-1"], &["history", "failed-1"], &["watch", "--count", "1"]]
    {
        let ran = shop.cli(command);
        assert!(ran.code == 0 && !ran.stdout.contains('\x1b'), "{ran:?}");
    }
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = run(program().args(["completions", shell]), "");
        ran.printed(&["duroxide", "dead-letters", "explain"]);
    }
    run(program().args(["completions", "sh"]), "").ended(2, "possible values");
}

#[test]
fn help_names_every_command_and_every_exit_code() {
    let ran = run(program().arg("--help"), "");
    ran.printed(&["Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused", "DUROXIDE_STORE"]);
    for command in [
        "list",
        "show",
        "history",
        "tree",
        "explain",
        "start",
        "raise",
        "enqueue",
        "cancel",
        "delete",
        "prune",
        "dead-letters",
        "nodes",
        "versions",
        "queues",
        "stats",
        "watch",
        "export",
        "verify",
        "check",
    ] {
        assert!(ran.lines().iter().any(|line| line.trim_start().starts_with(command)), "{command}: {ran:?}");
        run(program().args([command, "--help"]), "").printed(&["Usage: duroxide"]);
    }
    run(program().arg("--version"), "").printed(&[env!("CARGO_PKG_VERSION")]);
}
