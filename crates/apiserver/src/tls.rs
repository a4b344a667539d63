//! The server's certificate and secrets, made anew at every start.

use std::net::{Ipv4Addr, SocketAddr};

use rustls::crypto::aws_lc_rs;
use tiphys_tls::{Authority, HTTP, Identity, TlsError};

/// A generated authority with a server certificate of its own.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The server's certificate.
    pub server: Identity,
    /// The authority's certificate in PEM, for clients.
    pub ca_pem: String,
}

impl TlsIdentity {
    /// Makes an authority and a certificate for loopback, the cluster's own names and an address.
    /// `service` is the address of the cluster's own Service.
    pub fn generate(listen: SocketAddr, service: Ipv4Addr) -> Result<Self, TlsError> {
        let names =
            ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut names: Vec<String> = names.map(str::to_owned).to_vec();
        names.push(service.to_string());
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
            names.push(listen.ip().to_string());
        }
        let authority = Authority::generate("tiphys-ca")?;
        Ok(Self { server: authority.issue("kube-apiserver", names, HTTP)?, ca_pem: authority.pem() })
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
