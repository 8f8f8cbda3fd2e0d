//! Encryption with the TLS library of the system.

use native_tls::{Certificate, TlsConnector, TlsConnectorBuilder};
use postgres_native_tls::MakeTlsConnector;

use super::Tls;
use crate::OpenError;

impl Tls {
    /// The TLS library of the system, with the certificates that it trusts. [`Self::none`] if it cannot be set up.
    pub fn native() -> Self {
        Self::of_builders(&mut TlsConnector::builder()).unwrap_or_else(|error| {
            tracing::error!(target: "duroxide::providers::postgres", %error, "the system's TLS cannot be used");
            Self::none()
        })
    }

    /// The TLS library of the system, trusting the certificate of this PEM text and no others.
    ///
    /// # Errors
    /// [`OpenError::Tls`] if the text holds no certificate, or the library cannot be set up.
    pub fn native_trusting(pem: &[u8]) -> Result<Self, OpenError> {
        let refused = |error: native_tls::Error| OpenError::Tls { message: error.to_string() };
        let certificate = Certificate::from_pem(pem).map_err(refused)?;
        let mut builder = TlsConnector::builder();
        builder.disable_built_in_roots(true).add_root_certificate(certificate);
        Self::of_builders(&mut builder).map_err(refused)
    }

    fn of_builders(verifying: &mut TlsConnectorBuilder) -> Result<Self, native_tls::Error> {
        let mut accepting = TlsConnector::builder();
        accepting.danger_accept_invalid_certs(true).danger_accept_invalid_hostnames(true);
        let (verifying, accepting) = (verifying.build()?, accepting.build()?);
        Ok(Self::by_sslmode("native", MakeTlsConnector::new(verifying), MakeTlsConnector::new(accepting)))
    }
}
