//! Choosing objects: anchored regular expressions, label and annotation selectors.

use tiphys_gocompat::regex::Regex;

use crate::{
    error::{Error, Result},
    kustomization::model::Selector,
    node::StringMap,
    resid::Gvk,
    resource::Resource,
};

/// A part of a selector.
#[derive(Clone, Debug)]
enum Pattern {
    Any,
    /// Text without anything special in it.
    Literal(String),
    Regex(Regex),
}

impl Pattern {
    fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/')) {
            return Ok(Self::Literal(text.to_owned()));
        }
        let regex = Regex::compile(&format!("^(?:{text})$"));
        regex.map(Self::Regex).map_err(|error| Error::transform(error.to_string()))
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Literal(literal) => literal == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// A [`Selector`] ready to be used.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: Requirements,
    annotations: Requirements,
}

impl Matcher {
    /// Compiles a selector.
    ///
    /// # Errors
    /// Texts that are no regular expression or no label selector.
    pub fn new(selector: &Selector) -> Result<Self> {
        let gvk = &selector.gvk;
        Ok(Self {
            group: Pattern::new(&gvk.group)?,
            version: Pattern::new(&gvk.version)?,
            kind: Pattern::new(&gvk.kind)?,
            name: Pattern::new(&selector.name)?,
            namespace: Pattern::new(&selector.namespace)?,
            labels: Requirements::parse(&selector.label_selector)?,
            annotations: Requirements::parse(&selector.annotation_selector)?,
        })
    }

    /// Whether group, version and kind fit.
    pub fn fits_kind(&self, gvk: &Gvk) -> bool {
        self.group.fits(&gvk.group) && self.version.fits(&gvk.version) && self.kind.fits(&gvk.kind)
    }

    /// Whether an id fits, its namespace as it is written.
    pub fn fits_id(&self, gvk: &Gvk, name: &str, namespace: &str) -> bool {
        self.fits_kind(gvk) && self.name.fits(name) && self.namespace.fits(namespace)
    }

    /// Whether labels and annotations fit.
    pub fn fits_metadata(&self, resource: &Resource) -> bool {
        self.labels.fit(resource, "labels") && self.annotations.fit(resource, "annotations")
    }

    /// Whether there are label or annotation selectors.
    pub fn has_metadata(&self) -> bool {
        !self.labels.0.is_empty() || !self.annotations.0.is_empty()
    }

    /// Whether an object is selected, by its first or its current name and namespace (`Select`).
    pub fn selects(&self, resource: &Resource) -> bool {
        if !self.fits_kind(&resource.gvk()) {
            return false;
        }
        let earlier = resource.earlier.first();
        let name = resource.node.name();
        let first_name = earlier.map_or(name, |earlier| earlier.name.as_str());
        if !self.name.fits(first_name) && !self.name.fits(name) {
            return false;
        }
        let namespace_fits = match &self.namespace {
            Pattern::Any => true,
            pattern => {
                let original = resource.original_id();
                pattern.fits(original.effective_namespace()) || pattern.fits(resource.effective_namespace())
            }
        };
        namespace_fits && self.fits_metadata(resource)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

/// A label selector: `a=b,c in (d,e),!f`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Requirements(Vec<(String, Test)>);

impl Requirements {
    fn parse(text: &str) -> Result<Self> {
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(unparsable(text));
            }
            requirements.push(parse_requirement(part).ok_or_else(|| unparsable(part))?);
        }
        Ok(Self(requirements))
    }

    fn fit(&self, resource: &Resource, field: &str) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let have = resource.node.metadata_map(field);
        self.0.iter().all(|(key, test)| fits(&have, key, test))
    }
}

fn unparsable(text: &str) -> Error {
    Error::transform(format!("unable to parse requirement: {text:?} is no label selector"))
}

fn fits(have: &StringMap, key: &str, test: &Test) -> bool {
    let value = have.get(key);
    let number = || value.and_then(|value| value.parse::<i64>().ok());
    match test {
        Test::Exists => value.is_some(),
        Test::Absent => value.is_none(),
        Test::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
        Test::NotIn(refused) => value.is_none_or(|value| !refused.contains(value)),
        Test::Greater(bound) => number().is_some_and(|number| number > *bound),
        Test::Less(bound) => number().is_some_and(|number| number < *bound),
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(text: &str) -> Option<(String, Test)> {
    if let Some(key) = text.strip_prefix('!') {
        return Some((word(key)?, Test::Absent));
    }
    let one = |value: &str| {
        let value = value.trim();
        (value.is_empty() || word(value).is_some()).then(|| vec![value.to_owned()])
    };
    for (operator, negative) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = text.split_once(operator) {
            let values = one(value)?;
            return Some((word(key)?, if negative { Test::NotIn(values) } else { Test::In(values) }));
        }
    }
    for (operator, greater) in [('>', true), ('<', false)] {
        if let Some((key, value)) = text.split_once(operator) {
            let bound = value.trim().parse().ok()?;
            return Some((word(key)?, if greater { Test::Greater(bound) } else { Test::Less(bound) }));
        }
    }
    if let Some(list) = text.strip_suffix(')') {
        let (head, values) = list.split_once('(')?;
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        return match operator {
            "in" => Some((word(key)?, Test::In(values))),
            "notin" => Some((word(key)?, Test::NotIn(values))),
            _ => None,
        };
    }
    Some((word(text)?, Test::Exists))
}

/// A single label key or value.
fn word(text: &str) -> Option<String> {
    let text = text.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    (!text.is_empty() && text.chars().all(allowed)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)]) -> bool {
        let have = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Requirements::parse(selector).unwrap().0.iter().all(|(key, test)| fits(&have, key, test))
    }

    #[test]
    fn label_selectors() {
        let labels = [("app", "web"), ("tier", "front"), ("n", "5")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web, tier!=back", true),
            ("app in (web, api),tier notin (back)", true),
            ("!missing,app", true),
            ("n>4", true),
            ("n<4", false),
            ("app=api", false),
            ("missing", false),
        ] {
            assert_eq!(check(selector, &labels), expected, "{selector}");
        }
        assert!(Requirements::parse("a b c").is_err());
    }

    #[test]
    fn patterns_are_anchored() {
        assert!(Pattern::new("web").unwrap().fits("web"));
        assert!(!Pattern::new("web").unwrap().fits("web-2"));
        assert!(Pattern::new("web.*|api").unwrap().fits("web-2"));
        assert!(!Pattern::new("a|b").unwrap().fits("ab"));
    }
}
