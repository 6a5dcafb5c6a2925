//! TLS, with the provider given by hand: nothing of the process is changed, and nothing need be installed before.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::Verifier;

/// How to connect over TLS. Certificates that the system trusts are trusted; on Linux `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` name others. Where it is not `needed`, a machine without any certificate will do.
pub(super) fn config(needed: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    if !needed {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = Verifier::new(provider).map_err(|error| error.to_string())?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}
