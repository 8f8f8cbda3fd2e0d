//! Bad input when a store is opened: a typed error that names the remedy, in time, and nothing is written.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::time::{Duration, Instant};

use duroxide_postgres::{OpenError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide_provider::Provider as _;
use fixture::{fake_server::FakeServer, fresh_options, proxy::Proxy, sql::Admin};
use postgres_server::{Pooler, Server};

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
    let received = fake.received();
    let changes_nothing = |text: &String| text.starts_with("SELECT ") || text.starts_with("SET ");
    assert!(received.len() >= 2 && received.iter().all(changes_nothing), "{received:?}");
    assert!(received.iter().any(|text| text.contains("server_version_num")), "{received:?}");
}

#[tokio::test]
async fn an_unknown_role_or_database() {
    let Some(server) = postgres_server::server() else { return };
    for change in ["user=nobody_we_know", "dbname=nothing_we_know"] {
        let error = refusal(changed(server, change), "check user, password, dbname").await;
        assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    }
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
    let (admin, schema) = (Admin::connect(&server).await, &good.schema);
    for _ in 0..2 {
        let error = refused(&right).await;
        assert!(matches!(error, OpenError::Denied { .. }), "it may not use the schema: {error}");
        assert!(!admin.has_schema(schema.as_str()).await, "nothing was written");
    }
    drop(PostgresProvider::open(good.clone()).await.unwrap());
    let error = refused(&right).await;
    assert!(matches!(error, OpenError::Refused { .. }), "it may not use the schema: {error}");
    let rights =
        format!("GRANT USAGE ON SCHEMA {schema} TO app; GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO app");
    admin.run(&rights).await;
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

/// Opening must name the remedy and leave the schema as it was.
async fn refuses_schema(admin: &Admin, options: PostgresOptions) {
    let schema = options.schema.to_string();
    let before = admin.objects(&schema).await;
    for _ in 0..2 {
        let error = refusal(options.clone(), "name another schema, or an empty one").await;
        assert!(matches!(error, OpenError::ForeignSchema { .. }), "{error}");
    }
    let existing = PostgresProvider::open_existing(options).await.unwrap_err();
    assert!(matches!(existing, OpenError::ForeignSchema { .. }), "{existing}");
    assert_eq!(admin.objects(&schema).await, before, "nothing was written");
}

/// 24.16
#[tokio::test]
async fn a_schema_with_tables_of_another_program() {
    let Some(server) = postgres_server::server() else { return };
    let admin = Admin::connect(server).await;
    for object in [
        "TABLE {s}.meta (key text, value text)",
        "TABLE {s}.history (id int)",
        "TABLE {s}.orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, label text)",
        "TABLE {s}.parts (id int) PARTITION BY RANGE (id)",
        "VIEW {s}.answer AS SELECT 42 AS answer",
        "MATERIALIZED VIEW {s}.answers AS SELECT 42 AS answer",
        "SEQUENCE {s}.tickets",
        "TYPE {s}.color AS ENUM ('red', 'green')",
        "TYPE {s}.place AS (x int, y int)",
        "TYPE {s}.span AS RANGE (subtype = int)",
        "DOMAIN {s}.positive AS int CHECK (value > 0)",
    ] {
        let options = changed(server, "");
        let schema = options.schema.as_str();
        admin.run(&format!("CREATE SCHEMA {schema}; CREATE {}", object.replace("{s}", schema))).await;
        refuses_schema(&admin, options).await;
    }
}

/// 24.16: a database administrator has made the schema, and an extension lives in it.
#[tokio::test]
async fn objects_of_an_extension_do_not_make_a_schema_foreign() {
    let Some(server) = postgres_server::server() else { return };
    let (admin, options) = (Admin::connect(server).await, changed(server, ""));
    let schema = options.schema.as_str();
    let objects = ["TABLE {s}.lookup", "VIEW {s}.looked_up", "TYPE {s}.color", "TYPE {s}.place"];
    let made = format!(
        "CREATE SCHEMA {schema}; CREATE TYPE {schema}.color AS ENUM ('red'); CREATE TYPE {schema}.place AS (x int);
        CREATE TABLE {schema}.lookup (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, color {schema}.color);
        CREATE INDEX ON {schema}.lookup (color);
        CREATE VIEW {schema}.looked_up AS SELECT id FROM {schema}.lookup"
    );
    admin.run(&made).await;
    let change = async |verb: &str| {
        for object in objects {
            admin.run(&format!("ALTER EXTENSION plpgsql {verb} {}", object.replace("{s}", schema))).await;
        }
    };
    change("ADD").await;
    drop(PostgresProvider::open(options.clone()).await.unwrap());
    change("DROP").await;
    drop(PostgresProvider::open(options.clone()).await.unwrap());
}

/// 24.16: a database that nobody has used yet has an empty schema `public`.
#[tokio::test]
async fn the_schema_public_is_used_while_it_is_empty() {
    let Some(server) = Server::own() else { return };
    let admin = Admin::connect(&server).await;
    for database in ["fresh", "used"] {
        admin.run(&format!("CREATE DATABASE {database}")).await;
    }
    let public = |database: &str| {
        let mut options = changed(&server, &format!("dbname={database}"));
        options.schema = SchemaName::new("public").unwrap();
        options
    };
    for _ in 0..2 {
        let store = PostgresProvider::open(public("fresh")).await.unwrap();
        assert!(store.snapshot().await.unwrap().instances.is_empty());
    }
    let used = Admin::connect_to(&server, "used").await;
    used.run("CREATE TABLE orders (id int)").await;
    refuses_schema(&used, public("used")).await;
}

/// 24.16: another program, or another process of ours, may fill the schema while it is opened. The lock that processes take to make the tables is held here, so both of them
/// have seen an empty schema.
#[tokio::test]
async fn what_a_schema_holds_is_decided_under_the_lock() {
    let Some(server) = postgres_server::server() else { return };
    let (admin, watcher) = (Admin::connect(server).await, Admin::connect(server).await);
    let wait_for = async |openers: i64, key: &str| {
        let waiting = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
            AND ((classid::bigint << 32) | objid::bigint) = {key}"
        );
        while watcher.client().query_one(&waiting, &[]).await.unwrap().get::<_, i64>(0) < openers {
            tokio::task::yield_now().await;
        }
    };
    for is_foreign in [false, true] {
        let options = changed(server, "");
        let schema = options.schema.to_string();
        let key = format!("hashtextextended('duroxide {schema}', 0)");
        admin.run(&format!("CREATE SCHEMA {schema}; BEGIN; SELECT pg_advisory_xact_lock({key})")).await;
        let openers = [(); 2].map(|()| tokio::spawn(PostgresProvider::open(options.clone())));
        wait_for(2, &key).await;
        if is_foreign {
            admin.run(&format!("CREATE TABLE {schema}.orders (id int)")).await;
        }
        admin.run("COMMIT").await;
        for opener in openers {
            let opened = opener.await.unwrap();
            match is_foreign {
                false => drop(opened.unwrap()),
                true => assert!(matches!(opened, Err(OpenError::ForeignSchema { .. })), "{opened:?}"),
            }
        }
        if is_foreign {
            assert_eq!(admin.tables(&schema).await, ["orders"], "nothing was written");
        }
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

/// 24.17: the session connection may lead to a database without the schema, to one that has it, to another server, or to a standby.
#[tokio::test]
async fn a_session_connection_that_leads_to_another_database() {
    let Some(primary) = Server::own() else { return };
    let standby = primary.synchronous_standby();
    let Some(stranger) = Server::own() else { return };
    let (admin, options) = (Admin::connect(&primary).await, fresh_options(&primary));
    let schema = options.schema.to_string();
    admin.run("CREATE DATABASE other").await;
    let to_other = |url: String| url.replace("dbname=postgres", "dbname=other");
    let elsewhere = [to_other(primary.tcp_url()), stranger.tcp_url()];
    let with_session = |url: &str| {
        let mut options = options.clone();
        options.session_config = Some(url.parse().unwrap());
        options
    };
    for has_schema in [false, true] {
        for url in &elsewhere {
            if has_schema {
                let mut there = PostgresOptions::new(url).unwrap();
                there.schema = options.schema.clone();
                drop(PostgresProvider::open(there).await.unwrap());
            }
            let error =
                refusal(with_session(url), "PostgresOptions::session_config, or PostgresOptions::config")
                    .await;
            assert!(matches!(error, OpenError::OtherDatabase { .. }), "{error}");
        }
    }
    let leads_to_standby = refusal(with_session(&standby.tcp_url()), "connect to the primary").await;
    assert_eq!(leads_to_standby, OpenError::ReadOnly);
    assert!(!admin.has_schema(&schema).await, "nothing was written");
}

/// 24.17: roles with no more rights than they need, over the socket, over TCP and through a pooler.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_connection_with_an_address_of_its_own() {
    let Some(server) = Server::own() else { return };
    let (admin, options) = (Admin::connect(&server).await, fresh_options(&server));
    let schema = options.schema.to_string();
    admin.run(&format!("CREATE ROLE app LOGIN; CREATE SCHEMA {schema} AUTHORIZATION app")).await;
    let as_app = |url: String| url.replace("user=postgres", "user=app");
    let mut direct = options.clone();
    direct.config.user("app");
    direct.session_config = Some(as_app(server.tcp_url()).parse().unwrap());
    drop(PostgresProvider::open(direct).await.unwrap());
    let Some(pooler) = tokio::task::block_in_place(|| Pooler::start(&server)) else { return };
    let mut pooled = PostgresOptions::behind_pooler(&pooler.url(), Some(&as_app(server.tcp_url()))).unwrap();
    pooled.schema = options.schema.clone();
    drop(PostgresProvider::open(pooled.clone()).await.unwrap());
    admin.run("CREATE DATABASE other").await;
    pooled.session_config.as_mut().unwrap().dbname("other");
    let error = refusal(pooled, "PostgresOptions::session_config").await;
    assert!(matches!(error, OpenError::OtherDatabase { .. }), "{error}");
}

/// 24.17: the address of the session connection leads to another server while it is gone, which has the schema, too.
#[tokio::test]
async fn a_session_connection_that_comes_back_to_another_server() {
    let (Some(server), Some(stranger)) = (Server::own(), Server::own()) else { return };
    let mut options = fresh_options(&server);
    let mut there = PostgresOptions::new(&stranger.socket_url()).unwrap();
    there.schema = options.schema.clone();
    drop(PostgresProvider::open(there).await.unwrap());
    let proxy = Proxy::start(server.address().port);
    let url = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", proxy.port);
    let mut session: tokio_postgres::Config = url.parse().unwrap();
    session.application_name("session");
    options.session_config = Some(session);
    let store = PostgresProvider::open(options).await.unwrap();
    let admin = Admin::connect(&server).await;
    let until = async |what: &str, is_so: &dyn Fn() -> bool| {
        let wait = async {
            while !is_so() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.expect(what);
    };

    proxy.lead_to(stranger.address().port);
    let before = proxy.connections();
    let end =
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'session'";
    assert!(!admin.client().query(end, &[]).await.unwrap().is_empty());
    // The second attempt follows the end of the first one.
    until("it tries to connect again", &|| proxy.connections() >= before + 2).await;
    proxy.lead_to(server.address().port);
    let listens = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'session' AND locktype = 'advisory' AND granted";
    let returned = async { while admin.client().query(listens, &[]).await.unwrap().is_empty() {} };
    tokio::time::timeout(Duration::from_secs(30), returned).await.expect("it comes back to the first one");
    drop(store);
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

/// Names are not quoted in statements, so each word that the server would misread is refused before it is used.
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
