//! Versions.

use crate::strconv::quote;
use std::cmp::Ordering;
use std::fmt;

/// Longest version text, in bytes.
const MAX_LENGTH: usize = 256;

/// Why a text is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// It has not the form of a version.
    #[error("invalid semantic version")]
    Invalid,
    /// A strictly read version is empty.
    #[error("version string empty")]
    Empty,
    /// Longer than 256 bytes.
    #[error("version string is too long (max 256 bytes)")]
    TooLong,
    /// A number has other characters than digits.
    #[error("invalid characters in version")]
    Characters,
    /// A number starts with a zero.
    #[error("version segment starts with 0")]
    LeadingZero,
    /// The part after the plus is malformed.
    #[error("invalid metadata string")]
    Metadata,
    /// The part after the minus is malformed.
    #[error("invalid prerelease string")]
    Prerelease,
    /// A number does not fit 64 bits.
    #[error("error parsing version segment: strconv.ParseUint: parsing {}: value out of range", quote(.0))]
    Range(String),
}

/// A version. Comparison follows SemVer 2 and ignores the metadata.
#[derive(Clone, Debug)]
pub struct Version {
    /// First number.
    pub major: u64,
    /// Second number; 0 if missing.
    pub minor: u64,
    /// Third number; 0 if missing.
    pub patch: u64,
    /// What follows the minus, or empty.
    pub prerelease: String,
    /// What follows the plus, or empty.
    pub metadata: String,
    /// The text it was read from.
    pub original: String,
}

impl Version {
    /// Reads a version leniently: a `v` in front, missing numbers and leading zeros are fine.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.len() > MAX_LENGTH {
            return Err(VersionError::TooLong);
        }
        let body = text.strip_prefix('v').unwrap_or(text);
        let (numbers, prerelease, metadata) = split(body).ok_or(VersionError::Invalid)?;
        let mut parsed = [0u64; 3];
        for (at, number) in numbers.split('.').enumerate() {
            let slot = parsed.get_mut(at).ok_or(VersionError::Invalid)?;
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(VersionError::Invalid);
            }
            *slot = number.parse().map_err(|_| VersionError::Range(number.to_owned()))?;
        }
        for part in [prerelease, metadata].into_iter().flatten() {
            if !part.split('.').all(|piece| !piece.is_empty() && piece.bytes().all(is_allowed)) {
                return Err(VersionError::Invalid);
            }
        }
        let prerelease = prerelease.unwrap_or_default();
        check_leading_zeros(prerelease)?;
        let [major, minor, patch] = parsed;
        Ok(Self {
            major,
            minor,
            patch,
            prerelease: prerelease.to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// Reads a version by the letter of SemVer 2.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub fn parse_strict(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Err(VersionError::Empty);
        }
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        if text.splitn(3, '.').count() != 3 {
            return Err(VersionError::Invalid);
        }
        for number in numbers.split('.') {
            if !number.bytes().all(|byte| byte.is_ascii_digit()) || number.is_empty() {
                return Err(VersionError::Characters);
            }
            if number.len() > 1 && number.starts_with('0') {
                return Err(VersionError::LeadingZero);
            }
        }
        if numbers.split('.').count() != 3 {
            return Err(VersionError::Invalid);
        }
        Self::parse(text)
    }

    /// The version with one number raised, as `IncMajor`, `IncMinor` and `IncPatch` do it.
    ///
    /// `part` is 0 for the major, 1 for the minor, 2 for the patch number. A pre-release becomes its release
    /// when the patch number is raised.
    pub fn increment(&self, part: usize) -> Self {
        let mut next = self.clone();
        match part {
            0 => (next.major, next.minor, next.patch) = (self.major.saturating_add(1), 0, 0),
            1 => (next.minor, next.patch) = (self.minor.saturating_add(1), 0),
            _ if self.prerelease.is_empty() => next.patch = self.patch.saturating_add(1),
            _ => {}
        }
        next.prerelease.clear();
        next.metadata.clear();
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{prefix}{next}");
        next
    }
}

/// Numbers, pre-release and metadata.
fn split(body: &str) -> Option<(&str, Option<&str>, Option<&str>)> {
    let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
    let (numbers, rest) = body.split_at(end);
    let (prerelease, rest) = match rest.strip_prefix('-') {
        Some(rest) => {
            let end = rest.find('+').unwrap_or(rest.len());
            (Some(&rest[..end]), &rest[end..])
        }
        None => (None, rest),
    };
    match rest.strip_prefix('+') {
        Some(metadata) => Some((numbers, prerelease, Some(metadata))),
        None if rest.is_empty() => Some((numbers, prerelease, None)),
        None => None,
    }
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn check_leading_zeros(prerelease: &str) -> Result<(), VersionError> {
    let bad = |part: &str| {
        part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if prerelease.split('.').any(bad) { Err(VersionError::LeadingZero) } else { Ok(()) }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prerelease(&self.prerelease, &other.prerelease))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

/// A release is above its pre-releases; numbers are below words.
pub(super) fn compare_prerelease(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        _ => {}
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}
