//! The certificate of the repo-server, made anew at every start.

use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The TLS library refused the configuration.
    #[error("cannot set up TLS: {0}")]
    Config(#[from] rustls::Error),
    /// The generated key has no usable form.
    #[error("cannot use the generated key: {0}")]
    Key(&'static str),
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl Identity {
    /// Makes one for loopback, which forwarded ports are.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn generate() -> Result<Self, TlsError> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "tiphys");
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.der().clone();
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(TlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], private)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { config: Arc::new(config), certificate })
    }

    /// The certificate, for who wants to trust no other.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }
}
