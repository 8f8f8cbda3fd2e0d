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
    hosts::{check_hosts, each_host},
};
use crate::{PostgresOptions, database_error::DatabaseError, options::CONNECT_TIMEOUT};

/// Where notifications go, by their payloads.
pub(super) type Notified = Option<UnboundedSender<String>>;

/// Connects, and drives the connection on the current runtime until it ends. What the server notifies of is sent to
/// `notified` by its payload.
///
/// The time limit of the configuration is for reaching a host. A server that takes a connection and then is silent must not
/// hold us up either, so the whole attempt with a host has that limit. Then the next host is tried. If all fail, the most specific
/// error is returned: a wrong password is not hidden by another host that is down.
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
    let mut failed: Option<DatabaseError> = None;
    for host in each_host(&config, duroxide_store::random_nonce()) {
        let error = match timeout(limit, options.tls.connect(&host, notified.clone())).await {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => DatabaseError::of_connecting(&error, &host),
            Err(_) => DatabaseError::unavailable(format!("no answer within {limit:?}")),
        };
        let tells_more = |known: &DatabaseError| error.connect_fault > known.connect_fault;
        if failed.as_ref().is_none_or(tells_more) {
            failed = Some(error);
        }
    }
    Err(failed.unwrap_or_else(|| DatabaseError::unavailable("there is no host")))
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
