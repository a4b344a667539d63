//! The parts of an X.509 certificate that tell whether it is trusted: names and times. Reads DER, checks
//! nothing.

use base64::Engine as _;
use jiff::{Timestamp, civil};
use tiphys_value::{ObjectExt as _, Value};

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
    /// The issuer's and the subject's name, as they are encoded.
    pub(crate) issuer: Vec<u8>,
    pub(crate) subject: Vec<u8>,
}

/// One element of DER: its tag and its content.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// Takes the first element off some bytes.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<Element<'a>> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 || rest.len() < count {
            return None;
        }
        length = rest[..count].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        rest = &rest[count..];
    }
    let content = rest.get(..length)?;
    *bytes = &rest[length..];
    Some(Element { tag, content })
}

/// `UTCTime` or `GeneralizedTime`.
fn moment(element: &Element<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(element.content).ok()?;
    let digits: Vec<i16> =
        text.bytes().take_while(u8::is_ascii_digit).map(|byte| i16::from(byte - b'0')).collect();
    let (year, rest) = match element.tag {
        0x17 if digits.len() >= 10 => {
            let year = digits[0] * 10 + digits[1];
            (if year >= 50 { 1900 + year } else { 2000 + year }, &digits[2..])
        }
        0x18 if digits.len() >= 12 => {
            (digits[..4].iter().fold(0, |year, digit| year * 10 + digit), &digits[4..])
        }
        _ => return None,
    };
    let pair = |at: usize| -> Option<i8> {
        let value = rest.get(at * 2)? * 10 + rest.get(at * 2 + 1)?;
        i8::try_from(value).ok()
    };
    let (month, day, hour, minute) = (pair(0)?, pair(1)?, pair(2)?, pair(3)?);
    let second = pair(4).unwrap_or(0);
    let at = civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// The common name in an encoded name; the last part of it if there is none.
fn common_name(mut name: &[u8]) -> String {
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    let mut last = String::new();
    while let Some(set) = take(&mut name) {
        let mut set = set.content;
        let Some(pair) = take(&mut set) else { continue };
        let mut pair = pair.content;
        let (Some(key), Some(value)) = (take(&mut pair), take(&mut pair)) else { continue };
        let text = String::from_utf8_lossy(value.content);
        last = text.chars().filter(|c| !c.is_control()).take(100).collect();
        if key.content == COMMON_NAME {
            return last;
        }
    }
    last
}

impl Certificate {
    /// Reads a certificate in DER.
    pub(crate) fn from_der(mut bytes: &[u8]) -> Option<Self> {
        let mut whole = take(&mut bytes)?.content;
        let mut body = take(&mut whole)?.content;
        let mut element = take(&mut body)?;
        if element.tag == 0xa0 {
            element = take(&mut body)?;
        }
        // The element is the serial number; the algorithm follows.
        if element.tag != 0x02 {
            return None;
        }
        take(&mut body)?;
        let issuer = take(&mut body)?.content.to_vec();
        let mut validity = take(&mut body)?.content;
        let not_before = moment(&take(&mut validity)?)?;
        let not_after = moment(&take(&mut validity)?)?;
        let subject = take(&mut body)?.content.to_vec();
        Some(Self { not_before, not_after, issuer, subject })
    }

    /// The common name of who signed it.
    pub(crate) fn issuer_name(&self) -> String {
        common_name(&self.issuer)
    }

    /// The common name of whom it is for.
    pub(crate) fn subject_name(&self) -> String {
        common_name(&self.subject)
    }

    /// Reads every certificate of a text in PEM.
    pub(crate) fn all_from_pem(text: &str) -> Vec<Self> {
        let blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1);
        let bodies = blocks.filter_map(|block| block.split("-----END CERTIFICATE-----").next());
        let ders = bodies.filter_map(|body| {
            let body: String = body.split_whitespace().collect();
            base64::engine::general_purpose::STANDARD.decode(body).ok()
        });
        ders.filter_map(|der| Self::from_der(&der)).collect()
    }

    /// Reads the certificates of a field in base64 over PEM, as `caBundle` and Secrets hold them.
    pub(crate) fn all_from_base64(text: &str) -> Vec<Self> {
        let text: String = text.split_whitespace().collect();
        let decoded = base64::engine::general_purpose::STANDARD.decode(text);
        decoded.map(|pem| Self::all_from_pem(&String::from_utf8_lossy(&pem))).unwrap_or_default()
    }

    /// The certificates of a TLS Secret under a key.
    pub(crate) fn all_of_secret(secret: &Value, key: &str) -> Vec<Self> {
        let data = secret.str_at(&["data", key]).map(Self::all_from_base64);
        let plain = secret.str_at(&["stringData", key]).map(Self::all_from_pem);
        data.or(plain).unwrap_or_default()
    }
}
