//! The Git generator: one set of parameters for each directory, or for each file (or element of it).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tiphys_gocompat::glob::path_match;
use tiphys_model::glob;
use tiphys_value::ObjectExt;

use crate::{Inputs, Params, params, render::Renderer};

/// The sets that a Git generator yields.
pub(crate) fn run(git: &Value, renderer: &Renderer, inputs: &dyn Inputs) -> Result<Vec<Params>, String> {
    let text = |key: &str| git.str_at(&[key]).unwrap_or_default();
    let files = inputs.git(text("repoURL"), text("revision"))?;
    let prefix = text("pathParamPrefix");
    let mut sets = Vec::new();
    if let Some(rules) = git.get("directories").and_then(Value::as_array) {
        for directory in directories(&files.files()) {
            if selected(rules, &directory, is_directory_meant) {
                sets.push(placed(&directory, None, prefix, renderer));
            }
        }
    } else if let Some(rules) = git.get("files").and_then(Value::as_array) {
        for path in files.files().iter().filter(|path| selected(rules, path, is_file_meant)) {
            let content = tiphys_yaml::from_yaml(&files.read(path)?)
                .map_err(|error| format!("unable to parse file {path}: {error}"))?;
            for element in elements(content, path)? {
                sets.push(from_file(element, path, prefix, renderer));
            }
        }
    } else {
        return Err("the git generator has neither directories nor files".into());
    }
    Ok(sets)
}

fn elements(content: Value, path: &str) -> Result<Vec<Params>, String> {
    let object = |value: Value| match value {
        Value::Object(map) => Ok(map),
        _ => Err(format!("unable to parse file {path}: it holds neither an object nor a list of objects")),
    };
    match content {
        Value::Null => Ok(vec![Params::new()]),
        Value::Array(list) => list.into_iter().map(object).collect(),
        other => object(other).map(|map| vec![map]),
    }
}

fn from_file(element: Params, path: &str, prefix: &str, renderer: &Renderer) -> Params {
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
    let mut set = if renderer.is_go() { element } else { params::flatten(&element) };
    params::overlay(&mut set, &placed(directory, Some(name), prefix, renderer), 0);
    set
}

/// All directories above files, hidden ones left out.
fn directories(files: &[String]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for file in files {
        let mut rest = file.as_str();
        while let Some((directory, _)) = rest.rsplit_once('/') {
            if !directory.split('/').any(|part| part.starts_with('.')) {
                all.insert(directory.to_owned());
            }
            rest = directory;
        }
    }
    all
}

/// Whether one rule includes a path and none excludes it.
fn selected(rules: &[Value], path: &str, is_meant: fn(&str, &str) -> bool) -> bool {
    let hits = |exclude: bool| {
        rules.iter().any(|rule| {
            let is_exclude = rule.get("exclude") == Some(&Value::Bool(true));
            let pattern = rule.str_at(&["path"]).unwrap_or_default();
            is_exclude == exclude && is_meant(pattern, path)
        })
    };
    hits(false) && !hits(true)
}

/// Argo CD matches directories by Go's `path.Match`, where two stars are one; a malformed pattern matches nothing.
fn is_directory_meant(pattern: &str, directory: &str) -> bool {
    path_match(pattern, directory) == Ok(true)
}

/// Argo CD lets Git list files, whose patterns (gitglossary, "pathspec") have no separator; a path means all that lies
/// below it, too. Braces are for those who have switched the newer patterns on.
fn is_file_meant(pattern: &str, file: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let below = file.strip_prefix(pattern.trim_end_matches('/'));
    below.is_some_and(|below| below.starts_with('/')) || glob::matches(pattern, file)
}

/// The parameters that tell a place in the repository.
fn placed(directory: &str, file: Option<&str>, prefix: &str, renderer: &Renderer) -> Params {
    let base = directory.rsplit('/').next().unwrap_or(directory);
    let segments: Vec<&str> = directory.split('/').collect();
    let mut place = json!({
        "path": directory,
        "basename": base,
        "basenameNormalized": params::normalize(base),
        "segments": segments,
    });
    if let Some(file) = file {
        place["filename"] = file.into();
        place["filenameNormalized"] = params::normalize(file).into();
    }
    if renderer.is_go() {
        let mut set = Params::new();
        set.insert("path".into(), place);
        if prefix.is_empty() {
            return set;
        }
        return Params::from_iter([(prefix.to_owned(), Value::Object(set))]);
    }
    let root = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
    let mut set = Params::new();
    set.insert(root.clone(), directory.into());
    for (name, value) in place.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "path" | "segments") {
            set.insert(format!("{root}.{name}"), value.clone());
        }
    }
    for (index, segment) in segments.iter().enumerate() {
        set.insert(format!("{root}[{index}]"), (*segment).into());
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_meant_as_go_matches_paths() {
        for (pattern, directory, expected) in [
            ("apps/*", "apps/a", true),
            ("apps/*", "apps/a/b", false),
            ("apps/**", "apps/a", true),
            ("apps/**", "apps/a/b", false),
            ("{a,b}", "a", false),
            ("[^a]*", "b", true),
            ("[", "[", false),
        ] {
            assert_eq!(is_directory_meant(pattern, directory), expected, "{pattern} {directory}");
        }
    }

    #[test]
    fn files_are_meant_as_git_lists_them() {
        for (pattern, file, expected) in [
            ("apps/*.yaml", "apps/a/b.yaml", true),
            ("**/b.yaml", "a/b.yaml", true),
            ("**/b.yaml", "b.yaml", false),
            ("apps", "apps/a/b.yaml", true),
            ("apps/", "apps/a/b.yaml", true),
            ("app", "apps/a/b.yaml", false),
            ("./apps/a.yaml", "apps/a.yaml", true),
        ] {
            assert_eq!(is_file_meant(pattern, file), expected, "{pattern} {file}");
        }
    }
}
