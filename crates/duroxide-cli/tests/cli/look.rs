//! Commands that only read.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use crate::fixture::{Shop, program, run};

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_listed_by_criteria_and_page_by_page() {
    let shop = Shop::closed().await;
    let ids = |args: &[&str]| {
        let ran = shop.cli(&[&["list", "-o", "ids"], args].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut ids: Vec<String> = ran.lines().into_iter().map(str::to_owned).collect();
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(ids(&["--status", "failed"]), "failed-1");
    assert_eq!(ids(&["--status", "Running"]), "child-1 inbox-1 parent-1 waiting-1");
    assert_eq!(ids(&["--status", "pending"]), "pending-1");
    assert_eq!(ids(&["--name", "Order"]), "child-1 pending-1 waiting-1");
    assert_eq!(ids(&["--name", "Order", "--roots"]), "pending-1 waiting-1");
    assert_eq!(ids(&["--parent", "parent-1"]), "child-1");
    assert_eq!(ids(&["--prefix", "wait"]), "waiting-1");
    assert_eq!(ids(&["--name", "Order", "--handler-version", "1.0.0"]), "child-1 waiting-1");
    assert_eq!(ids(&["--created-before", "1h"]), "");
    assert_eq!(ids(&["--updated-after", "1h", "--status", "failed"]), "failed-1");

    let all = shop.cli(&["list", "-o", "ids", "--all"]);
    assert_eq!(all.lines().len(), 8);
    let first = shop.json(&["list", "--limit", "3"]);
    assert_eq!(first["instances"].as_array().unwrap().len(), 3);
    let rest = shop.json(&["list", "--after", first["next"].as_str().unwrap()]);
    assert_eq!(rest["instances"].as_array().unwrap().len(), 5);
    assert!(rest["next"].is_null());
    shop.cli(&["list", "--limit", "3"]).ended(0, "there are more: --after ");
    shop.cli(&["list", "--after", "nonsense"]).ended(2, "Invalid cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_shown_with_executions_values_and_payloads() {
    let shop = Shop::closed().await;
    shop.cli(&["show", "waiting-1"]).printed(&[
        "waiting-1",
        "Running",
        "Order 1.0.0",
        "custom status waits for a signature",
        "input         60",
        "amount = 60",
        "pinned to     duroxide ",
    ]);
    shop.cli(&["show", "parent-1", "pending-1"]).printed(&[
        "children      1 (see `tree`)",
        "Pending",
        "no node has begun it",
    ]);
    let json = shop.json(&["show", "count-1"]);
    assert_eq!((json["executions_total"].as_u64(), json["output"].as_str()), (Some(4), Some("counted")));
    assert_eq!(json["executions"][0]["execution"], 4);
    assert_eq!(shop.json(&["show", "echo-1", "failed-1"])[1]["status"], "Failed");
    shop.cli(&["show", "nobody"]).ended(3, "there is no instance 'nobody'");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_a_timeline() {
    let shop = Shop::closed().await;
    let ran = shop.cli(&["history", "waiting-1"]);
    ran.printed(&[
        "waiting-1, execution 1",
        "Order 1.0.0 started: 60",
        "amount = 60",
        "waits for event Approval",
    ]);
    let json = shop.json(&["history", "waiting-1"]);
    assert_eq!(json["events"][0]["type"], "OrchestrationStarted");
    assert_eq!(json["events"].as_array().unwrap().len() + 1, ran.lines().len());
    assert_eq!(shop.cli(&["history", "echo-1", "-o", "ids"]).stdout, "1\n2\n");

    shop.cli(&["history", "count-1"]).printed(&["execution 4", "completed: counted"]);
    shop.cli(&["history", "count-1", "-e", "2"]).printed(&["execution 2", "continued as new: 1"]);
    let all = shop.cli(&["history", "count-1", "--all-executions"]);
    assert_eq!(all.stdout.matches("Count 1.0.0 started").count(), 4, "{all:?}");
    shop.cli(&["history", "count-1", "-e", "9"]).ended(3, "has no execution 9");
    shop.cli(&["history", "echo-1", "--raw"]).printed(&["OrchestrationCompleted", "\"output\":\"hello\""]);
    shop.cli(&["history", "pending-1"]).printed(&["no node has begun it"]);
    shop.cli(&["history", "nobody"]).ended(3, "there is no instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_decoded_is_shown_raw() {
    let shop = Shop::closed().await;
    let store = rusqlite::Connection::open(shop.path()).unwrap();
    store
        .execute(
            "UPDATE history SET data = '{\"type\":\"Novelty\"}' WHERE event_id = 2 AND instance =
                (SELECT id FROM instance WHERE instance_id = 'echo-1')",
            [],
        )
        .unwrap();
    drop(store);
    shop.cli(&["history", "echo-1"]).ended(1, "--raw shows them");
    shop.cli(&["history", "echo-1", "--raw"]).printed(&["Novelty"]);
}

/// `history --follow` prints events of other processes, and ends with the instance.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_followed_to_its_end() {
    let mut shop = Shop::open().await;
    let args = ["--store", &shop.url(), "history", "waiting-1", "--follow", "--interval", "10ms"];
    let mut follower = program().args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.contains("waits for event Approval")) {
        seen.push(lines.next().unwrap().unwrap());
    }
    shop.cli(&["raise", "waiting-1", "Approval", "Ada"]).printed(&["raised"]);
    seen.extend(lines.map(Result::unwrap));
    assert!(follower.wait().unwrap().success());
    let seen = seen.join("\n");
    for text in
        ["event Approval arrived: Ada", "activity Charge scheduled: 60", "returned: charged 60", "completed:"]
    {
        assert_eq!(seen.matches(text).count(), 1, "{text}: {seen}");
    }
    let ran = shop.cli(&["history", "count-1", "--follow", "-o", "json"]);
    assert!(ran.lines().iter().all(|line| line.starts_with('{')), "{ran:?}");
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_family_is_drawn_as_a_tree() {
    let shop = Shop::closed().await;
    let ran = shop.cli(&["tree", "parent-1"]);
    ran.printed(&["parent-1  Parent 1.0.0  Running", "└─ child-1  Order 1.0.0  Running"]);
    shop.cli(&["tree", "child-1"]).printed(&["child of parent-1"]);
    assert_eq!(shop.cli(&["tree", "child-1", "--root", "-o", "ids"]).stdout, "parent-1\nchild-1\n");
    assert_eq!(shop.json(&["tree", "parent-1", "--limit", "1"])["left_out"], 1);
    shop.cli(&["tree", "pending-1"]).printed(&["pending-1"]);
    shop.cli(&["tree", "nobody"]).ended(3, "there is no instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_reason_and_the_next_command() {
    let shop = Shop::closed().await;
    shop.client.raise_event("waiting-1", "approval", "").await.unwrap();
    shop.cli(&["explain", "waiting-1"])
        .printed(&["waiting-1  Order 1.0.0, execution 1: Running", "`Approval`"]);
    shop.cli(&["explain", "parent-1"]).printed(&["child-1", "`Approval`"]);
    shop.cli(&["explain", "failed-1"]).printed(&["no money"]);
    let json = shop.json(&["explain", "waiting-1"]);
    assert!(json["findings"].as_array().unwrap().iter().any(|one| one["finding"] == "event"), "{json}");

    let ran = shop.cli_with_input(&["explain", "-"], "echo-1\nnobody\nfailed-1\n");
    ran.ended(3, "there is no instance 'nobody'");
    assert!(ran.stdout.contains("echo-1") && ran.stdout.contains("failed-1"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_versions_are_shown_while_a_node_runs_and_after() {
    let mut shop = Shop::open().await;
    let ran = shop.cli(&["nodes"]);
    ran.printed(&["NODE", "Order 1.0.0", "Charge", " ago"]);
    assert!(!ran.stdout.contains("syscall"), "{ran:?}");
    let nodes = shop.json(&["nodes"]);
    let name = nodes[0]["node"].as_str().unwrap();
    assert_eq!(shop.cli(&["nodes", "-o", "ids"]).stdout, format!("{name}\n"));
    shop.cli(&["versions"]).printed(&[
        "PINNED TO DUROXIDE",
        "Order 1.0.0",
        "every running instance has a handler",
    ]);
    let versions = shop.json(&["versions"]);
    assert_eq!(versions["handlers"][0]["nodes"][0], name);
    assert_eq!(versions["pinned"][0]["running"], 4);

    shop.close().await;
    shop.cli(&["nodes"]).printed(&["no node has joined"]);
    shop.cli(&["versions"]).printed(&["no live node", "4 running instances have no handler"]);
    assert_eq!(shop.cli(&["versions", "-o", "ids"]).stdout, "Inbox 1.0.0\nOrder 1.0.0\nParent 1.0.0\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_and_queues_are_shown() {
    let shop = Shop::closed().await;
    shop.cli(&["stats"]).printed(&[
        "7 instances: 4 running, 2 completed, 1 failed",
        "1 pending, 0 dead letters",
        "Order          1.0.0    Running",
        "oldest running: ",
        "in the last 24 h: 7 started, 2 completed, 1 failed",
    ]);
    let json = shop.json(&["stats"]);
    assert_eq!((json["running"].as_u64(), json["last_day"]["failed"].as_u64()), (Some(4), Some(1)));
    shop.cli(&["queues"]).printed(&["ORCHESTRATION", "Order", "no activity is queued"]);
    assert_eq!(shop.json(&["queues"])["orchestrations"][0]["name"], "Order");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_comes_again_and_again() {
    let shop = Shop::closed().await;
    let ran = shop.cli(&["watch", "--count", "2", "--interval", "10ms"]);
    ran.printed(&["7 instances: 4 running", "no node has joined", "failed-1  no money"]);
    assert_eq!(ran.stdout.matches("7 instances").count(), 2);
    let ran = shop.cli(&["watch", "--count", "1", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["failures"][0]["instance"], "failed-1");

    let args = ["--store", &shop.url(), "watch", "--interval", "1h"];
    let mut watcher = program().args(args).stdout(Stdio::piped()).spawn().unwrap();
    // Kept open until the end, because a closed pipe would end the program too.
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("7 instances")));
    // Sends the signal that Ctrl-C sends.
    let interrupt = format!("kill -INT {}", watcher.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    assert!(watcher.wait().unwrap().success());
    drop(lines);
}

/// Commands that only read, and dry runs, change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn looking_changes_nothing() {
    let Shop { folder, client, .. } = Shop::closed().await;
    drop(client);
    let shop_url = format!("sqlite:{}", folder.path().join("shop.db").display());
    let content = || {
        let store = rusqlite::Connection::open(folder.path().join("shop.db")).unwrap();
        store.query_row("SELECT written_at FROM sequence", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let before = content();
    for command in [
        &["list"][..],
        &["show", "pending-1"],
        &["history", "waiting-1"],
        &["tree", "parent-1"],
        &["explain", "waiting-1"],
        &["nodes"],
        &["versions"],
        &["stats"],
        &["dead-letters", "list"],
        &["check"],
        &["export", "waiting-1"],
        &["delete", "echo-1", "--dry-run"],
    ] {
        let ran = run(program().args(["--store", &shop_url]).args(command), "");
        assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
    }
    assert_eq!(content(), before);
}
