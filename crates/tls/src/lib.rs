//! Certificates that a server of ours makes for itself at its start: the embedded API server, and what
//! answers Argo CD's command line. Keys stay in memory; who connects is given the certificate to trust.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
};

/// HTTP/2, and HTTP/1.1 for clients without it, as ALPN names them.
pub const HTTP: &[&str] = &["h2", "http/1.1"];
/// HTTP/2 alone, which gRPC needs.
pub const HTTP2: &[&str] = &["h2"];

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

/// A certificate with its key, for a server.
#[derive(Clone)]
pub struct Identity {
    /// What a server is configured with.
    pub config: Arc<ServerConfig>,
    /// The certificate, for clients that trust no other.
    pub certificate: CertificateDer<'static>,
}

impl Identity {
    /// One that vouches for itself, for DNS names and addresses, with the protocols that the server speaks.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn self_signed(common_name: &str, names: Vec<String>, protocols: &[&str]) -> Result<Self, TlsError> {
        let key = KeyPair::generate()?;
        let certificate = certificate_params(common_name, names)?.self_signed(&key)?;
        Self::with_key(certificate.der(), &key, protocols)
    }

    fn with_key(
        certificate: &CertificateDer<'static>,
        key: &KeyPair,
        protocols: &[&str],
    ) -> Result<Self, TlsError> {
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(TlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], private)?;
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Self { config: Arc::new(config), certificate: certificate.clone() })
    }
}

/// An authority that signs certificates of servers.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one of a name.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn generate(common_name: &str) -> Result<Self, TlsError> {
        let mut params = certificate_params(common_name, Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its certificate in PEM, for clients.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of a server, for DNS names and addresses, with the protocols that the server speaks.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn issue(
        &self,
        common_name: &str,
        names: Vec<String>,
        protocols: &[&str],
    ) -> Result<Identity, TlsError> {
        let key = KeyPair::generate()?;
        let certificate = certificate_params(common_name, names)?.signed_by(&key, &self.0)?;
        Identity::with_key(certificate.der(), &key, protocols)
    }
}

fn certificate_params(common_name: &str, names: Vec<String>) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}
