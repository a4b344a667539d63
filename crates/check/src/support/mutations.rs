//! Fields that policies of the repository fill in when objects are created, before anything else looks at them.

use std::collections::BTreeSet;

use tiphys_graph::{Object, Survey};
use tiphys_value::{ObjectExt, Value};

use super::pods::list;

/// The kinds that mutating policies are about, in small letters: a kind, or its plural; `*` stands for all.
pub struct Mutations(BTreeSet<String>);

impl Mutations {
    /// Gathers them.
    pub fn of(survey: &Survey) -> Self {
        Self(survey.objects.iter().flat_map(kinds).map(|kind| kind.to_lowercase()).collect())
    }

    /// Whether a policy may fill in what an object lacks.
    pub fn complete(&self, object: &Object) -> bool {
        let kind = object.key.kind.to_lowercase();
        let plurals = [format!("{kind}s"), format!("{kind}es"), format!("{}ies", kind.trim_end_matches('y'))];
        self.0.contains("*") || self.0.contains(&kind) || plurals.iter().any(|it| self.0.contains(it))
    }
}

/// What a policy is about, if it changes anything.
fn kinds(policy: &Object) -> Vec<&str> {
    let spec = &policy.value()["spec"];
    match (policy.key.group.as_str(), policy.key.kind.as_str()) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => {
            let mutating = list(spec, "rules").iter().filter(|rule| rule.get("mutate").is_some());
            mutating.flat_map(matched).collect()
        }
        (_, "MutatingPolicy" | "MutatingAdmissionPolicy") => {
            let rules = spec.get("matchConstraints").map(|it| list(it, "resourceRules")).unwrap_or_default();
            rules.iter().flat_map(|rule| texts(rule, "resources")).collect()
        }
        ("mutations.gatekeeper.sh", _) => {
            list(spec, "applyTo").iter().flat_map(|part| texts(part, "kinds")).collect()
        }
        _ => Vec::new(),
    }
}

/// The kinds that a rule of Kyverno's matches: `Certificate`, `cert-manager.io/v1/Certificate`.
fn matched(rule: &Value) -> Vec<&str> {
    let Some(matching) = rule.get("match") else { return Vec::new() };
    let parts = ["any", "all"].iter().flat_map(|key| list(matching, key)).chain([matching]);
    let kinds = parts.filter_map(|part| part.at(&["resources"])).flat_map(|it| texts(it, "kinds"));
    kinds.map(|kind| kind.rsplit('/').next().unwrap_or(kind)).collect()
}

fn texts<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    list(value, key).iter().filter_map(Value::as_str)
}
