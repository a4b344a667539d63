//! What generators of ApplicationSets look for, in words.

use tiphys_value::Value;

/// How deep generators stand in each other, at most: a matrix of merges of others, and some room.
const MAX_DEPTH: usize = 16;

/// What generators look for where none of them asks for clusters, to be told of a set that yields nothing: the paths
/// in Git, and lists without elements. Empty if there is nothing to tell.
pub fn looked_for(generators: &Value) -> String {
    let mut found = Vec::new();
    collect(generators, 0, &mut found);
    found.dedup();
    found.join(", ")
}

fn collect(value: &Value, depth: usize, found: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(list) => list.iter().for_each(|item| collect(item, depth + 1, found)),
        Value::Object(map) => {
            for (key, child) in map {
                match key.as_str() {
                    "matrix" | "merge" | "generators" => collect(child, depth + 1, found),
                    "git" => found.extend(paths(child)),
                    "list" if is_empty(child) => found.push("an empty list".to_owned()),
                    _ => {}
                }
            }
        }
        _ => {}
    }
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
}
