//! The CustomResourceDefinitions of Argo CD's kinds, as far as an API server has to know them: names,
//! columns, and what every object must have. What the fields mean is the model's.

use tiphys_value::{Value, json};

/// Application, ApplicationSet and AppProject.
pub fn definitions() -> Vec<Value> {
    let application_columns = json!([
        column("Sync Status", ".status.sync.status", 0),
        column("Health Status", ".status.health.status", 0),
        column("Revision", ".status.sync.revision", 10),
        column("Project", ".spec.project", 10),
    ]);
    let application = json!({
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": open(json!({
                "destination": open(json!({}), &[]),
                "project": {"type": "string"},
                "source": open(json!({}), &[]),
                "sources": {"type": "array", "items": open(json!({}), &[])},
            }), &["destination", "project"]),
            "status": open_any(),
            "operation": open_any(),
        },
    });
    vec![
        definition("Application", "applications", &["app", "apps"], application_columns, application),
        definition("AppProject", "appprojects", &["appproj", "appprojs"], json!([]), with_spec()),
        definition("ApplicationSet", "applicationsets", &["appset", "appsets"], json!([]), with_spec()),
    ]
}

fn column(name: &str, path: &str, priority: i64) -> Value {
    json!({"name": name, "jsonPath": path, "type": "string", "priority": priority})
}

/// An object of which some fields are known and all are kept.
fn open(properties: Value, required: &[&str]) -> Value {
    let mut schema =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn open_any() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn with_spec() -> Value {
    json!({
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": open_any(),
            "status": open_any(),
        },
    })
}

fn definition(kind: &str, plural: &str, short: &[&str], columns: Value, schema: Value) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.argoproj.io"), "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular, "shortNames": short},
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}
