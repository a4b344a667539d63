//! Paths to a field inside an object, in the spelling that people use:
//! `.spec.template.spec.containers[0].image`.

use std::{borrow::Cow, fmt, str::FromStr};

use serde_json::Value;

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A key of an object.
    Key(String),
    /// A position in an array, from 0.
    Index(usize),
}

/// A path from the root of an object to one of its nodes; empty at the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(pub Vec<Segment>);

/// Why a text is no field path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read field path {text:?} at byte {at}: {reason}")]
pub struct ParseFieldPathError {
    text: String,
    at: usize,
    reason: &'static str,
}

/// A key as a step of a JSON pointer (RFC 6901, section 3).
pub fn pointer_step(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}

impl FieldPath {
    /// The path one key deeper.
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.join(Segment::Key(key.into()))
    }

    /// The path one array position deeper.
    pub fn index(&self, index: usize) -> Self {
        self.join(Segment::Index(index))
    }

    /// The path without its last step, or `None` at the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        Some(Self(rest.to_vec()))
    }

    /// The node of `root` that this path leads to.
    pub fn get<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, segment| match segment {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.get(index),
        })
    }

    /// Whether `self` is `other` or lies below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The paths of all scalars of a value, and of its empty maps and lists, in their order.
    pub fn leaves(root: &Value) -> Vec<Self> {
        fn walk(value: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
            match value {
                Value::Object(map) if !map.is_empty() => {
                    map.iter().for_each(|(key, value)| walk(value, &path.key(key), found));
                }
                Value::Array(items) if !items.is_empty() => {
                    items
                        .iter()
                        .enumerate()
                        .for_each(|(index, value)| walk(value, &path.index(index), found));
                }
                _ => found.push(path.clone()),
            }
        }
        let mut found = Vec::new();
        walk(root, &Self::default(), &mut found);
        found
    }

    fn join(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

/// Whether a key can be printed after a dot without brackets and quotes.
fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

/// `.spec.ports[0].name`; keys with other characters are bracketed and quoted as JSON:
/// `.metadata.annotations["a.b/c"]`. The root prints as `.`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for segment in &self.0 {
            match segment {
                Segment::Key(key) if is_plain(key) => write!(f, ".{key}")?,
                Segment::Key(key) => write!(f, "[{}]", Value::from(key.as_str()))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl FromStr for FieldPath {
    type Err = ParseFieldPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |at, reason| ParseFieldPathError { text: text.to_owned(), at, reason };
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            if let Some(inner) = rest.strip_prefix('[') {
                let (segment, after) =
                    bracketed(inner).ok_or_else(|| fail(at, "expected [number] or [\"key\"]"))?;
                segments.push(segment);
                rest = after;
                continue;
            }
            let body = rest.strip_prefix('.').unwrap_or(rest);
            let end = body.find(['.', '[']).unwrap_or(body.len());
            match (end, at) {
                (0, 0) if body.starts_with('[') || body.is_empty() => {}
                (0, _) => return Err(fail(at, "expected a key after the dot")),
                _ => segments.push(Segment::Key(body[..end].to_owned())),
            }
            rest = &body[end..];
        }
        Ok(Self(segments))
    }
}

/// Reads what follows an opening bracket; returns the step and the text after the closing bracket.
fn bracketed(inner: &str) -> Option<(Segment, &str)> {
    if inner.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(inner).into_iter::<String>();
        let key = stream.next()?.ok()?;
        let after = inner[stream.byte_offset()..].strip_prefix(']')?;
        return Some((Segment::Key(key), after));
    }
    let (number, after) = inner.split_once(']')?;
    Some((Segment::Index(number.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back() {
        let path = FieldPath::default().key("metadata").key("annotations").key("a.b/c").index(2).key("x");
        assert_eq!(path.to_string(), r#".metadata.annotations["a.b/c"][2].x"#);
        assert_eq!(path.to_string().parse(), Ok(path));
    }

    #[test]
    fn reads_what_people_type() {
        let expected = FieldPath::default().key("spec").key("containers").index(0).key("image");
        for text in [".spec.containers[0].image", "spec.containers[0].image"] {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
        }
        assert_eq!(".".parse(), Ok(FieldPath::default()));
    }

    #[test]
    fn refuses_what_is_no_path() {
        for text in ["a..b", "a[", "a[x]", "a[\"b]", "a."] {
            assert!(text.parse::<FieldPath>().is_err(), "{text}");
        }
    }
}
