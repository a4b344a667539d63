//! ControllerRevisions: the pod templates that a StatefulSet or DaemonSet had, for `kubectl rollout history`
//! and `undo` (apps/v1 ControllerRevision).

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    adoption,
    workload::{delete, template_hash},
};
use crate::{
    View, Write,
    object::{is_controlled_by, owner_reference, resources},
};

/// The label by which pods name their revision.
pub(super) const HASH: &str = "controller-revision-hash";

/// The label by which a revision of an owner names its hash.
fn hash_label(owner: &Value) -> &'static str {
    if owner.kind() == "StatefulSet" { "controller.kubernetes.io/hash" } else { HASH }
}

/// The revisions of an owner, oldest first.
pub(super) struct Revisions {
    all: Vec<Arc<Object>>,
    /// The name of the present template's revision.
    pub current: String,
    /// Its hash.
    pub hash: String,
}

impl Revisions {
    /// The revisions that an owner has.
    pub(super) fn from_owner(owner: &Value, view: &View<'_>) -> Self {
        let hash = template_hash(&owner["spec"]["template"]);
        let dependents = view.dependents(owner.uid()).into_iter();
        let mine =
            dependents.filter(|(r, o)| *r == resources::controller_revisions() && is_controlled_by(o, owner));
        let mut all: Vec<_> = mine.map(|(_, revision)| revision).collect();
        all.sort_by_key(|revision| revision.int_at(&["revision"]));
        // A revision of the same template is the present one whatever it is called.
        let has_template =
            |revision: &&Arc<Object>| template_of(revision).as_ref() == Some(&owner["spec"]["template"]);
        let known = all.iter().rev().find(has_template);
        let named = known
            .and_then(|known| Some((known.name().to_owned(), known.label(hash_label(owner))?.to_owned())));
        let (current, hash) = named.unwrap_or_else(|| (format!("{}-{hash}", owner.name()), hash));
        Self { all, current, hash }
    }

    /// Takes up the revisions of an owner that was deleted without them.
    pub(super) fn adopt(owner: &Value, view: &View<'_>) -> Vec<Write> {
        let selector = adoption::selector_of(owner);
        adoption::claim(owner, &resources::controller_revisions(), &selector, |_| true, view).adopted
    }

    /// Makes the present revision, or the newest of one that came back; forgets those beyond the limit that
    /// no pod has.
    pub(super) fn keep(&self, owner: &Value, pods: &[Arc<Object>]) -> Vec<Write> {
        let newest = self.all.last().and_then(|revision| revision.int_at(&["revision"])).unwrap_or(0);
        let mut writes = Vec::new();
        match self.all.iter().find(|revision| revision.name() == self.current) {
            None => writes.push(self.create(owner, newest + 1)),
            Some(known) if known.int_at(&["revision"]) != Some(newest) => {
                let mut object = known.value().clone();
                object["revision"] = (newest + 1).into();
                writes.push(Write::Update { resource: resources::controller_revisions(), object });
            }
            Some(_) => {}
        }
        let limit = owner.int_at(&["spec", "revisionHistoryLimit"]).unwrap_or(10).max(0) as usize;
        let is_used = |revision: &Object| {
            let hash = revision.label(hash_label(owner));
            revision.name() == self.current
                || pods.iter().any(|pod| pod.label(HASH) == hash || pod.label(HASH) == Some(revision.name()))
        };
        let unused: Vec<_> = self.all.iter().filter(|revision| !is_used(revision)).collect();
        let surplus = unused.len().saturating_sub(limit);
        writes.extend(
            unused.iter().take(surplus).map(|revision| delete(resources::controller_revisions(), revision)),
        );
        writes
    }

    /// The pod template of a revision.
    pub(super) fn template(&self, name: &str) -> Option<Value> {
        template_of(self.all.iter().find(|revision| revision.name() == name)?)
    }

    fn create(&self, owner: &Value, number: i64) -> Write {
        let mut template = owner["spec"]["template"].clone();
        template["$patch"] = "replace".into();
        let mut labels = owner["spec"]["template"]["metadata"]["labels"].clone();
        labels[hash_label(owner)] = self.hash.as_str().into();
        let mut object = json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": self.current,
                "namespace": owner.namespace(),
                "labels": labels,
                "ownerReferences": [owner_reference(owner)],
            },
            "data": {"spec": {"template": template}},
            "revision": number,
        });
        // `kubectl rollout history` reads the cause of a change from them.
        if let Some(annotations) = owner.at(&["metadata", "annotations"]) {
            object["metadata"]["annotations"] = annotations.clone();
        }
        Write::Create { resource: resources::controller_revisions(), object }
    }
}

/// The pod template that a revision holds.
fn template_of(revision: &Value) -> Option<Value> {
    let mut template = revision.at(&["data", "spec", "template"])?.clone();
    template.as_object_mut()?.remove("$patch");
    Some(template)
}
