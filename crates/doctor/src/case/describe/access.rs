//! Cluster roles and their bindings.

use tiphys_value::{Value, json};

use super::text::{Field, below, cell, fields, rows, value};

pub(super) fn role(described: &[Field<'_>]) -> Value {
    let table = rows(below(described, "PolicyRule"));
    let list = |text: &str| -> Vec<String> {
        text.trim_matches(['[', ']']).split_whitespace().map(str::to_owned).collect()
    };
    let rules = table.iter().filter(|row| cell(row, "Verbs").starts_with('[')).map(|row| {
        // `deployments.apps/scale`
        let named = cell(row, "Resources");
        let (named, part) = named.split_once('/').map_or((named, None), |(name, part)| (name, Some(part)));
        let (resource, group) = named.split_once('.').unwrap_or((named, ""));
        let resource = part.map_or_else(|| resource.to_owned(), |part| format!("{resource}/{part}"));
        let mut rule =
            json!({"apiGroups": [group], "resources": [resource], "verbs": list(cell(row, "Verbs"))});
        let names = list(cell(row, "Resource Names"));
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    });
    json!({"rules": rules.collect::<Vec<Value>>()})
}

pub(super) fn binding(described: &[Field<'_>]) -> Value {
    let role = fields(below(described, "Role"));
    let text = |title: &str| value(&role, title).unwrap_or_default();
    let table = rows(below(described, "Subjects"));
    let subjects = table.iter().map(
        |row| json!({"kind": cell(row, "Kind"), "name": cell(row, "Name"), "namespace": cell(row, "Namespace")}),
    );
    json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": text("Kind"), "name": text("Name")},
        "subjects": subjects.collect::<Vec<Value>>(),
    })
}
