//! A source of an Application in Protobuf (Argo CD, `pkg/apis/application/v1alpha1/generated.proto`), and the
//! same as the engine has it. The way leads over the JSON form, which is the API's own.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use serde_json::Value;
use tiphys_model::ApplicationSource;

/// `ApplicationSource`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    /// `repoURL`.
    #[prost(string, tag = "1")]
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// `path`.
    #[prost(string, tag = "2")]
    pub path: String,
    /// `targetRevision`.
    #[prost(string, tag = "4")]
    pub target_revision: String,
    /// `helm`.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<Helm>,
    /// `kustomize`.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<Kustomize>,
    /// `directory`.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Directory>,
    /// `plugin`.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Plugin>,
    /// `chart`.
    #[prost(string, tag = "12")]
    pub chart: String,
    /// `ref`.
    #[prost(string, tag = "13")]
    #[serde(rename = "ref")]
    pub reference: String,
    /// `name`.
    #[prost(string, tag = "14")]
    pub name: String,
    /// `tagPrefix`.
    #[prost(string, tag = "15")]
    pub tag_prefix: String,
}

impl Source {
    /// The source as the engine has it.
    ///
    /// # Errors
    /// A value in it is not of its type.
    pub(super) fn to_model(&self) -> Result<ApplicationSource, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(self)?)
    }
}

/// `helm`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Helm {
    /// `valueFiles`.
    #[prost(string, repeated, tag = "1")]
    pub value_files: Vec<String>,
    /// `parameters`.
    #[prost(message, repeated, tag = "2")]
    pub parameters: Vec<HelmParameter>,
    /// `releaseName`.
    #[prost(string, tag = "3")]
    pub release_name: String,
    /// `values`.
    #[prost(string, tag = "4")]
    pub values: String,
    /// `fileParameters`.
    #[prost(message, repeated, tag = "5")]
    pub file_parameters: Vec<HelmFileParameter>,
    /// `version`.
    #[prost(string, tag = "6")]
    pub version: String,
    /// `passCredentials`.
    #[prost(bool, tag = "7")]
    pub pass_credentials: bool,
    /// `ignoreMissingValueFiles`.
    #[prost(bool, tag = "8")]
    pub ignore_missing_value_files: bool,
    /// `skipCrds`.
    #[prost(bool, tag = "9")]
    pub skip_crds: bool,
    /// `valuesObject`.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_object: Option<RawExtension>,
    /// `namespace`.
    #[prost(string, tag = "11")]
    pub namespace: String,
    /// `kubeVersion`.
    #[prost(string, tag = "12")]
    pub kube_version: String,
    /// `apiVersions`.
    #[prost(string, repeated, tag = "13")]
    pub api_versions: Vec<String>,
    /// `skipTests`.
    #[prost(bool, tag = "14")]
    pub skip_tests: bool,
    /// `skipSchemaValidation`.
    #[prost(bool, tag = "15")]
    pub skip_schema_validation: bool,
}

/// Anything, as JSON text.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RawExtension {
    /// The text.
    #[prost(bytes = "vec", tag = "1")]
    pub raw: Vec<u8>,
}

impl Serialize for RawExtension {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_slice(&self.raw).map_err(serde::ser::Error::custom)?;
        value.serialize(to)
    }
}

/// One of `helm.parameters`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HelmParameter {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `value`.
    #[prost(string, tag = "2")]
    pub value: String,
    /// `forceString`.
    #[prost(bool, tag = "3")]
    pub force_string: bool,
}

/// One of `helm.fileParameters`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct HelmFileParameter {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `path`.
    #[prost(string, tag = "2")]
    pub path: String,
}

/// `kustomize`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kustomize {
    /// `namePrefix`.
    #[prost(string, tag = "1")]
    pub name_prefix: String,
    /// `nameSuffix`.
    #[prost(string, tag = "2")]
    pub name_suffix: String,
    /// `images`.
    #[prost(string, repeated, tag = "3")]
    pub images: Vec<String>,
    /// `commonLabels`.
    #[prost(map = "string, string", tag = "4")]
    pub common_labels: HashMap<String, String>,
    /// `version`.
    #[prost(string, tag = "5")]
    pub version: String,
    /// `commonAnnotations`.
    #[prost(map = "string, string", tag = "6")]
    pub common_annotations: HashMap<String, String>,
    /// `forceCommonLabels`.
    #[prost(bool, tag = "7")]
    pub force_common_labels: bool,
    /// `forceCommonAnnotations`.
    #[prost(bool, tag = "8")]
    pub force_common_annotations: bool,
    /// `namespace`.
    #[prost(string, tag = "9")]
    pub namespace: String,
    /// `commonAnnotationsEnvsubst`.
    #[prost(bool, tag = "10")]
    pub common_annotations_envsubst: bool,
    /// `replicas`.
    #[prost(message, repeated, tag = "11")]
    pub replicas: Vec<KustomizeReplica>,
    /// `patches`.
    #[prost(message, repeated, tag = "12")]
    pub patches: Vec<KustomizePatch>,
    /// `components`.
    #[prost(string, repeated, tag = "13")]
    pub components: Vec<String>,
    /// `labelWithoutSelector`.
    #[prost(bool, tag = "14")]
    pub label_without_selector: bool,
    /// `kubeVersion`.
    #[prost(string, tag = "15")]
    pub kube_version: String,
    /// `apiVersions`.
    #[prost(string, repeated, tag = "16")]
    pub api_versions: Vec<String>,
    /// `ignoreMissingComponents`.
    #[prost(bool, tag = "17")]
    pub ignore_missing_components: bool,
    /// `labelIncludeTemplates`.
    #[prost(bool, tag = "18")]
    pub label_include_templates: bool,
}

/// One of `kustomize.replicas`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct KustomizeReplica {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `count`.
    #[prost(message, optional, tag = "2")]
    pub count: Option<IntOrString>,
}

/// A whole number or a text.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IntOrString {
    /// Which of them: 0 is the number.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    /// The number.
    #[prost(int32, tag = "2")]
    pub number: i32,
    /// The text.
    #[prost(string, tag = "3")]
    pub text: String,
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.kind == 0 { to.serialize_i32(self.number) } else { to.serialize_str(&self.text) }
    }
}

/// One of `kustomize.patches`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct KustomizePatch {
    /// `path`.
    #[prost(string, tag = "1")]
    pub path: String,
    /// `patch`.
    #[prost(string, tag = "2")]
    pub patch: String,
    /// `target`.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<KustomizeSelector>,
    /// `options`.
    #[prost(map = "string, bool", tag = "4")]
    pub options: HashMap<String, bool>,
}

/// `target` of a patch; in JSON one map with what it holds.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KustomizeSelector {
    /// The names.
    #[prost(message, optional, tag = "1")]
    #[serde(flatten)]
    pub resource: Option<KustomizeResource>,
    /// `annotationSelector`.
    #[prost(string, tag = "2")]
    pub annotation_selector: String,
    /// `labelSelector`.
    #[prost(string, tag = "3")]
    pub label_selector: String,
}

/// The names in the `target` of a patch.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct KustomizeResource {
    /// The kind.
    #[prost(message, optional, tag = "1")]
    #[serde(flatten)]
    pub kind: Option<KustomizeKind>,
    /// `name`.
    #[prost(string, tag = "2")]
    pub name: String,
    /// `namespace`.
    #[prost(string, tag = "3")]
    pub namespace: String,
}

/// The kind in the `target` of a patch.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct KustomizeKind {
    /// `group`.
    #[prost(string, tag = "1")]
    pub group: String,
    /// `version`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// `kind`.
    #[prost(string, tag = "3")]
    pub kind: String,
}

/// `directory`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct Directory {
    /// `recurse`.
    #[prost(bool, tag = "1")]
    pub recurse: bool,
    /// `jsonnet`.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonnet: Option<Jsonnet>,
    /// `exclude`.
    #[prost(string, tag = "3")]
    pub exclude: String,
    /// `include`.
    #[prost(string, tag = "4")]
    pub include: String,
}

/// `directory.jsonnet`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Jsonnet {
    /// `extVars`.
    #[prost(message, repeated, tag = "1")]
    pub ext_vars: Vec<JsonnetVar>,
    /// `tlas`.
    #[prost(message, repeated, tag = "2")]
    pub tlas: Vec<JsonnetVar>,
    /// `libs`.
    #[prost(string, repeated, tag = "3")]
    pub libs: Vec<String>,
}

/// A Jsonnet variable.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct JsonnetVar {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `value`.
    #[prost(string, tag = "2")]
    pub value: String,
    /// `code`.
    #[prost(bool, tag = "3")]
    pub code: bool,
}

/// `plugin`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct Plugin {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `env`.
    #[prost(message, repeated, tag = "2")]
    pub env: Vec<NameValue>,
    /// `parameters`.
    #[prost(message, repeated, tag = "3")]
    pub parameters: Vec<PluginParameter>,
}

/// A name and a value.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct NameValue {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `value`.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// One of `plugin.parameters`.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct PluginParameter {
    /// `name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `map`.
    #[prost(message, optional, tag = "3")]
    #[serde(flatten)]
    pub map: Option<TextMap>,
    /// `array`.
    #[prost(message, optional, tag = "4")]
    #[serde(flatten)]
    pub array: Option<TextArray>,
    /// `string`.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
}

/// A map that may be absent.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct TextMap {
    /// `map`.
    #[prost(map = "string, string", tag = "1")]
    pub map: HashMap<String, String>,
}

/// A list that may be absent.
#[derive(Clone, PartialEq, prost::Message, Serialize)]
pub(super) struct TextArray {
    /// `array`.
    #[prost(string, repeated, tag = "1")]
    pub array: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_what_its_json_says() {
        let source = Source {
            repo_url: "https://git.example/a".to_owned(),
            path: "web".to_owned(),
            target_revision: "main".to_owned(),
            helm: Some(Helm {
                value_files: vec!["$ref/values.yaml".to_owned()],
                values_object: Some(RawExtension { raw: br#"{"a":{"b":null}}"#.to_vec() }),
                ..Helm::default()
            }),
            kustomize: Some(Kustomize {
                replicas: vec![KustomizeReplica {
                    name: "web".to_owned(),
                    count: Some(IntOrString { kind: 0, number: 3, text: String::new() }),
                }],
                patches: vec![KustomizePatch {
                    patch: "[]".to_owned(),
                    target: Some(KustomizeSelector {
                        resource: Some(KustomizeResource {
                            kind: Some(KustomizeKind {
                                kind: "Deployment".to_owned(),
                                ..KustomizeKind::default()
                            }),
                            name: "web".to_owned(),
                            namespace: String::new(),
                        }),
                        ..KustomizeSelector::default()
                    }),
                    ..KustomizePatch::default()
                }],
                ..Kustomize::default()
            }),
            plugin: Some(Plugin {
                parameters: vec![
                    PluginParameter {
                        name: "s".to_owned(),
                        string: Some("text".to_owned()),
                        ..PluginParameter::default()
                    },
                    PluginParameter {
                        name: "a".to_owned(),
                        array: Some(TextArray { array: vec!["one".to_owned()] }),
                        ..PluginParameter::default()
                    },
                ],
                ..Plugin::default()
            }),
            directory: Some(Directory { recurse: true, ..Directory::default() }),
            ..Source::default()
        };
        let expected = json!({
            "repoURL": "https://git.example/a", "path": "web", "targetRevision": "main",
            "helm": {"valueFiles": ["$ref/values.yaml"], "valuesObject": {"a": {"b": null}}},
            "kustomize": {
                "replicas": [{"name": "web", "count": 3}],
                "patches": [{"patch": "[]", "target": {"kind": "Deployment", "name": "web"}}],
            },
            "plugin": {"parameters": [{"name": "s", "string": "text"}, {"name": "a", "array": ["one"]}]},
            "directory": {"recurse": true},
        });
        let expected: ApplicationSource = serde_json::from_value(expected).expect("is a source");
        assert_eq!(source.to_model().expect("is one"), expected);
    }

    #[test]
    fn values_that_are_no_json_are_refused() {
        let values_object = Some(RawExtension { raw: b"{".to_vec() });
        let source = Source { helm: Some(Helm { values_object, ..Helm::default() }), ..Source::default() };
        assert!(source.to_model().is_err());
    }
}
