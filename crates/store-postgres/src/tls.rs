//! Encryption of connections: rustls, as the connection string's `sslmode` says.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring::default_provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes encrypted connections.
#[derive(Clone)]
pub(crate) struct Tls(pub(crate) MakeRustlsConnect);

impl Tls {
    /// `require` trusts the platform's certificates and those in `roots`, and checks the server's name. `prefer`
    /// encrypts when the server can, and believes whoever answers: somebody who can change what is on the wire could
    /// as well say that the server does not encrypt.
    ///
    /// # Errors
    ///
    /// What is wrong with `roots`, or that the platform has no certificates.
    pub(crate) fn new(mode: SslMode, roots: Option<&Path>) -> Result<Self, String> {
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        let builder = match mode {
            SslMode::Require => {
                let roots = roots.map(certificates).transpose()?.unwrap_or_default();
                let verifier = Verifier::new_with_extra_roots(roots, provider).map_err(|e| e.to_string())?;
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            SslMode::Prefer => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))),
            // Makes no connections.
            _ => builder.with_root_certificates(RootCertStore::empty()),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(MakeRustlsConnect::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let told = |e: rustls::pki_types::pem::Error| format!("the root certificates in {}: {e}", path.display());
    let all = CertificateDer::pem_file_iter(path).map_err(told)?.collect::<Result<Vec<_>, _>>().map_err(told)?;
    if all.is_empty() { Err(format!("there are no certificates in {}", path.display())) } else { Ok(all) }
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
