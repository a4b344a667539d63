//! The tree of an Application's objects: those that it manages, and what they own, directly or not.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_model::{ApplicationTree, HealthCode, HealthStatus, ResourceNode, ResourceRef, Time};
use tiphys_sync::images;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{home::Home, reconcile::compare::Compared};

/// The tree of what was compared. What the project does not permit is left out, with all below it.
pub(super) fn application_tree(home: &Home, compared: &Compared) -> ApplicationTree {
    let mut walk = Walk { home, compared, seen: BTreeSet::new(), nodes: Vec::new() };
    for entry in &compared.comparison.resources {
        let key = ResourceKey::new(&entry.group, &entry.kind, &entry.namespace, &entry.name);
        match compared.live.get(&key) {
            Some(live) => walk.add(&live.object),
            None => walk.nodes.push(missing(&key, &entry.version)),
        }
    }
    let nodes = std::mem::take(&mut walk.nodes);
    for key in compared.orphans.iter().flatten() {
        if let Some(orphan) = compared.cluster.cache.peek(key) {
            walk.add(&orphan);
        }
    }
    ApplicationTree { nodes, orphaned_nodes: walk.nodes }
}

fn missing(key: &ResourceKey, version: &str) -> ResourceNode {
    ResourceNode {
        reference: ResourceRef {
            group: key.group.clone(),
            version: version.to_owned(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: String::new(),
        },
        health: Some(HealthStatus::new(HealthCode::Missing, "")),
        ..ResourceNode::default()
    }
}

fn reference(object: &Value) -> ResourceRef {
    let kind = object.gvk();
    ResourceRef {
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
    }
}

/// Walks down from objects to what they own.
struct Walk<'a> {
    home: &'a Home,
    compared: &'a Compared,
    /// The uids of what was met: an object may be owned by several, and by itself.
    seen: BTreeSet<String>,
    nodes: Vec<ResourceNode>,
}

impl Walk<'_> {
    /// Adds an object with all below it, each before what it owns. Chains of owners may be long.
    fn add(&mut self, root: &Arc<Value>) {
        let mut open: Vec<(Arc<Value>, Option<ResourceRef>)> = vec![(root.clone(), None)];
        while let Some((object, parent)) = open.pop() {
            let is_new = self.seen.insert(object.uid().to_owned());
            if !is_new || self.compared.policy.permit(&object, !object.namespace().is_empty()).is_err() {
                continue;
            }
            let own = reference(&object);
            let cache = &self.compared.cluster.cache;
            let mut below = cache.owned_by(object.uid());
            below.extend(belonging(&object).iter().filter_map(|key| cache.peek(key)));
            open.extend(below.into_iter().rev().map(|owned| (owned, Some(own.clone()))));
            self.nodes.push(ResourceNode {
                reference: own,
                parent_refs: parent.into_iter().collect(),
                resource_version: object.resource_version().to_owned(),
                images: images(&object),
                health: self.home.installation().health(&object),
                created_at: object.str_at(&["metadata", "creationTimestamp"]).and_then(Time::parse),
            });
        }
    }
}

/// What belongs to an object that does not say so itself: the Endpoints of a Service, the volume claims of a
/// StatefulSet.
fn belonging(object: &Value) -> Vec<ResourceKey> {
    let kind = object.gvk();
    let (namespace, name) = (object.namespace(), object.name());
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => vec![ResourceKey::new("", "Endpoints", namespace, name)],
        ("apps", "StatefulSet") => {
            let start = object.at(&["spec", "ordinals", "start"]).and_then(Value::as_u64).unwrap_or(0);
            let replicas = object.at(&["spec", "replicas"]).and_then(Value::as_u64).unwrap_or(1);
            let templates = object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
            let claims = templates.into_iter().flatten().flat_map(|claim| {
                let claim = claim.name();
                (start..start.saturating_add(replicas)).map(move |ordinal| {
                    ResourceKey::new(
                        "",
                        "PersistentVolumeClaim",
                        namespace,
                        format!("{claim}-{name}-{ordinal}"),
                    )
                })
            });
            claims.take(MOST_CLAIMS).collect()
        }
        _ => Vec::new(),
    }
}

/// Claims of one StatefulSet that are looked for.
const MOST_CLAIMS: usize = 1000;
