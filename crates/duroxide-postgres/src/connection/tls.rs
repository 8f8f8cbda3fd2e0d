//! How connections are encrypted.

#[cfg(feature = "native-tls")]
mod native;
#[cfg(feature = "rustls")]
mod rustls;

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use tokio_postgres::{
    Client, Config, Error, NoTls, Socket,
    config::SslMode,
    tls::{MakeTlsConnect, TlsConnect},
};

use super::connect::{Notified, drive};

type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Client, Error>> + Send + 'a>>;

/// How connections are encrypted. The connection string decides whether they are:
///
/// | `sslmode` | |
/// |---|---|
/// | `disable` | never |
/// | `prefer` (the default) | if the server offers it. The certificate is not verified, so this protects against nobody who can change what is sent |
/// | `require` | always. The certificate must be trusted and be for this host, as with `verify-full` of other clients |
///
/// The default is rustls with the certificates that the system trusts if the feature `rustls` is on, else the TLS library
/// of the system if `native-tls` is on, else nothing.
#[derive(Clone)]
pub struct Tls {
    connector: Arc<dyn Connector>,
    /// Whether there is any encryption.
    pub(crate) is_there: bool,
    name: &'static str,
}

/// Connects, and drives the connection until it ends.
trait Connector: Send + Sync {
    fn connect<'a>(&'a self, config: &'a Config, notified: Notified) -> Connecting<'a>;
}

impl Tls {
    /// Nothing is encrypted.
    pub fn none() -> Self {
        Self { is_there: false, ..Self::named("none", Fixed(NoTls)) }
    }

    /// Whatever a connector of `tokio_postgres` does, for every `sslmode` but `disable`.
    pub fn new<M>(connector: M) -> Self
    where
        M: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        M::Stream: Send + 'static,
        M::TlsConnect: Send,
        <M::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self::named("custom", Fixed(connector))
    }

    /// One connector for `require`, another one for `prefer`.
    #[cfg(any(feature = "rustls", feature = "native-tls"))]
    fn by_sslmode<M>(name: &'static str, verifying: M, accepting: M) -> Self
    where
        M: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        M::Stream: Send + 'static,
        M::TlsConnect: Send,
        <M::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self::named(name, BySslMode { verifying: Fixed(verifying), accepting: Fixed(accepting) })
    }

    fn named(name: &'static str, connector: impl Connector + 'static) -> Self {
        Self { connector: Arc::new(connector), is_there: true, name }
    }

    /// Whether this configuration asks for encryption that is not there.
    pub(crate) fn is_missing_for(&self, config: &Config) -> bool {
        !self.is_there && config.get_ssl_mode() == SslMode::Require
    }

    pub(crate) async fn connect(&self, config: &Config, notified: Notified) -> Result<Client, Error> {
        self.connector.connect(config, notified).await
    }
}

impl Default for Tls {
    fn default() -> Self {
        #[cfg(feature = "rustls")]
        return Self::rustls();
        #[cfg(all(feature = "native-tls", not(feature = "rustls")))]
        return Self::native();
        #[cfg(not(any(feature = "rustls", feature = "native-tls")))]
        Self::none()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({})", self.name)
    }
}

/// A connector for every mode.
struct Fixed<M>(M);

impl<M> Connector for Fixed<M>
where
    M: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    M::Stream: Send + 'static,
    M::TlsConnect: Send,
    <M::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn connect<'a>(&'a self, config: &'a Config, notified: Notified) -> Connecting<'a> {
        Box::pin(async move {
            let (client, connection) = config.connect(self.0.clone()).await?;
            tokio::spawn(drive(connection, notified));
            Ok(client)
        })
    }
}

#[cfg(any(feature = "rustls", feature = "native-tls"))]
struct BySslMode<M> {
    verifying: Fixed<M>,
    accepting: Fixed<M>,
}

#[cfg(any(feature = "rustls", feature = "native-tls"))]
impl<M> Connector for BySslMode<M>
where
    Fixed<M>: Connector,
{
    fn connect<'a>(&'a self, config: &'a Config, notified: Notified) -> Connecting<'a> {
        let is_optional = matches!(config.get_ssl_mode(), SslMode::Disable | SslMode::Prefer);
        let connector = if is_optional { &self.accepting } else { &self.verifying };
        connector.connect(config, notified)
    }
}
