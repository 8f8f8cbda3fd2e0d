//! A server that takes requests and does not answer: nothing waits for it for ever.

use std::time::{Duration, Instant};

use crate::fixture::{
    Node, commit, fresh_options,
    proxy::{Proxy, Silence},
    sql::Admin,
    start,
};
use duroxide_postgres::{OpenError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide_provider::{
    Provider as _,
    store::{Answer, FailureClass, Fault, StoreReader as _},
    testing::items,
};
use postgres_server::Server;

/// More than a busy machine needs for any answer here.
const LIMIT: Duration = Duration::from_secs(3);
/// More than a few limits, by far.
const IN_TIME: Duration = Duration::from_secs(60);

/// Options for a fresh schema behind a proxy.
fn behind(proxy: &Proxy, server: &Server) -> PostgresOptions {
    let url = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres sslmode=disable connect_timeout=3",
        proxy.port
    );
    let mut options = PostgresOptions::new(&url).unwrap();
    options.schema = SchemaName::new(&server.fresh_schema()).unwrap();
    options.answer_timeout = LIMIT;
    options
}

fn in_time<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = act();
    assert!(began.elapsed() < IN_TIME, "{what} took {:?}", began.elapsed());
    result
}

#[test]
fn a_server_that_is_silent_before_the_commit_is_unavailable_and_the_next_call_connects_again() {
    let Some(server) = postgres_server::server() else { return };
    let proxy = Proxy::start(server.address().port);
    let mut node = Node::open(&behind(&proxy, server), 1);
    proxy.set(Silence::Everything);
    let fault = in_time("a transaction", || node.try_run(vec![start("a")]).unwrap_err());
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
    let fault = in_time("connecting", || node.try_run(vec![start("a")]).unwrap_err());
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
    proxy.set(Silence::Nothing);
    let done = node.try_run(vec![start("a")]).unwrap();
    assert!(matches!(done.answers[..], [Ok(Answer::Begun)]), "nothing had happened: {done:?}");
}

#[test]
fn a_server_that_does_not_answer_a_commit_leaves_its_outcome_open() {
    let Some(server) = postgres_server::server() else { return };
    let proxy = Proxy::start(server.address().port);
    let mut node = Node::open(&behind(&proxy, server), 1);
    proxy.set(Silence::FromCommit);
    let fault = in_time("a transaction", || node.try_run(vec![start("a")]).unwrap_err());
    assert!(matches!(fault, Fault::OutcomeUnknown { done: Some(_), .. }), "{fault:?}");
    proxy.set(Silence::Nothing);
    let done = node.try_run(vec![start("a")]).unwrap();
    assert!(matches!(done.answers[..], [Ok(Answer::Found(_))]), "it had happened: {done:?}");
}

#[test]
fn a_read_that_is_not_answered_fails_and_the_next_one_connects_again() {
    let Some(server) = postgres_server::server() else { return };
    let proxy = Proxy::start(server.address().port);
    let mut node = Node::open(&behind(&proxy, server), 1);
    node.run(vec![start("a")]);
    proxy.set(Silence::Everything);
    let failure = in_time("a read", || node.engine.status_or_pending("a").unwrap_err());
    assert_eq!(failure.class, FailureClass::Retryable, "{failure}");
    proxy.set(Silence::Nothing);
    assert!(node.engine.status_or_pending("a").unwrap().is_some());
}

/// Wherever the server falls silent after it has let us in.
#[tokio::test(flavor = "multi_thread")]
async fn opening_a_store_on_a_server_that_falls_silent_fails_in_time() {
    let Some(server) = postgres_server::server() else { return };
    let attempts = (1..=10).map(|answers| {
        let proxy = Proxy::start(server.address().port);
        proxy.set(Silence::AfterAnswers(answers));
        let options = behind(&proxy, server);
        tokio::spawn(async move {
            let opened = tokio::time::timeout(IN_TIME, PostgresProvider::open(options)).await;
            (answers, opened.map(Result::err))
        })
    });
    for attempt in attempts.collect::<Vec<_>>() {
        let (answers, refused) = attempt.await.unwrap();
        assert!(matches!(refused, Ok(Some(OpenError::Connect { .. }))), "{answers} answers: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_store_fails_its_calls_while_the_server_is_silent_and_goes_on_afterwards() {
    let Some(server) = postgres_server::server() else { return };
    let proxy = Proxy::start(server.address().port);
    let store = PostgresProvider::open(behind(&proxy, server)).await.unwrap();
    proxy.set(Silence::Everything);
    let call = store.enqueue_for_orchestrator(items::start("a"), None);
    let error = tokio::time::timeout(IN_TIME, call).await.unwrap().unwrap_err();
    assert!(error.is_retryable(), "{error}");
    proxy.set(Silence::AfterAnswers(1));
    let error = tokio::time::timeout(IN_TIME, store.health()).await.unwrap().unwrap_err();
    assert!(error.is_retryable() && error.message.contains("no answer within 3s"), "{error}");
    proxy.set(Silence::Nothing);
    let again = async {
        while let Err(error) = store.enqueue_for_orchestrator(items::start("a"), None).await {
            assert!(error.is_retryable(), "{error}");
        }
    };
    tokio::time::timeout(IN_TIME, again).await.unwrap();
}

/// A busy server is not a silent one: an upgrade of a large schema may take long, and so may the processes that wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_waited_for_without_a_limit() {
    let Some(server) = postgres_server::server() else { return };
    let options = PostgresOptions { answer_timeout: LIMIT, ..fresh_options(server) };
    drop(PostgresProvider::open(options.clone()).await.unwrap());
    let (admin, schema) = (Admin::connect(server).await, options.schema.to_string());
    let version: i64 = {
        let row = admin.client().query_one(&format!("SELECT schema_version FROM {schema}.meta"), &[]).await;
        row.unwrap().get(0)
    };
    admin.run(&format!("UPDATE {schema}.meta SET schema_version = schema_version - 1")).await;
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('duroxide {schema}', 0))");
    admin.run(&lock).await;
    // A transaction sees the activity of the server as it was when it first asked.
    let watcher = Admin::connect(server).await;
    let opening = tokio::spawn(PostgresProvider::open(options));
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%duroxide {schema}%'
            AND clock_timestamp() - query_start > interval '4 s'"
    );
    while watcher.client().query_one(&waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!opening.is_finished(), "{:?}", opening.await);
        tokio::task::yield_now().await;
    }
    admin.run(&format!("UPDATE {schema}.meta SET schema_version = {version}; COMMIT")).await;
    opening.await.unwrap().unwrap();
}

/// The server stops a transaction that its client has given up: its lock waits would otherwise pile up there.
#[test]
fn the_server_ends_lock_waits_of_an_abandoned_connection() {
    let Some(server) = postgres_server::server() else { return };
    let mut options = PostgresOptions { answer_timeout: LIMIT, ..fresh_options(server) };
    options.config.application_name("given up");
    let mut node = Node::open(&options, 1);
    node.run(vec![start("a")]);
    let claimed = node.claim(1).0;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let admin = runtime.block_on(Admin::connect(server));
    runtime.block_on(admin.run(&format!("BEGIN; LOCK TABLE {}.instance", options.schema)));
    let turn = duroxide_provider::testing::Turn::first("a");
    let fault = in_time("a commit", || node.try_run(vec![commit(&claimed[0], turn)]).unwrap_err());
    assert!(matches!(fault, Fault::Unavailable(_) | Fault::OutcomeUnknown { .. }), "{fault:?}");
    drop(node);
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'given up'";
    let gone = async {
        // A transaction sees the activity of the server as it was when it first asked.
        let watcher = Admin::connect(server).await;
        while watcher.client().query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    };
    runtime.block_on(async { tokio::time::timeout(IN_TIME, gone).await.unwrap() });
}
