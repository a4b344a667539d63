//! What a build may do, and what it is given from outside.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use serde_json::Value;
use tiphys_value::RenderLimits;
use tiphys_vfs::FileTree;

use crate::{FunctionRunner, RepoUrl};

/// `spec.source.kustomize` of an Application.
///
/// Argo CD applies them with `kustomize edit` on the checked-out file, in this order: name prefix,
/// name suffix, images, replicas, labels, annotations, namespace, patches, components. Here they
/// change the loaded kustomization only; nothing is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlay {
    /// `namePrefix`; empty leaves the kustomization's.
    pub name_prefix: String,
    /// `nameSuffix`; empty leaves the kustomization's.
    pub name_suffix: String,
    /// `images`: `[old=]name[:tag][@digest]`.
    pub images: Vec<String>,
    /// `replicas`: name and count.
    pub replicas: Vec<(String, i64)>,
    /// `commonLabels`.
    pub common_labels: BTreeMap<String, String>,
    /// `forceCommonLabels`: overwrite labels that the kustomization has already.
    pub force_common_labels: bool,
    /// `labelWithoutSelector`: do not touch selectors.
    pub label_without_selector: bool,
    /// `labelIncludeTemplates`: with the former, label pod templates too.
    pub label_include_templates: bool,
    /// `commonAnnotations`.
    pub common_annotations: BTreeMap<String, String>,
    /// `forceCommonAnnotations`.
    pub force_common_annotations: bool,
    /// `commonAnnotationsEnvsubst`: substitute `env` in annotations.
    pub common_annotations_envsubst: bool,
    /// `namespace`; empty leaves the kustomization's.
    pub namespace: String,
    /// `patches`, as in a kustomization.
    pub patches: Vec<serde_json::Value>,
    /// `components`: paths relative to the kustomization.
    pub components: Vec<String>,
    /// `ignoreMissingComponents`.
    pub ignore_missing_components: bool,
    /// Build environment (`ARGOCD_APP_NAME`, …) for `$VAR` and `${VAR}` in images and labels.
    pub env: BTreeMap<String, String>,
}

/// Which files a kustomization may name (`--load-restrictor`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadRestrictor {
    /// Files in or below its own folder.
    #[default]
    RootOnly,
    /// Any file of the tree.
    None,
}

/// Order of the output where the kustomization has no `sortOptions` (`--reorder`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reorder {
    /// Namespaces first, webhooks last, and so on: what `kustomize build` does by default.
    #[default]
    Legacy,
    /// The order in which the objects were loaded.
    None,
}

/// Bounds on what one build may read and make, so that hostile input ends in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Kustomizations within kustomizations.
    pub depth: usize,
    /// Objects in the result at any moment.
    pub objects: usize,
    /// Nodes that one file may have once its aliases are expanded.
    pub nodes_per_file: usize,
    /// Kustomization files read in one build.
    pub kustomizations: usize,
    /// Bytes of all that is read and made, about, whether it is still used or not.
    pub memory: u64,
    /// How long the build may take, beside what it waits for: networks, charts and functions.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 64,
            objects: 100_000,
            nodes_per_file: 4_000_000,
            kustomizations: 10_000,
            // Most of what a build makes is gone before it ends.
            memory: RenderLimits::current().memory * 2,
            time: RenderLimits::current().time,
        }
    }
}

/// Fetches what a kustomization names by URL. Implemented over Git and HTTP by the `source` crate.
pub trait RemoteLoader: Send + Sync {
    /// The working tree of a repository at the wanted revision.
    ///
    /// # Errors
    /// A text that says why; it becomes part of the build's error.
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError>;

    /// The body of an HTTP(S) URL.
    ///
    /// # Errors
    /// A text that says why; it becomes part of the build's error.
    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError>;

    /// The files of a chart of a chart repository or registry, `Chart.yaml` at the root: what `helm pull`
    /// would bring. The version is exact, a constraint, or empty for the newest.
    ///
    /// # Errors
    /// A text that says why; it becomes part of the build's error.
    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError>;
}

/// Why something remote could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The server answered with a status outside 200–299.
    #[error("status code {code} ({text})")]
    Status {
        /// HTTP status code.
        code: u16,
        /// Its reason phrase.
        text: String,
    },
    /// It took longer than allowed.
    #[error("hit {}s timeout running '{what}'", limit.as_secs())]
    Timeout {
        /// The limit that was exceeded.
        limit: Duration,
        /// What was done.
        what: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// One entry of `helmCharts`, ready to be rendered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartRequest {
    /// `name`.
    pub name: String,
    /// `releaseName`; empty means a generated name.
    pub release_name: String,
    /// `namespace`, or the kustomization's, or a parent kustomization's.
    pub namespace: String,
    /// `nameTemplate`.
    pub name_template: String,
    /// Values documents in the order of precedence, last wins; each is YAML text.
    pub values: Vec<String>,
    /// `includeCRDs`.
    pub include_crds: bool,
    /// `skipHooks`.
    pub skip_hooks: bool,
    /// `skipTests`.
    pub skip_tests: bool,
    /// `apiVersions`.
    pub api_versions: Vec<String>,
    /// `kubeVersion`.
    pub kube_version: String,
}

/// Renders charts named by `helmCharts`. Implemented over the `helm` crate.
pub trait ChartInflator: Send + Sync {
    /// The output of `helm template` for a request; the chart is the folder of that name in `tree`.
    ///
    /// # Errors
    /// A text that says why; it becomes part of the build's error.
    fn inflate(&self, tree: &dyn FileTree, folder: &str, request: &ChartRequest) -> Result<String, String>;
}

/// What a build may do. [`Default`] is `kustomize build` without flags.
#[derive(Clone, Default)]
pub struct BuildOptions {
    /// Which files kustomizations may name.
    pub load_restrictor: LoadRestrictor,
    /// Order where `sortOptions` says nothing.
    pub reorder: Reorder,
    /// Label every object with `app.kubernetes.io/managed-by` (`--enable-managedby-label`).
    pub managed_by_label: bool,
    /// Whether `helmCharts` may be rendered (`--enable-helm`).
    pub enable_helm: bool,
    /// Kubernetes version for charts (`--helm-kube-version`); wins over the kustomization's.
    pub helm_kube_version: Option<String>,
    /// API versions for charts (`--helm-api-versions`); win over the kustomization's.
    pub helm_api_versions: Vec<String>,
    /// Renders charts; without it `helmCharts` is an error.
    pub chart_inflator: Option<Arc<dyn ChartInflator>>,
    /// Fetches remote bases and files; without it they are an error.
    pub remote_loader: Option<Arc<dyn RemoteLoader>>,
    /// Runs the functions and exec plugins that are allowed; without it every one is refused.
    pub function_runner: Option<Arc<dyn FunctionRunner>>,
    /// Options of an Argo CD Application, applied to the kustomization that is built.
    pub overlay: Option<Overlay>,
    /// Whether to record where every field came from (costs about a third more time).
    pub origins: bool,
    /// The absolute path of the tree's root, for texts that name folders; empty prints tree paths.
    pub display_root: String,
    /// Whether objects that patches and replica counts name may be missing: such a patch is left out. For
    /// looking at a build of which a part is out of reach; kustomize has nothing like it.
    pub partial: bool,
    /// Whether resources, generators and components that do not build are left out, so that the rest of a
    /// build that fails can be looked at; kustomize has nothing like it.
    pub skips_faults: bool,
    /// Bounds on input and result.
    pub limits: Limits,
}

impl fmt::Debug for BuildOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildOptions")
            .field("load_restrictor", &self.load_restrictor)
            .field("reorder", &self.reorder)
            .field("enable_helm", &self.enable_helm)
            .field("overlay", &self.overlay)
            .field("origins", &self.origins)
            .field("display_root", &self.display_root)
            .finish_non_exhaustive()
    }
}

/// A JSON value as an object's map, for values given inline.
pub(crate) type JsonMap = serde_json::Map<String, Value>;
