//! The tests of a rule.

use serde_json::Value;
use tiphys_value::ObjectExt;

use super::path::{Path, text};
use crate::conditions::Condition;

/// Where conditions stand unless a test says otherwise.
const CONDITIONS: &str = ".status.conditions";
/// Stands for the status of a condition that speaks of an older generation.
const OUTDATED: &str = "outdated";
/// Stands for the status of a condition that a list of conditions does not have.
const ABSENT: &str = "absent";

/// One test of an object.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// `Ready=False|Unknown(Pending,Failed)`, `Ready=False(!Pending)`, `Ready`, and any of these with
    /// `in .path`: a condition of this type (`*` is any type) with one of these statuses and one, or with
    /// `!` none, of these reasons. One that speaks of an older generation does not count, but for
    /// `Ready=outdated`, which is such a one.
    Condition(ConditionTest),
    /// `.status.phase`, `!.status.phase`: something stands there, or nothing.
    Set(Path, bool),
    /// `.status.phase=Ready|Bound`, `.status.phase!=Ready`: it has one of these values, or none of them.
    Equals(Path, Vec<&'static str>, bool),
    /// `.status.ready>=.spec.replicas?1`: numbers compared; one that is absent has the value after `?`, or 0.
    Compare(Operand, Order, Operand),
    /// `.status.proposed!=.status.active`: other values stand at the one than at the other.
    Differ(Path, Path),
    /// `.status.items[].proposed!=.status.items[].proposed`: what stands at one and the same path is not
    /// everywhere the same.
    Vary(Path),
    /// `!Ready`: there is no such condition.
    Without(ConditionTest),
    /// `Accepted=absent in .status.parents[].conditions`: one of several lists of conditions lacks it.
    Absent {
        /// The condition's type.
        kind: &'static str,
        /// Where the lists stand.
        place: Path,
    },
}

#[derive(Clone, Debug)]
pub(super) struct ConditionTest {
    kind: &'static str,
    statuses: Vec<&'static str>,
    reasons: Vec<&'static str>,
    excludes_reasons: bool,
    outdated: bool,
    place: Path,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    Number(f64),
    Field(Path, f64),
}

impl Test {
    /// Reads a test.
    pub(super) fn parse(text: &'static str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix('!') {
            return match rest.starts_with('.') {
                true => Ok(Self::Set(Path::parse(rest)?, false)),
                false => Ok(Self::Without(ConditionTest::parse(rest)?)),
            };
        }
        if !text.starts_with('.') {
            let test = ConditionTest::parse(text)?;
            return Ok(match test.statuses.as_slice() {
                [ABSENT] => Self::Absent { kind: test.kind, place: test.place },
                _ => Self::Condition(test),
            });
        }
        let values = |list: &'static str| list.split('|').collect();
        if let Some((path, list)) = text.split_once("!=") {
            if list == path {
                return Ok(Self::Vary(Path::parse(path)?));
            }
            if list.starts_with('.') {
                return Ok(Self::Differ(Path::parse(path)?, Path::parse(list)?));
            }
            return Ok(Self::Equals(Path::parse(path)?, values(list), false));
        }
        for (sign, order) in [
            ("<=", Order::LessOrEqual),
            (">=", Order::GreaterOrEqual),
            ("<", Order::Less),
            (">", Order::Greater),
        ] {
            if let Some((left, right)) = text.split_once(sign) {
                return Ok(Self::Compare(Operand::parse(left)?, order, Operand::parse(right)?));
            }
        }
        match text.split_once('=') {
            Some((path, list)) => Ok(Self::Equals(Path::parse(path)?, values(list), true)),
            None => Ok(Self::Set(Path::parse(text)?, true)),
        }
    }

    /// Whether an object passes.
    pub(super) fn holds(&self, object: &Value) -> bool {
        match self {
            Self::Condition(test) => test.find(object).is_some(),
            Self::Without(test) => test.find(object).is_none(),
            Self::Set(path, wanted) => path.is_set(object) == *wanted,
            Self::Differ(left, right) => left.values(object) != right.values(object),
            Self::Vary(path) => path.values(object).windows(2).any(|two| two[0] != two[1]),
            Self::Absent { kind, place } => {
                let lists = place.values(object).into_iter().filter_map(Value::as_array);
                let has = |list: &Vec<Value>| list.iter().any(|item| Condition::read(item).kind == *kind);
                lists.into_iter().any(|list| !has(list))
            }
            Self::Equals(path, values, wanted) => {
                path.values(object).into_iter().any(|value| values.contains(&text(value).as_str())) == *wanted
            }
            Self::Compare(left, order, right) => {
                let (left, right) = (left.value(object), right.value(object));
                match order {
                    Order::Less => left < right,
                    Order::LessOrEqual => left <= right,
                    Order::Greater => left > right,
                    Order::GreaterOrEqual => left >= right,
                }
            }
        }
    }

    /// That it passed, where the object says nothing about it.
    pub(super) fn fact(&self, object: &Value) -> Option<String> {
        match self {
            Self::Condition(test) => {
                test.find(object).map(|condition| format!("{} is {}", condition.kind, condition.status))
            }
            _ => None,
        }
    }

    /// What the object says about what passed.
    pub(super) fn message(&self, object: &Value) -> Option<String> {
        match self {
            Self::Condition(test) => test.find(object).and_then(|condition| described(&condition)),
            Self::Equals(path, _, true) | Self::Set(path, true) => {
                let own = ["message", "reason"].iter().find_map(|field| object.str_at(&["status", field]));
                let own = own.filter(|own| !own.is_empty()).map(str::to_owned);
                own.or_else(|| path.values(object).first().map(|value| value_text(path, value)))
            }
            Self::Equals(..) | Self::Set(..) | Self::Without(_) | Self::Differ(..) | Self::Vary(_) => None,
            Self::Absent { kind, .. } => Some(format!("{kind} has not been reported everywhere yet")),
            Self::Compare(left, _, right) => {
                let shown = |operand: &Operand| match operand {
                    Operand::Number(_) => None,
                    Operand::Field(path, _) => Some(format!("{path} is {}", operand.value(object))),
                };
                Some([left, right].into_iter().filter_map(shown).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl ConditionTest {
    fn parse(text: &'static str) -> Result<Self, String> {
        let (text, place) = text.split_once(" in ").unwrap_or((text, CONDITIONS));
        let (text, reasons) = match text.split_once('(') {
            Some((text, reasons)) => {
                (text, reasons.strip_suffix(')').ok_or_else(|| format!("{text} has no closing bracket"))?)
            }
            None => (text, ""),
        };
        let (kind, statuses) = text.split_once('=').unwrap_or((text, ""));
        if kind.is_empty() || kind.contains(char::is_whitespace) {
            return Err(format!("{text} is no condition"));
        }
        let excludes_reasons = reasons.starts_with('!');
        let list = |text: &'static str, by: char| -> Vec<&'static str> {
            text.split(by).filter(|item| !item.is_empty()).collect()
        };
        Ok(Self {
            kind,
            outdated: statuses == OUTDATED,
            statuses: list(statuses, '|').into_iter().filter(|status| *status != OUTDATED).collect(),
            reasons: list(reasons.trim_start_matches('!'), ','),
            excludes_reasons,
            place: Path::parse(place)?,
        })
    }

    fn find(&self, object: &Value) -> Option<Condition> {
        let generation = object.generation();
        let lists = self.place.values(object);
        let conditions = lists.into_iter().filter_map(Value::as_array).flatten().map(Condition::read);
        conditions.into_iter().find(|condition| {
            (self.kind == "*" || self.kind == condition.kind)
                && (self.statuses.is_empty() || self.statuses.contains(&condition.status.as_str()))
                && (self.reasons.is_empty()
                    || self.reasons.contains(&condition.reason.as_str()) != self.excludes_reasons)
                && condition.observed_generation.is_some_and(|seen| seen < generation) == self.outdated
        })
    }
}

impl Operand {
    fn parse(text: &'static str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let (path, default) = text.split_once('?').unwrap_or((text, "0"));
        let default = default.parse().map_err(|_| format!("{default} is no number"))?;
        Ok(Self::Field(Path::parse(path)?, default))
    }

    fn value(&self, object: &Value) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Field(path, default) => path.number(object).unwrap_or(*default),
        }
    }
}

/// What a value at a path says: a text for itself, an error or a list of reasons by their words, all else
/// with the name of its field, without which it is a riddle.
fn value_text(path: &Path, value: &Value) -> String {
    let words = |value: &Value| {
        ["message", "reason"]
            .iter()
            .map(|field| value.str_at(&[field]))
            .find_map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned))
    };
    let words = match value {
        // Numbers and truth values that a project writes as texts are as little of a sentence as those that
        // are none.
        Value::String(text)
            if !matches!(text.as_str(), "true" | "false" | "True" | "False")
                && text.parse::<f64>().is_err() =>
        {
            Some(text.clone())
        }
        Value::Array(items) => {
            let all: Vec<_> = items.iter().filter_map(words).collect();
            (!all.is_empty()).then(|| all.join(", "))
        }
        value => words(value),
    };
    words.unwrap_or_else(|| match value {
        Value::Array(_) | Value::Object(_) => format!("{path} is set"),
        value => format!("{path} is {}", text(value)),
    })
}

fn described(condition: &Condition) -> Option<String> {
    match (condition.reason.as_str(), condition.message.as_str()) {
        ("", "") => None,
        ("", message) => Some(message.to_owned()),
        (reason, "") => Some(reason.to_owned()),
        (reason, message) => Some(format!("{reason}: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(text: &'static str) -> bool {
        let object = json!({
            "metadata": {"generation": 3},
            "spec": {"replicas": 3, "paused": true},
            "status": {"phase": "Ready", "ready": 2, "empty": [],
                "conditions": [{"type": "Ready", "status": "False", "reason": "Creating"},
                    {"type": "Old", "status": "True", "observedGeneration": 2}],
                "racks": {"a": {"members": 2}, "b": {"members": 3}},
                "parents": [{"conditions": [{"type": "Accepted", "status": "True"}]},
                    {"conditions": [{"type": "Accepted", "status": "True"}, {"type": "Bound", "status": "True"}]}],
                "stages": [{"now": "a", "next": "b"}, {"now": "b", "next": "b"}]},
        });
        Test::parse(text).unwrap().holds(&object)
    }

    #[test]
    fn tests_that_hold() {
        for text in [
            "Ready",
            "Ready=False",
            "Ready=False|Unknown",
            "Ready=False(Creating,Failed)",
            "Ready=False(!Failed)",
            "*=False",
            "!Ready=True",
            "!Old",
            "Accepted=True in .status.parents[].conditions",
            "Old=outdated",
            ".status.racks.*.members=2",
            ".status.racks.*.members>=5",
            ".status.phase",
            ".status.phase=Ready|Bound",
            ".status.phase!=Failed",
            "!.status.empty",
            ".spec.paused=true",
            ".status.ready<.spec.replicas",
            ".status.ready>=2",
            ".status.none<1",
            ".status.none?5>4",
            ".status.stages[].now!=.status.stages[].now",
            ".status.stages[].now!=.status.stages[].next",
            "Bound=absent in .status.parents[].conditions",
        ] {
            assert!(holds(text), "{text}");
        }
    }

    #[test]
    fn tests_that_do_not() {
        for text in [
            "Ready=True",
            "Ready=False(Failed)",
            "Ready=False(!Creating)",
            "Old=True",
            "Ready=outdated",
            ".status.racks.*.members>5",
            "!.status.phase",
            ".status.phase=Bound",
            ".status.empty",
            ".status.ready>=.spec.replicas",
            "!Ready",
            "Accepted=False in .status.parents[].conditions",
            "Accepted=absent in .status.parents[].conditions",
            ".status.phase!=.status.phase",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn what_passed_is_told_in_words() {
        let object = json!({
            "spec": {"paused": true},
            "status": {"phase": "Failed", "size": 2, "code": "3", "error": {"message": "no space", "time": "x"},
                "pauses": [{"reason": "CanaryPauseStep"}, {"reason": "Aborted"}], "jobs": [{"name": "a"}],
                "conditions": [{"type": "Ready", "status": "False"}]},
        });
        let message = |text: &'static str| Test::parse(text).unwrap().message(&object);
        for (test, wanted) in [
            (".spec.paused=true", ".spec.paused is true"),
            (".status.phase=Failed", "Failed"),
            (".status.code", ".status.code is 3"),
            (".status.error", "no space"),
            (".status.pauses", "CanaryPauseStep, Aborted"),
            (".status.jobs", ".status.jobs is set"),
            (".status.size>0", ".status.size is 2"),
        ] {
            assert_eq!(message(test).as_deref(), Some(wanted), "{test}");
        }
        let ready = Test::parse("Ready=False").unwrap();
        assert_eq!((ready.message(&object), ready.fact(&object).as_deref()), (None, Some("Ready is False")));
    }

    #[test]
    fn faults() {
        for text in ["Ready=(", "a b", ".", ".a..b", ".a<b"] {
            assert!(Test::parse(text).is_err(), "{text}");
        }
    }
}
