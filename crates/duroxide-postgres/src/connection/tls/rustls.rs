//! Encryption with rustls and aws-lc-rs.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Tls;
use crate::OpenError;

impl Tls {
    /// rustls, with the certificates that the system trusts.
    pub fn rustls() -> Self {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(target: "duroxide::providers::postgres", %error, "the system's certificates cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        Self::trusting(roots)
    }

    /// rustls, trusting the certificates of this PEM text and no others.
    ///
    /// # Errors
    /// [`OpenError::Tls`] if the text holds no certificate, or one that cannot be read.
    pub fn rustls_trusting(pem: &[u8]) -> Result<Self, OpenError> {
        let refused = |message: String| OpenError::Tls { message };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| refused(error.to_string()))?;
            roots.add(certificate).map_err(|error| refused(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(refused("no certificate in the PEM text".to_owned()));
        }
        Ok(Self::trusting(roots))
    }

    fn trusting(roots: RootCertStore) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = || {
            let versions = ClientConfig::builder_with_provider(Arc::clone(&provider));
            versions.with_safe_default_protocol_versions()
        };
        // The provider has suites for both versions, so there is nothing to refuse.
        let (Ok(verifying), Ok(accepting)) = (builder(), builder()) else { return Self::none() };
        let verifying = verifying.with_root_certificates(roots).with_no_client_auth();
        let any = Arc::new(AnyCertificate(Arc::clone(&provider)));
        let accepting = accepting.dangerous().with_custom_certificate_verifier(any).with_no_client_auth();
        Self::by_sslmode("rustls", MakeRustlsConnect::new(verifying), MakeRustlsConnect::new(accepting))
    }
}

/// Takes any certificate, as `sslmode=prefer` does. What is signed with it is checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
