//! Label selectors (Kubernetes API reference, "LabelSelector").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tiphys_value::label_selector::LabelOperator;

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
}

impl Requirement {
    fn is_met_by(&self, value: Option<&str>) -> bool {
        let values = self.values.iter().map(String::as_str);
        LabelOperator::parse(&self.operator).is_ok_and(|operator| operator.is_met(value, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_to_be_met() {
        let read = |text: &str| serde_json::from_str::<LabelSelector>(text).expect("a selector");
        let label = |key: &str| (key == "team").then_some("red");
        let one = r#"{"matchLabels": {"team": "red"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}"#;
        assert!(read(one).matches(label) && read("{}").matches(label));
        assert!(!read(r#"{"matchLabels": {"team": "blue"}}"#).matches(label));
        assert!(!read(r#"{"matchExpressions": [{"key": "team", "operator": "Is"}]}"#).matches(label));
    }
}
