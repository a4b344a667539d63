//! The CustomResourceDefinitions of Application, ApplicationSet and AppProject: the same API as Argo CD's,
//! with structural schemas of our own.

mod application;
mod applicationset;
mod appproject;
mod schema;

use serde_json::{Value, json};

use crate::names;

/// A definition by its parts.
struct Definition {
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    columns: Value,
    subresources: Value,
    schema: Value,
}

/// Application, AppProject, ApplicationSet, ready to be applied.
pub fn definitions() -> Vec<Value> {
    let columns = json!([
        column("Sync Status", ".status.sync.status", 0),
        column("Health Status", ".status.health.status", 0),
        column("Revision", ".status.sync.revision", 10),
        column("Project", ".spec.project", 10),
    ]);
    [
        Definition {
            kind: "Application",
            plural: "applications",
            short: &["app", "apps"],
            columns,
            subresources: json!({}),
            schema: application::schema(),
        },
        Definition {
            kind: "AppProject",
            plural: "appprojects",
            short: &["appproj", "appprojs"],
            columns: Value::Null,
            subresources: Value::Null,
            schema: appproject::schema(),
        },
        Definition {
            kind: "ApplicationSet",
            plural: "applicationsets",
            short: &["appset", "appsets"],
            columns: Value::Null,
            subresources: json!({"status": {}}),
            schema: applicationset::schema(),
        },
    ]
    .map(emit)
    .into()
}

fn column(name: &str, path: &str, priority: i64) -> Value {
    json!({"name": name, "jsonPath": path, "type": "string", "priority": priority})
}

fn emit(definition: Definition) -> Value {
    let Definition { kind, plural, short, columns, subresources, schema } = definition;
    let mut version = json!({
        "name": "v1alpha1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
    });
    for (field, value) in [("additionalPrinterColumns", columns), ("subresources", subresources)] {
        if !value.is_null() {
            version[field] = value;
        }
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{}", names::GROUP),
            "labels": {"app.kubernetes.io/name": format!("{plural}.{}", names::GROUP), "app.kubernetes.io/part-of": "argocd"},
        },
        "spec": {
            "group": names::GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
                "shortNames": short,
            },
            "versions": [version],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every node of a structural schema has a type, or says that it keeps anything.
    fn check(schema: &Value, path: &str) {
        let free = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
            || schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
        assert!(free || schema.get("type").is_some_and(Value::is_string), "{path} has no type");
        for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            check(child, &format!("{path}.{name}"));
        }
        for part in ["items", "additionalProperties"] {
            if let Some(child) = schema.get(part) {
                check(child, &format!("{path}.{part}"));
            }
        }
    }

    #[test]
    fn schemas_are_structural() {
        for definition in definitions() {
            let version = &definition["spec"]["versions"][0];
            check(
                &version["schema"]["openAPIV3Schema"],
                definition["spec"]["names"]["kind"].as_str().expect("kind"),
            );
        }
    }

    #[test]
    fn schemas_know_every_field_of_the_types() {
        let value = json!({"metadata": {"name": "a"}, "spec": {"project": "p", "revisionHistoryLimit": 3,
            "source": {"repoURL": "r", "helm": {"skipTests": true}, "kustomize": {"images": ["a"]}},
            "destination": {"namespace": "n"}, "syncPolicy": {"automated": {"prune": true}, "retry": {"limit": 1, "refresh": true}}}});
        let app = crate::Application::from_value(&value).expect("valid");
        assert!(app.spec.other.is_empty() && app.spec.source.as_ref().is_some_and(|s| s.other.is_empty()));
        let schema = application::schema();
        let source = &schema["properties"]["spec"]["properties"]["source"]["properties"];
        assert_eq!(source["kustomize"]["properties"]["images"]["items"]["type"], "string");
        assert_eq!(source["helm"]["properties"]["skipTests"]["type"], "boolean");
    }
}
