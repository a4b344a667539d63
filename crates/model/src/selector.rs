//! Label selectors (Kubernetes API reference, "LabelSelector").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which labels are meant; an empty selector means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must have these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<Requirement>,
}

/// One requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// Label.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`; any other is met by nothing.
    pub operator: String,
    /// Values of `In` and `NotIn`.
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Whether labels meet every requirement.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.is_met_by(label(&requirement.key)))
    }

    /// Reads the form of command lines: `a=b,c!=d,e in (f, g),!h,i`.
    ///
    /// # Errors
    /// With the part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let match_expressions =
            parts(text).into_iter().map(requirement).collect::<Result<Vec<_>, String>>()?;
        Ok(Self { match_labels: BTreeMap::new(), match_expressions })
    }
}

impl Requirement {
    fn is_met_by(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.iter().any(|known| known == value));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

/// Splits at commas outside of brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn requirement(part: &str) -> Result<Requirement, String> {
    let fail = || format!("{part:?} is no label selector; write key=value, key!=value, key in (a,b) or key");
    let make = |key: &str, operator: &str, values: Vec<String>| {
        let key = key.trim();
        let sound = !key.is_empty() && !key.contains(char::is_whitespace);
        sound.then(|| Requirement { key: key.into(), operator: operator.into(), values }).ok_or_else(fail)
    };
    if let Some((key, value)) = part.split_once("!=") {
        return make(key, "NotIn", vec![value.trim().to_owned()]);
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return make(key, "In", vec![value.trim().to_owned()]);
    }
    if let Some((head, list)) = part.split_once('(') {
        let list = list.strip_suffix(')').ok_or_else(fail)?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let head = head.trim();
        return match (head.strip_suffix(" notin"), head.strip_suffix(" in")) {
            (Some(key), _) => make(key, "NotIn", values),
            (None, Some(key)) => make(key, "In", values),
            (None, None) => Err(fail()),
        };
    }
    match part.strip_prefix('!') {
        Some(key) => make(key, "DoesNotExist", Vec::new()),
        None => make(part, "Exists", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, labels: &[(&str, &'static str)]) -> bool {
        let selector = LabelSelector::parse(text).unwrap();
        selector.matches(|key| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value))
    }

    #[test]
    fn every_form_of_requirement() {
        let labels = [("team", "red"), ("tier", "web")];
        for text in
            ["", "team=red", "team==red,tier", "team!=blue", "team in (blue, red)", "!old", "old notin (x)"]
        {
            assert!(matches(text, &labels), "{text}");
        }
        for text in ["team=blue", "!team", "team notin (red)", "old", "team!=red", "tier in (db)"] {
            assert!(!matches(text, &labels), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for text in ["team in (a", "a b", "=x", "team of (a)"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
