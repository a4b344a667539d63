//! What generators of ApplicationSets look for, in words.

use std::collections::BTreeSet;

use tiphys_value::{ObjectExt as _, Value};

/// How deep generators stand in each other, at most: a matrix of merges of others, and some room.
const MAX_DEPTH: usize = 16;

/// The generators that are made of no others, wherever they stand: what each is called, and what it says.
fn terminals(generators: &Value) -> Vec<(&str, &Value)> {
    fn collect<'a>(value: &'a Value, depth: usize, found: &mut Vec<(&'a str, &'a Value)>) {
        match value {
            _ if depth > MAX_DEPTH => {}
            Value::Array(list) => list.iter().for_each(|item| collect(item, depth + 1, found)),
            Value::Object(map) => {
                for (key, child) in map {
                    match key.as_str() {
                        "matrix" | "merge" | "generators" => collect(child, depth + 1, found),
                        kind => found.push((kind, child)),
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(generators, 0, &mut found);
    found
}

/// Whether generators ask for clusters.
pub(crate) fn ask_for_clusters(generators: &Value) -> bool {
    terminals(generators).iter().any(|(kind, _)| *kind == "clusters")
}

/// What generators ask of clusters, to be told of a set that yields nothing. Empty if any cluster will do.
pub(crate) fn clusters_wanted(generators: &Value) -> String {
    let clusters = terminals(generators).into_iter().filter(|(kind, _)| *kind == "clusters");
    let mut wanted: Vec<String> = clusters.map(|(_, spec)| labels_of(spec.get("selector"))).collect();
    if wanted.iter().any(String::is_empty) {
        return String::new();
    }
    wanted.sort();
    wanted.dedup();
    wanted.join(" or ")
}

/// A selector of labels as `kubectl` writes it.
fn labels_of(selector: Option<&Value>) -> String {
    let exact = selector.and_then(|selector| selector.get("matchLabels")?.as_object());
    let exact = exact.into_iter().flatten();
    let mut told: Vec<String> =
        exact.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    let rules = selector.and_then(|selector| selector.get("matchExpressions")?.as_array());
    for rule in rules.into_iter().flatten() {
        let key = rule.str_at(&["key"]).unwrap_or_default();
        let values = rule.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        told.push(match rule.str_at(&["operator"]).unwrap_or_default() {
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            operator => format!("{key} {} ({})", operator.to_ascii_lowercase(), values.join(",")),
        });
    }
    told.join(",")
}

/// The parameters of a set without Go templates that no generator gave a value, so that they stand in one of
/// its Applications as they are written.
pub(crate) fn left_open<'a>(set: &Value, applications: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    let is_go = set.at(&["spec", "goTemplate"]).and_then(Value::as_bool) == Some(true);
    if is_go {
        return BTreeSet::new();
    }
    let is_name = |name: &str| {
        let name = name.trim();
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'))
    };
    let named = |text: &str| -> BTreeSet<String> {
        let all = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
        all.filter(|name| is_name(name)).map(|name| name.trim().to_owned()).collect()
    };
    // What a parameter's value brings is none of the template's.
    let template = named(&set.at(&["spec", "template"]).map(Value::to_string).unwrap_or_default());
    let left = applications.flat_map(|app| named(&app.to_string()));
    left.filter(|name| template.contains(name)).collect()
}

/// What generators look for other than clusters, to be told of a set that yields nothing: the paths in Git,
/// and lists without elements. Empty if there is nothing to tell.
pub(crate) fn looked_for(generators: &Value) -> String {
    let mut found = Vec::new();
    for (kind, spec) in terminals(generators) {
        match kind {
            "git" => found.extend(paths(spec)),
            "list" if is_empty(spec) => found.push("an empty list".to_owned()),
            _ => {}
        }
    }
    found.dedup();
    found.join(", ")
}

/// What a Git generator takes in: folders or files.
fn paths(git: &Value) -> Vec<String> {
    let of = |field: &str, what: &str| {
        let items = git.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let taken = items.iter().filter(|item| item.get("exclude") != Some(&Value::Bool(true)));
        let taken = taken.filter_map(|item| item.get("path")?.as_str());
        taken.map(|path| format!("{what} {path}")).collect::<Vec<_>>()
    };
    [of("directories", "folders"), of("files", "files")].concat()
}

fn is_empty(list: &Value) -> bool {
    let has_none = list.get("elements").and_then(Value::as_array).is_none_or(Vec::is_empty);
    has_none && list.get("elementsYaml").and_then(Value::as_str).is_none_or(str::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_empty_lists_are_named() {
        let told = |text: &str| looked_for(&tiphys_yaml::from_yaml(text).unwrap());
        assert_eq!(
            told("- git: {directories: [{path: apps/*}, {path: apps/old, exclude: true}]}"),
            "folders apps/*"
        );
        let nested = "- matrix: {generators: [{git: {files: [{path: a.yaml}]}}, {list: {elements: []}}]}";
        assert_eq!(told(nested), "files a.yaml, an empty list");
        assert_eq!(told("- list: {elementsYaml: '{{ x }}'}\n- pullRequest: {}"), "");
    }

    #[test]
    fn what_clusters_are_wanted_is_told_unless_any_will_do() {
        let wanted = |text: &str| clusters_wanted(&tiphys_yaml::from_yaml(text).unwrap());
        let both = "- clusters: {selector: {matchLabels: {env: prod}, matchExpressions: [{key: a, operator: NotIn, values: [b, c]}, {key: d, operator: Exists}]}}
- clusters: {selector: {matchLabels: {env: dev}}}";
        assert_eq!(wanted(both), "env=dev or env=prod,a notin (b,c),d");
        assert_eq!(wanted("- clusters: {}\n- clusters: {selector: {matchLabels: {env: dev}}}"), "");
    }

    #[test]
    fn parameters_without_a_value_are_named() {
        let set = tiphys_yaml::from_yaml(
            "spec: {template: {metadata: {name: '{{name}}-{{ a.b }}'}, spec: {x: '{{.Values.c}}'}}}",
        )
        .unwrap();
        let app = tiphys_yaml::from_yaml(
            "metadata: {name: 'dev-{{ a.b }}'}\nspec: {x: '{{.Values.c}}', y: '{{brought}}'}",
        )
        .unwrap();
        assert_eq!(left_open(&set, [app].iter()).into_iter().collect::<Vec<_>>(), ["a.b"]);
    }

    #[test]
    fn what_asks_for_clusters() {
        let of = |text: &str| tiphys_yaml::from_yaml(text).unwrap();
        let asks = |text: &str| ask_for_clusters(&of(text));
        assert!(asks("- clusters: {}") && asks("- matrix: {generators: [{git: {}}, {clusters: {}}]}"));
        assert!(!asks("- list: {elements: [{clusters: a}]}"));
    }
}
