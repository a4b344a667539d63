//! A kustomization as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{options::JsonMap, resid::Gvk};

type Texts = BTreeMap<String, String>;

fn is_false(value: &bool) -> bool {
    !value
}

/// All fields of a kustomization file, older spellings included until [`super::legacy`] moves them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Kustomization {
    pub api_version: String,
    pub kind: String,
    pub openapi: Texts,
    pub name_prefix: String,
    pub name_suffix: String,
    pub namespace: String,
    pub common_labels: Option<Texts>,
    pub labels: Vec<Label>,
    pub common_annotations: Texts,
    pub patches_strategic_merge: Option<Vec<String>>,
    #[serde(rename = "patchesJson6902")]
    pub patches_json6902: Option<Vec<Patch>>,
    pub patches: Vec<Patch>,
    pub images: Vec<Image>,
    pub image_tags: Option<Vec<Image>>,
    pub replacements: Vec<ReplacementField>,
    pub replicas: Vec<Replica>,
    pub vars: Option<Vec<Var>>,
    pub sort_options: Option<SortOptions>,
    pub resources: Vec<String>,
    pub components: Vec<String>,
    pub crds: Vec<String>,
    pub bases: Option<Vec<String>>,
    pub config_map_generator: Vec<GeneratorArgs>,
    pub secret_generator: Vec<GeneratorArgs>,
    pub helm_globals: Option<HelmGlobals>,
    pub helm_charts: Vec<HelmChart>,
    pub helm_chart_inflation_generator: Vec<OldHelmChart>,
    pub generator_options: Option<GeneratorOptions>,
    pub configurations: Vec<String>,
    pub generators: Vec<String>,
    pub transformers: Vec<String>,
    pub validators: Vec<String>,
    pub build_metadata: Vec<String>,
}

/// An entry of `labels`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Label {
    pub pairs: Texts,
    pub include_selectors: bool,
    pub include_templates: bool,
    pub fields: Vec<FieldSpec>,
}

/// Where a transformer writes: a path in objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FieldSpec {
    #[serde(flatten)]
    pub gvk: Gvk,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "is_false")]
    pub create: bool,
}

/// Which objects: each part an anchored regular expression, empty for any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Selector {
    #[serde(flatten)]
    pub gvk: Gvk,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub annotation_selector: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label_selector: String,
}

/// What a patch may change beside content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PatchOptions {
    #[serde(skip_serializing_if = "is_false")]
    pub allow_name_change: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub allow_kind_change: bool,
}

/// An entry of `patches` or `patchesJson6902`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Patch {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub patch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<PatchOptions>,
}

/// An entry of `images`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Image {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag_suffix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_tag: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// An entry of `replicas`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Replica {
    pub name: String,
    pub count: i64,
}

/// How part of a field is read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FieldOptions {
    pub delimiter: String,
    pub index: i64,
    pub create: bool,
}

/// The field that a replacement copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Source {
    #[serde(flatten)]
    pub gvk: Gvk,
    pub name: String,
    pub namespace: String,
    pub field_path: String,
    pub options: Option<FieldOptions>,
}

/// The fields that a replacement sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Target {
    pub select: Option<Selector>,
    pub reject: Vec<Selector>,
    pub field_paths: Vec<String>,
    pub options: Option<FieldOptions>,
}

/// An entry of `replacements`: inline, or a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReplacementField {
    pub source: Option<Source>,
    pub targets: Option<Vec<Target>>,
    pub source_value: Option<String>,
    pub path: String,
}

/// The object that a var reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VarTarget {
    pub api_version: String,
    #[serde(flatten)]
    pub gvk: Gvk,
    pub name: String,
    pub namespace: String,
}

/// The field that a var reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VarField {
    pub field_path: String,
}

/// An entry of `vars`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Var {
    pub name: String,
    pub objref: VarTarget,
    pub fieldref: VarField,
}

/// `sortOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SortOptions {
    pub order: String,
    pub legacy_sort_options: Option<LegacySortOptions>,
}

/// `sortOptions.legacySortOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LegacySortOptions {
    pub order_first: Vec<String>,
    pub order_last: Vec<String>,
}

/// `generatorOptions`, and `options` of a generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct GeneratorOptions {
    pub labels: Texts,
    pub annotations: Texts,
    pub disable_name_suffix_hash: bool,
    pub immutable: bool,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GeneratorArgs {
    pub namespace: String,
    pub name: String,
    pub behavior: String,
    pub literals: Vec<String>,
    pub files: Vec<String>,
    pub envs: Vec<String>,
    pub env: String,
    pub options: Option<GeneratorOptions>,
    /// Of secrets only.
    pub r#type: String,
}

/// `helmGlobals`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HelmGlobals {
    pub chart_home: String,
    pub config_home: String,
}

/// An entry of `helmCharts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HelmChart {
    pub name: String,
    pub version: String,
    pub repo: String,
    pub release_name: String,
    pub namespace: String,
    pub additional_values_files: Vec<String>,
    pub values_file: String,
    pub values_inline: JsonMap,
    pub values_merge: String,
    #[serde(rename = "includeCRDs")]
    pub include_crds: bool,
    pub skip_hooks: bool,
    pub api_versions: Vec<String>,
    pub kube_version: String,
    pub name_template: String,
    pub skip_tests: bool,
    pub debug: bool,
    pub devel: bool,
}

/// An entry of the old `helmChartInflationGenerator`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OldHelmChart {
    pub chart_name: String,
    pub chart_version: String,
    pub chart_repo_url: String,
    pub chart_home: String,
    pub helm_home: String,
    pub values: String,
    pub values_local: JsonMap,
    pub values_merge: String,
    pub release_name: String,
}
