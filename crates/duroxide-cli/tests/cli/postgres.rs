//! The program on PostgreSQL. Where no server is installed, the tests print that they are skipped.

use std::sync::Arc;

use duroxide::{
    prelude::*,
    providers::postgres::{PostgresOptions, PostgresProvider, SchemaName},
};
use postgres_server::Server;

use crate::fixture::{LONG, Ran, Shop, fill, handlers, program, run};

fn url(server: &Server) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres", server.address().port)
}

fn cli(server: &Server, schema: &str, args: &[&str]) -> Ran {
    run(program().args(["--store", &url(server), "--schema", schema]).args(args), "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_on_postgres_is_looked_at_and_steered() {
    let Some(server) = postgres_server::server() else { return };
    let schema = server.fresh_schema();
    cli(server, &schema, &["list"]).ended(3, "there is no duroxide store in schema");
    cli(server, &schema, &["start", "Echo", "a"]).ended(3, "start a node on it first");

    let mut options = PostgresOptions::new(&url(server)).unwrap();
    options.schema = SchemaName::new(&schema).unwrap();
    let store = Arc::new(PostgresProvider::open(options).await.unwrap());
    let (activities, orchestrations) = handlers();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    fill(&client).await;
    cli(server, &schema, &["list", "--status", "running"]).printed(&["waiting-1", "parent-1"]);
    cli(server, &schema, &["explain", "waiting-1"]).printed(&["`Approval`"]);
    cli(server, &schema, &["history", "echo-1"]).printed(&["completed: hello"]);
    cli(server, &schema, &["tree", "parent-1"]).printed(&["└─ child-1"]);
    cli(server, &schema, &["nodes"]).printed(&["Order 1.0.0"]);
    cli(server, &schema, &["stats"]).printed(&["7 instances: 4 running"]);
    cli(server, &schema, &["queues"]).printed(&["no activity is queued"]);
    cli(server, &schema, &["watch", "--count", "1"]).printed(&["7 instances"]);
    cli(server, &schema, &["raise", "waiting-1", "Approval", "Ada"]).printed(&["raised"]);
    client.wait_for_orchestration("waiting-1", LONG).await.unwrap();
    cli(server, &schema, &["delete", "waiting-1", "--yes"]).printed(&["deleted: 1 instances"]);
    cli(server, &schema, &["show", "waiting-1"]).ended(3, "there is no instance");
    runtime.shutdown(None).await;
    cli(server, &schema, &["check"]).printed(&["0 guarantees broken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_copied_into_a_database() {
    let Some(server) = postgres_server::server() else { return };
    let shop = Shop::closed().await;
    let (schema, to) = (server.fresh_schema(), url(server));
    let ran = shop.cli(&["copy", "--to", &to, "--to-schema", &schema]);
    ran.printed(&["copied 8 instances"]);
    cli(server, &schema, &["show", "waiting-1"]).printed(&["Running", "amount = 60"]);
    shop.cli(&["copy", "--to", &to, "--to-schema", &schema]).ended(4, "--to-schema names another one");
    shop.cli(&["copy", "--to", "sqlite:a.db"]).ended(2, "no PostgreSQL database");
    cli(server, &schema, &["copy", "--to", &to]).ended(2, "a copy begins with a SQLite file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_node_uses_is_not_copied() {
    let Some(server) = postgres_server::server() else { return };
    let mut shop = Shop::open().await;
    let ran = shop.cli(&["copy", "--to", &url(server), "--to-schema", &server.fresh_schema()]);
    ran.ended(4, "shut it down first");
    shop.close().await;
}

#[test]
fn a_missing_file_is_not_copied() {
    let to = "postgres://postgres@127.0.0.1:1/postgres";
    run(program().args(["--store", "sqlite:/no/such.db", "copy", "--to", to]), "")
        .ended(3, "there is no store at");
}

/// Refused connections and invalid URLs.
#[test]
fn passwords_are_not_shown_in_errors() {
    for url in [
        "postgres://app:hunter2@127.0.0.1:1/app?connect_timeout=2",
        "postgres://app@127.0.0.1:1/app?password=hunter2&connect_timeout=2",
        "postgres://app:hunter2@127.0.0.1:x/app",
        "postgres://app:hunter2@127.0.0.1:1/app?nonsense=hunter2",
    ] {
        let ran = run(program().args(["list", "--store", url]), "");
        assert!(ran.code == 1 || ran.code == 2, "{ran:?}");
        assert!(!ran.stderr.contains("hunter2") && !ran.stderr.is_empty(), "{ran:?}");
    }
}
