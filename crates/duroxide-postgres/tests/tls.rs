//! Encrypted connections, and passwords that are asked for.
//!
//! The certificates are for these tests alone: `server.pem` is for `localhost` and signed by `authority.pem`, whose key
//! was not kept.
#![allow(clippy::unwrap_used, reason = "this is a test")]
#![allow(dead_code, unused_imports, reason = "some of this needs a feature")]

mod fixture;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use duroxide_postgres::{OpenError, PasswordSource, PostgresOptions, PostgresProvider, SchemaName, Tls};
use duroxide_provider::{Provider, testing::items};
use fixture::sql::{Admin, end_connections};
use postgres_server::Server;

const AUTHORITY: &[u8] = include_bytes!("certificates/authority.pem");

fn server_with_tls() -> Option<Server> {
    let server = Server::own()?;
    server.offer_tls(include_str!("certificates/server.pem"), include_str!("certificates/server.key"));
    Some(server)
}

/// By the name that is in the certificate.
fn options(server: &Server, sslmode: &str, tls: &Tls) -> PostgresOptions {
    options_for(server, "localhost", sslmode, tls)
}

fn options_for(server: &Server, host: &str, sslmode: &str, tls: &Tls) -> PostgresOptions {
    let port = server.address().port;
    let url = format!(
        "host={host} hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode={sslmode} connect_timeout=5"
    );
    PostgresOptions { tls: tls.clone(), ..PostgresOptions::new(&url).unwrap() }
}

/// The number of connections of stores, and of encrypted ones.
async fn connections(server: &Server) -> (i64, i64) {
    let sql =
        "SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'duroxide'";
    let row = Admin::connect(server).await.client().query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// The checks for every TLS library: `trusting` gets its trusted authority, `system` uses those of the system.
async fn check(system: Tls, trusting: fn(&[u8]) -> Result<Tls, OpenError>) {
    let Some(server) = server_with_tls() else { return };
    let trusted = trusting(AUTHORITY).unwrap();
    for (sslmode, tls, encrypted) in
        [("disable", &trusted, 0), ("prefer", &system, 4), ("prefer", &trusted, 4), ("require", &trusted, 4)]
    {
        let store = PostgresProvider::open(options(&server, sslmode, tls)).await.unwrap();
        store.enqueue_for_orchestrator(items::start(sslmode), None).await.unwrap();
        // The session connection is made next to the others.
        while connections(&server).await.0 < 4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(connections(&server).await, (4, encrypted), "{sslmode} {tls:?}");
        drop(store);
        while connections(&server).await.0 > 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_own_connection(&server, &trusted).await;
    // No server listens: that error is not about encryption.
    let mut elsewhere = PostgresOptions::new("host=127.0.0.1 port=1 user=app sslmode=require").unwrap();
    elsewhere.tls = trusted.clone();
    let error = PostgresProvider::open(elsewhere).await.unwrap_err();
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
    for (what, refused) in [
        ("an unknown authority", options(&server, "require", &system)),
        ("another name", options_for(&server, "127.0.0.1", "require", &trusted)),
    ] {
        let error = PostgresProvider::open(refused).await.unwrap_err();
        assert!(matches!(error, OpenError::Tls { .. }), "{what}: {error}");
        assert!(error.to_string().contains("set PostgresOptions::tls"), "{error}");
    }
    assert!(matches!(trusting(b"nothing").unwrap_err(), OpenError::Tls { .. }));
    let Some(plain) = postgres_server::server() else { return };
    let error = PostgresProvider::open(options(plain, "require", &trusted)).await.unwrap_err();
    assert!(matches!(error, OpenError::Tls { .. }), "{error}");
    assert!(error.to_string().contains("server does not support TLS"), "{error}");
}

/// A connection of the user is encrypted as those of the store are, and plans as the server does. The name is looked up, and still is
/// that of the certificate.
async fn assert_own_connection(server: &Server, trusted: &Tls) {
    let url = format!("{} host=localhost sslmode=require", server.tcp_url().replace("host=127.0.0.1", ""));
    let mut options = PostgresOptions { tls: trusted.clone(), ..PostgresOptions::new(&url).unwrap() };
    let shown = "SELECT ssl, current_setting('enable_seqscan'), current_setting('work_mem')
        FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    for (given, memory) in [(None, "4MB"), (Some("-c work_mem=5MB"), "5MB")] {
        if let Some(given) = given {
            options = PostgresOptions::new(&format!("{url} options='{given}'")).unwrap();
            options.tls = trusted.clone();
        }
        let client = options.connect().await.unwrap();
        let row = client.query_one(shown, &[]).await.unwrap();
        assert_eq!((row.get(0), row.get(1), row.get(2)), (true, "on", memory));
    }
    options.tls = Tls::none();
    assert!(matches!(options.connect().await, Err(OpenError::Tls { .. })));
}

#[cfg(feature = "rustls")]
#[tokio::test]
async fn rustls_follows_sslmode() {
    check(Tls::rustls(), Tls::rustls_trusting).await;
}

#[cfg(feature = "native-tls")]
#[tokio::test]
async fn the_systems_library_follows_sslmode() {
    check(Tls::native(), Tls::native_trusting).await;
}

#[tokio::test]
async fn without_tls_a_connection_that_requires_it_is_refused() {
    let url = "host=127.0.0.1 port=1 user=app sslmode=require";
    let options = PostgresOptions { tls: Tls::none(), ..PostgresOptions::new(url).unwrap() };
    let error = PostgresProvider::open(options).await.unwrap_err();
    assert!(matches!(error, OpenError::Tls { .. }), "{error}");
    assert!(error.to_string().contains("postgres-rustls"), "{error}");
}

/// Other clients have more modes. They correspond to `require` here, and the error says so.
#[tokio::test]
async fn unknown_modes_are_named() {
    for mode in ["verify-ca", "verify-full", "allow"] {
        let error = PostgresProvider::new(&format!("host=localhost sslmode={mode}")).await.unwrap_err();
        assert!(matches!(error, OpenError::Url { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("sslmode") && text.contains("require, which verifies"), "{text}");
    }
}

/// A password is asked for whenever a connection is made, so it may change while a store is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_changes_is_asked_for_again() {
    let Some(server) = Server::own() else { return };
    let admin = Admin::connect(&server).await;
    admin.run("CREATE ROLE app LOGIN PASSWORD 'token-0'; GRANT CREATE ON DATABASE postgres TO app").await;
    server.ask_for_passwords();
    let (asked, valid) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let url = format!("host=127.0.0.1 port={} dbname=postgres user=app", server.address().port);
    let mut options = PostgresOptions::new(&url).unwrap();
    options.password = Some(PasswordSource::new({
        let (asked, valid) = (Arc::clone(&asked), Arc::clone(&valid));
        move || {
            asked.fetch_add(1, Ordering::SeqCst);
            let token = format!("token-{}", valid.load(Ordering::SeqCst));
            async move { Ok::<_, std::io::Error>(token) }
        }
    }));
    let store = PostgresProvider::open(options.clone()).await.unwrap();
    let before = asked.load(Ordering::SeqCst);
    assert!(before >= 4, "once for each connection: {before}");
    valid.store(1, Ordering::SeqCst);
    admin.run("ALTER ROLE app PASSWORD 'token-1'").await;
    std::thread::scope(|threads| threads.spawn(|| end_connections(&server, "duroxide")).join().unwrap());
    while let Err(error) = store.enqueue_for_orchestrator(items::start("a"), None).await {
        assert!(error.is_retryable(), "{error}");
    }
    assert!(asked.load(Ordering::SeqCst) > before);
    options.password = Some(PasswordSource::new(|| async { Err("the vault is closed") }));
    let error = PostgresProvider::open(options).await.unwrap_err();
    assert!(error.to_string().contains("the vault is closed"), "{error}");
}
