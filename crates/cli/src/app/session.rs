//! A connection to the cluster that Applications live in.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use tiphys_cluster::{Cluster, ClusterError, PatchType, Report, Resource};
use tiphys_diag::similar_names::similar;
use tiphys_model::{Application, names};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};

use super::{cluster_choice::Target, consent::NamedBy};
use crate::{exit::WrongUse, local_clusters::Served};

/// The name under which the commands write.
pub(crate) const FIELD_MANAGER: &str = "tiphys-cli";
/// How often a write is repeated that somebody else's came before.
const ATTEMPTS: usize = 5;

/// A connection to the cluster that Applications live in.
pub(crate) struct Session {
    /// The cluster.
    pub cluster: Cluster,
    /// Address of its API server.
    pub address: String,
    /// How it was named.
    pub named_by: NamedBy,
    /// Namespace of Applications that are named without one.
    pub namespace: String,
    /// The repository that a `tiphys up` serves, if the cluster is one's.
    pub repository: Option<Served>,
    /// The kubeconfig of the cluster, if it is a `tiphys up`'s: it stands for every destination that has none
    /// of its own.
    pub twin: Option<PathBuf>,
    apps: Resource,
}

/// Namespace and name of an Application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AppId {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for AppId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl AppId {
    /// The id of an Application object.
    pub(crate) fn from_object(object: &Value) -> Self {
        Self { namespace: object.namespace().to_owned(), name: object.name().to_owned() }
    }
}

/// The operation of a JSON patch that puts a value in its place as it is: a merge patch takes the nulls in
/// one, as Helm's values may have, for removals.
pub(crate) fn put(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

impl Session {
    /// Connects and looks for Argo CD's definitions.
    ///
    /// # Errors
    /// The cluster cannot be reached, or has no Applications.
    pub(crate) async fn open(target: &Target) -> anyhow::Result<Self> {
        let chosen = target.connect().await?;
        let (cluster, address) = (chosen.connection.cluster, chosen.connection.address);
        let kind = GroupVersionKind::from_api_version(names::API_VERSION, "Application");
        let apps = cluster.resource(&kind).await.with_context(|| format!("the cluster at {address}"))?;
        let namespace = target.app_namespace.clone();
        let (named_by, repository, twin) = (chosen.named_by, chosen.repository, chosen.twin);
        Ok(Self { cluster, address, named_by, namespace, repository, twin, apps })
    }

    /// The Application that a word of the command line means: `name` or `namespace/name`.
    ///
    /// # Errors
    /// It is neither: an empty name would mean all of them to the API.
    pub(crate) fn id(&self, word: &str) -> Result<AppId, WrongUse> {
        let (namespace, name) = word.split_once('/').unwrap_or((&self.namespace, word));
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(WrongUse(format!("{word:?} names no Application; write NAME or NAMESPACE/NAME")));
        }
        Ok(AppId { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// An Application object.
    ///
    /// # Errors
    /// It is not there, or the cluster does not answer.
    pub(crate) async fn get(&self, id: &AppId) -> anyhow::Result<Value> {
        match self.find(id).await? {
            Some(app) => Ok(app),
            None => Err(WrongUse(format!(
                "there is no Application {id}; {}",
                self.similar_applications(id).await
            ))
            .into()),
        }
    }

    /// An Application object, if it is there.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn find(&self, id: &AppId) -> anyhow::Result<Option<Value>> {
        Ok(self.cluster.get(&self.apps, &id.namespace, &id.name).await?)
    }

    /// All Applications of the cluster; those of the one namespace where more may not be read.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn list(&self) -> anyhow::Result<Vec<Value>> {
        let list = match self.cluster.list(&self.apps, "").await {
            Err(ClusterError::Api { code: 403, .. }) => {
                self.cluster.list(&self.apps, &self.namespace).await?
            }
            list => list?,
        };
        Ok(list.items)
    }

    /// What is there in place of an Application that is not.
    async fn similar_applications(&self, wanted: &AppId) -> String {
        const SHOWN: usize = 5;
        let Ok(apps) = self.list().await else { return "they cannot be listed".into() };
        if apps.is_empty() {
            return format!("the cluster at {} has none", self.address);
        }
        let mut all: Vec<AppId> = apps.iter().map(AppId::from_object).collect();
        all.sort();
        let like = similar(&wanted.name, all.iter().map(|id| id.name.as_str()));
        let like: Vec<String> =
            all.iter().filter(|id| like.contains(&id.name.as_str())).map(AppId::to_string).collect();
        if !like.is_empty() {
            return format!("did you mean {}?", like.join(" or "));
        }
        if all.len() > SHOWN {
            return format!("there are {} others, which `tiphys app list` shows", all.len());
        }
        let all: Vec<String> = all.iter().map(AppId::to_string).collect();
        format!("there is {}", all.join(", "))
    }

    /// Merges a patch into an Application.
    ///
    /// # Errors
    /// It is not there, changed meanwhile, or the cluster does not answer.
    pub(crate) async fn patch(&self, id: &AppId, patch: &Value) -> Result<Value, ClusterError> {
        let name = (id.namespace.as_str(), id.name.as_str());
        let kind = if patch.is_array() { PatchType::Json } else { PatchType::Merge };
        self.cluster.patch(&self.apps, name, "", kind, patch, FIELD_MANAGER).await
    }

    /// Merges the patch that is made from an Application's present state into it: nothing that somebody
    /// else writes meanwhile is lost. Returns the Application before and after.
    ///
    /// # Errors
    /// It is not there, the patch cannot be made, or the cluster does not answer.
    pub(crate) async fn change(
        &self,
        id: &AppId,
        make: impl Fn(&Application, &Value) -> anyhow::Result<Value>,
    ) -> anyhow::Result<(Value, Value)> {
        for _ in 0..ATTEMPTS {
            let before = self.get(id).await?;
            let app = Application::from_value(&before)?;
            let mut patch = make(&app, &before)?;
            let version = before.resource_version();
            match &mut patch {
                Value::Array(operations) => operations.push(put("/metadata/resourceVersion", version.into())),
                patch => patch["metadata"]["resourceVersion"] = version.into(),
            }
            match self.patch(id, &patch).await {
                Ok(after) => return Ok((before, after)),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("Application {id} changes all the time; try again")
    }

    /// Creates an Application.
    ///
    /// # Errors
    /// It exists, is refused, or the cluster does not answer.
    pub(crate) async fn create(&self, app: &Value) -> Result<Value, ClusterError> {
        self.cluster.create(app, FIELD_MANAGER, false).await
    }

    /// Asks for the deletion of an Application; `false` if it was not there.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn delete(&self, id: &AppId) -> anyhow::Result<bool> {
        let name = (id.namespace.as_str(), id.name.as_str());
        let propagation = tiphys_cluster::Propagation::Background;
        Ok(self.cluster.delete(&self.apps, name, propagation, "", false).await?)
    }

    /// Asks for a new look at an Application, and waits until it was taken.
    ///
    /// # Errors
    /// It is not there, or nothing took the request within the time.
    pub(crate) async fn refresh(&self, id: &AppId, hard: bool) -> anyhow::Result<Value> {
        const PATIENCE: Duration = Duration::from_secs(60);
        let kind = if hard { "hard" } else { "normal" };
        self.get(id).await?;
        self.patch(id, &json!({"metadata": {"annotations": {names::REFRESH: kind}}})).await?;
        let served = |app: Option<&Value>| match app {
            Some(app) => app.annotation(names::REFRESH).is_none().then(|| Some(app.clone())),
            None => Some(None),
        };
        match self.until(id, PATIENCE, served).await {
            Some(Some(app)) => Ok(app),
            Some(None) => bail!("Application {id} was deleted"),
            None => {
                bail!("no engine took up the refresh of {id} within {}s: is one running?", PATIENCE.as_secs())
            }
        }
    }

    /// Follows an Application until `seen` returns something; `None` after the time. `seen` is told `None`
    /// when the Application is not there.
    pub(crate) async fn until<T>(
        &self,
        id: &AppId,
        patience: Duration,
        mut seen: impl FnMut(Option<&Value>) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        let report = |report: Report| {
            found = match &report {
                Report::All(list) => seen(list.items.iter().find(|app| AppId::from_object(app) == *id)),
                Report::Upsert(app) if AppId::from_object(app) == *id => seen(Some(app)),
                Report::Delete(app) if AppId::from_object(app) == *id => seen(None),
                Report::Upsert(_) | Report::Delete(_) | Report::Failed(_) => None,
            };
            found.is_none()
        };
        let watch = self.cluster.watch(&self.apps, &id.namespace, report);
        // The time may be without end.
        let _ = tokio::time::timeout(patience, watch).await;
        found
    }

    /// Follows all Applications of the cluster for as long as `seen` returns `true`.
    pub(crate) async fn follow(&self, mut seen: impl FnMut(Report) -> bool) {
        self.cluster.watch(&self.apps, "", &mut seen).await;
    }
}
