//! TLS with authorities that are declared for a host.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
};

use super::Access;

/// Names the certificate that is refused although it is the declared one.
const CA_USED_AS_END_ENTITY: &str = "CaUsedAsEndEntity";

/// How a host is spoken to whose authorities `pem` holds.
///
/// # Errors
/// The authorities, the client certificate or its key cannot be read.
pub(super) fn config(pem: &str, access: &Access) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        Declared::new(pem, &provider).map_err(|e| format!("the CA certificate cannot be read: {e}"))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let (Some(certificate), Some(key)) = (&access.client_certificate_pem, &access.client_key_pem) else {
        return Ok(builder.with_no_client_auth());
    };
    let unreadable = || "the client certificate or its key cannot be read".to_owned();
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| unreadable())?;
    builder.with_client_auth_cert(chain.map_err(|_| unreadable())?, key).map_err(|_| unreadable())
}

/// Believes what the declared authorities sign, and a declared certificate itself.
///
/// A certificate that somebody made with `openssl req -x509` says of itself that it is an authority. Go
/// believes a host that shows it where it is declared (`crypto/x509`, `Certificate.Verify`: a leaf among the
/// roots is a chain), webpki refuses it by what it says.
#[derive(Debug)]
struct Declared {
    webpki: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Declared {
    fn new(pem: &str, provider: &Arc<rustls::crypto::CryptoProvider>) -> Result<Self, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let certificates = read.map_err(|e| e.to_string())?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|e| e.to_string())?;
        }
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self { webpki, certificates })
    }
}

impl ServerCertVerifier for Declared {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Err(Error::InvalidCertificate(CertificateError::Other(error))) => error,
            result => return result,
        };
        // webpki has held its dates against the clock by then; the name comes last there.
        let is_declared = self.certificates.iter().any(|one| one.as_ref() == end_entity.as_ref());
        if is_declared && error.to_string().contains(CA_USED_AS_END_ENTITY) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::Other(error)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}
