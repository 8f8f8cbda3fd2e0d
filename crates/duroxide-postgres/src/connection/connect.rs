//! Making a connection.

use std::future::poll_fn;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::UnboundedSender,
};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, NoTls};

use crate::PostgresOptions;

/// Connects, and drives the connection on the current runtime until it ends. What the server notifies of is sent to
/// `notified` by its payload.
pub(crate) async fn connect(
    options: &PostgresOptions,
    notified: Option<UnboundedSender<String>>,
) -> Result<Client, Error> {
    let (client, connection) = options.config.connect(NoTls).await?;
    tokio::spawn(drive(connection, notified));
    Ok(client)
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
