//! The little of DER and PEM that private keys need.

use num_bigint::BigUint;
use tiphys_gocompat::base64;

/// A value with its tag and length.
pub(super) fn encode_tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        length @ 0..0x80 => out.push(length as u8),
        length => {
            let bytes = length.to_be_bytes();
            let bytes = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(0)..];
            out.push(0x80 | bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of encoded values.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    encode_tagged(0x30, &parts.concat())
}

/// A number that is not negative.
pub(super) fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    encode_tagged(0x02, &bytes)
}

/// Tag, content and what follows of the value at the start.
pub(super) fn read(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7F);
        let digits = rest.get(..count).filter(|_| count <= 4)?;
        length = digits.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        rest = &rest[count..];
    }
    Some((tag, rest.get(..length)?, &rest[length..]))
}

/// A PEM block.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let encoded = base64::encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// Label and content of the first PEM block.
pub(super) fn read_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let start = text.find("-----BEGIN ")? + "-----BEGIN ".len();
    let (label, body) = text[start..].split_once("-----")?;
    let end = body.find(&format!("-----END {label}-----"))?;
    let mut body = &body[..end];
    // Headers end with an empty line.
    if body.contains(':') {
        body = body.split_once("\n\n")?.1;
    }
    let joined: String = body.split_whitespace().collect();
    Some((label.to_owned(), base64::decode(&joined).ok()?))
}
