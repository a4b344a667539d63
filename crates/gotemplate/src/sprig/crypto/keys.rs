//! Private keys.

use super::super::{add, text};
use super::{der, primes, random_bytes};
use crate::{CallError, Context, Entropy, Functions, SeededEntropy, Type};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use parking_lot::Mutex;
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

pub(super) fn register(f: &mut Functions) {
    add(f, &["genPrivateKey"], &[Type::String], |ctx, args| {
        let kind = text(args, 0);
        Ok(match kind {
            "" | "rsa" => rsa(ctx, 4096)?,
            "dsa" => {
                ctx.work(DSA)?;
                der::pem("DSA PRIVATE KEY", &primes::dsa(&mut |buffer| ctx.random(buffer)))
            }
            "ecdsa" => ecdsa(ctx)?,
            "ed25519" => ed25519(ctx),
            other => format!("Unknown type {other}"),
        }
        .into())
    });
}

/// Milliseconds that finding keys takes, about: of DSA, and of RSA by its bits.
const DSA: u64 = 1000;
const RSA: [(usize, u64); 2] = [(2048, 200), (usize::MAX, 1500)];

/// A PEM block `RSA PRIVATE KEY`.
pub(super) fn rsa(ctx: &Context<'_>, bits: usize) -> Result<String, CallError> {
    if ctx.mocks_secrets() {
        return Ok(MOCK.clone());
    }
    let (_, milliseconds) = RSA.iter().find(|(most, _)| bits <= *most).copied().unwrap_or(RSA[1]);
    ctx.work(milliseconds)?;
    if ctx.deterministic() {
        return Ok(der::pem("RSA PRIVATE KEY", &repeatable_rsa(ctx, bits)));
    }
    let size = if bits > 2048 { RsaKeySize::_4096 } else { RsaKeySize::_2048 };
    let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size)
        .map_err(|error| CallError::new(format!("error generating rsa key: {error}")))?;
    let pkcs1 = inner_key(&pair.serialize_der()).ok_or_else(|| CallError::new("error generating rsa key"))?;
    Ok(der::pem("RSA PRIVATE KEY", &pkcs1))
}

/// The key of renders that only have to have one of the right form.
static MOCK: LazyLock<String> = LazyLock::new(|| der::pem("RSA PRIVATE KEY", &primes::mock_rsa()));

/// Keys of repeatable renders, by size and seed: an application is rendered often, and a key takes long to
/// find.
static KNOWN: LazyLock<Mutex<KeyCache>> = LazyLock::new(Mutex::default);
type KeyCache = FxHashMap<(usize, [u8; 32]), Vec<u8>>;
/// How many of them are kept.
const KEPT: usize = 1024;

fn repeatable_rsa(ctx: &Context<'_>, bits: usize) -> Vec<u8> {
    let mut seed = [0; 32];
    ctx.random(&mut seed);
    let known = || KNOWN.lock();
    if let Some(key) = known().get(&(bits, seed)) {
        return key.clone();
    }
    let stream = SeededEntropy::from_seed(seed);
    let key = primes::rsa(bits, &mut |buffer| stream.fill(0, buffer));
    let mut known = known();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert((bits, seed), key.clone());
    key
}

/// The key inside a PKCS #8 envelope.
fn inner_key(pkcs8: &[u8]) -> Option<Vec<u8>> {
    let (_, content, _) = der::read(pkcs8)?;
    let (_, _, rest) = der::read(content)?;
    let (_, _, rest) = der::read(rest)?;
    let (tag, key, _) = der::read(rest)?;
    (tag == 0x04).then(|| key.to_vec())
}

fn ecdsa(ctx: &Context<'_>) -> Result<String, CallError> {
    const P256: [u8; 8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07];
    let failed = || CallError::new("failed to generate private key");
    // Numbers above the order are refused; the next ones are as good.
    for _ in 0..64 {
        let scalar = random_bytes(ctx, 32);
        let Ok(key) = PrivateKey::from_private_key(&ECDH_P256, &scalar) else {
            continue;
        };
        let public = key.compute_public_key().map_err(|_| failed())?;
        let bits = [&[0u8], public.as_ref()].concat();
        let encoded = der::sequence(&[
            der::encode_tagged(0x02, &[1]),
            der::encode_tagged(0x04, &scalar),
            der::encode_tagged(0xA0, &der::encode_tagged(0x06, &P256)),
            der::encode_tagged(0xA1, &der::encode_tagged(0x03, &bits)),
        ]);
        return Ok(der::pem("EC PRIVATE KEY", &encoded));
    }
    Err(failed())
}

fn ed25519(ctx: &Context<'_>) -> String {
    const ED25519: [u8; 3] = [0x2B, 0x65, 0x70];
    let seed = der::encode_tagged(0x04, &random_bytes(ctx, 32));
    let encoded = der::sequence(&[
        der::encode_tagged(0x02, &[0]),
        der::sequence(&[der::encode_tagged(0x06, &ED25519)]),
        der::encode_tagged(0x04, &seed),
    ]);
    der::pem("PRIVATE KEY", &encoded)
}
