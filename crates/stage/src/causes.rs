//! From what is not as it should be to what it comes from.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tiphys_model::names;
use tiphys_value::ResourceKey;

use crate::{
    circles::{Components, reversed},
    mechanism::Mechanism,
    symptoms::Symptom,
};

/// Something that is wrong and no consequence of anything else that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The same as a cause of the common vocabulary, with the objects that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// What is wrong, in the words of the component that says it.
    pub text: String,
    /// The state of the objects in a word.
    pub state: String,
    /// The objects that it is wrong with.
    pub objects: Vec<ResourceKey>,
    /// The objects from Git that they are or come from.
    pub sources: BTreeSet<ResourceKey>,
    /// Their Applications.
    pub applications: BTreeSet<String>,
    /// Where the objects, or what made them, are written: file and line.
    pub places: Vec<String>,
    /// What comes of it.
    pub consequences: Vec<ResourceKey>,
    /// The smallest change that is known to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

impl Cause {
    /// One that was found beside the symptoms: of one object, whose state tells what is wrong with it.
    pub fn of_object(object: ResourceKey, mechanism: Option<Mechanism>, text: String, state: &str) -> Self {
        Self {
            mechanism,
            text,
            state: state.to_owned(),
            objects: vec![object],
            sources: BTreeSet::new(),
            applications: BTreeSet::new(),
            places: Vec::new(),
            consequences: Vec::new(),
            repair: None,
        }
    }
}

/// A change that mends something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// What to do, in a sentence.
    pub text: String,
    /// What to write, as YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// What to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where to write it: file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Cause {
    /// The Applications among the consequences.
    pub fn hit_applications(&self) -> impl Iterator<Item = &str> {
        let hit = self.consequences.iter().filter(|key| is_application(key));
        hit.map(|key| key.name.as_str())
    }
}

fn is_application(key: &ResourceKey) -> bool {
    key.group == names::GROUP && key.kind == "Application"
}

/// The causes of symptoms: those that show no other one, together where they say the same. What comes first
/// hits most.
pub fn causes(symptoms: &[Symptom]) -> Vec<Cause> {
    let known: BTreeMap<&ResourceKey, usize> =
        symptoms.iter().enumerate().map(|(at, symptom)| (&symptom.object, at)).collect();
    // Each symptom shows those below it; only those that are symptoms count.
    let mut below: Vec<BTreeSet<usize>> = symptoms
        .iter()
        .enumerate()
        .map(|(at, symptom)| {
            symptom.shows.iter().filter_map(|key| known.get(key).copied()).filter(|it| *it != at).collect()
        })
        .collect();
    // An object that the API server refuses is known to its Application only.
    let owners: BTreeMap<&str, usize> =
        symptoms.iter().enumerate().filter_map(|(at, it)| Some((it.instance.as_deref()?, at))).collect();
    for (at, symptom) in symptoms.iter().enumerate().filter(|(_, symptom)| symptom.uid.is_empty()) {
        if let Some(owner) = symptom.application.as_deref().and_then(|name| owners.get(name)) {
            below[*owner].insert(at);
        }
    }
    let ways = Ways::new(below);
    let mut grouped: BTreeMap<(String, String), BTreeSet<usize>> = BTreeMap::new();
    for at in ways.leaves() {
        let symptom = &symptoms[at];
        let alike = symptom.likeness.clone().unwrap_or_else(|| text(symptom));
        grouped.entry((alike, symptom.state.clone())).or_default().insert(at);
    }
    let mut all: Vec<Cause> = grouped
        .into_iter()
        .map(|((_, state), members)| {
            let first = members.first().map(|at| text(&symptoms[*at])).unwrap_or_default();
            cause(symptoms, &ways, first, state, &members)
        })
        .collect();
    all.sort_by_key(|cause| (std::cmp::Reverse(cause.consequences.len()), cause.text.clone()));
    all
}

/// Why something is as it is. Pods of one workload of which nothing says why are told together.
fn text(symptom: &Symptom) -> String {
    if !symptom.because.is_empty() {
        return symptom.because.clone();
    }
    let who = match &symptom.made_by {
        Some(maker) => format!("{} of {} {}", symptom.object.kind, maker.kind, maker.name),
        None => format!("{} {}", symptom.object.kind, symptom.object.name),
    };
    format!("{who} is {}, and nothing says why", symptom.state)
}

/// Which symptoms show which others.
struct Ways {
    below: Vec<BTreeSet<usize>>,
    above: Vec<Vec<usize>>,
    components: Components,
}

impl Ways {
    fn new(below: Vec<BTreeSet<usize>>) -> Self {
        Self { above: reversed(&below), components: Components::new(&below), below }
    }

    /// Those with nothing below them. Of those that only show each other, all.
    fn leaves(&self) -> Vec<usize> {
        let of = &self.components.of;
        let mut is_sink = vec![true; self.below.len()];
        for (at, others) in self.below.iter().enumerate() {
            if others.iter().any(|other| of[*other] != of[at]) {
                is_sink[of[at]] = false;
            }
        }
        (0..self.below.len()).filter(|at| is_sink[of[*at]]).collect()
    }

    /// All that these show, over others too.
    fn shown_by(&self, members: &BTreeSet<usize>) -> BTreeSet<usize> {
        reached(members, |at| self.below[at].iter().copied())
    }

    /// All that show any of these, over others too.
    fn that_show(&self, members: &BTreeSet<usize>) -> BTreeSet<usize> {
        reached(members, |at| self.above[at].iter().copied())
    }
}

fn reached<N: Iterator<Item = usize>>(from: &BTreeSet<usize>, next: impl Fn(usize) -> N) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<usize> = from.iter().flat_map(|at| next(*at)).collect();
    while let Some(at) = open.pop() {
        if reached.insert(at) {
            open.extend(next(at));
        }
    }
    reached
}

fn cause(symptoms: &[Symptom], ways: &Ways, text: String, state: String, members: &BTreeSet<usize>) -> Cause {
    let above = ways.that_show(members);
    let mut above = above.difference(members).copied();
    let keys = |all: &mut dyn Iterator<Item = usize>| {
        let keys: BTreeSet<ResourceKey> = all.map(|at| symptoms[at].object.clone()).collect();
        keys.into_iter().collect::<Vec<_>>()
    };
    Cause {
        mechanism: mechanism_of(symptoms, ways, members),
        text,
        state,
        objects: keys(&mut members.iter().copied()),
        sources: members
            .iter()
            .map(|at| symptoms[*at].made_by.clone().unwrap_or_else(|| symptoms[*at].object.clone()))
            .collect(),
        applications: members.iter().filter_map(|at| symptoms[*at].application.clone()).collect(),
        places: Vec::new(),
        consequences: keys(&mut above),
        repair: None,
    }
}

/// The mechanism of symptoms that say the same. Applications that wait for each other wait for themselves.
fn mechanism_of(symptoms: &[Symptom], ways: &Ways, members: &BTreeSet<usize>) -> Option<Mechanism> {
    let is_in_circle =
        |at: &usize| ways.components.is_in_circle(*at) && is_application(&symptoms[*at].object);
    if members.iter().any(is_in_circle) {
        let objects = ways.shown_by(members).into_iter().map(|at| symptoms[at].object.clone()).collect();
        return Some(Mechanism { id: tiphys_cause::Cause::GitopsSelfWait, objects });
    }
    let mut all = members.iter().filter_map(|at| symptoms[*at].mechanism.clone());
    let mut first = all.next()?;
    for other in all.filter(|other| other.id == first.id) {
        first.objects.extend(other.objects);
    }
    first.objects.sort();
    first.objects.dedup();
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symptom(kind: &str, name: &str, because: &str, shows: &[(&str, &str)]) -> Symptom {
        let group = if kind == "Application" { names::GROUP } else { "" };
        let key = |kind: &str, name: &str| {
            ResourceKey::new(if kind == "Application" { names::GROUP } else { "" }, kind, "shop", name)
        };
        Symptom {
            because: because.into(),
            shows: shows.iter().map(|(kind, name)| key(kind, name)).collect(),
            uid: name.into(),
            ..Symptom::of_object(ResourceKey::new(group, kind, "shop", name), "bad")
        }
    }

    #[test]
    fn what_shows_something_else_is_a_consequence() {
        let all = [
            symptom("Pod", "a", "secret \"x\" not found", &[]),
            symptom("Pod", "b", "secret \"x\" not found", &[]),
            symptom("Deployment", "web", "", &[("Pod", "a"), ("Pod", "b"), ("Pod", "healthy")]),
            symptom("Application", "web", "", &[("Deployment", "web")]),
            symptom("Application", "root", "", &[("Application", "web")]),
        ];
        let causes = causes(&all);
        assert_eq!(causes.len(), 1);
        assert_eq!((causes[0].objects.len(), causes[0].consequences.len()), (2, 3));
        assert_eq!(causes[0].hit_applications().collect::<Vec<_>>(), ["root", "web"]);
    }

    #[test]
    fn pods_of_one_workload_of_which_nothing_says_why_are_one_cause() {
        let pod = |name: &str| Symptom {
            made_by: Some(ResourceKey::new("apps", "Deployment", "shop", "web")),
            ..symptom("Pod", name, "", &[])
        };
        let causes = causes(&[pod("a"), pod("b"), symptom("Pod", "c", "", &[])]);
        let texts: Vec<&str> = causes.iter().map(|cause| cause.text.as_str()).collect();
        assert_eq!(
            texts,
            ["Pod c is bad, and nothing says why", "Pod of Deployment web is bad, and nothing says why"]
        );
    }

    #[test]
    fn pods_that_differ_only_in_what_is_their_own_are_one_cause() {
        let pod = |name: &str, address: &str| Symptom {
            likeness: Some("Deployment web: dial tcp …: connection refused".into()),
            ..symptom("Pod", name, &format!("dial tcp {address}: connection refused"), &[])
        };
        let causes = causes(&[pod("a", "10.0.0.1"), pod("b", "10.0.0.2")]);
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].text, "dial tcp 10.0.0.1: connection refused");
        assert_eq!(causes[0].objects.len(), 2);
    }

    #[test]
    fn who_wait_for_each_other_are_causes_together() {
        let all = [
            symptom("Application", "a", "waiting", &[("Application", "b")]),
            symptom("Application", "b", "waiting", &[("Application", "a")]),
            symptom("Application", "c", "", &[("Application", "a")]),
        ];
        let causes = causes(&all);
        assert_eq!(causes.len(), 1);
        assert_eq!((causes[0].objects.len(), causes[0].consequences.len()), (2, 1));
    }
}
