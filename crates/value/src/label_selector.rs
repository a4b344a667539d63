//! Label selectors as objects carry them: `matchLabels` and `matchExpressions` (Kubernetes API reference,
//! "LabelSelector"). What is selected is asked for its labels, so that nothing is made to find out.

use serde_json::Value;

/// How a requirement compares a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelOperator {
    /// The label is there and has one of the values.
    In,
    /// The label is missing or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is a whole number greater than the value. Node selectors and texts alone have it.
    Gt,
    /// The label is a whole number less than the value. Node selectors and texts alone have it.
    Lt,
}

/// An operator that no selector has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid label selector operator")]
pub struct UnknownOperator(pub String);

impl LabelOperator {
    /// Reads the `operator` of an expression.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn parse(text: &str) -> Result<Self, UnknownOperator> {
        Ok(match text {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            other => return Err(UnknownOperator(other.to_owned())),
        })
    }

    /// Whether a label, `None` if it is missing, meets it with these values.
    pub fn is_met<'v>(self, label: Option<&str>, values: impl IntoIterator<Item = &'v str>) -> bool {
        let mut values = values.into_iter();
        let number = |text: &str| text.parse::<i64>().ok();
        match self {
            Self::In => label.is_some_and(|label| values.any(|value| value == label)),
            Self::NotIn => label.is_none_or(|label| values.all(|value| value != label)),
            Self::Exists => label.is_some(),
            Self::DoesNotExist => label.is_none(),
            Self::Gt | Self::Lt => match (label.and_then(number), values.next().and_then(number)) {
                (Some(label), Some(bound)) if self == Self::Gt => label > bound,
                (Some(label), Some(bound)) => label < bound,
                _ => false,
            },
        }
    }
}

/// Whether a selector selects what has these labels. One without requirements selects everything.
///
/// # Errors
/// A requirement that is asked for has an unknown operator.
pub fn selects<L: AsRef<str>>(
    selector: &Value,
    label: impl Fn(&str) -> Option<L>,
) -> Result<bool, UnknownOperator> {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let has = |(key, value): (&String, &Value)| {
        label(key).is_some_and(|label| value.as_str() == Some(label.as_ref()))
    };
    if !labels.into_iter().flatten().all(has) {
        return Ok(false);
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        if !meets(expression, &label)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether what has these labels meets one expression (`key`, `operator`, `values`), of a label selector or of
/// a node selector.
///
/// # Errors
/// The operator is unknown.
pub fn meets<L: AsRef<str>>(
    expression: &Value,
    label: impl Fn(&str) -> Option<L>,
) -> Result<bool, UnknownOperator> {
    let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let operator = LabelOperator::parse(text("operator"))?;
    let values = expression.get("values").and_then(Value::as_array);
    let values = values.into_iter().flatten().filter_map(Value::as_str);
    Ok(operator.is_met(label(text("key")).as_ref().map(AsRef::as_ref), values))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_expressions_must_all_hold() {
        let label = |key: &str| [("app", "web"), ("n", "5")].into_iter().find(|(name, _)| *name == key);
        let selects_it = |selector: Value| selects(&selector, |key| label(key).map(|(_, value)| value));
        let by = |key: &str, operator: &str, values: &[&str]| {
            selects_it(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        assert_eq!(selects_it(json!({})), Ok(true));
        assert_eq!(selects_it(json!({"matchLabels": {"app": "web"}})), Ok(true));
        assert_eq!(selects_it(json!({"matchLabels": {"app": "web", "tier": "x"}})), Ok(false));
        assert_eq!((by("app", "In", &["api", "web"]), by("tier", "In", &["x"])), (Ok(true), Ok(false)));
        assert_eq!((by("app", "NotIn", &["web"]), by("tier", "NotIn", &["x"])), (Ok(false), Ok(true)));
        assert_eq!((by("app", "Exists", &[]), by("app", "DoesNotExist", &[])), (Ok(true), Ok(false)));
        assert_eq!(
            (by("n", "Gt", &["4"]), by("n", "Lt", &["4"]), by("app", "Gt", &["4"])),
            (Ok(true), Ok(false), Ok(false))
        );
        assert_eq!(by("app", "Is", &["web"]), Err(UnknownOperator("Is".into())));
    }
}
