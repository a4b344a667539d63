//! Paths of the tables: `.status.phase`, `.status.parents[].conditions`, `.status.racks.*.members`,
//! `.metadata.labels.a\.b/c`.

use serde_json::Value;

/// A path; `[]` after a key means every item of the list that stands there, `*` every value of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    steps: Vec<Step>,
    text: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Items,
    Values,
}

impl Path {
    /// Reads a path.
    pub(super) fn parse(text: &'static str) -> Result<Self, String> {
        let rest = text.strip_prefix('.').ok_or_else(|| format!("{text} is no path"))?;
        let mut steps = Vec::new();
        // A dot within a key is written `\.`; no key holds a zero byte.
        for part in rest.replace("\\.", "\0").split('.') {
            let (key, items) = part.strip_suffix("[]").map_or((part, false), |key| (key, true));
            if key.is_empty() {
                return Err(format!("{text} is no path"));
            }
            steps.push(match key {
                "*" => Step::Values,
                key => Step::Key(key.replace('\0', ".")),
            });
            steps.extend(items.then_some(Step::Items));
        }
        Ok(Self { steps, text })
    }

    /// Every value that stands there; none if nothing does.
    pub(super) fn values<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.steps {
            found = match step {
                Step::Key(key) => found.into_iter().filter_map(|value| value.get(key)).collect(),
                Step::Values => {
                    found.into_iter().filter_map(Value::as_object).flat_map(|map| map.values()).collect()
                }
                Step::Items => found.into_iter().filter_map(Value::as_array).flatten().collect(),
            };
        }
        found
    }

    /// Whether something stands there that is not empty.
    pub(super) fn is_set(&self, object: &Value) -> bool {
        self.values(object).into_iter().any(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        })
    }

    /// The number that stands there, of several their sum; of a text such as `2/3` the first one.
    pub(super) fn number(&self, object: &Value) -> Option<f64> {
        let number =
            |value: &Value| value.as_f64().or_else(|| value.as_str()?.split('/').next()?.parse().ok());
        self.values(object).into_iter().filter_map(number).reduce(|sum, number| sum + number)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)
    }
}

/// A scalar as text.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
