//! The resources that a CustomResourceDefinition adds.

use std::{cmp::Reverse, sync::Arc};

use tiphys_schema::StructuralSchema;
use tiphys_value::{GroupVersionKind, ObjectExt, Value};

use super::{Resource, Subresource};
use crate::store::{Object, ResourceId};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// What the definition says of one version of a custom resource.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    /// Name of the definition.
    pub crd: String,
    /// The whole definition.
    pub definition: Arc<Object>,
    pub schema: Option<StructuralSchema>,
    /// The schema of the version in which objects are stored, if that is another one and prunes.
    stored: Option<StructuralSchema>,
    /// The CEL rules of the schema, if it has any.
    pub rules: Option<tiphys_expr::cel::Rules>,
    pub preserve_unknown: bool,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    /// `additionalPrinterColumns`, or an empty list.
    pub columns: Vec<Value>,
    /// JSON paths that field selectors may name.
    pub selectable: Vec<String>,
    /// Warning sent with every request, if the version is deprecated.
    pub deprecation: Option<String>,
    pub terminating: bool,
}

/// JSON paths of the scale subresource.
#[derive(Debug)]
pub(crate) struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// The served versions of a definition; none unless its names have been accepted and it is established.
pub(super) fn resources_of(crd: &Arc<Object>) -> Vec<Resource> {
    if !has_condition(crd, "Established") {
        return Vec::new();
    }
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|v| v["served"] == true);
    served.filter_map(|version| resource_of(crd, version)).collect()
}

/// Whether a condition of a definition is `True`.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True")
}

fn resource_of(crd: &Arc<Object>, version: &Value) -> Option<Resource> {
    let group = crd.str_at(&["spec", "group"])?;
    let names = crd.at(&["spec", "names"])?;
    let (plural, kind) = (names.str_at(&["plural"])?, names.str_at(&["kind"])?);
    let name = version.str_at(&["name"])?;
    let gvk = GroupVersionKind::new(group, name, kind);
    let storage = crd.at(&["spec", "versions"])?.as_array()?.iter().find(|v| v["storage"] == true)?;
    let custom = custom_version(crd, version, &gvk);
    let terminating = custom.terminating;
    let verbs = VERBS.iter().filter(|v| !terminating || **v != "create").map(|v| (*v).to_owned()).collect();
    Some(Resource {
        id: ResourceId::new(group, plural),
        plural: plural.to_owned(),
        singular: names.str_at(&["singular"]).map_or_else(|| kind.to_lowercase(), str::to_owned),
        list_kind: names.str_at(&["listKind"]).map_or_else(|| format!("{kind}List"), str::to_owned),
        short_names: texts(names.at(&["shortNames"])),
        categories: texts(names.at(&["categories"])),
        namespaced: crd.str_at(&["spec", "scope"]) == Some("Namespaced"),
        verbs,
        subresources: subresources(&custom, &gvk),
        storage_version: storage.str_at(&["name"])?.to_owned(),
        kind: &crate::kinds::CUSTOM,
        custom: Some(custom),
        gvk,
    })
}

fn custom_version(crd: &Arc<Object>, version: &Value, gvk: &GroupVersionKind) -> CustomVersion {
    let subresources = version.at(&["subresources"]);
    let scale = subresources.and_then(|s| s.at(&["scale"])).map(|scale| ScalePaths {
        spec_replicas: scale.str_at(&["specReplicasPath"]).unwrap_or_default().to_owned(),
        status_replicas: scale.str_at(&["statusReplicasPath"]).unwrap_or_default().to_owned(),
        label_selector: scale.str_at(&["labelSelectorPath"]).map(str::to_owned),
    });
    let selectable = version.at(&["selectableFields"]).and_then(Value::as_array);
    CustomVersion {
        crd: crd.name().to_owned(),
        definition: Arc::clone(crd),
        schema: version.at(&["schema", "openAPIV3Schema"]).map(StructuralSchema::new),
        rules: version.at(&["schema", "openAPIV3Schema"]).and_then(tiphys_expr::cel::Rules::new),
        preserve_unknown: crd.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)),
        has_status: subresources.is_some_and(|s| s.at(&["status"]).is_some()),
        scale,
        columns: version
            .at(&["additionalPrinterColumns"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default(),
        selectable: selectable
            .into_iter()
            .flatten()
            .filter_map(|f| f.str_at(&["jsonPath"]))
            .map(|p| p.trim_start_matches('.').to_owned())
            .collect(),
        deprecation: (version["deprecated"] == true)
            .then(|| version.str_at(&["deprecationWarning"]).map(str::to_owned))
            .map(|given| given.unwrap_or_else(|| default_warning(crd, gvk))),
        stored: stored_schema(crd, version),
        terminating: crd.is_terminating(),
    }
}

impl CustomVersion {
    /// What prunes an object when it is stored in another version.
    pub(crate) fn storage_schema(&self) -> Option<&StructuralSchema> {
        self.stored.as_ref()
    }
}

/// The schema of the stored version, if it is not `version` and prunes.
fn stored_schema(crd: &Object, version: &Value) -> Option<StructuralSchema> {
    if version["storage"] == true || crd["spec"]["preserveUnknownFields"] == true {
        return None;
    }
    let stored = crd["spec"]["versions"].as_array()?.iter().find(|version| version["storage"] == true)?;
    stored.at(&["schema", "openAPIV3Schema"]).map(StructuralSchema::new)
}

/// What is said of a deprecated version that says nothing itself: the newest one to use instead, if there is
/// one.
fn default_warning(crd: &Object, gvk: &GroupVersionKind) -> String {
    let text = format!("{}/{} {} is deprecated", gvk.group, gvk.version, gvk.kind);
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true && version["deprecated"] != true);
    let names = served.filter_map(|version| version.str_at(&["name"]));
    let newer = names.filter(|name| version_priority(name) < version_priority(&gvk.version));
    match newer.min_by_key(|name| version_priority(name)) {
        Some(newest) => format!("{text}; use {}/{newest} {}", gvk.group, gvk.kind),
        None => text,
    }
}

fn subresources(custom: &CustomVersion, gvk: &GroupVersionKind) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut list = Vec::new();
    if custom.has_status {
        list.push(Subresource { name: "status".into(), gvk: gvk.clone(), verbs: verbs() });
    }
    if custom.scale.is_some() {
        let gvk = GroupVersionKind::new("autoscaling", "v1", "Scale");
        list.push(Subresource { name: "scale".into(), gvk, verbs: verbs() });
    }
    list
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Sorts versions as discovery does: `v10`, `v2`, `v1`, `v2beta1`, `v1alpha1`, then the rest by name.
pub(super) fn version_priority(version: &str) -> (u8, Reverse<u64>, Reverse<u64>, String) {
    let stable = |text: &str| text.parse::<u64>().ok();
    let rest = version.strip_prefix('v');
    let parts = rest.and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = stable(&rest[..digits])?;
        let (class, minor) = match &rest[digits..] {
            "" => (0, 0),
            tail => match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
                (Some(minor), _) => (1, stable(minor)?),
                (_, Some(minor)) => (2, stable(minor)?),
                _ => return None,
            },
        };
        Some((class, major, minor))
    });
    match parts {
        Some((class, major, minor)) => (class, Reverse(major), Reverse(minor), String::new()),
        None => (3, Reverse(0), Reverse(0), version.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_stable_version_first() {
        let mut versions = ["foo1", "v1alpha1", "v1", "v2beta1", "v10", "v2"];
        versions.sort_by_key(|v| version_priority(v));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1alpha1", "foo1"]);
    }
}
