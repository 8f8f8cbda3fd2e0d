//! A network between processes and a server that goes silent: it keeps connections open and passes nothing on.

use std::io;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// A proxy in front of a server.
pub struct Link {
    pub port: u16,
    is_silent: watch::Sender<bool>,
    /// How often all connections were cut.
    cuts: watch::Sender<usize>,
}

impl Link {
    /// Starts a proxy for the server on this loopback port.
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((is_silent, silence), (cuts, cut)) = (watch::channel(false), watch::channel(0));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (served, mut cut) = (serve(client, server, silence.clone()), cut.clone());
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        served = served => served,
                        _ = cut.changed() => Ok(()),
                    }
                });
            }
        });
        Self { port, is_silent, cuts }
    }

    /// A connection string that leads through this proxy.
    pub fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    /// Ends all connections. New ones are passed on.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Nothing arrives any more, neither bytes nor the end of a connection.
    pub fn fall_silent(&self) {
        self.is_silent.send_replace(true);
    }

    /// Everything arrives that was sent meanwhile.
    pub fn speak_again(&self) {
        self.is_silent.send_replace(false);
    }
}

async fn serve(client: TcpStream, server: u16, mut silence: watch::Receiver<bool>) -> io::Result<()> {
    let until_it_speaks = silence.wait_for(|is_silent| !is_silent).await;
    until_it_speaks.map_err(io::Error::other)?;
    let server = TcpStream::connect(("127.0.0.1", server)).await?;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::try_join!(
        pass_on(from_client, to_server, silence.clone()),
        pass_on(from_server, to_client, silence)
    )?;
    Ok(())
}

/// Forwards the bytes of one side. Its end is forwarded by dropping `to`.
async fn pass_on(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut silence: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        // An error is an end, too, and no failure of the other side.
        let read = from.read(&mut bytes).await.unwrap_or(0);
        let spoke = silence.wait_for(|is_silent| !is_silent).await;
        spoke.map_err(io::Error::other)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..read]).await?;
    }
}
