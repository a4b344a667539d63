//! What fields of an object ask of each other. Definitions say it in CEL or as alternatives; the tables have
//! it as lines, which are judged here.
//!
//! | line | what has to hold |
//! |---|---|
//! | `? one a b` | exactly one of the fields is there |
//! | `? most a b`, `? some a b` | at most one, at least one is there |
//! | `? oneOf a,b c -` | the fields of exactly one of these sets are there, `-` if none of them may be |
//! | `? anyOf a,b c` | the fields of at least one set are there |
//! | `? if a type=X -> b !c type2!=Y\|Z` | where all conditions before the arrow hold, one behind it does |
//!
//! `a=X|Y` holds for these values, `a=` for what is empty. A condition on a field that is not there, other
//! than whether it is there, can be neither: then the line says nothing.

use std::collections::BTreeMap;

use tiphys_schema::{FieldError, Path};
use tiphys_value::Value;

/// How deep objects are followed.
const MAX_DEPTH: usize = 100;

/// The rules of an object and of what is in it.
#[derive(Default)]
pub(crate) struct FieldRules {
    /// Those of the object itself.
    pub(super) here: Vec<FieldRule>,
    fields: BTreeMap<&'static str, FieldRules>,
    /// Those of all items of a list, or all values of a map.
    items: Option<Box<FieldRules>>,
}

/// One line.
pub(super) enum FieldRule {
    /// The fields of which so many are there.
    Count(Count, Vec<&'static str>),
    /// Sets of fields, of which exactly one or at least one is there.
    Alternatives { is_one: bool, sets: Vec<Vec<&'static str>> },
    /// Conditions, of which one behind the arrow holds if all before it do.
    Implies { when: Vec<Condition>, then: Vec<Condition> },
}

/// How many fields are there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Most,
    Some,
}

/// A condition on one field.
pub(super) struct Condition {
    path: &'static str,
    /// One of these values; `None` if it is about being there.
    values: Option<Vec<&'static str>>,
    holds: bool,
}

impl FieldRules {
    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.fields.is_empty() && self.items.is_none()
    }

    /// Adds the rules of a field.
    pub(super) fn add_field(&mut self, name: &'static str, rules: Self) {
        if !rules.is_empty() {
            self.fields.insert(name, rules);
        }
    }

    /// Rules for each item of a list.
    pub(super) fn of_items(rules: Self) -> Self {
        let items = (!rules.is_empty()).then(|| Box::new(rules));
        Self { items, ..Self::default() }
    }

    /// The faults of an object that has its defaults.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.validate_at(object, &Path::root(), &mut errors, 0);
        errors
    }

    fn validate_at(&self, value: &Value, path: &Path, errors: &mut Vec<FieldError>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(fields) => {
                errors.extend(self.here.iter().filter_map(|rule| rule.fault(value, path)));
                for (name, inner) in fields {
                    if let Some(rules) = self.fields.get(name.as_str()) {
                        rules.validate_at(inner, &path.child(name), errors, depth + 1);
                    } else if let Some(items) = &self.items {
                        items.validate_at(inner, &path.child(name), errors, depth + 1);
                    }
                }
            }
            Value::Array(list) => {
                let Some(items) = &self.items else { return };
                for (at, item) in list.iter().enumerate() {
                    items.validate_at(item, &path.index(at), errors, depth + 1);
                }
            }
            _ => {}
        }
    }
}

impl FieldRule {
    /// Reads a line behind its `?`.
    pub(super) fn read(line: &'static str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let words = || rest.split(' ').filter(|word| !word.is_empty());
        let count = |count: Count| Some(Self::Count(count, words().collect()));
        match word {
            "one" => count(Count::One),
            "most" => count(Count::Most),
            "some" => count(Count::Some),
            "oneOf" | "anyOf" => {
                let set = |word: &'static str| word.split(',').filter(|name| *name != "-").collect();
                Some(Self::Alternatives { is_one: word == "oneOf", sets: words().map(set).collect() })
            }
            "if" => {
                let (when, then) = rest.split_once("->")?;
                let read = |text: &'static str| {
                    text.split(' ').filter(|word| !word.is_empty()).map(Condition::read).collect()
                };
                Some(Self::Implies { when: read(when), then: read(then) })
            }
            _ => None,
        }
    }

    /// What is wrong with an object.
    fn fault(&self, object: &Value, path: &Path) -> Option<FieldError> {
        let refuse = |detail: String| Some(FieldError::invalid(path, "object", detail));
        match self {
            Self::Count(count, names) => {
                let present = names.iter().filter(|name| is_present(object, name) == Some(true)).count();
                let words = match count {
                    Count::One if present != 1 => "exactly one of the fields in",
                    Count::Most if present > 1 => "at most one of the fields in",
                    Count::Some if present == 0 => "at least one of the fields in",
                    _ => return None,
                };
                match names.as_slice() {
                    [one] => refuse(format!("{one} must be set")),
                    _ => refuse(format!("{words} [{}] must be set", names.join(" "))),
                }
            }
            Self::Alternatives { is_one, sets } => {
                let has_all =
                    |set: &&Vec<&str>| set.iter().all(|name| is_present(object, name) == Some(true));
                let named = sets.iter().filter(|set| !set.is_empty());
                let mut holding = named.clone().filter(has_all).count();
                let has_none = named.clone().filter(has_all).count() == 0;
                holding += usize::from(has_none && sets.iter().any(Vec::is_empty));
                let what = match (*is_one, holding) {
                    (true, 0) => "must validate one and only one schema (oneOf). Found none valid".to_owned(),
                    (true, 2..) => format!(
                        "must validate one and only one schema (oneOf). Found {holding} valid alternatives"
                    ),
                    (false, 0) => "must validate at least one schema (anyOf)".to_owned(),
                    _ => return None,
                };
                let shown: Vec<String> = named.map(|set| set.join(" and ")).collect();
                refuse(format!("\"{path}\" {what}: of {}", shown.join(", or ")))
            }
            Self::Implies { when, then } => {
                let all = when.iter().all(|condition| condition.is_met(object) == Some(true));
                let none = then.iter().all(|condition| condition.is_met(object) == Some(false));
                if !all || !none {
                    return None;
                }
                let texts = |conditions: &[Condition], with: &str| {
                    conditions.iter().map(|it| it.words(with)).collect::<Vec<_>>()
                };
                let then = texts(then, "must be").join(", or ");
                match when.is_empty() {
                    true => refuse(then),
                    false => refuse(format!("{then} when {}", texts(when, "is").join(" and "))),
                }
            }
        }
    }
}

impl Condition {
    fn read(word: &'static str) -> Self {
        let Some((path, values)) = word.split_once('=') else {
            let path = word.trim_start_matches('!');
            return Self { path, values: None, holds: path == word };
        };
        let known = path.trim_end_matches('!');
        Self { path: known, values: Some(values.split('|').collect()), holds: known == path }
    }

    /// Whether it is met; `None` if that cannot be told.
    fn is_met(&self, object: &Value) -> Option<bool> {
        let Some(values) = &self.values else {
            return is_present(object, self.path).map(|present| present == self.holds);
        };
        let value = self.path.split('.').try_fold(object, |value, name| value.get(name))?;
        let is_one = |wanted: &str| match value {
            Value::String(text) => text == wanted,
            Value::Number(number) => number.to_string() == wanted,
            Value::Bool(value) => wanted == if *value { "true" } else { "false" },
            Value::Array(items) => items.is_empty() && wanted.is_empty(),
            Value::Object(fields) => fields.is_empty() && wanted.is_empty(),
            Value::Null => false,
        };
        (!value.is_null()).then(|| values.iter().any(|wanted| is_one(wanted)) == self.holds)
    }

    fn words(&self, verb: &str) -> String {
        let (path, not) = (self.path, if self.holds { "" } else { "not " });
        match &self.values {
            None => format!("{path} {verb} {not}set"),
            Some(values) if values == &[""] => format!("{path} {verb} {not}empty"),
            Some(values) => format!("{path} {verb} {not}{}", values.join(" or ")),
        }
    }
}

/// Whether a field is there; `None` if what it would be in is not.
fn is_present(object: &Value, path: &str) -> Option<bool> {
    let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut steps = above.split('.').filter(|step| !step.is_empty());
    let parent = steps.try_fold(object, |value, name| value.get(name))?;
    Some(parent.get(name).is_some_and(|value| !value.is_null()))
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    fn detail_of(line: &'static str, object: Value) -> Option<String> {
        let rules = FieldRules { here: FieldRule::read(line).into_iter().collect(), ..FieldRules::default() };
        rules.validate(&object).first().map(|error| error.detail.clone())
    }

    #[test]
    fn counts_are_of_what_is_there() {
        let exactly = "exactly one of the fields in [file text] must be set";
        assert_eq!(detail_of("one file text", json!({})).as_deref(), Some(exactly));
        assert_eq!(detail_of("one file text", json!({"file": "a", "text": "b"})).as_deref(), Some(exactly));
        assert_eq!(detail_of("one file text", json!({"file": "a", "text": null})), None);
        assert_eq!(detail_of("most file text", json!({})), None);
        assert_eq!(detail_of("some file", json!({})).as_deref(), Some("file must be set"));
    }

    #[test]
    fn alternatives_are_sets_of_fields() {
        let line = "oneOf key,secret file -";
        assert_eq!(detail_of(line, json!({})), None);
        assert_eq!(detail_of(line, json!({"key": 1})), None, "half of a set is none of it");
        assert_eq!(detail_of(line, json!({"file": 1})), None);
        let both = detail_of(line, json!({"file": 1, "key": 1, "secret": 2})).unwrap_or_default();
        assert!(both.contains("Found 2 valid alternatives"), "{both}");
        assert!(detail_of("anyOf key,secret file", json!({"key": 1})).is_some());
    }

    #[test]
    fn conditions_on_what_is_not_there_say_nothing() {
        let line = "if type=File -> file";
        assert_eq!(
            detail_of(line, json!({"type": "File"})).as_deref(),
            Some("file must be set when type is File")
        );
        assert_eq!(detail_of(line, json!({})), None);
        assert_eq!(detail_of(line, json!({"type": "Text"})), None);
        let kind = "if ref.kind= -> ref.group=";
        assert_eq!(
            detail_of(kind, json!({"ref": {"kind": "", "group": "apps"}})).as_deref(),
            Some("ref.group must be empty when ref.kind is empty")
        );
        assert_eq!(detail_of(kind, json!({"ref": {"kind": ""}})), None);
        assert_eq!(
            detail_of("if -> type!=File", json!({"type": "File"})).as_deref(),
            Some("type must be not File")
        );
    }
}
