//! A real cluster as it was saved, in place of the state before.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use jiff::Timestamp;
use serde_json::Value;
use tiphys_controller::crds;
use tiphys_model::{Application, names};
use tiphys_source::Repositories;
use tiphys_value::{GroupKind, ObjectExt, json};

use super::{stable_hash::stable_hash, unmasked::unmask};
use crate::{
    commands::doctor::{
        archive::Unpacked,
        save::{ABOUT, is_archive},
    },
    dump::{Dump, read_dump},
    up::{
        placeholder_kinds::{Asked, definition},
        plan::Plan,
    },
};

/// How many names a notice has.
const NAMED: usize = 4;

/// What was saved of a cluster.
pub(super) struct Found {
    /// Its objects, and definitions for kinds that it does not define.
    pub objects: Vec<Value>,
    /// When it was saved, if that is told.
    pub saved_at: Option<Timestamp>,
    /// What is to be told of it.
    pub notices: Vec<String>,
    /// Kinds that every cluster has, and of which it has no object: these are unknown, not gone.
    pub absent: Vec<&'static str>,
}

impl Found {
    /// Reads a folder, a file or an archive.
    ///
    /// # Errors
    /// It cannot be read, or holds no object.
    pub(super) fn read(place: &Path, plan: &Plan) -> anyhow::Result<Self> {
        let dump = if is_archive(place) && place.is_file() {
            let unpacked = Unpacked::from_archive(place)?;
            read_dump(unpacked.folder())?
        } else {
            read_dump(place)?
        };
        let Dump { mut objects, skipped, repeated } = dump;
        let saved_at = take_about(&mut objects);
        let mut notices = Vec::new();
        if !skipped.is_empty() {
            notices.push(format!("{} files of the dump hold no objects: {}", skipped.len(), some(&skipped)));
        }
        if !repeated.is_empty() {
            notices.push(format!("more than once in the dump, the newest counts: {}", some(&repeated)));
        }
        let unmasked = unmask(&mut objects, plan.rendered().map(|object| &object.value));
        if unmasked > 0 {
            notices.push(format!(
                "credentials that the dump lacks are taken to be those of Git, in {unmasked} objects"
            ));
        }
        let foreign = leave_alone(&mut objects, &plan.repository.repositories);
        if !foreign.is_empty() {
            notices.push(format!(
                "Applications of other repositories stay as they were found: {}",
                some(&foreign)
            ));
        }
        let absent = absent(&objects);
        notices.extend(unknown(&absent));
        let mut all = crds::definitions();
        all.extend(undefined(&objects));
        // What the cluster defines itself comes later, and counts.
        all.append(&mut objects);
        Ok(Self { objects: all, saved_at, notices, absent })
    }

    /// The kinds that every cluster has some of, or that are not missed where there are none, and of which
    /// there are some: a pod that asks for another one waits. Nodes may join where something scales them.
    pub(super) fn whole_kinds(&self) -> BTreeSet<&'static str> {
        let has = |kind: &str| self.objects.iter().any(|object| object.kind() == kind);
        let kinds = ["StorageClass", "RuntimeClass", "PriorityClass"].into_iter();
        let mut whole: BTreeSet<&'static str> = kinds.filter(|kind| has(kind)).collect();
        if has("Node") && !self.objects.iter().any(scales_nodes) {
            whole.insert("Node");
        }
        whole
    }

    /// A number that tells this dump from others. Uids are drawn from it, so that those of a dump that a
    /// rehearsal saved are not drawn again.
    pub(super) fn fingerprint(&self) -> u64 {
        stable_hash(self.objects.iter().flat_map(|object| object.uid().bytes()))
    }

    /// Whether the pods behind workloads and Services are unknown, so that nothing can be said of outages.
    pub(super) fn hides_pods(&self) -> bool {
        self.absent.iter().any(|kind| matches!(*kind, "Pod" | "ReplicaSet"))
    }
}

/// Whether an object makes nodes join a cluster, or belongs to what does.
fn scales_nodes(object: &Value) -> bool {
    const SCALERS: [&str; 2] = ["cluster-autoscaler", "karpenter"];
    let is_pool = matches!(
        (object.gvk().group.as_str(), object.kind()),
        ("karpenter.sh", "NodePool" | "Provisioner") | ("cluster.x-k8s.io", "MachineDeployment")
    );
    let spec = ["spec", "template", "spec", "containers"];
    let containers =
        object.at(&spec).or_else(|| object.at(&["spec", "containers"])).and_then(Value::as_array);
    let mut images = containers.into_iter().flatten().filter_map(|container| container.str_at(&["image"]));
    is_pool || images.any(|image| SCALERS.iter().any(|scaler| image.contains(scaler)))
}

/// Takes out what a saved state says of itself. Returns when it was saved.
fn take_about(objects: &mut Vec<Value>) -> Option<Timestamp> {
    let is_about = |object: &Value| object.api_version() == ABOUT.0 && object.kind() == ABOUT.1;
    let saved = objects.iter().filter(|object| is_about(object)).filter_map(|it| it.str_at(&["savedAt"]));
    let saved_at = saved.filter_map(|time| time.parse().ok()).max();
    objects.retain(|object| !is_about(object));
    saved_at
}

/// Has the engine leave Applications alone whose sources it cannot know. Returns their names.
fn leave_alone(objects: &mut [Value], repositories: &Repositories) -> Vec<String> {
    let mut names = Vec::new();
    for object in objects {
        if object.gvk().group != names::GROUP || object.kind() != "Application" {
            continue;
        }
        let is_ours = Application::from_value(object).is_ok_and(|app| {
            app.spec.effective_sources().iter().any(|source| repositories.is_own_address(&source.repo_url))
        });
        if is_ours {
            continue;
        }
        names.push(object.name().to_owned());
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[names::SKIP_RECONCILE] = "true".into();
    }
    names
}

/// Definitions for custom resources of which the dump has none.
fn undefined(objects: &[Value]) -> Vec<Value> {
    let defined: BTreeSet<GroupKind> = objects
        .iter()
        .filter(|object| object.kind() == "CustomResourceDefinition")
        .filter_map(|object| {
            let names = ["spec", "names", "kind"];
            Some(GroupKind::new(object.str_at(&["spec", "group"])?, object.str_at(&names)?))
        })
        .collect();
    let mut missing: BTreeMap<GroupKind, Asked> = BTreeMap::new();
    for object in objects {
        let gvk = object.gvk();
        let kind = GroupKind::new(gvk.group.as_str(), object.kind());
        let is_custom = gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io");
        if is_custom && gvk.group != names::GROUP && !defined.contains(&kind) {
            missing.entry(kind).or_default().add(&gvk.version, !object.namespace().is_empty());
        }
    }
    missing.iter().map(|(kind, asked)| definition(kind, asked)).collect()
}

/// What a dump of a whole cluster would have, and this one has not.
fn absent(objects: &[Value]) -> Vec<&'static str> {
    let kinds: BTreeSet<&str> = objects.iter().map(Value::kind).collect();
    let wanted = ["Node", "Namespace", "Pod", "Secret", "ConfigMap", "ReplicaSet"];
    wanted.into_iter().filter(|kind| !kinds.contains(kind)).collect()
}

fn unknown(absent: &[&str]) -> Option<String> {
    (!absent.is_empty())
        .then(|| format!("the dump has no {}: they are unknown, not gone", absent.join(", no ")))
}

fn some(names: &[String]) -> String {
    super::text::some_of(names, NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_nobody_defines_are_given_a_definition() {
        let object = |group: &str, namespace: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "a", "namespace": namespace}});
        let made = undefined(&[object("example.com", "shop"), object("apps.k8s.io", "shop")]);
        assert_eq!(made.len(), 1);
        assert_eq!(made[0]["metadata"]["name"], "things.example.com");
        assert_eq!(made[0]["spec"]["scope"], "Namespaced");
    }

    #[test]
    fn nodes_join_only_where_something_scales_them() {
        let node = json!({"kind": "Node"});
        let found =
            |objects: Vec<Value>| Found { objects, saved_at: None, notices: Vec::new(), absent: Vec::new() };
        assert!(found(vec![node.clone()]).whole_kinds().contains("Node"));
        assert!(found(Vec::new()).whole_kinds().is_empty());
        let scaler = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [
            {"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.31.0"}]}}}});
        assert!(!found(vec![node, scaler]).whole_kinds().contains("Node"));
    }

    #[test]
    fn kinds_that_are_not_there_are_unknown() {
        let absent = absent(&[json!({"kind": "Pod"}), json!({"kind": "Node"})]);
        assert_eq!(absent, ["Namespace", "Secret", "ConfigMap", "ReplicaSet"]);
        assert!(unknown(&absent).unwrap().contains("no Namespace, no Secret"));
        assert_eq!(unknown(&[]), None);
    }
}
