//! What is broken because of a cause, by Application and namespace.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tiphys_doctor::{Case, Consequence};
use tiphys_value::ObjectExt as _;

use super::sanitize::{one_line, sanitize};
use crate::counted::counted;

/// How far owners are followed.
const OWNERS: usize = 8;
/// Annotation by which Argo CD knows its objects.
const TRACKING: &str = "argocd.argoproj.io/tracking-id";
/// Labels by which Argo CD and Flux know their objects, and what they name.
const LABELS: [(&str, &str); 3] = [
    ("argocd.argoproj.io/instance", "Application"),
    ("kustomize.toolkit.fluxcd.io/name", "Kustomization"),
    ("helm.toolkit.fluxcd.io/name", "HelmRelease"),
];

/// Consequences that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// `Application shop`, `namespace shop`, `cluster`.
    pub name: String,
    /// How many of each kind: `3 Pods, 1 Deployment`.
    pub counts: String,
    /// Each object with what is red about it.
    pub members: Vec<String>,
}

/// The consequences by Application, and by namespace where no Application is known.
pub(super) fn groups(consequences: &[Consequence], tracker: &Tracker<'_>) -> Vec<Group> {
    let mut by_name: BTreeMap<(u8, String), Vec<&Consequence>> = BTreeMap::new();
    for consequence in consequences {
        by_name.entry(tracker.group_of(consequence)).or_default().push(consequence);
    }
    let group = |((_, name), members): ((u8, String), Vec<&Consequence>)| {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for member in &members {
            *kinds.entry(&member.object.kind).or_default() += 1;
        }
        let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        let counts =
            kinds.into_iter().map(|(kind, count)| counted(count, kind)).collect::<Vec<_>>().join(", ");
        let line =
            |member: &&Consequence| sanitize(&one_line(&format!("{}: {}", member.object, member.symptom)));
        Group {
            name: sanitize(&one_line(&name)),
            counts: sanitize(&one_line(&counts)),
            members: members.iter().map(line).collect(),
        }
    };
    by_name.into_iter().map(group).collect()
}

type Names<'a> = (&'a str, &'a str, &'a str);

/// Finds out which Application an object belongs to.
pub(super) struct Tracker<'a> {
    by_names: HashMap<Names<'a>, &'a Value>,
    by_uid: HashMap<&'a str, &'a Value>,
}

impl<'a> Tracker<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        let objects = &case.objects;
        Self {
            by_names: objects
                .iter()
                .map(|object| ((object.kind(), object.namespace(), object.name()), object))
                .collect(),
            by_uid: objects.iter().map(|object| (object.uid(), object)).collect(),
        }
    }

    /// The group of a consequence, and its rank among groups.
    fn group_of(&self, consequence: &Consequence) -> (u8, String) {
        let object = &consequence.object;
        if LABELS.iter().any(|(_, kind)| *kind == object.kind) {
            return (0, format!("{}s", object.kind));
        }
        let live =
            self.by_names.get(&(object.kind.as_str(), object.namespace.as_str(), object.name.as_str()));
        match live.and_then(|live| self.application_of(live)) {
            Some(application) => (1, application),
            None if object.namespace.is_empty() => (3, "cluster".to_owned()),
            None => (2, format!("namespace {}", object.namespace)),
        }
    }

    /// The Application of an object or of one of its owners.
    fn application_of(&self, object: &Value) -> Option<String> {
        let mut object = object;
        for _ in 0..OWNERS {
            if let Some((application, _)) = object.annotation(TRACKING).and_then(|id| id.split_once(':')) {
                return Some(format!("Application {application}"));
            }
            let labelled =
                LABELS.iter().find_map(|(label, kind)| Some(format!("{kind} {}", object.label(label)?)));
            if labelled.is_some() {
                return labelled;
            }
            let owner = object.owner_references().first()?;
            object = self.by_uid.get(owner.str_at(&["uid"])?)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_doctor::Object;

    #[test]
    fn objects_are_counted_by_application_and_namespace() {
        let deployment = json!({"kind": "Deployment", "metadata": {"namespace": "shop", "name": "web", "uid": "d",
            "annotations": {TRACKING: "shop:apps/Deployment:shop/web"}}});
        let pod = |name: &str| json!({"kind": "Pod", "metadata": {"namespace": "shop", "name": name, "ownerReferences": [{"uid": "d"}]}});
        let case = Case { objects: vec![deployment, pod("web-1"), pod("web-2")], ..Case::default() };
        let consequence = |kind: &str, namespace: &str, name: &str| Consequence {
            object: Object::new(kind, namespace, name),
            symptom: "is not ready".to_owned(),
        };
        let consequences = [
            consequence("Pod", "shop", "web-1"),
            consequence("Pod", "shop", "web-2"),
            consequence("Deployment", "shop", "web"),
            consequence("Pod", "pay", "x"),
            consequence("Node", "", "n1"),
            consequence("Application", "argocd", "shop"),
        ];
        let groups: Vec<String> = groups(&consequences, &Tracker::new(&case))
            .iter()
            .map(|it| format!("{}: {}", it.name, it.counts))
            .collect();
        assert_eq!(
            groups,
            [
                "Applications: 1 Application",
                "Application shop: 2 Pods, 1 Deployment",
                "namespace pay: 1 Pod",
                "cluster: 1 Node"
            ]
        );
    }
}
