//! A host's certificate.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};

/// How `localhost` speaks TLS with a certificate that nobody vouches for but who has it, and the certificate
/// in PEM.
pub(crate) fn certified() -> (Arc<rustls::ServerConfig>, String) {
    certified_by(|_| {})
}

/// The same with a certificate that is otherwise than usual.
pub(crate) fn certified_by(
    alter: impl FnOnce(&mut CertificateParams),
) -> (Arc<rustls::ServerConfig>, String) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("is a name");
    alter(&mut params);
    let key = KeyPair::generate().expect("can be made");
    let certificate = params.self_signed(&key).expect("can be signed");
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("is a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the key fits");
    (Arc::new(config), certificate.pem())
}
