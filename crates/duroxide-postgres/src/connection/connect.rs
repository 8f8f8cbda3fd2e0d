//! Making a connection.

use std::{borrow::Cow, future::poll_fn, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::UnboundedSender,
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Config, Connection};

use super::{
    fault::ConnectFault,
    hosts::{check_hosts, each_address, each_host, name_to_look_up},
    lookup::lookup,
};
use crate::{PostgresOptions, database_error::DatabaseError, options::CONNECT_TIMEOUT};

/// Where notifications go, by their payloads.
pub(super) type Notified = Option<UnboundedSender<String>>;

/// Connects, and drives the connection on the current runtime until it ends. What the server notifies of is sent to
/// `notified` by its payload.
///
/// The time limit of the configuration is for reaching a host. A server that takes a connection and then is silent must not
/// hold us up either, so the whole attempt with each address of a host has that limit. Then the next one is tried. If all fail, the
/// most specific error is returned: a wrong password is not hidden by another host that is down.
pub(crate) async fn connect(
    options: &PostgresOptions,
    config: &Config,
    notified: Notified,
) -> Result<Client, DatabaseError> {
    if options.tls.is_missing_for(config) {
        let missing = "sslmode=require, and there is no TLS";
        return Err(DatabaseError::of_connect_fault(ConnectFault::Tls, missing));
    }
    check_hosts(config).map_err(DatabaseError::refused)?;
    let limit = connect_timeout(config);
    let config = with_password(options, config, limit).await?;
    let mut failed = None;
    for host in each_host(&config, duroxide_store::random_nonce()) {
        match connect_to_host(options, &host, &notified, limit).await {
            Ok(client) => return Ok(client),
            Err(error) => failed = Some(more_specific(failed, error)),
        }
    }
    Err(failed.unwrap_or_else(|| silent(limit)))
}

/// Tries the addresses of a host. The library would try them, too, but all of them within `limit`.
async fn connect_to_host(
    options: &PostgresOptions,
    host: &Config,
    notified: &Notified,
    limit: Duration,
) -> Result<Client, DatabaseError> {
    let mut failed = None;
    for address in addresses(host, limit).await? {
        let error = match timeout(limit, options.tls.connect(&address, notified.clone())).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => DatabaseError::of_connecting(&error, &address),
            Err(_) => silent(limit),
        };
        failed = Some(more_specific(failed, error));
    }
    Err(failed.unwrap_or_else(|| silent(limit)))
}

/// The configuration of a host with each of its addresses.
async fn addresses(host: &Config, limit: Duration) -> Result<Vec<Config>, DatabaseError> {
    let Some(name) = name_to_look_up(host) else { return Ok(vec![host.clone()]) };
    let found = timeout(limit, lookup(name)).await.map_err(|_| silent(limit))?;
    let found = found.map_err(|error| DatabaseError::unavailable(format!("host {name}: {error}")))?;
    Ok(each_address(host, &found, duroxide_store::random_nonce()))
}

/// The one of two errors that tells more. Of equals it is the first.
fn more_specific(known: Option<DatabaseError>, other: DatabaseError) -> DatabaseError {
    match known {
        Some(known) if known.connect_fault >= other.connect_fault => known,
        _ => other,
    }
}

fn silent(limit: Duration) -> DatabaseError {
    DatabaseError::unavailable(format!("no answer within {limit:?}"))
}

/// The time limit for connecting to one host.
pub(crate) fn connect_timeout(config: &Config) -> Duration {
    config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT)
}

async fn with_password<'a>(
    options: &PostgresOptions,
    config: &'a Config,
    limit: Duration,
) -> Result<Cow<'a, Config>, DatabaseError> {
    let Some(source) = &options.password else { return Ok(Cow::Borrowed(config)) };
    let silent = |_| Err(format!("no answer within {limit:?}"));
    let failed = |message| DatabaseError::of_connect_fault(ConnectFault::PasswordSource, message);
    let password = timeout(limit, source.ask()).await.unwrap_or_else(silent).map_err(failed)?;
    let mut config = config.clone();
    config.password(password);
    Ok(Cow::Owned(config))
}

pub(super) async fn drive<S, T>(mut connection: Connection<S, T>, notified: Notified)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(notification))) => {
                if let Some(notified) = &notified {
                    let _ = notified.send(notification.payload().to_owned());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "a connection ended");
                return;
            }
            None => return,
        }
    }
}
