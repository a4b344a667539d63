//! Comparing what a sequence came to on both clusters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::state::{State, Thing, Told};

/// How much was compared, and how much of it was equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Compared.
    pub all: usize,
    /// Equal.
    pub equal: usize,
}

impl Count {
    fn add(&mut self, is_equal: bool) {
        self.all += 1;
        self.equal += usize::from(is_equal);
    }

    /// Takes another count into this one.
    pub(super) fn take(&mut self, other: Self) {
        self.all += other.all;
        self.equal += other.equal;
    }
}

/// The parts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    /// Objects: there on both sides.
    pub objects: Count,
    /// Fields of statuses; of conditions status and reason.
    pub status: Count,
    /// Messages of conditions.
    pub messages: Count,
    /// Fields of metadata, specs and all else.
    pub other: Count,
    /// Events by type and reason, in order, of each object.
    pub events: Count,
    /// Messages of Events that both sides told.
    pub event_messages: Count,
    /// Codes and reasons of answers.
    pub answers: Count,
}

impl Score {
    /// Takes another score into this one.
    pub(super) fn take(&mut self, other: &Self) {
        self.objects.take(other.objects);
        self.status.take(other.status);
        self.messages.take(other.messages);
        self.other.take(other.other);
        self.events.take(other.events);
        self.event_messages.take(other.event_messages);
        self.answers.take(other.answers);
    }
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    /// Which part of the comparison: `object`, `status`, `message`, `field`, `event`, `event message`, `answer`.
    pub part: &'static str,
    /// The kind of the object.
    pub kind: String,
    /// The path in it, without indexes; of an Event its reason.
    pub path: String,
    /// On the real cluster.
    pub real: String,
    /// On ours.
    pub ours: String,
}

/// The result for one sequence.
#[derive(Default)]
pub(super) struct Comparison {
    /// By kind.
    pub scores: BTreeMap<String, Score>,
    /// Everything that differs.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Compares two states.
    pub(super) fn from_states(real: &State, ours: &State) -> Self {
        let mut comparison = Self::default();
        comparison.answers(&real.answers, &ours.answers);
        let (mut real_by_class, mut ours_by_class) = (by_class(&real.things), by_class(&ours.things));
        let classes: BTreeSet<_> = real_by_class.keys().chain(ours_by_class.keys()).cloned().collect();
        for (kind, class) in &classes {
            let key = (kind.clone(), class.clone());
            let pairs = pairs(
                real_by_class.remove(&key).unwrap_or_default(),
                ours_by_class.remove(&key).unwrap_or_default(),
            );
            pairs.iter().for_each(|(real, ours)| comparison.objects(kind, class, *real, *ours));
        }
        let subjects: BTreeSet<_> = real.stories.keys().chain(ours.stories.keys()).cloned().collect();
        for key in &subjects {
            let stories = |state: &State| state.stories.get(key).cloned().unwrap_or_default();
            let (real, ours) = (stories(real), stories(ours));
            let none = Vec::new();
            for number in 0..real.len().max(ours.len()) {
                let story = |all: &'_ [Vec<Told>]| all.get(number).unwrap_or(&none).clone();
                comparison.story(&key.0, &story(&real), &story(&ours));
            }
        }
        comparison
    }

    fn differ(&mut self, part: &'static str, kind: &str, path: String, real: String, ours: String) {
        self.differences.push(Difference { part, kind: kind.to_owned(), path, real, ours });
    }

    fn answers(&mut self, real: &[String], ours: &[String]) {
        for number in 0..real.len().max(ours.len()) {
            let answer = |all: &[String]| all.get(number).map_or("nothing", String::as_str).to_owned();
            let (real, ours) = (answer(real), answer(ours));
            self.scores.entry("requests".to_owned()).or_default().answers.add(real == ours);
            if real != ours {
                self.differ("answer", "requests", String::new(), real, ours);
            }
        }
    }

    fn objects(&mut self, kind: &str, class: &str, real: Option<&Thing>, ours: Option<&Thing>) {
        let is_on_both = real.is_some() && ours.is_some();
        self.scores.entry(kind.to_owned()).or_default().objects.add(is_on_both);
        if !is_on_both {
            let there = |thing: Option<&Thing>| if thing.is_some() { "there" } else { "not there" };
            self.differ("object", kind, class.to_owned(), there(real).to_owned(), there(ours).to_owned());
        }
        let leaves = |thing: Option<&Thing>| thing.map(|thing| leaves(&thing.value)).unwrap_or_default();
        let (real, ours) = (leaves(real), leaves(ours));
        let paths: BTreeSet<_> = real.keys().chain(ours.keys()).collect();
        for path in paths {
            let value = |all: &BTreeMap<String, String>| all.get(path).map_or("-", String::as_str).to_owned();
            let (real, ours) = (value(&real), value(&ours));
            let is_equal = real == ours;
            let score = self.scores.entry(kind.to_owned()).or_default();
            // It is the path already.
            if path.starts_with(".status.conditions[") && path.ends_with("].type") {
                continue;
            }
            let is_message = path.starts_with(".status.conditions[") && path.ends_with("].message");
            let (part, count) = if is_message {
                ("message", &mut score.messages)
            } else if path.starts_with(".status") {
                ("status", &mut score.status)
            } else {
                ("field", &mut score.other)
            };
            count.add(is_equal);
            if !is_equal {
                self.differ(part, kind, path.clone(), real, ours);
            }
        }
    }

    /// Compares what was told of one object on each side: what both told in the same order is equal.
    fn story(&mut self, kind: &str, real: &[Told], ours: &[Told]) {
        let common = common(real, ours);
        let (mut left, mut right) = (0, 0);
        for (at_real, at_ours) in common.iter().copied().chain([(real.len(), ours.len())]) {
            for told in &real[left..at_real] {
                self.only(kind, told, true);
            }
            for told in &ours[right..at_ours] {
                self.only(kind, told, false);
            }
            (left, right) = (at_real + 1, at_ours + 1);
            let (Some(told), Some(found)) = (real.get(at_real), ours.get(at_ours)) else { continue };
            let score = self.scores.entry(kind.to_owned()).or_default();
            score.events.add(true);
            score.event_messages.add(told.message == found.message);
            if told.message != found.message {
                let (real, ours) = (told.message.clone(), found.message.clone());
                self.differ("event message", kind, told.reason.clone(), real, ours);
            }
        }
    }

    fn only(&mut self, kind: &str, told: &Told, is_real: bool) {
        self.scores.entry(kind.to_owned()).or_default().events.add(false);
        let text = format!("{}: {}", told.kind, told.message);
        let (real, ours) = if is_real { (text, "-".to_owned()) } else { ("-".to_owned(), text) };
        self.differ("event", kind, told.reason.clone(), real, ours);
    }
}

fn by_class(things: &[Thing]) -> BTreeMap<(String, String), Vec<&Thing>> {
    let mut all = BTreeMap::<(String, String), Vec<&Thing>>::new();
    for thing in things {
        all.entry((thing.kind.clone(), thing.class.clone())).or_default().push(thing);
    }
    all
}

type Pair<'a> = (Option<&'a Thing>, Option<&'a Thing>);

/// Pairs objects of the same class: those that have the most in common.
fn pairs<'a>(mut real: Vec<&'a Thing>, mut ours: Vec<&'a Thing>) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    while !real.is_empty() && !ours.is_empty() {
        let leaves_of_ours: Vec<_> = ours.iter().map(|thing| leaves(&thing.value)).collect();
        let mut best = (0, 0, usize::MAX);
        'search: for (at_real, thing) in real.iter().enumerate() {
            let expected = leaves(&thing.value);
            for (at_ours, found) in leaves_of_ours.iter().enumerate() {
                let equal = expected.iter().filter(|(path, value)| found.get(*path) == Some(value)).count();
                let different = expected.len() + found.len() - 2 * equal;
                if different < best.2 {
                    best = (at_real, at_ours, different);
                }
                if different == 0 {
                    break 'search;
                }
            }
        }
        pairs.push((Some(real.remove(best.0)), Some(ours.remove(best.1))));
    }
    pairs.extend(real.into_iter().map(|thing| (Some(thing), None)));
    pairs.extend(ours.into_iter().map(|thing| (None, Some(thing))));
    pairs
}

/// The longest common part of two stories, by type and reason: the places of its Events on both sides.
fn common(real: &[Told], ours: &[Told]) -> Vec<(usize, usize)> {
    let is_same = |a: &Told, b: &Told| (&a.kind, &a.reason) == (&b.kind, &b.reason);
    let mut longest = vec![vec![0_usize; ours.len() + 1]; real.len() + 1];
    for (i, a) in real.iter().enumerate().rev() {
        for (j, b) in ours.iter().enumerate().rev() {
            // Of several ways the one with the most equal messages.
            let gain = if a.message == b.message { 1001 } else { 1000 };
            let both = if is_same(a, b) { longest[i + 1][j + 1] + gain } else { 0 };
            longest[i][j] = both.max(longest[i + 1][j]).max(longest[i][j + 1]);
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < real.len() && j < ours.len() {
        let gain = if real[i].message == ours[j].message { 1001 } else { 1000 };
        if is_same(&real[i], &ours[j]) && longest[i][j] == longest[i + 1][j + 1] + gain {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[i][j] == longest[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

/// Every value that holds no other, by its path. Conditions stand under their type, named things under their
/// name; lists without either are sorted.
fn leaves(value: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    collect(value, String::new(), &mut all);
    all
}

fn collect(value: &Value, path: String, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| collect(value, format!("{path}.{key}"), all));
        }
        Value::Array(items) if !items.is_empty() => {
            let name = |item: &Value| {
                let name = ["type", "name"].into_iter().find_map(|field| item.get(field)?.as_str());
                name.map(str::to_owned)
            };
            let names: BTreeSet<_> = items.iter().filter_map(name).collect();
            if names.len() == items.len() {
                for item in items {
                    collect(item, format!("{path}[{}]", name(item).unwrap_or_default()), all);
                }
                return;
            }
            let mut items: Vec<_> = items.iter().collect();
            items.sort_by_key(|item| item.to_string());
            for (number, item) in items.iter().enumerate() {
                collect(item, format!("{path}[{number}]"), all);
            }
        }
        Value::String(text) => drop(all.insert(path, text.clone())),
        other => drop(all.insert(path, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thing(value: Value) -> Thing {
        Thing { kind: "Deployment".to_owned(), class: "web".to_owned(), value }
    }

    fn event(reason: &str, message: &str) -> Told {
        Told { kind: "Normal".to_owned(), reason: reason.to_owned(), message: message.to_owned() }
    }

    fn state(things: Vec<Thing>, story: Vec<Told>) -> State {
        let key = ("Deployment".to_owned(), "web".to_owned());
        State { answers: vec!["201".to_owned()], things, stories: [(key, vec![story])].into() }
    }

    #[test]
    fn fields_conditions_and_events_are_counted_apart() {
        let status = |replicas: i64, reason: &str| {
            thing(json!({"spec": {"a": 1}, "status": {"replicas": replicas, "conditions": [
                {"type": "Available", "status": "True", "reason": reason, "message": "m"}]}}))
        };
        let real = state(vec![status(1, "x")], vec![event("A", "1"), event("B", "2"), event("C", "3")]);
        let ours = state(vec![status(2, "x")], vec![event("A", "1"), event("C", "4"), event("B", "2")]);
        let found = Comparison::from_states(&real, &ours);
        let score = found.scores["Deployment"];
        assert_eq!(score.status, Count { all: 3, equal: 2 });
        assert_eq!(score.messages, Count { all: 1, equal: 1 });
        assert_eq!(score.other, Count { all: 1, equal: 1 });
        // A and B are told in the same order; C stands elsewhere on either side.
        assert_eq!(score.events, Count { all: 4, equal: 2 });
        let paths: Vec<_> = found.differences.iter().map(|it| (it.part, it.path.as_str())).collect();
        assert_eq!(paths, [("status", ".status.replicas"), ("event", "C"), ("event", "C")]);
    }

    #[test]
    fn objects_of_generated_names_are_paired_by_what_they_are() {
        let real = [thing(json!({"a": 1, "b": 1})), thing(json!({"a": 2, "b": 2}))];
        let ours = [thing(json!({"a": 2, "b": 2})), thing(json!({"a": 1, "b": 3}))];
        let found = pairs(real.iter().collect(), ours.iter().collect());
        let shown: Vec<_> = found
            .iter()
            .map(|(a, b)| (a.unwrap().value["a"].clone(), b.unwrap().value["a"].clone()))
            .collect();
        assert_eq!(shown, [(json!(2), json!(2)), (json!(1), json!(1))]);
    }
}
