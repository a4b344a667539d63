//! Fields that policies of the repository fill in when objects are created, before anything else looks at
//! them.

use std::collections::BTreeMap;

use tiphys_graph::{Object, Survey};
use tiphys_value::{FieldPath, ObjectExt, Segment, Value};

use super::pods::list;

/// What a policy sets in objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sets {
    /// These fields, by their names without the positions in lists, and what is below them.
    Fields(Vec<Vec<String>>),
    /// What it does not tell.
    Anything,
}

/// What mutating policies set, by the kinds that they are about, in small letters: a kind, or its plural; `*`
/// stands for all.
pub(crate) struct Mutations(BTreeMap<String, Vec<Sets>>);

impl Mutations {
    /// Gathers them.
    pub(crate) fn from_survey(survey: &Survey) -> Self {
        let mut found: BTreeMap<String, Vec<Sets>> = BTreeMap::new();
        for (kind, sets) in survey.objects.iter().flat_map(of_policy) {
            found.entry(kind.to_lowercase()).or_default().push(sets);
        }
        Self(found)
    }

    /// Whether a policy may fill in a field that an object lacks.
    pub(crate) fn complete(&self, object: &Object, field: &FieldPath) -> bool {
        let kind = object.key.kind.to_lowercase();
        let plurals = [format!("{kind}s"), format!("{kind}es"), format!("{}ies", kind.trim_end_matches('y'))];
        let names = ["*".to_owned(), kind].into_iter().chain(plurals);
        names.filter_map(|name| self.0.get(&name)).flatten().any(|sets| sets.covers(field))
    }
}

impl Sets {
    /// Whether it sets a field, or a part of it, or what it is a part of.
    fn covers(&self, field: &FieldPath) -> bool {
        let Self::Fields(all) = self else { return true };
        let steps = field.0.iter().filter_map(|step| match step {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        });
        let wanted: Vec<&str> = steps.collect();
        all.iter().any(|set| set.iter().zip(&wanted).all(|(one, other)| one == other))
    }
}

/// The kinds that a policy is about, if it changes anything, each with what it sets.
fn of_policy(policy: &Object) -> Vec<(&str, Sets)> {
    let spec = &policy.value()["spec"];
    match (policy.key.group.as_str(), policy.key.kind.as_str()) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => {
            let rules = list(spec, "rules").iter();
            let mutating = rules.filter_map(|rule| Some((rule, rule.get("mutate")?)));
            mutating
                .flat_map(|(rule, mutate)| {
                    let sets = of_kyverno(mutate);
                    matched(rule).into_iter().map(move |kind| (kind, sets.clone()))
                })
                .collect()
        }
        // What their expressions make is not followed.
        (_, "MutatingPolicy" | "MutatingAdmissionPolicy") => {
            let rules = spec.get("matchConstraints").map(|it| list(it, "resourceRules")).unwrap_or_default();
            rules
                .iter()
                .flat_map(|rule| texts(rule, "resources"))
                .map(|kind| (kind, Sets::Anything))
                .collect()
        }
        ("mutations.gatekeeper.sh", _) => {
            let kinds = list(spec, "applyTo").iter().flat_map(|part| texts(part, "kinds"));
            let sets =
                spec.str_at(&["location"]).map_or(Sets::Anything, |it| Sets::Fields(vec![location(it)]));
            kinds.map(|kind| (kind, sets.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// What a rule of Kyverno's sets (Kyverno docs, "Mutate Rules").
fn of_kyverno(mutate: &Value) -> Sets {
    let parts = list(mutate, "foreach").iter().chain([mutate]);
    let mut found = Vec::new();
    for part in parts {
        if let Some(patch) = part.get("patchStrategicMerge") {
            gather(patch, &mut Vec::new(), &mut found);
        }
        if let Some(operations) = part.get("patchesJson6902").and_then(Value::as_str) {
            let paths =
                operations.lines().filter_map(|line| line.split_once("path:").map(|(_, path)| path.trim()));
            found.extend(paths.map(|path| pointer(path.trim_matches(['"', '\'']))));
        }
    }
    // A path that is put together is any.
    let is_open = |path: &Vec<String>| path.is_empty() || path.iter().any(|step| step.contains("{{"));
    if found.is_empty() || found.iter().any(is_open) { Sets::Anything } else { Sets::Fields(found) }
}

/// The fields that a patch sets: the leaves of its tree, without the marks of conditions around their names.
fn gather(patch: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match patch {
        Value::Object(map) if !map.is_empty() => {
            for (key, below) in map {
                // `(name)` asks and sets nothing; `+(name)` sets what is not there.
                if key.starts_with('(') {
                    continue;
                }
                path.push(key.trim_start_matches(['+', '=', '^', '<']).trim_matches(['(', ')']).to_owned());
                gather(below, path, found);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => items.iter().for_each(|item| gather(item, path, found)),
        _ => found.push(path.clone()),
    }
}

/// The names of a JSON pointer; positions in lists are left out.
fn pointer(path: &str) -> Vec<String> {
    let steps =
        path.split('/').filter(|step| !step.is_empty() && *step != "-" && step.parse::<usize>().is_err());
    steps.map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// The names of a location of Gatekeeper's: `spec.containers[name:*].imagePullPolicy`.
fn location(text: &str) -> Vec<String> {
    text.split('.').map(|step| step.split('[').next().unwrap_or(step).trim_matches('"').to_owned()).collect()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Sets, location, of_kyverno, pointer};
    use crate::support::field_paths::of_api;

    #[test]
    fn a_policy_fills_in_what_its_patch_sets() {
        let rule = json!({"patchStrategicMerge": {"spec": {"template": {"spec": {"containers": [
            {"(name)": "*", "resources": {"+(limits)": {"memory": "1Gi"}}}
        ]}}}}});
        let sets = of_kyverno(&rule);
        assert!(sets.covers(&of_api("spec.template.spec.containers[0].resources.limits.memory")));
        assert!(sets.covers(&of_api("spec.template.spec.containers[0].resources")));
        assert!(!sets.covers(&of_api("spec.selector")));
        let rule = json!({"patchesJson6902": "- op: add\n  path: /spec/ports/0/name\n  value: http\n"});
        assert!(of_kyverno(&rule).covers(&of_api("spec.ports[1].name")));
        assert_eq!(of_kyverno(&json!({"targets": []})), Sets::Anything);
        assert_eq!(location("spec.containers[name:*].image"), ["spec", "containers", "image"]);
        assert_eq!(pointer("/metadata/annotations/a~1b"), ["metadata", "annotations", "a/b"]);
    }
}
