//! Bad input when a store is opened: a typed error that names the remedy, in time, and nothing is written.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::time::{Duration, Instant};

use duroxide_postgres::{OpenError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide_provider::Provider as _;
use fixture::{fake_server::FakeServer, fresh_options, sql::Admin};
use postgres_server::Server;

/// More than the time limit of a connection in these tests, by far.
const IN_TIME: Duration = Duration::from_secs(8);

/// Opens a provider, which must fail in time. The message has to name the remedy.
async fn refusal(options: PostgresOptions, advice: &str) -> OpenError {
    let began = Instant::now();
    let error = PostgresProvider::open(options).await.unwrap_err();
    assert!(began.elapsed() < IN_TIME, "{error}");
    let message = error.to_string();
    assert!(message.contains(advice), "{message}");
    error
}

/// Options that differ from good ones.
fn changed(server: &Server, change: &str) -> PostgresOptions {
    let mut options =
        PostgresOptions::new(&format!("{} connect_timeout=2 {change}", server.tcp_url())).unwrap();
    options.schema = SchemaName::new(&server.fresh_schema()).unwrap();
    options
}

#[tokio::test]
async fn a_text_that_is_no_connection_string() {
    for text in ["postgres://[", "host=localhost nonsense=1", "host"] {
        let error = PostgresProvider::new(text).await.unwrap_err();
        assert!(matches!(error, OpenError::Url { .. }), "{error}");
        assert!(error.to_string().contains("postgres://user@host/database"), "{error}");
    }
}

#[tokio::test]
async fn nobody_listens_there() {
    let options = PostgresOptions::new("host=127.0.0.1 port=1 user=postgres connect_timeout=2").unwrap();
    assert!(matches!(refusal(options, "check host and port").await, OpenError::Connect { .. }));
    let options = PostgresOptions::new("host=/nowhere user=postgres connect_timeout=2").unwrap();
    assert!(matches!(refusal(options, "check host and port").await, OpenError::Connect { .. }));
}

/// A server accepts the connection and never answers.
#[tokio::test]
async fn a_silent_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("host=127.0.0.1 port={port} user=postgres connect_timeout=1");
    let error = refusal(PostgresOptions::new(&url).unwrap(), "no answer within 1s").await;
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
}

/// The server of `cargo xtask test-postgres-versions 13`, which runs this test only.
#[tokio::test]
async fn a_real_server_that_is_too_old() {
    let Some(server) = postgres_server::server() else { return };
    let admin = Admin::connect(server).await;
    let number = admin.client().query_one("SHOW server_version_num", &[]).await.unwrap();
    let major = number.get::<_, &str>(0).parse::<i32>().unwrap() / 10_000;
    if major >= 14 {
        println!("SKIPPED: the server has version {major}");
        return;
    }
    let options = changed(server, "");
    let schema = options.schema.to_string();
    let error = refusal(options, "upgrade the server").await;
    assert_eq!(error, OpenError::TooOld { found: major, oldest: 14 });
    assert!(!admin.has_schema(&schema).await);
}

/// The installed server is not that old, so a listener speaks as such a server does.
#[tokio::test]
async fn a_server_that_is_too_old() {
    let fake = FakeServer::start(13);
    let url = format!("host=127.0.0.1 port={} user=postgres sslmode=prefer connect_timeout=2", fake.port);
    let error = refusal(PostgresOptions::new(&url).unwrap(), "upgrade the server").await;
    assert_eq!(error, OpenError::TooOld { found: 13, oldest: 14 });
    let heard = fake.heard();
    let changes_nothing = |text: &String| text.starts_with("SELECT ") || text.starts_with("SET ");
    assert!(heard.len() >= 2 && heard.iter().all(changes_nothing), "{heard:?}");
    assert!(heard.iter().any(|text| text.contains("server_version_num")), "{heard:?}");
}

#[tokio::test]
async fn an_unknown_role_or_database() {
    let Some(server) = postgres_server::server() else { return };
    for change in ["user=nobody_we_know", "dbname=nothing_we_know"] {
        let error = refusal(changed(server, change), "check user, password, dbname").await;
        assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    }
}

/// A server that asks for passwords.
#[tokio::test]
async fn a_wrong_password() {
    let Some(server) = Server::own() else { return };
    Admin::connect(&server).await.run("CREATE ROLE app LOGIN PASSWORD 'right'").await;
    server.ask_for_passwords();
    let url =
        format!("host=127.0.0.1 port={} dbname=postgres user=app password=wrong", server.address().port);
    let error = refusal(PostgresOptions::new(&url).unwrap(), "check user, password").await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn no_connection_is_left() {
    let Some(server) = Server::own() else { return };
    let admin = Admin::connect(&server).await;
    admin.run("CREATE ROLE app LOGIN CONNECTION LIMIT 2; GRANT CREATE ON DATABASE postgres TO app").await;
    let options = changed(&server, "user=app");
    let schema = options.schema.to_string();
    // The first connection can be made, and so can the tables: those that read are too many.
    let error = refusal(options.clone(), "raise max_connections").await;
    assert!(matches!(error, OpenError::TooManyConnections { needed: 4, .. }), "{error}");
    admin.run("ALTER ROLE app CONNECTION LIMIT 0").await;
    let error = refusal(options.clone(), "a provider needs 4").await;
    assert!(matches!(error, OpenError::TooManyConnections { .. }), "{error}");
    // Connections opened before the failure are closed again, so that four are enough afterwards.
    admin.run("ALTER ROLE app CONNECTION LIMIT 5").await;
    drop(PostgresProvider::open(options).await.unwrap());
    assert!(admin.has_schema(&schema).await);
}

/// The session connection may have an address of its own. An error in it shows when the store is opened, not only in a log.
#[tokio::test]
async fn a_session_connection_that_cannot_be_made() {
    let Some(server) = Server::own() else { return };
    Admin::connect(&server).await.run("CREATE ROLE app LOGIN PASSWORD 'right'").await;
    server.ask_for_passwords();
    let good = PostgresOptions::new(&server.socket_url()).unwrap();
    let port = server.address().port;
    let refused = async |session: &str| {
        let mut options = good.clone();
        options.session_config =
            Some(format!("dbname=postgres connect_timeout=2 {session}").parse().unwrap());
        refusal(options, "the session connection").await
    };
    let error = refused("host=127.0.0.1 port=1 user=app").await;
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
    let error = refused(&format!("host=127.0.0.1 port={port} user=app password=wrong")).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    let error = refused(&format!("host=127.0.0.1 port={port} user=app password=right sslmode=require")).await;
    assert!(matches!(error, OpenError::Tls { .. }), "{error}");
    let right = format!("host=127.0.0.1 port={port} user=app password=right");
    let error = refused(&right).await;
    assert!(matches!(error, OpenError::Refused { .. }), "it may not use the schema: {error}");
    let schema = &good.schema;
    let rights =
        format!("GRANT USAGE ON SCHEMA {schema} TO app; GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO app");
    Admin::connect(&server).await.run(&rights).await;
    let mut options = good.clone();
    options.session_config = Some(format!("dbname=postgres {right}").parse().unwrap());
    drop(PostgresProvider::open(options).await.unwrap());
}

#[tokio::test]
async fn a_role_that_may_not_create_schemas() {
    let Some(server) = postgres_server::server() else { return };
    let (admin, options) = (Admin::connect(server).await, changed(server, ""));
    let role = format!("role_of_{}", options.schema);
    admin.run(&format!("CREATE ROLE {role} LOGIN")).await;
    let mut denied = options.clone();
    denied.config.user(&role);
    let error = refusal(denied.clone(), "let its owner open the store once").await;
    assert!(matches!(error, OpenError::Denied { .. }), "{error}");
    assert!(!admin.has_schema(options.schema.as_str()).await);
    // A role that owns nothing but its schema will do.
    admin.run(&format!("CREATE SCHEMA {} AUTHORIZATION {role}", options.schema)).await;
    drop(PostgresProvider::open(denied).await.unwrap());
}

#[tokio::test]
async fn a_schema_with_tables_of_another_program() {
    let Some(server) = postgres_server::server() else { return };
    let admin = Admin::connect(server).await;
    for table in ["meta (key text, value text)", "history (id int)"] {
        let options = changed(server, "");
        let schema = options.schema.clone();
        admin.run(&format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table}")).await;
        let error = refusal(options, "choose another schema").await;
        assert!(matches!(error, OpenError::ForeignSchema { .. }), "{error}");
        assert_eq!(admin.tables(schema.as_str()).await.len(), 1, "nothing was written");
    }
}

#[tokio::test]
async fn a_schema_of_a_newer_build() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    drop(PostgresProvider::open(options.clone()).await.unwrap());
    let admin = Admin::connect(server).await;
    admin.run(&format!("UPDATE {}.meta SET schema_version = 99", options.schema)).await;
    let error = refusal(options, "use a newer build").await;
    assert!(matches!(error, OpenError::NewerSchema { found: 99, known: 5, .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_only_reads() {
    let Some(server) = postgres_server::server() else { return };
    let read_only = changed(server, "options='-c default_transaction_read_only=on'");
    let schema = read_only.schema.to_string();
    let error = refusal(read_only, "connect to the primary").await;
    assert_eq!(error, OpenError::ReadOnly);
    assert!(!Admin::connect(server).await.has_schema(&schema).await);
}

#[tokio::test]
async fn a_standby() {
    let Some(primary) = Server::own() else { return };
    let standby = primary.synchronous_standby();
    let error = refusal(changed(&standby, ""), "target_session_attrs=read-write").await;
    assert_eq!(error, OpenError::ReadOnly);
}

/// Tools read stores that other programs have made.
#[tokio::test]
async fn a_store_that_is_only_looked_at_is_neither_made_nor_upgraded() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let schema = options.schema.to_string();
    let missing = PostgresProvider::open_existing(options.clone()).await.unwrap_err();
    assert_eq!(missing, OpenError::Missing { schema: schema.clone() });
    assert!(missing.to_string().contains("start a node"), "{missing}");
    let again = PostgresProvider::open_existing(options.clone()).await.unwrap_err();
    assert_eq!(again, missing, "the first look has made nothing");

    drop(PostgresProvider::open(options.clone()).await.unwrap());
    let store = PostgresProvider::open_existing(options.clone()).await.unwrap();
    assert!(store.snapshot().await.unwrap().instances.is_empty());
    drop(store);

    let admin = Admin::connect(server).await;
    admin.run(&format!("UPDATE {schema}.meta SET schema_version = 1")).await;
    for _ in 0..2 {
        let older = PostgresProvider::open_existing(options.clone()).await.unwrap_err();
        assert!(matches!(older, OpenError::OlderSchema { found: 1, .. }), "{older}");
    }
}

/// The session connection may lead elsewhere: to a database without the schema, or to a standby.
#[tokio::test]
async fn a_session_connection_that_leads_to_another_server() {
    let Some(primary) = Server::own() else { return };
    let standby = primary.synchronous_standby();
    let with_session = |url: &str| {
        let mut options = fresh_options(&primary);
        options.session_config = Some(url.parse().unwrap());
        options
    };
    let other_database = primary.tcp_url().replace("dbname=postgres", "dbname=template1");
    let error = refusal(with_session(&other_database), "the session connection").await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("check user, password, dbname"), "{error}");
    assert_eq!(
        refusal(with_session(&standby.tcp_url()), "connect to the primary").await,
        OpenError::ReadOnly
    );
}

/// A server without the schema is not the one that was opened, or has lost its data: to go on with an empty store would hide it.
#[tokio::test]
async fn a_store_whose_schema_is_gone_is_not_made_again() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let (schema, application) =
        (options.schema.to_string(), options.config.get_application_name().unwrap().to_owned());
    let store = PostgresProvider::open(options).await.unwrap();
    let admin = Admin::connect(server).await;
    admin.run(&format!("ALTER SCHEMA {schema} RENAME TO {schema}_elsewhere")).await;
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = $1";
    assert!(!admin.client().query(end, &[&application]).await.unwrap().is_empty());
    let item = duroxide_provider::testing::items::start("a");
    let write = || store.enqueue_for_orchestrator(item.clone(), None);
    let mut error = write().await.unwrap_err();
    while !error.message.contains("no duroxide store") {
        error = write().await.unwrap_err();
    }
    assert!(error.is_retryable(), "the schema may come back: {error}");
    assert!(!admin.has_schema(&schema).await);
    admin.run(&format!("ALTER SCHEMA {schema}_elsewhere RENAME TO {schema}")).await;
    while let Err(error) = write().await {
        assert!(error.is_retryable(), "{error}");
    }
}

/// Dictionary are not quoted in statements, so each word that the server would misread is refused before it is used.
#[tokio::test]
async fn a_schema_named_by_a_reserved_word() {
    let Some(server) = postgres_server::server() else { return };
    let words = "SELECT word, catcode IN ('R', 'T') FROM pg_get_keywords() ORDER BY word";
    for row in Admin::connect(server).await.client().query(words, &[]).await.unwrap() {
        let (word, is_reserved): (&str, bool) = (row.get(0), row.get(1));
        assert_eq!(SchemaName::new(word).is_err(), is_reserved, "{word}");
    }
    let error = SchemaName::new("user").unwrap_err().to_string();
    assert!(error.contains("no word that SQL reserves"), "{error}");
    // Other words of SQL will do.
    let mut options = changed(server, "");
    options.schema = SchemaName::new("values").unwrap();
    let store = PostgresProvider::open(options).await.unwrap();
    assert!(store.snapshot().await.unwrap().instances.is_empty());
}
