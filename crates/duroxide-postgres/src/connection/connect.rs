//! Making a connection.

use std::{borrow::Cow, future::poll_fn, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::UnboundedSender,
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Config, Connection};

use super::hosts::each_host;
use crate::{PostgresOptions, database_error::DatabaseError, options::CONNECT_TIMEOUT};

/// Where notifications go, by their payloads.
pub(super) type Notified = Option<UnboundedSender<String>>;

/// Connects, and drives the connection on the current runtime until it ends. What the server notifies of is sent to
/// `notified` by its payload.
///
/// The time limit of the configuration is for reaching a host. A server that takes a connection and then is silent must not
/// hold us up either, so the whole attempt with a host has that limit. Then the next host is tried.
pub(crate) async fn connect(
    options: &PostgresOptions,
    config: &Config,
    notified: Notified,
) -> Result<Client, DatabaseError> {
    if options.tls.is_missing_for(config) {
        return Err(DatabaseError::of_tls("sslmode=require, and there is no TLS".to_owned()));
    }
    let limit = connect_timeout(config);
    let silent = || DatabaseError::unavailable(format!("no answer within {limit:?}"));
    let config = timeout(limit, with_password(options, config)).await.map_err(|_| silent())??;
    let mut last = Err(silent());
    for host in each_host(&config, duroxide_store::random_nonce()) {
        let attempt = options.tls.connect(&host, notified.clone());
        last = match timeout(limit, attempt).await {
            Ok(answer) => answer.map_err(|error| DatabaseError::of(&error)),
            Err(_) => Err(silent()),
        };
        if last.is_ok() {
            break;
        }
    }
    last
}

/// The time limit for connecting to one host.
pub(crate) fn connect_timeout(config: &Config) -> Duration {
    config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT)
}

async fn with_password<'a>(
    options: &PostgresOptions,
    config: &'a Config,
) -> Result<Cow<'a, Config>, DatabaseError> {
    let Some(source) = &options.password else { return Ok(Cow::Borrowed(config)) };
    let failed = |error| DatabaseError::unavailable(format!("there is no password: {error}"));
    let password = source.ask().await.map_err(failed)?;
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
