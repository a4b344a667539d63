//! The kustomize options of an Argo CD Application, as an edit of the kustomization in memory.

use std::collections::BTreeMap;

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
