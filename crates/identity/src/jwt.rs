//! JSON Web Tokens that prove who has a key (RFC 7519; RFC 7518, section 3.3).

use aws_lc_rs::{rand::SystemRandom, rsa, signature::RSA_PKCS1_SHA256};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use serde_json::{Value, json};

/// A token with these claims, signed by RS256 with an RSA key in PEM; `None` if it is none.
pub fn signed_rs256(key_pem: &str, claims: &Value) -> Option<String> {
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&json!({"alg": "RS256", "typ": "JWT"})), encoded(claims));
    let key = match PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs1(der) => rsa::KeyPair::from_der(der.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(der) => rsa::KeyPair::from_pkcs8(der.secret_pkcs8_der()),
        _ => return None,
    };
    let key = key.ok()?;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
