//! Commands about whole stores.

use std::fs;

use duroxide::client::RecordedHistory;

use crate::fixture::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_store_is_found_sound() {
    let shop = Shop::closed().await;
    shop.cli(&["check"]).printed(&["8 instances checked, 0 guarantees broken"]);
    assert_eq!(shop.json(&["check"])["violations"].as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_guarantee_is_named() {
    let shop = Shop::closed().await;
    let store = rusqlite::Connection::open(shop.path()).unwrap();
    store.execute("UPDATE instance SET status = 'Failed' WHERE instance_id = 'echo-1'", []).unwrap();
    store.execute("UPDATE execution SET status = 'Failed' WHERE status = 'Completed'", []).unwrap();
    drop(store);
    let ran = shop.cli(&["check"]);
    ran.ended(1, "");
    assert!(ran.stdout.contains("echo-1") && ran.stdout.contains("guarantees broken"), "{ran:?}");
    let ran = shop.cli(&["check", "-o", "ids"]);
    assert!(ran.lines().contains(&"echo-1"), "{ran:?}");
    let ran = shop.cli(&["check", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(json["violations"][0]["guarantee"].as_str().unwrap().starts_with('I'), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_are_exported_for_tests() {
    let shop = Shop::closed().await;
    let ran = shop.cli(&["export", "waiting-1"]);
    ran.ended(0, "inputs and results");
    assert_eq!(RecordedHistory::from_json(&ran.stdout).unwrap().orchestration, "Order");

    let folder = shop.folder.path().to_str().unwrap();
    shop.cli(&["export", "waiting-1", "echo-1"]).ended(2, "--into FOLDER");
    shop.cli(&["export", "waiting-1", "echo-1", "--into", folder])
        .printed(&["waiting-1.json", "echo-1.json"]);
    let text = fs::read_to_string(shop.folder.path().join("echo-1.json")).unwrap();
    assert_eq!(RecordedHistory::from_json(&text).unwrap().instance, "echo-1");
    shop.cli(&["export", "echo-1", "--into", folder]).ended(4, "--replace");
    shop.cli(&["export", "echo-1", "--into", folder, "--replace"]).printed(&["echo-1.json"]);
    shop.cli(&["export", "echo-1", "--into", "/no/such/folder"]).ended(1, "cannot write");
    shop.cli(&["export", "pending-1"]).ended(4, "no node has begun");
    shop.cli(&["export", "nobody"]).ended(3, "there is no instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn verifying_needs_the_handlers_of_a_program() {
    let shop = Shop::closed().await;
    shop.cli(&["verify"]).ended(4, "a subcommand of the program that has them");
}
