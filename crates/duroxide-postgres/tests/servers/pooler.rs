//! Behind a transaction pooler nothing may be left on a connection: the next transaction there is another client's.

use std::time::Duration;

use crate::fixture::{Node, fresh_options, sql::Admin, start};
use duroxide_postgres::{CopyError, OpenError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide_sqlite::{SqliteExport, SqliteProvider};
use postgres_server::{Pooler, Server};

const SETTING: &str = "idle_in_transaction_session_timeout = '5s'";

/// The statements that the server got while a store was opened and used.
fn told(server: &Server, options: &PostgresOptions) -> String {
    let before = std::fs::read(server.log()).unwrap().len();
    Node::open(options, 1).run(vec![start("a")]);
    String::from_utf8_lossy(std::fs::read(server.log()).unwrap().get(before..).unwrap()).into_owned()
}

/// PgBouncer tracks prepared statements since `1.21`. Using them does not mean that the connection is the client's own.
#[test]
fn each_transaction_has_its_own_settings_with_and_without_prepared_statements() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let direct = told(&server, &fresh_options(&server));
    assert!(direct.contains(&format!(" SET {SETTING}")) && !direct.contains("SET LOCAL"), "{direct}");
    for prepared_statements in [false, true] {
        let mut options = PostgresOptions::behind_pooler(&server.socket_url(), None).unwrap();
        options.schema = SchemaName::new(&server.fresh_schema()).unwrap();
        options.prepared_statements = prepared_statements;
        let pooled = told(&server, &options);
        for setting in [SETTING, "enable_seqscan = off", "plan_cache_mode = force_generic_plan"] {
            assert!(pooled.contains(&format!("SET LOCAL {setting}")), "{setting}: {pooled}");
        }
        let of_session = pooled.lines().filter(|line| line.contains("statement: SET "));
        assert_eq!(of_session.count(), 0, "{pooled}");
    }
}

/// PgBouncer refuses a connection with settings.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_is_taken_for_the_server_is_named() {
    let Some(server) = Server::own() else { return };
    let Some(pooler) = tokio::task::block_in_place(|| Pooler::start(&server)) else { return };
    let error = PostgresProvider::new(&pooler.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Pooler { .. }), "{error}");
    assert!(error.to_string().contains("behind_pooler"), "{error}");
}

/// PgBouncer has one code for all of its errors.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_refuses_a_connection_says_why() {
    let Some(server) = Server::own() else { return };
    let start = || Pooler::start_with(&server, "max_client_conn = 2");
    let Some(pooler) = tokio::task::block_in_place(start) else { return };
    let refused = async |change: &str| {
        let options = PostgresOptions::behind_pooler(&format!("{} {change}", pooler.url()), None).unwrap();
        PostgresProvider::open(options).await.unwrap_err()
    };
    let error = refused("").await;
    assert!(matches!(error, OpenError::TooManyConnections { needed: 4, .. }), "{error}");
    assert!(error.to_string().contains("max_client_conn"), "{error}");
    // It is known to be a pooler: `behind_pooler` is no remedy.
    let error = refused("dbname=nothing_we_know").await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
}

/// A copy holds a lock of its connection. Through the pooler the lock would stay on any of its connections, and protect nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_passes_by_the_pooler_or_is_refused() {
    let Some(server) = Server::own() else { return };
    let Some(pooler) = tokio::task::block_in_place(|| Pooler::start(&server)) else { return };
    let folder = std::env::temp_dir().join(format!("duroxide-pooler-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("store.db").display());
    drop(SqliteProvider::new(&url, None).await.unwrap());
    let copy = async |reached: Option<String>| {
        let (source, address) = (url.clone(), server.tcp_url());
        let server = reached.is_some().then_some(address.as_str());
        let mut options = PostgresOptions::behind_pooler(&pooler.url(), server).unwrap();
        options.schema = SchemaName::new(reached.as_deref().unwrap_or("refused")).unwrap();
        PostgresProvider::copy_from(move || SqliteExport::open(&source), options, |_| ()).await
    };
    let refused = copy(None).await.unwrap_err();
    assert!(
        matches!(refused, CopyError::Pooled) && refused.to_string().contains("session_config"),
        "{refused}"
    );
    assert_eq!(copy(Some("copied".to_owned())).await.unwrap(), 0);
    let admin = Admin::connect(&server).await;
    assert!(admin.has_schema("copied").await && !admin.has_schema("refused_copy").await);
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    let free = async {
        while admin.client().query_one(locks, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), free).await.expect("the lock ends with its connection");
    std::fs::remove_dir_all(folder).unwrap();
}
