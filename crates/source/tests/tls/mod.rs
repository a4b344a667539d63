//! A host's certificate.

use std::sync::Arc;

/// How `localhost` speaks TLS with a certificate that nobody vouches for but who has it, and the certificate in PEM.
pub fn certified() -> (Arc<rustls::ServerConfig>, String) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("can be made");
    let key =
        rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("is a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("the key fits");
    (Arc::new(config), certified.cert.pem())
}
