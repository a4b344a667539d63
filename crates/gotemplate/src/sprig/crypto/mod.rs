//! Passwords, keys, certificates and ciphers.

mod cert;
mod der;
mod keys;
mod passwords;
mod primes;

use crate::{Context, Functions};

pub(super) fn register(functions: &mut Functions) {
    passwords::register(functions);
    keys::register(functions);
    cert::register(functions);
}

/// So many random bytes.
fn random_bytes(ctx: &Context<'_>, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    ctx.random(&mut bytes);
    bytes
}
