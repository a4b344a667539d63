//! Putting into the cluster what a person would create by hand: definitions, projects, root Applications.

use std::collections::BTreeSet;

use tiphys_cluster::{ApplyOptions, Cluster, Propagation};
use tiphys_controller::crds;
use tiphys_value::{ObjectExt, Value, json};

use crate::{ENGINE_NAMESPACE, repository::Found};

/// Who owns the fields of what is installed.
const FIELD_MANAGER: &str = "tiphys-up";

/// What is put into a cluster.
pub struct Install<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// AppProjects and cluster Secrets that no Application brings.
    pub projects: &'a [Found],
}

impl Install<'_> {
    /// The kinds of Argo CD's API.
    ///
    /// # Errors
    /// The cluster refuses one.
    pub async fn definitions(&self) -> anyhow::Result<()> {
        for definition in crds::definitions() {
            self.apply(&definition).await?;
        }
        self.cluster.discover().await?;
        Ok(())
    }

    /// Projects and root Applications, with the namespaces that they live in.
    ///
    /// # Errors
    /// The cluster refuses one.
    pub async fn applications(&self, roots: &[Found]) -> anyhow::Result<()> {
        let found = roots.iter().chain(self.projects);
        let mut namespaces: BTreeSet<String> = found.map(|found| found.id().0).collect();
        namespaces.insert(ENGINE_NAMESPACE.to_owned());
        for name in namespaces {
            self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await?;
        }
        self.apply(&default_project()).await?;
        for found in self.projects.iter().chain(roots) {
            let applied = self.apply(&clean(found)).await;
            applied.map_err(|error| error.context(found.place()))?;
        }
        Ok(())
    }

    /// Deletes what was installed and is in the repository no more. Whether the objects of an Application
    /// go with it is for its finalizers to say.
    ///
    /// # Errors
    /// The cluster refuses.
    pub async fn remove(&self, gone: &Found) -> anyhow::Result<()> {
        let resource = self.cluster.resource(&gone.object.gvk()).await?;
        let (namespace, name) = gone.id();
        self.cluster.delete(&resource, (&namespace, &name), Propagation::Background, "", false).await?;
        Ok(())
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let options = ApplyOptions {
            field_manager: FIELD_MANAGER.into(),
            force: true,
            dry_run: false,
            validate: false,
        };
        self.cluster
            .apply(object, &options)
            .await
            .map_err(|error| anyhow::anyhow!("cannot create {} {}: {error}", object.kind(), object.name()))?;
        Ok(())
    }
}

/// An object as its author wrote it: without what a cluster added to a copy taken from one.
fn clean(found: &Found) -> Value {
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

/// The project that allows everything, which every installation has.
fn default_project() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": ENGINE_NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}
