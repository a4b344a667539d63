//! Objects of a destination namespace that no Application has (Argo CD docs, "Orphaned Resources
//! Monitoring"). They are looked for only where a project asks for it: that takes a walk through all objects.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_model::{AppProject, Application, Condition, ConditionType, Tracking, glob, project::KindRule};
use tiphys_value::{GroupKind, Map, ResourceKey, Value, json};

use crate::destinations::ConnectedCluster;

/// How many are listed by name.
const LISTED: usize = 100;
/// Objects that every namespace has.
const EVERYWHERE: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];

/// The orphans in the destination namespace of an Application; `None` if its project does not ask.
pub(crate) fn find(
    cluster: &ConnectedCluster,
    project: &AppProject,
    app: &Application,
    managed: &BTreeSet<ResourceKey>,
    is_excluded: &dyn Fn(&GroupKind) -> bool,
    is_application: &dyn Fn(&Value, &Tracking) -> bool,
    tracking: &Tracking,
) -> Option<Vec<ResourceKey>> {
    let rules = project.spec.orphaned_resources.as_ref()?;
    let namespace = &app.spec.destination.namespace;
    if namespace.is_empty() {
        return Some(Vec::new());
    }
    let all: Vec<(ResourceKey, Arc<Value>)> = cluster.cache.top_level_of(namespace);
    let orphans = all.into_iter().filter(|(key, object)| {
        !managed.contains(key)
            && !is_excluded(&key.group_kind())
            && project.permits_kind(&key.group, &key.kind, &key.name, true)
            && !is_everywhere(key)
            && !rules.ignore.iter().any(|rule| ignores(rule, key))
            && !is_application(object, tracking)
    });
    Some(orphans.map(|(key, _)| key).collect())
}

fn is_everywhere(key: &ResourceKey) -> bool {
    key.group.is_empty()
        && (EVERYWHERE.contains(&(key.kind.as_str(), key.name.as_str()))
            || (key.kind == "Service" && key.name == "kubernetes" && key.namespace == "default"))
}

fn ignores(rule: &KindRule, key: &ResourceKey) -> bool {
    let fits = |pattern: &str, text: &str| pattern.is_empty() || glob::matches(pattern, text);
    // An empty group is the core group.
    glob::matches(&rule.group, &key.group) && fits(&rule.kind, &key.kind) && fits(&rule.name, &key.name)
}

/// The warning, unless there are none or the project wants none.
pub(crate) fn condition(project: &AppProject, orphans: &[ResourceKey]) -> Option<Condition> {
    let warns = project.spec.orphaned_resources.as_ref().is_some_and(|rules| rules.warn != Some(false));
    let message = || format!("Application has {} orphaned resources", orphans.len());
    (warns && !orphans.is_empty()).then(|| Condition::new(ConditionType::OrphanedResourceWarning, message()))
}

/// What a status tells of them.
pub(crate) fn with_orphans(ours: Option<Value>, orphans: Option<&[ResourceKey]>) -> Option<Value> {
    let mut ours = ours.filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(map) = ours.as_object_mut() {
        map.remove("orphaned");
        if let Some(orphans) = orphans {
            let listed: Vec<Value> = orphans
                .iter()
                .take(LISTED)
                .map(|key| json!({"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}))
                .collect();
            map.insert("orphaned".into(), json!({"count": orphans.len(), "objects": listed}));
        }
    }
    ours.as_object().is_some_and(|map| !map.is_empty()).then_some(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_groups_and_perhaps_kinds_and_names() {
        let rule = |group: &str, kind: &str, name: &str| KindRule {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
        };
        let key = ResourceKey::new("", "ConfigMap", "n", "istio-ca");
        assert!(ignores(&rule("", "ConfigMap", "istio-*"), &key) && ignores(&rule("*", "", ""), &key));
        assert!(!ignores(&rule("apps", "", ""), &key) && !ignores(&rule("", "Secret", ""), &key));
        assert!(is_everywhere(&ResourceKey::new("", "ServiceAccount", "n", "default")));
        assert!(!is_everywhere(&ResourceKey::new("", "Service", "n", "kubernetes")));
    }
}
