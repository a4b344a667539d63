//! The template of an ApplicationSet: what a generator's own one overrides, and what `templatePatch` changes
//! afterwards.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use tiphys_merge::strategic_merge;
use tiphys_model::Application;
use tiphys_schema::{Catalog, Definition, Field, Type, TypeRef};
use tiphys_value::{Budget, ObjectExt, json_within};

/// Deeper templates are taken as they are.
const MAX_DEPTH: usize = 64;
/// Fields that are replaced as a whole.
const WHOLE: &str = "valuesObject";

/// The set's template with what a generator's own one says: what that leaves empty is the set's.
pub(crate) fn merge_override(template: &Value, generator: &Value, kind: &str) -> Value {
    let own = generator.at(&[kind, "template"]).filter(|own| own.is_object());
    let Some(own) = own else { return template.clone() };
    let mut out = own.clone();
    fill(&mut out, template, 0);
    out
}

/// Fills what is empty. As Go sees it, so are `false` and `0`.
fn fill(target: &mut Value, from: &Value, depth: usize) {
    let is_empty = match &*target {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(_) => false,
    };
    match (&mut *target, from) {
        (Value::Object(target), Value::Object(from)) if depth < MAX_DEPTH => {
            for (key, value) in from {
                match target.get_mut(key) {
                    Some(have) if key != WHOLE || have.is_null() => fill(have, value, depth + 1),
                    Some(_) => {}
                    None => drop(target.insert(key.clone(), value.clone())),
                }
            }
        }
        (target, from) if is_empty && !is_nothing(from) => *target = from.clone(),
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Whether a template, an Application or a patch of one has the types that the fields of Applications have.
///
/// # Errors
/// It has not; the message names the field.
pub(crate) fn check_types(object: &Value) -> Result<(), String> {
    let parts: Map<String, Value> = ["metadata", "spec"]
        .into_iter()
        .filter_map(|part| Some((part.to_owned(), object.get(part)?.clone())))
        .collect();
    match Application::from_value(&Value::Object(parts)) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {}", error.path, error.message)),
    }
}

/// An Application with a rendered `templatePatch`. The project stays: no patch leads out of it.
///
/// # Errors
/// The patch cannot be read or applied.
pub(crate) fn apply_patch(application: &Value, text: &str) -> Result<Value, String> {
    let is_json = text.trim_start().starts_with('{');
    let mut patch: Value = if is_json {
        json_within(text.as_bytes(), &Budget::of_document()).map_err(|error| error.to_string())
    } else {
        tiphys_yaml::from_yaml(text).map_err(|error| error.to_string())
    }
    .map_err(|error| format!("error while converting template to json {text:?}: {error}"))?;
    if patch.is_null() {
        return Ok(application.clone());
    }
    if !patch.is_object() {
        return Err(format!("invalid templatePatch {patch}: it is no mapping"));
    }
    check_types(&patch).map_err(|error| format!("invalid templatePatch {patch}: {error}"))?;
    let mut out = strategic_merge(application, &mut patch, Some(application_type()))
        .map_err(|error| format!("error while applying templatePatch template to json {patch}: {error}"))?;
    match application.at(&["spec", "project"]) {
        Some(project) => out["spec"]["project"] = project.clone(),
        None => {
            drop(out.get_mut("spec").and_then(Value::as_object_mut).and_then(|spec| spec.remove("project")))
        }
    }
    for part in ["metadata", "spec"] {
        if !out[part].is_object() {
            out[part] = json!({});
        }
    }
    Ok(out)
}

/// What strategic merge has to know of Applications: their metadata is that of all objects (finalizers are
/// added to), and below `spec` nothing says how lists are merged.
fn application_type() -> TypeRef<'static> {
    static TYPE: LazyLock<Type> = LazyLock::new(|| {
        let metadata = Catalog::latest().reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let mut definition = Definition { others: Some(Type::Any), ..Definition::default() };
        definition.fields.insert("metadata".into(), Field::plain(metadata.unwrap_or(Type::Any)));
        for part in ["spec", "status", "operation"] {
            definition.fields.insert(part.into(), Field::plain(Type::Any));
        }
        Type::Object(definition.into())
    });
    TypeRef::new(Catalog::latest(), &TYPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generators_own_template_says_what_it_does_not_leave_empty() {
        let template = json!({"metadata": {"name": "set", "labels": {"a": "1", "b": "1"}}, "spec": {"project": "p",
            "source": {"helm": {"valuesObject": {"x": 1}, "valueFiles": ["a"]}},
            "syncPolicy": {"automated": {"prune": true}}}});
        let own = json!({"metadata": {"name": "", "labels": {"b": "2"}}, "spec": {"project": "q",
            "source": {"helm": {"valuesObject": {"y": 2}, "valueFiles": []}, "directory": {}},
            "syncPolicy": {"automated": {"prune": false}}}});
        let generator = json!({"list": {"template": own}});
        let expected = json!({"metadata": {"name": "set", "labels": {"a": "1", "b": "2"}}, "spec": {"project": "q",
            "source": {"helm": {"valuesObject": {"y": 2}, "valueFiles": ["a"]}, "directory": {}},
            "syncPolicy": {"automated": {"prune": true}}}});
        assert_eq!(merge_override(&template, &generator, "list"), expected);
        assert_eq!(merge_override(&template, &json!({"git": {}}), "git"), template);
        let automated = json!({"list": {"template": {"spec": {"syncPolicy": {"automated": {}}}}}});
        let filled = merge_override(&json!({"spec": {"project": "p"}}), &automated, "list");
        assert_eq!(filled, json!({"spec": {"project": "p", "syncPolicy": {"automated": {}}}}));
    }

    #[test]
    fn a_patch_merges_as_the_api_server_would_and_leaves_the_project() {
        let app = json!({"metadata": {"name": "a", "finalizers": ["x"]}, "spec": {"project": "p",
            "sources": [{"repoURL": "r"}], "source": {"helm": {"values": "a", "skipCrds": true}}}});
        let patch = "metadata: {finalizers: [z], labels: {a: b}}\nspec:\n  project: q\n  sources: [{repoURL: s}]\n  source:\n    helm: {$patch: replace, values: b}\n";
        let expected = json!({"metadata": {"name": "a", "finalizers": ["z", "x"], "labels": {"a": "b"}},
            "spec": {"project": "p", "sources": [{"repoURL": "s"}], "source": {"helm": {"values": "b"}}}});
        assert_eq!(apply_patch(&app, patch), Ok(expected));
        assert_eq!(apply_patch(&app, ""), Ok(app.clone()));
        for wrong in
            ["spec: {project: 1}", "[]", "{spec: {}}", "spec: {syncPolicy: {automated: {prune: 'true'}}}"]
        {
            assert!(apply_patch(&app, wrong).is_err(), "{wrong}");
        }
    }
}
