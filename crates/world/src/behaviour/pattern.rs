//! How rules say what they are about.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use tiphys_value::ObjectExt;

/// A text in which `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Whether a text is of this form.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let mut parts: Vec<_> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }

    /// Whether an image is of this form, which may end in the colon before a tag: an image without tag has
    /// one, and one that is given by its digest may.
    pub fn matches_image(&self, image: &str) -> bool {
        let (name, digest) = image.split_once('@').unwrap_or((image, ""));
        let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
        let tagged = if has_tag { name.to_owned() } else { format!("{name}:{digest}") };
        self.matches(image) || self.matches(&tagged)
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Anything at all.
impl Default for Pattern {
    fn default() -> Self {
        Self("*".into())
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

/// A length of time, written `5s` or `1m 30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed: jiff::SignedDuration = text
            .parse()
            .map_err(|_| D::Error::custom(format!("{text:?} is no length of time such as 5s")))?;
        let positive = Duration::try_from(parsed)
            .map_err(|_| D::Error::custom("a length of time cannot be negative"))?;
        Ok(Self(positive))
    }
}

/// Some of the pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Pods {
    /// Of these namespaces.
    pub namespace: Pattern,
    /// With these names.
    pub name: Pattern,
    /// With all these labels.
    pub labels: BTreeMap<String, String>,
}

impl Pods {
    /// Whether a pod is one of them.
    pub fn contains(&self, pod: &Value) -> bool {
        self.namespace.matches(pod.namespace())
            && self.name.matches(pod.name())
            && self.labels.iter().all(|(key, value)| pod.label(key) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_meant_with_and_without_tag_and_digest() {
        let operator = Pattern::from("*acme/operator:*");
        for image in [
            "r.io:5000/acme/operator:v1",
            "acme/operator",
            "r.io/acme/operator@sha256:0a",
            "acme/operator:v1@sha256:0a",
        ] {
            assert!(operator.matches_image(image), "{image}");
        }
        for image in ["acme/operator-webhook@sha256:0a", "acme/operator-webhook", "r.io:5000/acme/other"] {
            assert!(!operator.matches_image(image), "{image}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abd", false),
            ("a", "ab", false),
            ("*b*", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("ab*ab", "ab", false),
            ("registry/*:1", "registry/team/app:1", true),
        ] {
            assert_eq!(Pattern::from(pattern).matches(text), matches, "{pattern} {text}");
        }
    }
}
