//! Servers that refuse a connection: the error says which of the reasons it was.

use std::time::{Duration, Instant};

use duroxide_postgres::{OpenError, PasswordSource, PostgresOptions, PostgresProvider};
use postgres_server::Server;

use crate::fixture::sql::Admin;

/// More than the time limit of a connection in these tests, by far.
const IN_TIME: Duration = Duration::from_secs(8);

/// Opens a provider, which must fail in time.
async fn refusal(options: PostgresOptions) -> OpenError {
    let began = Instant::now();
    let error = PostgresProvider::open(options).await.unwrap_err();
    assert!(began.elapsed() < IN_TIME, "{error}");
    error
}

fn options(url: &str) -> PostgresOptions {
    PostgresOptions::new(&format!("user=postgres dbname=postgres connect_timeout=2 {url}")).unwrap()
}

/// As the guide names it for a failover, while no standby has been promoted.
#[tokio::test]
async fn a_standby_that_is_asked_for_writes() {
    let Some(primary) = Server::own() else { return };
    let standby = primary.synchronous_standby();
    let writes = |url: &str| options(&format!("{url} target_session_attrs=read-write"));
    let error = refusal(writes(&standby.tcp_url())).await;
    assert_eq!(error, OpenError::ReadOnly);
    // A connection that is not made for another reason is not one that only reads.
    let error = refusal(writes("host=/nowhere")).await;
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
    let error = refusal(options(&format!("{} target_session_attrs=read-only", primary.tcp_url()))).await;
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_a_password_and_gets_none_or_a_wrong_one() {
    let Some(server) = Server::own() else { return };
    Admin::connect(&server).await.run("CREATE ROLE app LOGIN PASSWORD 'right'").await;
    server.ask_for_passwords();
    let error = refusal(options(&format!("{} user=app", server.tcp_url()))).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("password missing"), "{error}");
    let error = refusal(options(&format!("{} user=app password=wrong", server.tcp_url()))).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("check user, password, dbname"), "{error}");
}

#[tokio::test]
async fn a_password_that_cannot_be_had() {
    let Some(server) = postgres_server::server() else { return };
    let asking =
        |password: PasswordSource| PostgresOptions { password: Some(password), ..options(&server.tcp_url()) };
    let error = refusal(asking(PasswordSource::new(|| async { Err("the vault is closed") }))).await;
    assert_eq!(error, OpenError::Password { message: "the vault is closed".to_owned() });
    let never = PasswordSource::new(std::future::pending::<Result<String, String>>);
    let error = refusal(asking(never)).await;
    assert_eq!(error, OpenError::Password { message: "no answer within 2s".to_owned() });
    assert!(error.to_string().contains("PostgresOptions::password"), "{error}");
}

/// The order of the hosts does not matter.
#[tokio::test]
async fn of_several_hosts_the_most_specific_error_is_reported() {
    let Some(server) = Server::own() else { return };
    Admin::connect(&server).await.run("CREATE ROLE app LOGIN PASSWORD 'right'").await;
    server.ask_for_passwords();
    let port = server.address().port;
    for (hosts, ports) in
        [("127.0.0.1,127.0.0.1", format!("{port},1")), ("127.0.0.1,127.0.0.1", format!("1,{port}"))]
    {
        let error = refusal(options(&format!("host={hosts} port={ports} user=app password=wrong"))).await;
        assert!(matches!(error, OpenError::Refused { .. }), "{ports}: {error}");
    }
}

/// No name server knows `.invalid`. Some networks do not answer at all: then the time limit ends the attempt, and nothing waits longer.
#[tokio::test]
async fn a_host_that_does_not_exist() {
    let error = refusal(options("host=nowhere.invalid")).await;
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn hosts_and_ports_that_do_not_match() {
    for url in ["", "host=127.0.0.1 port=1,2"] {
        let error = refusal(options(url)).await;
        assert!(matches!(error, OpenError::Connect { .. }), "{error}");
    }
}
