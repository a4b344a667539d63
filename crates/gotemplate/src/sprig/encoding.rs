//! Encodings and checksums.

use super::{add, text};
use crate::{Functions, Type};
use data_encoding::{BASE32, HEXLOWER};
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
    add(f, &["b32dec"], S, |_, args| Ok(base32_decode(text(args, 0)).into()));
    add(f, &["sha1sum"], S, |_, args| Ok(hex::<sha1::Sha1>(text(args, 0)).into()));
    add(f, &["sha256sum"], S, |_, args| Ok(hex::<sha2::Sha256>(text(args, 0)).into()));
    add(f, &["sha512sum"], S, |_, args| Ok(hex::<sha2::Sha512>(text(args, 0)).into()));
    add(f, &["adler32sum"], S, |_, args| Ok(adler32(&rawstr::decode(text(args, 0))).to_string().into()));
}

fn hex<D: Digest>(input: &str) -> String {
    HEXLOWER.encode(&D::digest(rawstr::decode(input)))
}

/// The decoded text, or Go's error text, which the template then prints.
fn base32_decode(input: &str) -> String {
    let joined = rawstr::decode(input);
    let bytes: Vec<u8> = joined.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    match base32_bytes(&bytes) {
        Ok(decoded) => rawstr::encode_vec(decoded),
        Err(at) => format!("illegal base32 data at input byte {at}"),
    }
}

/// The decoded bytes, or where the input is wrong.
fn base32_bytes(bytes: &[u8]) -> Result<Vec<u8>, usize> {
    const GROUP: usize = 8;
    let mut out = Vec::with_capacity(bytes.len() / GROUP * 5);
    for (number, group) in bytes.chunks(GROUP).enumerate() {
        let start = number * GROUP;
        let (mut bits, mut digits) = (0u64, 0);
        for (at, byte) in group.iter().enumerate() {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'2'..=b'7' => byte - b'2' + 26,
                // Padding fills the last group, which holds a whole number of bytes.
                b'=' if at >= 2
                    && start + GROUP == bytes.len()
                    && group[at..].iter().all(|byte| *byte == b'=') =>
                {
                    break;
                }
                _ => return Err(start + at),
            };
            bits = bits << 5 | u64::from(digit);
            digits += 1;
        }
        if digits < GROUP && group.len() < GROUP {
            return Err(start);
        }
        if matches!(digits, 1 | 3 | 6) {
            return Err(start + digits);
        }
        let count = digits * 5 / 8;
        let bits = bits << (64 - digits * 5);
        out.extend_from_slice(&bits.to_be_bytes()[..count]);
    }
    Ok(out)
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
