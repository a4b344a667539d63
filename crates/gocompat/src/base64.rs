//! Standard base64, with the error positions of Go's decoder.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The byte at which decoding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub struct DecodeError(pub usize);

/// Encodes with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            if digit <= chunk.len() {
                out.push(char::from(DIGITS[(group >> (18 - 6 * digit) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Decodes; line breaks are skipped, padding is required.
///
/// # Errors
/// Where the input is no base64.
pub fn decode(text: &str) -> Result<Vec<u8>, DecodeError> {
    let bytes = crate::rawstr::decode(text);
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let mut at = 0;
    loop {
        let (mut group, mut count) = (0u32, 0);
        while count < 4 {
            let Some(&byte) = bytes.get(at) else {
                return if count == 0 { Ok(out) } else { Err(DecodeError(at - count)) };
            };
            at += 1;
            if matches!(byte, b'\r' | b'\n') {
                continue;
            }
            match digit(byte) {
                Some(value) => group = group << 6 | value,
                None if byte == b'=' => return finish(&bytes, at, group, count, out),
                None => return Err(DecodeError(at - 1)),
            }
            count += 1;
        }
        out.extend_from_slice(&group.to_be_bytes()[1..]);
    }
}

/// The last group, whose first padding character was just read.
fn finish(
    bytes: &[u8],
    mut at: usize,
    group: u32,
    count: usize,
    mut out: Vec<u8>,
) -> Result<Vec<u8>, DecodeError> {
    let skip = |at: &mut usize| {
        while matches!(bytes.get(*at), Some(b'\r' | b'\n')) {
            *at += 1;
        }
    };
    match count {
        0 | 1 => return Err(DecodeError(at - 1)),
        2 => {
            skip(&mut at);
            match bytes.get(at) {
                None => return Err(DecodeError(bytes.len())),
                Some(b'=') => at += 1,
                Some(_) => return Err(DecodeError(at - 1)),
            }
            out.push((group >> 4) as u8);
        }
        _ => out.extend_from_slice(&[(group >> 10) as u8, (group >> 2) as u8]),
    }
    skip(&mut at);
    if at < bytes.len() { Err(DecodeError(at)) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for bytes in [&b""[..], b"f", b"fo", b"foo", b"foob", &[0, 255, 128]] {
            assert_eq!(decode(&encode(bytes)).as_deref(), Ok(bytes));
        }
        assert_eq!(decode("Zm9v\nYg==").as_deref(), Ok(&b"foob"[..]));
        assert_eq!(decode("Zm9*"), Err(DecodeError(3)));
        assert_eq!(decode("Zg="), Err(DecodeError(3)));
    }
}
