//! [`serve`]: the console as a server of its own, on loopback.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
};

use duroxide::Client;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    Auth, Console, Role,
    auth::{Key, Kind},
};

/// Options of [`serve`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServeOptions {
    /// The port on loopback; 0 for a free one.
    pub port: u16,
    /// Refuses all changes.
    pub read_only: bool,
}

/// Why [`serve`] failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The port cannot be opened.
    Port {
        /// The port.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system has no random source, which the secret link needs.
    NoRandomSource,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { port, source } => {
                write!(
                    f,
                    "cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for a free one"
                )
            }
            Self::NoRandomSource => f.write_str("the operating system has no random source"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Port { source, .. } => Some(source),
            Self::NoRandomSource => None,
        }
    }
}

/// A running console server. Dropping this value ends it.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    link: String,
    server: JoinHandle<io::Result<()>>,
}

impl Served {
    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link that opens the console. It works once and signs the browser in for twelve hours.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// Waits until the server fails. It does not end by itself.
    ///
    /// # Errors
    /// The server's error.
    pub async fn wait(mut self) -> io::Result<()> {
        (&mut self.server).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Serves the console of a client's store on loopback, for the user who follows the link of [`Served::link`].
///
/// # Errors
/// [`ServeError`] if the port cannot be opened, or if there is no random source.
pub async fn serve(client: Client, options: &ServeOptions) -> Result<Served, ServeError> {
    let random = || Key::random().map(|key| key.to_text()).map_err(|_| ServeError::NoRandomSource);
    let (secret, code) = (random()?, random()?);
    // A random key is long enough for a token.
    let auth =
        Auth::token("holder of the link", secret, Role::Operator).map_err(|_| ServeError::NoRandomSource)?;
    if let Kind::Tokens(tokens) = &auth.0 {
        tokens.add_link(&code);
    }
    let mut console = Console::new(client, auth);
    console.read_only = options.read_only;
    let port = options.port;
    let failed = |source| ServeError::Port { port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let router = console.router();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Served { address, link: format!("http://{address}/login?link={code}"), server })
}
