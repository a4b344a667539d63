//! An installation of Argo CD, as it is read from a cluster or from files.

use std::path::PathBuf;

use anyhow::bail;
use tiphys_cluster::{Cluster, ClusterError};
use tiphys_model::names;
use tiphys_value::{GroupVersionKind, ObjectExt, Value};

use crate::dump;

/// The ConfigMaps of an installation.
const CONFIG_MAPS: [&str; 4] =
    ["argocd-cm", "argocd-cmd-params-cm", "argocd-rbac-cm", "argocd-notifications-cm"];

/// What there is of an Argo CD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Installation {
    /// The namespace of its settings.
    pub namespace: String,
    pub applications: Vec<Value>,
    pub sets: Vec<Value>,
    pub projects: Vec<Value>,
    pub config_maps: Vec<Value>,
    /// Secrets of repositories and clusters.
    pub secrets: Vec<Value>,
    /// Deployments and StatefulSets of its namespace.
    pub workloads: Vec<Value>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

impl Installation {
    /// What files hold: of `kubectl get -o yaml`, of `argocd admin export`, or of `tiphys dump`.
    ///
    /// # Errors
    /// They cannot be read, or hold nothing of an Argo CD.
    pub(crate) fn from_files(places: &[PathBuf], namespace: &str) -> anyhow::Result<Self> {
        let mut objects = Vec::new();
        let mut installation = Self { namespace: namespace.to_owned(), ..Self::default() };
        for place in places {
            let dump = dump::read_dump(place)?;
            objects.extend(dump.objects);
            installation.unread.extend(dump.skipped);
        }
        for mut object in objects {
            // An export names no namespace where it is the installation's own.
            if object.namespace().is_empty()
                && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            {
                metadata.insert("namespace".to_owned(), namespace.into());
            }
            installation.add(object);
        }
        if installation.is_empty() {
            bail!(
                "there is no Application, ApplicationSet or AppProject in it; make it with \
                 `kubectl get applications,applicationsets,appprojects,configmaps -A -o yaml` or `argocd admin export`"
            );
        }
        Ok(installation)
    }

    /// What a cluster holds. What may not be read is named.
    ///
    /// # Errors
    /// The cluster does not answer, has no Applications, or does not let them be read.
    pub(crate) async fn from_cluster(cluster: &Cluster, namespace: &str) -> anyhow::Result<Self> {
        let mut installation = Self { namespace: namespace.to_owned(), ..Self::default() };
        cluster.discover().await?;
        let application = GroupVersionKind::from_api_version(names::API_VERSION, "Application");
        for object in list(cluster, &application, "").await? {
            installation.add(object);
        }
        let more = [
            (names::API_VERSION, "ApplicationSet", ""),
            (names::API_VERSION, "AppProject", namespace),
            ("v1", "ConfigMap", namespace),
            ("v1", "Secret", namespace),
            ("apps/v1", "Deployment", namespace),
            ("apps/v1", "StatefulSet", namespace),
        ];
        for (api_version, kind, place) in more {
            match list(cluster, &GroupVersionKind::from_api_version(api_version, kind), place).await {
                Ok(objects) => objects.into_iter().for_each(|object| installation.add(object)),
                Err(ClusterError::UnknownKind(_)) => {}
                Err(error) => installation.unread.push(format!("{kind}: {error}")),
            }
        }
        Ok(installation)
    }

    fn add(&mut self, object: Value) {
        let own = object.namespace() == self.namespace;
        let group = object.gvk().group;
        let list = match (group.as_str(), object.kind()) {
            (names::GROUP, "Application") => &mut self.applications,
            (names::GROUP, "ApplicationSet") => &mut self.sets,
            (names::GROUP, "AppProject") => &mut self.projects,
            ("", "ConfigMap") if own && CONFIG_MAPS.contains(&object.name()) => &mut self.config_maps,
            ("", "Secret") if own && object.label(names::SECRET_TYPE).is_some() => &mut self.secrets,
            ("apps", "Deployment" | "StatefulSet") if own => &mut self.workloads,
            _ => return,
        };
        list.push(object);
    }

    /// Whether nothing of an Argo CD was found.
    fn is_empty(&self) -> bool {
        self.applications.is_empty() && self.sets.is_empty() && self.projects.is_empty()
    }

    /// One of its ConfigMaps.
    pub(crate) fn config_map(&self, name: &str) -> Option<&Value> {
        self.config_maps.iter().find(|map| map.name() == name)
    }

    /// A project of its namespace.
    pub(crate) fn project(&self, name: &str) -> Option<&Value> {
        let name = if name.is_empty() { "default" } else { name };
        self.projects.iter().find(|project| project.name() == name)
    }
}

async fn list(
    cluster: &Cluster,
    kind: &GroupVersionKind,
    namespace: &str,
) -> Result<Vec<Value>, ClusterError> {
    let resource = cluster.resource(kind).await?;
    Ok(cluster.list(&resource, namespace).await?.items)
}
