//! Encodings and checksums.

use super::{add, text};
use crate::{Functions, Type};
use data_encoding::{BASE32, Encoding, HEXLOWER};
use sha2::Digest;
use tiphys_gocompat::{base64, rawstr};

const S: &[Type] = &[Type::String];

pub(super) fn register(f: &mut Functions) {
    add(f, &["b64enc"], S, |_, args| Ok(base64::encode(&rawstr::decode(text(args, 0))).into()));
    add(f, &["b64dec"], S, |_, args| {
        Ok(match base64::decode(text(args, 0)) {
            Ok(bytes) => rawstr::encode_vec(bytes).into(),
            Err(error) => error.to_string().into(),
        })
    });
    add(f, &["b32enc"], S, |_, args| Ok(BASE32.encode(&rawstr::decode(text(args, 0))).into()));
    add(f, &["b32dec"], S, |_, args| Ok(base32_decode(text(args, 0), &BASE32).into()));
    add(f, &["sha1sum"], S, |_, args| Ok(hex::<sha1::Sha1>(text(args, 0)).into()));
    add(f, &["sha256sum"], S, |_, args| Ok(hex::<sha2::Sha256>(text(args, 0)).into()));
    add(f, &["sha512sum"], S, |_, args| Ok(hex::<sha2::Sha512>(text(args, 0)).into()));
    add(f, &["adler32sum"], S, |_, args| Ok(adler32(&rawstr::decode(text(args, 0))).to_string().into()));
}

fn hex<D: Digest>(input: &str) -> String {
    HEXLOWER.encode(&D::digest(rawstr::decode(input)))
}

/// The decoded text, or Go's error text, which the template then prints.
fn base32_decode(input: &str, encoding: &Encoding) -> String {
    let joined = input.replace(['\r', '\n'], "");
    match encoding.decode(joined.as_bytes()) {
        Ok(bytes) => rawstr::encode_vec(bytes),
        Err(error) => format!("illegal base32 data at input byte {}", error.position),
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % MODULUS;
        b = (b + a) % MODULUS;
    }
    b << 16 | a
}
