//! The tests of a rule.

use serde_json::Value;
use tiphys_value::ObjectExt;

use super::path::{Path, text};
use crate::conditions::Condition;

/// Where conditions stand unless a test says otherwise.
const CONDITIONS: &str = ".status.conditions";
/// Stands for the status of a condition that speaks of an older generation.
const OUTDATED: &str = "outdated";

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
    /// `!Ready`: there is no such condition.
    Without(ConditionTest),
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
    pub fn parse(text: &'static str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix('!') {
            return match rest.starts_with('.') {
                true => Ok(Self::Set(Path::parse(rest)?, false)),
                false => Ok(Self::Without(ConditionTest::parse(rest)?)),
            };
        }
        if !text.starts_with('.') {
            return Ok(Self::Condition(ConditionTest::parse(text)?));
        }
        let values = |list: &'static str| list.split('|').collect();
        if let Some((path, list)) = text.split_once("!=") {
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
    pub fn holds(&self, object: &Value) -> bool {
        match self {
            Self::Condition(test) => test.find(object).is_some(),
            Self::Without(test) => test.find(object).is_none(),
            Self::Set(path, wanted) => path.is_set(object) == *wanted,
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

    /// What the object says about what passed.
    pub fn message(&self, object: &Value) -> Option<String> {
        match self {
            Self::Condition(test) => test.find(object).map(|condition| described(&condition)),
            Self::Equals(path, _, true) | Self::Set(path, true) => {
                let own = ["message", "reason"].iter().find_map(|field| object.str_at(&["status", field]));
                let own = own.filter(|own| !own.is_empty()).map(str::to_owned);
                own.or_else(|| path.values(object).first().map(|value| text(value)))
            }
            Self::Equals(..) | Self::Set(..) | Self::Without(_) => None,
            Self::Compare(left, _, right) => {
                let shown = |operand: &Operand| match operand {
                    Operand::Number(number) => number.to_string(),
                    Operand::Field(path, _) => format!("{path} is {}", operand.value(object)),
                };
                Some(format!("{}, {}", shown(left), shown(right)))
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

fn described(condition: &Condition) -> String {
    match (condition.reason.as_str(), condition.message.as_str()) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
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
                "parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]},
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
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn faults() {
        for text in ["Ready=(", "a b", ".", ".a..b", ".a<b"] {
            assert!(Test::parse(text).is_err(), "{text}");
        }
    }
}
