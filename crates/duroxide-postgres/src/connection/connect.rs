//! Making a connection.

use std::future::poll_fn;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::UnboundedSender,
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

use crate::{
    fault::{Class, Trouble},
    options::CONNECT_TIMEOUT,
};

/// Connects, and drives the connection on the current runtime until it ends. What the server notifies of is sent to
/// `notified` by its payload.
///
/// The time limit of the configuration is for reaching a host. A server that takes a connection and then is silent must not
/// hold us up either, so the whole attempt has a limit: one for each host.
pub(crate) async fn connect(
    config: &Config,
    notified: Option<UnboundedSender<String>>,
) -> Result<Client, Trouble> {
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
    let each = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
    let limit = each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
    match timeout(limit, config.connect(NoTls)).await {
        Ok(Ok((client, connection))) => {
            tokio::spawn(drive(connection, notified));
            Ok(client)
        }
        Ok(Err(error)) => Err(Trouble::of(&error)),
        Err(_) => Err(Trouble::new(Class::Unavailable, format!("no answer within {limit:?}"))),
    }
}

async fn drive<S, T>(mut connection: Connection<S, T>, notified: Option<UnboundedSender<String>>)
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
