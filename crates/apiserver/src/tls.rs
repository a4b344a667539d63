//! The server's certificate authority and secrets, made anew at every start.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};

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

/// A generated authority with a server certificate of its own.
#[derive(Clone)]
pub struct TlsIdentity {
    /// What a server is configured with.
    pub config: Arc<ServerConfig>,
    /// The authority's certificate in PEM, for clients.
    pub ca_pem: String,
}

impl TlsIdentity {
    /// Makes an authority and a certificate for loopback, the cluster's own names and an address.
    /// `service` is the address of the cluster's own Service.
    pub fn generate(listen: SocketAddr, service: Ipv4Addr) -> Result<Self, TlsError> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.distinguished_name.push(DnType::CommonName, "tiphys-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
        let names =
            ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut names: Vec<String> = names.map(str::to_owned).to_vec();
        names.push(service.to_string());
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
            names.push(listen.ip().to_string());
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &ca)?;
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(TlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), ca_pem: ca.pem() })
    }
}

/// A token that nobody can guess: 256 random bits in hexadecimal.
pub(crate) fn random_token() -> String {
    random_bytes::<32>().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.expect("the operating system's random source works");
    bytes
}
