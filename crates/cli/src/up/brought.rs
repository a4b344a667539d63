//! What a repository brings to a cluster, as far as it can be read before anything runs: for the decision
//! what has to stand in.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_graph::{
    Owner, Survey,
    tools::{Action, LazyTools, What, Writer},
};
use tiphys_value::{ObjectExt, RenderedObject, ResourceKey, Value};

use super::app_rows::Row;

/// Kind and name.
type KindName = (String, String);
/// Namespace and name of an Application.
type AppName = (String, String);

/// What a repository brings.
#[derive(Clone)]
pub(crate) struct Brought {
    /// What Applications render of the kinds that other objects name without a namespace: classes, volumes,
    /// and the ServiceAccounts of Argo CD. With those Applications.
    classes: BTreeMap<KindName, BTreeSet<AppName>>,
    /// The Namespaces of files that no Application reads: somebody applies them by hand.
    namespaces: BTreeMap<String, Arc<RenderedObject>>,
    /// What scripts, playbooks and pipelines do.
    tools: LazyTools,
}

impl Brought {
    /// What the files of a repository say.
    pub(crate) fn from_survey(survey: &Survey) -> Self {
        let by_hand = survey.objects.iter().filter(|object| matches!(object.owner, Owner::Unit(_)));
        let namespaces = by_hand.filter(|object| object.value().kind() == "Namespace");
        Self {
            classes: classes(survey),
            namespaces: namespaces.map(|it| (it.value().name().to_owned(), it.rendered.clone())).collect(),
            tools: survey.lazy_tools(),
        }
    }

    /// The Namespace that a file declares which no Application reads.
    pub(crate) fn namespace_by_hand(&self, name: &str) -> Option<&Value> {
        self.namespaces.get(name).map(|declared| &declared.value)
    }

    fn writers(&self) -> impl Iterator<Item = &Writer> {
        self.tools.get().writers.iter().filter(|writer| writer.action == Action::Apply)
    }

    /// Whether scripts, playbooks or pipelines install charts or manifests from elsewhere, other than Argo
    /// CD: these may bring kinds, and what operators make.
    pub(crate) fn tools_install(&self) -> bool {
        self.writers().any(installs_from_elsewhere)
    }

    /// Whether a script, playbook or pipeline makes an object.
    pub(crate) fn is_made_by_tools(&self, key: &ResourceKey) -> bool {
        let makes = |writer: &Writer, made: &ResourceKey| {
            let namespace = match made.namespace.is_empty() {
                true => writer.namespace.as_deref().unwrap_or_default(),
                false => &made.namespace,
            };
            // One that the tool names without a namespace may be meant for any.
            (&made.group, &made.kind, &made.name) == (&key.group, &key.kind, &key.name)
                && (namespace.is_empty() || namespace == key.namespace)
        };
        self.writers().any(|writer| writer.objects().iter().any(|made| makes(writer, made)))
    }

    /// The classes, volumes and accounts, by kind and name, that an Application is still expected to bring:
    /// none whose sources are out of reach does.
    pub(crate) fn expected_classes(&self, rows: &[Row]) -> BTreeSet<KindName> {
        let out = rows.iter().filter(|row| row.is_out_of_reach && !row.is_set);
        let out: BTreeSet<AppName> = out.map(|row| (row.namespace.clone(), row.name.clone())).collect();
        let expected = self.classes.iter().filter(|(_, apps)| apps.iter().any(|app| !out.contains(app)));
        expected.map(|(class, _)| class.clone()).collect()
    }
}

/// Argo CD brings no kinds but its own, which are always there.
fn installs_from_elsewhere(writer: &Writer) -> bool {
    matches!(writer.what, What::Release { .. } | What::Address(_)) && !writer.installs_argo_cd()
}

fn classes(survey: &Survey) -> BTreeMap<KindName, BTreeSet<AppName>> {
    const KINDS: [&str; 5] =
        ["StorageClass", "PersistentVolume", "RuntimeClass", "PriorityClass", "ServiceAccount"];
    let mut classes: BTreeMap<KindName, BTreeSet<AppName>> = BTreeMap::new();
    for object in &survey.objects {
        let (Owner::App(app), value) = (object.owner, object.value()) else { continue };
        if KINDS.contains(&value.kind()) {
            let class = (value.kind().to_owned(), value.name().to_owned());
            classes.entry(class).or_default().insert(survey.apps[app.0].declared_id().id);
        }
    }
    classes
}
