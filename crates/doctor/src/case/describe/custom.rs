//! Custom resources, of which kubectl prints every field, with the words of a name parted.

use tiphys_value::{Value, json};

use super::text::{Field, fields};

/// Fields nested deeper than this tell nothing that is needed.
const DEEPEST: usize = 12;

pub(super) fn resource(described: &[Field<'_>]) -> Value {
    /// Fields that are read elsewhere.
    const OTHERS: &[&str] = &["Metadata", "Labels", "Annotations", "Events"];
    let mut live = json!({});
    for field in described.iter().filter(|field| !OTHERS.contains(&field.key)) {
        if !field.lines.is_empty() {
            live[name(field.key)] = listed(&name(field.key), nested(&field.lines, 0));
        } else if !field.value.is_empty()
            && !matches!(field.key, "Name" | "Namespace" | "API Version" | "Kind")
        {
            live[name(field.key)] = plain(field.value);
        }
    }
    live
}

/// Adds what the section of metadata tells: times, finalizers, owners.
pub(super) fn add_metadata(described: &[Field<'_>], metadata: &mut Value) {
    let Some(field) = described.iter().find(|field| field.key == "Metadata") else { return };
    let told = nested(&field.lines, 0);
    for key in ["creationTimestamp", "deletionTimestamp", "generation", "finalizers"] {
        if let Some(value) = told.get(key) {
            metadata[key] = value.clone();
        }
    }
    if let Some(owners) = told.get("ownerReferences") {
        metadata["ownerReferences"] = listed("ownerReferences", owners.clone());
    }
}

/// Names of fields that hold a list, also where there is one item only.
const LISTS: &[&str] = &[
    "conditions",
    "webhooks",
    "rules",
    "ownerReferences",
    "versions",
    "listeners",
    "parents",
    "parentRefs",
    "backendRefs",
    "triggers",
    "dependsOn",
    "entries",
    "resources",
    "errors",
    "byPod",
    "subsets",
];

/// A value as a list, if its name is one of a list.
fn listed(name: &str, told: Value) -> Value {
    let is_list = LISTS.contains(&name) || name.ends_with("onditions");
    if is_list && told.is_object() { json!([told]) } else { told }
}

/// The object, or the list of objects where a name comes again, that some lines tell.
fn nested(lines: &[&str], depth: usize) -> Value {
    let mut items: Vec<Value> = vec![json!({})];
    let all = fields(lines);
    // Words without a name are a list of words.
    if all.is_empty() {
        return lines.iter().map(|line| plain(line.trim())).collect();
    }
    for field in all {
        let name = name(field.key);
        let is_again = items.last().is_some_and(|item| item.get(&name).is_some());
        if is_again {
            items.push(json!({}));
        }
        let told = if field.lines.is_empty() || depth >= DEEPEST {
            plain(field.value)
        } else {
            listed(&name, nested(&field.lines, depth + 1))
        };
        if let Some(item) = items.last_mut() {
            item[name] = told;
        }
    }
    if items.len() == 1 { items.remove(0) } else { json!(items) }
}

/// `Last Transition Time` is `lastTransitionTime`.
fn name(title: &str) -> String {
    let joined: String = title.split_whitespace().collect();
    let mut letters = joined.chars();
    letters.next().map(|first| first.to_ascii_lowercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// A value: statuses of conditions are words, numbers are numbers.
fn plain(text: &str) -> Value {
    match text {
        "true" => json!(true),
        "false" => json!(false),
        _ => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
    }
}
