//! The form that Argo CD writes the specs of Applications in: what says nothing is left out, so that
//! what is generated does not fight with what a controller or the CLI wrote.

use serde_json::{Map, Value, from_value};
use tiphys_model::{ApplicationSpec, DirectorySource, HelmSource, KustomizeSource, SyncPolicy};
use tiphys_value::ObjectExt;

/// Name of the project of Applications that name none.
const DEFAULT_PROJECT: &str = "default";

/// Brings the spec of an Application into that form.
pub(crate) fn normalize(app: &mut Value) {
    let Some(spec) = app.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("project").and_then(Value::as_str).unwrap_or_default().is_empty() {
        spec.insert("project".to_owned(), DEFAULT_PROJECT.into());
    }
    drop_if(spec, "syncPolicy", |part| from_value(part).map(|policy| has_no_rules(&policy)));
    let sources = spec.get_mut("sources").and_then(Value::as_array_mut).filter(|list| !list.is_empty());
    match sources {
        Some(sources) => sources.iter_mut().for_each(normalize_source),
        None => spec.get_mut("source").into_iter().for_each(normalize_source),
    }
}

fn normalize_source(source: &mut Value) {
    let Some(source) = source.as_object_mut() else { return };
    drop_if(source, "kustomize", |part| from_value(part).map(changes_nothing));
    drop_if(source, "helm", |part| from_value(part).map(sets_nothing));
    drop_if(source, "directory", |part| {
        from_value(part).map(|directory: DirectorySource| directory.is_empty())
    });
}

fn has_no_rules(policy: &SyncPolicy) -> bool {
    policy.automated.is_none()
        && policy.sync_options.is_empty()
        && policy.retry.is_none()
        && policy.managed_namespace_metadata.is_none()
}

fn sets_nothing(helm: HelmSource) -> bool {
    let has_values = match &helm.values_object {
        Some(object) => object.as_object().is_none_or(|object| !object.is_empty()),
        None => !helm.values.is_empty(),
    };
    !has_values && HelmSource { values: String::new(), values_object: None, ..helm }.is_empty()
}

/// Switches that only say how labels and annotations are set do not count where there are none to set.
fn changes_nothing(kustomize: KustomizeSource) -> bool {
    KustomizeSource {
        force_common_labels: false,
        force_common_annotations: false,
        common_annotations_envsubst: false,
        label_without_selector: false,
        label_include_templates: false,
        ..kustomize
    }
    .is_empty()
}

/// Takes a part out that says nothing. One that cannot be read stays: the API server tells of it.
fn drop_if(
    map: &mut Map<String, Value>,
    key: &str,
    says_nothing: impl Fn(Value) -> Result<bool, serde_json::Error>,
) {
    let Some(part) = map.get(key) else { return };
    if part.is_null() || says_nothing(part.clone()).unwrap_or(false) {
        map.remove(key);
    }
}

/// Whether two Applications ask for the same, whatever they leave out or say without effect.
pub(crate) fn is_same_spec(one: &Value, other: &Value) -> bool {
    let spec = |app: &Value| {
        let mut app = app.clone();
        normalize(&mut app);
        app.at(&["spec"]).and_then(|spec| from_value::<ApplicationSpec>(spec.clone()).ok())
    };
    match (spec(one), spec(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.get("spec") == other.get("spec"),
    }
}
