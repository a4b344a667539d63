//! `ApplicationSource` and what it holds for each rendering tool (Argo CD API reference,
//! "ApplicationSource"). Field names are those of the API in camel case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where the manifests of an Application come from and how they are rendered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSource {
    /// Git repository, Helm repository, or `oci://` address.
    #[serde(rename = "repoURL", skip_serializing_if = "String::is_empty")]
    pub repo_url: String,
    /// Directory in the repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Branch, tag, commit, semver range, or chart version; empty means `HEAD`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_revision: String,
    /// Chart name; set means that `repo_url` is a Helm repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chart: String,
    /// Name under which other sources refer to files of this one as `$name/…`.
    #[serde(rename = "ref", skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// Display name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix that tags bear before their version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag_prefix: String,
    /// Helm options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmSource>,
    /// Kustomize options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<KustomizeSource>,
    /// Plain directory options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectorySource>,
    /// Config management plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginSource>,
    /// Fields unknown to this version, kept for write-back.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Which rendering tool a source names explicitly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SourceType {
    /// Helm chart.
    Helm,
    /// Kustomization.
    Kustomize,
    /// Plain manifests, JSON, Jsonnet.
    Directory,
    /// Config management plugin.
    Plugin,
}

/// Whether sources that a status recorded are those that are wanted. Who writes a status by a merge patch, as
/// Argo CD does, loses the nulls of Helm's values: it takes them for removals.
pub fn is_record_of(recorded: &[ApplicationSource], wanted: &[ApplicationSource]) -> bool {
    let values =
        |source: &ApplicationSource| source.helm.as_ref().and_then(|helm| helm.values_object.clone());
    recorded == wanted
        || (recorded.len() == wanted.len()
            && recorded.iter().zip(wanted).all(|(recorded, wanted)| {
                let Some(mut left) = values(wanted).filter(has_null) else { return recorded == wanted };
                let mut wanted = wanted.clone();
                drop_nulls(&mut left);
                if let Some(helm) = &mut wanted.helm {
                    helm.values_object = Some(left);
                }
                *recorded == wanted
            }))
}

/// Whether a value is null or holds one.
pub fn has_null(value: &Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Null => return true,
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

fn drop_nulls(value: &mut Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                map.retain(|_, value| !value.is_null());
                open.extend(map.values_mut());
            }
            Value::Array(items) => {
                items.retain(|item| !item.is_null());
                open.extend(items.iter_mut());
            }
            _ => {}
        }
    }
}

impl ApplicationSource {
    /// Whether the source is a chart of a Helm repository.
    pub fn is_helm_repository(&self) -> bool {
        !self.chart.is_empty()
    }

    /// Whether the source is an OCI artifact.
    pub fn is_oci(&self) -> bool {
        self.repo_url.starts_with("oci://")
    }

    /// Whether the source only lends files to others and renders nothing.
    pub fn is_reference_only(&self) -> bool {
        !self.reference.is_empty() && self.path.is_empty() && self.chart.is_empty()
    }

    /// `target_revision`, or `HEAD`.
    pub fn revision_or_head(&self) -> &str {
        if self.target_revision.is_empty() { "HEAD" } else { &self.target_revision }
    }

    /// The tool that the source names, if any.
    ///
    /// # Errors
    /// More than one tool is named; the message lists them as Argo CD does.
    pub fn explicit_type(&self) -> Result<Option<SourceType>, String> {
        let named: Vec<_> = [
            (self.kustomize.as_ref().is_some_and(|k| !k.is_empty()), SourceType::Kustomize),
            (self.helm.as_ref().is_some_and(|h| !h.is_empty()), SourceType::Helm),
            (self.directory.as_ref().is_some_and(|d| !d.is_empty()), SourceType::Directory),
            (self.plugin.is_some(), SourceType::Plugin),
        ]
        .into_iter()
        .filter_map(|(set, kind)| set.then_some(kind))
        .collect();
        match named.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            many => {
                let names: Vec<_> = many.iter().map(|kind| format!("{kind:?}")).collect();
                Err(format!("multiple application sources defined: {}", names.join(",")))
            }
        }
    }
}

/// A name and a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NameValue {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// `helm`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmSource {
    /// Values files, relative to the chart, `/` the repository, `$ref/…`, or a URL; globs allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value_files: Vec<String>,
    /// `--set` and `--set-string`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<HelmParameter>,
    /// Release name; empty means the Application's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release_name: String,
    /// Values as YAML text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub values: String,
    /// `--set-file`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_parameters: Vec<HelmFileParameter>,
    /// Helm version: `v3` and `v4` are known and mean the same as none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Credentials go to other hosts too.
    #[serde(skip_serializing_if = "is_false")]
    pub pass_credentials: bool,
    /// Missing values files are no error.
    #[serde(skip_serializing_if = "is_false")]
    pub ignore_missing_value_files: bool,
    /// The chart's `crds/` are left out.
    #[serde(skip_serializing_if = "is_false")]
    pub skip_crds: bool,
    /// Values as an object; takes the place of `values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_object: Option<Value>,
    /// Release namespace; empty means the destination's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// `--kube-version`; empty means the cluster's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// `--api-versions`; empty means the cluster's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
    /// Test hooks are left out.
    #[serde(skip_serializing_if = "is_false")]
    pub skip_tests: bool,
    /// `values.schema.json` is not consulted.
    #[serde(skip_serializing_if = "is_false")]
    pub skip_schema_validation: bool,
}

impl HelmSource {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One `--set`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmParameter {
    /// Values path.
    pub name: String,
    /// Value.
    pub value: String,
    /// `--set-string` in place of `--set`.
    #[serde(skip_serializing_if = "is_false")]
    pub force_string: bool,
}

/// One `--set-file`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmFileParameter {
    /// Values path.
    pub name: String,
    /// File with the value.
    pub path: String,
}

/// `kustomize`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeSource {
    /// `namePrefix`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name_prefix: String,
    /// `nameSuffix`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name_suffix: String,
    /// Image overrides `[old=]image[:tag|@digest]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Labels for every object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub common_labels: BTreeMap<String, String>,
    /// Kustomize version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Annotations for every object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub common_annotations: BTreeMap<String, String>,
    /// Labels replace those of the kustomization.
    #[serde(skip_serializing_if = "is_false")]
    pub force_common_labels: bool,
    /// Annotations replace those of the kustomization.
    #[serde(skip_serializing_if = "is_false")]
    pub force_common_annotations: bool,
    /// `namespace`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Environment variables are substituted in annotations.
    #[serde(skip_serializing_if = "is_false")]
    pub common_annotations_envsubst: bool,
    /// Replica overrides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<KustomizeReplica>,
    /// Patches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<KustomizePatch>,
    /// Components.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Absent components are no error.
    #[serde(skip_serializing_if = "is_false")]
    pub ignore_missing_components: bool,
    /// Labels do not go to selectors.
    #[serde(skip_serializing_if = "is_false")]
    pub label_without_selector: bool,
    /// Labels go to pod templates.
    #[serde(skip_serializing_if = "is_false")]
    pub label_include_templates: bool,
    /// Kubernetes version for inflated charts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// API versions for inflated charts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
}

impl KustomizeSource {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A replica override.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeReplica {
    /// Name of the workload.
    pub name: String,
    /// Whole number, or its text.
    pub count: Value,
}

/// An inline or file patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizePatch {
    /// File with the patch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The patch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub patch: String,
    /// What it applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<KustomizeSelector>,
    /// Options such as `allowNameChange`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, bool>,
}

/// Target of a patch; empty fields match everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeSelector {
    /// Group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, an anchored regular expression.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace, an anchored regular expression.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Annotation selector.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub annotation_selector: String,
    /// Label selector.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label_selector: String,
}

/// `directory`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DirectorySource {
    /// Subdirectories too.
    #[serde(skip_serializing_if = "is_false")]
    pub recurse: bool,
    /// Jsonnet options.
    #[serde(skip_serializing_if = "JsonnetSource::is_empty")]
    pub jsonnet: JsonnetSource,
    /// Glob of files to leave out; tested before `include`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub exclude: String,
    /// Glob of files to take.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub include: String,
    /// Files of any extension are read.
    #[serde(skip_serializing_if = "is_false")]
    pub disable_extension_filter: bool,
}

impl DirectorySource {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `directory.jsonnet`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonnetSource {
    /// External variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ext_vars: Vec<JsonnetVar>,
    /// Top-level arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tlas: Vec<JsonnetVar>,
    /// Library directories, relative to the repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub libs: Vec<String>,
}

impl JsonnetSource {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A Jsonnet variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonnetVar {
    /// Name.
    pub name: String,
    /// Text, or an expression if `code`.
    pub value: String,
    /// The value is an expression.
    #[serde(skip_serializing_if = "is_false")]
    pub code: bool,
}

/// `plugin`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginSource {
    /// Plugin name; empty means discovery.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<NameValue>,
    /// Parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<PluginParameter>,
}

/// A plugin parameter: a string, a map, or an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginParameter {
    /// Name.
    pub name: String,
    /// Text value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// Map value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<BTreeMap<String, String>>,
    /// Array value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<Vec<String>>,
}

/// `sourceHydrator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceHydrator {
    /// Where the unrendered manifests are.
    pub dry_source: ApplicationSource,
    /// Where the rendered manifests are read.
    pub sync_source: SyncSource,
    /// Where they are written, if not to `sync_source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hydrate_to: Option<HydrateTo>,
}

/// `sourceHydrator.syncSource`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncSource {
    /// Branch.
    pub target_branch: String,
    /// Directory.
    pub path: String,
    /// Repository, if not the dry source's.
    #[serde(rename = "repoURL", skip_serializing_if = "String::is_empty")]
    pub repo_url: String,
}

/// `sourceHydrator.hydrateTo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HydrateTo {
    /// Branch.
    pub target_branch: String,
}

/// For `skip_serializing_if`: Go leaves a false out.
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
