//! Putting into the cluster what a person would create by hand: definitions, projects, root Applications.

use std::collections::BTreeSet;

use tiphys_appset::ClusterInfo;
use tiphys_cluster::{Cluster, ClusterError, Propagation};
use tiphys_controller::crds;
use tiphys_graph::DeclaredId;
use tiphys_model::names;
use tiphys_value::{Location, ObjectExt, RenderedObject, Value, json};

use super::{FIELD_MANAGER, apply_options, argocd};
use crate::ENGINE_NAMESPACE;

/// How an apply says that a kind does not have a field. Files of old repositories hold such fields, and
/// whoever created the object from one met no objection.
const UNKNOWN_FIELD: &str = "field not declared in schema";

/// What an apply says of a null that a definition does not allow (`syncPolicy:` with nothing below).
const NULL: &str = "Invalid value: \"null\"";

/// An object that somebody applies by hand, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct ByHand {
    /// `file:line`, or the flag that tells of it.
    pub place: String,
    /// The file; empty if none holds it.
    pub file: String,
    /// The object.
    pub object: Value,
}

impl ByHand {
    /// One that stands in a file.
    pub(crate) fn from_declared(declared: &RenderedObject) -> Self {
        let Location { file, line, .. } = &declared.location;
        let place = if *line == 0 { file.to_string() } else { format!("{file}:{line}") };
        Self { place, file: file.to_string(), object: declared.value.clone() }
    }

    /// Namespace (the engine's if there is none) and name.
    pub(crate) fn id(&self) -> (String, String) {
        DeclaredId::from_object(&self.object).id
    }
}

/// The Secret of a cluster that a file beside the repository tells of.
pub(crate) fn cluster_secret(cluster: &ClusterInfo) -> ByHand {
    let mut labels = cluster.labels.clone();
    labels.insert(names::SECRET_TYPE.to_owned(), "cluster".to_owned());
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("declared-{}", super::extra_clusters::file_name(&cluster.name)),
            "namespace": ENGINE_NAMESPACE,
            "labels": labels,
            "annotations": cluster.annotations,
        },
        "stringData": {
            "name": cluster.name, "server": cluster.server, "project": cluster.project, "config": "{}",
        },
    });
    ByHand { place: "--clusters".to_owned(), file: String::new(), object }
}

/// What the cluster does not take.
pub(crate) struct Refused {
    /// Kind of the object.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it stands, and what the cluster says.
    pub why: String,
}

/// What is put into a cluster.
pub(crate) struct Install<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// AppProjects and cluster Secrets that no Application brings.
    pub projects: &'a [ByHand],
    /// Argo CD's settings (`argocd-cm`), if no Application brings them.
    pub settings: Option<&'a Value>,
}

impl Install<'_> {
    /// The kinds of Argo CD's API.
    ///
    /// # Errors
    /// The cluster refuses one.
    pub(crate) async fn definitions(&self) -> anyhow::Result<()> {
        for definition in crds::definitions() {
            self.apply(&definition).await?;
        }
        self.cluster.discover().await?;
        Ok(())
    }

    /// Projects and root Applications, with the namespaces that they live in. Returns what the cluster
    /// refuses of them: one that is invalid keeps nobody else from running.
    ///
    /// # Errors
    /// The cluster refuses the engine's namespace, the default project or settings.
    pub(crate) async fn applications(&self, roots: &[ByHand]) -> anyhow::Result<Vec<Refused>> {
        let found = roots.iter().chain(self.projects);
        let mut namespaces: BTreeSet<String> = found.map(|found| found.id().0).collect();
        namespaces.insert(ENGINE_NAMESPACE.to_owned());
        for name in namespaces {
            match self.apply(&namespace(&name)).await {
                // What is to live in it is refused, and that is told of.
                Err(_) if name != ENGINE_NAMESPACE => {}
                other => other?,
            }
        }
        self.apply(&open_project("default")).await?;
        if let Some(settings) = self.settings {
            self.apply(settings).await?;
        }
        argocd::provide_settings(self.cluster).await?;
        let mut refused = Vec::new();
        for found in self.projects.iter().chain(roots) {
            if let Err(error) = self.apply(&clean(found)).await {
                let (namespace, name) = found.id();
                let why = format!("{}: {error:#}", found.place);
                refused.push(Refused { kind: found.object.kind().to_owned(), namespace, name, why });
            }
        }
        Ok(refused)
    }

    /// Namespaces and projects that something out of reach would have made.
    ///
    /// # Errors
    /// The cluster refuses one.
    pub(crate) async fn stand_ins(
        &self,
        namespaces: &BTreeSet<String>,
        projects: &BTreeSet<String>,
    ) -> anyhow::Result<()> {
        for name in namespaces {
            self.apply(&namespace(name)).await?;
        }
        for name in projects {
            self.apply(&open_project(name)).await?;
        }
        Ok(())
    }

    /// Objects that somebody applies by hand.
    ///
    /// # Errors
    /// The cluster refuses one.
    pub(crate) async fn objects(&self, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            self.apply(object).await?;
        }
        Ok(())
    }

    /// Deletes what was installed and is in the repository no more. Whether the objects of an Application
    /// go with it is for its finalizers to say.
    ///
    /// # Errors
    /// The cluster refuses.
    pub(crate) async fn remove(&self, gone: &ByHand) -> anyhow::Result<()> {
        let resource = self.cluster.resource(&gone.object.gvk()).await?;
        let (namespace, name) = gone.id();
        self.cluster.delete(&resource, (&namespace, &name), Propagation::Background, "", false).await?;
        Ok(())
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let applied = match self.cluster.apply(object, &apply_options()).await {
            Err(error) if [UNKNOWN_FIELD, NULL].iter().any(|text| error.to_string().contains(text)) => {
                self.write(object).await
            }
            other => other.map(drop),
        };
        applied.map_err(|error| anyhow::anyhow!("cannot create {} {}: {error}", object.kind(), object.name()))
    }

    /// Creates or replaces an object: unlike an apply, that drops the fields that its kind does not have, and
    /// nulls that it does not allow.
    async fn write(&self, object: &Value) -> Result<(), ClusterError> {
        let resource = self.cluster.resource(&object.gvk()).await?;
        match self.cluster.get(&resource, object.namespace(), object.name()).await? {
            None => self.cluster.create(object, FIELD_MANAGER, false).await.map(drop),
            Some(live) => {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
                self.cluster.replace(&object, FIELD_MANAGER, false).await.map(drop)
            }
        }
    }
}

/// Settings of a repository that has none any more.
pub(crate) fn without_settings(mut settings: Value) -> Value {
    settings["data"] = json!({});
    settings
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// An object as its author wrote it: without what a cluster added to a copy taken from one.
fn clean(found: &ByHand) -> Value {
    let mut object = found.object.clone();
    if let Value::Object(map) = &mut object {
        map.remove("status");
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in
            ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"]
        {
            metadata.remove(field);
        }
        metadata.insert("namespace".into(), found.id().0.into());
    }
    object
}

/// A project that allows everything; every installation has one that is named `default`.
pub(crate) fn open_project(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": name, "namespace": ENGINE_NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}
