//! The cluster that the engine works on: the embedded one in a process of its own, or kube-apiserver.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tiphys_cluster::{ApplyOptions, Cluster, PatchType, Resource};
use tiphys_oracles::RealApiServer;
use tiphys_value::GroupVersionKind;

use super::{
    process::{Running, process_usage},
    repository::Repository,
};
use crate::oracles::workspace_root;

/// Namespace of the Applications.
pub(super) const ENGINE: &str = "argocd";
/// How many Applications are created at once.
const PARALLEL: usize = 16;

/// Which cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `tiphys twin`.
    Embedded,
    /// kube-apiserver with etcd, and nothing else.
    Real,
}

impl Kind {
    /// For the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Real => "kube-apiserver + etcd",
        }
    }
}

enum Programs {
    Embedded(Running),
    Real(RealApiServer),
}

/// A running cluster with the definitions of Argo CD's kinds.
pub(super) struct Platform {
    programs: Programs,
    kubeconfig: PathBuf,
    pub cluster: Cluster,
    _folder: TempDir,
}

impl Platform {
    /// Starts one.
    pub(super) async fn start(kind: Kind, tiphys: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (programs, kubeconfig) = match kind {
            Kind::Embedded => {
                let kubeconfig = folder.path().join("kubeconfig");
                let mut command = Command::new(tiphys);
                command.arg("twin").arg("--kubeconfig").arg(&kubeconfig);
                (Programs::Embedded(Running::start(&mut command, "Kubernetes ")?.0), kubeconfig)
            }
            Kind::Real => {
                let server = RealApiServer::start()?;
                let kubeconfig = server.kubeconfig();
                (Programs::Real(server), kubeconfig)
            }
        };
        let cluster = Cluster::connect(Some(&kubeconfig), None).await?.cluster;
        let platform = Self { programs, kubeconfig, cluster, _folder: folder };
        for namespace in [ENGINE, "bench"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            platform.apply(&object).await?;
        }
        let definitions = fs::read_to_string(workspace_root().join("deploy/install/crds.yaml"))?;
        for document in definitions.split("---\n").filter(|text| text.contains("kind:")) {
            platform.apply(&tiphys_yaml::from_yaml(document)?).await?;
        }
        Ok(platform)
    }

    /// The administrator's kubeconfig.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Processor time of the API server, and of etcd where there is one.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        let ids = match &self.programs {
            Programs::Embedded(twin) => vec![twin.id()],
            Programs::Real(server) => server.ids(),
        };
        ids.into_iter().map(|id| Ok(process_usage(id)?.cpu)).sum()
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let options =
            ApplyOptions { field_manager: "bench".into(), force: true, dry_run: false, validate: false };
        self.cluster.apply(object, &options).await.map(drop).context("cannot apply")
    }

    /// The resource of Applications. The definition may be served only a moment after it was accepted.
    pub(super) async fn applications(&self) -> anyhow::Result<Resource> {
        let kind = GroupVersionKind::new("argoproj.io", "v1alpha1", "Application");
        for _ in 0..600 {
            if let Ok(resource) = self.cluster.resource(&kind).await {
                return Ok(resource);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.cluster.resource(&kind).await.context("Applications are not served")
    }

    /// Creates automated Applications of the folders of a repository.
    pub(super) async fn create_applications(
        &self,
        repository: &Repository,
        count: usize,
    ) -> anyhow::Result<()> {
        self.applications().await?;
        let url = repository.url();
        stream::iter(0..count)
            .map(|number| {
                let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                    "metadata": {"name": format!("app-{number}"), "namespace": ENGINE},
                    "spec": {"project": "default", "source": {"repoURL": url, "targetRevision": "main", "path": format!("apps/{number}")},
                        "destination": {"server": "https://kubernetes.default.svc", "namespace": "bench"},
                        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}});
                async move { self.cluster.create(&object, "bench", false).await.map(drop) }
            })
            .buffer_unordered(PARALLEL)
            .try_collect::<()>()
            .await?;
        Ok(())
    }

    /// Asks for a look at an Application.
    pub(super) async fn refresh(&self, number: usize) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        let resource = self.applications().await?;
        let name = format!("app-{number}");
        self.cluster.patch(&resource, (ENGINE, &name), "", PatchType::Merge, &patch, "bench").await?;
        Ok(())
    }
}
