//! The Git generator: one set of parameters for each directory, or for each file (or element of it).

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::Value as Json;
use tiphys_gocompat::{
    glob::{BadPattern, doublestar, path_match, pathspec},
    path,
};
use tiphys_gotemplate::{Map, Value};
use tiphys_value::ObjectExt;

use crate::{Inputs, Params, generator::template_params, params, render::Renderer};

/// The sets that a Git generator yields.
pub(crate) fn run(git: &Json, renderer: &Renderer, inputs: &dyn Inputs) -> Result<Vec<Map>, String> {
    let text = |key: &str| git.str_at(&[key]).unwrap_or_default();
    let rules = |key: &str| git.get(key).and_then(Json::as_array).filter(|rules| !rules.is_empty());
    if text("repoURL").is_empty() {
        return Err("repoURL is empty: nothing says which repository to look into".into());
    }
    let prefix = text("pathParamPrefix");
    let mut sets = Vec::new();
    if let Some(rules) = rules("directories") {
        let files = inputs.git(text("repoURL"), text("revision"))?;
        let rules: Vec<Rule> = rules.iter().map(Rule::from_json).collect();
        for directory in directories(&files.files(), inputs.sees_hidden_directories()) {
            if selected(&rules, &directory, is_directory_meant)? {
                let set = Map::new();
                place(&set, &directory, None, prefix, renderer);
                sets.push(set);
            }
        }
    } else if let Some(rules) = rules("files") {
        let is_new = inputs.has_new_file_globbing();
        let is_meant = if is_new { is_file_meant_anew } else { is_file_meant };
        let rules = rules.iter().map(Rule::from_json);
        let rules = rules
            .map(
                |rule| {
                    if is_new { Ok(rule) } else { Ok(Rule { path: as_git_takes_it(&rule.path)?, ..rule }) }
                },
            )
            .collect::<Result<Vec<_>, String>>()?;
        let files = inputs.git(text("repoURL"), text("revision"))?;
        for file in &files.files() {
            if !selected(&rules, file, is_meant)? {
                continue;
            }
            let content = tiphys_yaml::from_yaml(&files.read(file)?)
                .map_err(|error| format!("unable to parse file {file}: {error}"))?;
            for element in elements(content, file)? {
                let set = template_params(&element, renderer);
                place(&set, &path::dir(file), Some(path::base(file)), prefix, renderer);
                sets.push(set);
            }
        }
    } else {
        return Err("the git generator has neither directories nor files".into());
    }
    Ok(sets)
}

/// The sets of a file: an object, a list of objects, or nothing; null is an object without fields.
fn elements(content: Json, file: &str) -> Result<Vec<Params>, String> {
    let object = |value: Json| match value {
        Json::Object(map) => Ok(map),
        Json::Null => Ok(Params::new()),
        _ => Err(format!("unable to parse file {file}: it holds neither an object nor a list of objects")),
    };
    match content {
        Json::Array(list) => list.into_iter().map(object).collect(),
        other => object(other).map(|map| vec![map]),
    }
}

/// All directories above files, hidden ones left out unless they are wanted, each before those below it.
fn directories(files: &[String], with_hidden: bool) -> Vec<String> {
    let mut all = BTreeSet::new();
    for file in files {
        let mut rest = file.as_str();
        while let Some((directory, _)) = rest.rsplit_once('/') {
            if with_hidden || !directory.split('/').any(|part| part.starts_with('.')) {
                all.insert(directory.to_owned());
            }
            rest = directory;
        }
    }
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort_by(|a, b| walked(a, b));
    all
}

/// The order in which a walk through folders meets two of them.
fn walked(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}

/// Whether a pattern means a path.
type IsMeant = fn(&str, &str) -> Result<bool, BadPattern>;

/// A pattern of paths, and whether it takes them out.
struct Rule {
    path: String,
    is_excluding: bool,
}

impl Rule {
    fn from_json(rule: &Json) -> Self {
        Self {
            path: rule.str_at(&["path"]).unwrap_or_default().to_owned(),
            is_excluding: rule.get("exclude") == Some(&Json::Bool(true)),
        }
    }
}

/// Whether one rule includes a path and none excludes it.
fn selected(rules: &[Rule], path: &str, is_meant: IsMeant) -> Result<bool, String> {
    let (mut included, mut excluded) = (false, false);
    for rule in rules {
        let pattern = &rule.path;
        let is_hit = is_meant(pattern, path).map_err(|error| format!("path {pattern}: {error}"))?;
        match rule.is_excluding {
            true => excluded |= is_hit,
            false => included |= is_hit,
        }
    }
    Ok(included && !excluded)
}

/// Argo CD matches directories by Go's `path.Match`, where two stars are one; a malformed pattern matches
/// nothing.
fn is_directory_meant(pattern: &str, directory: &str) -> Result<bool, BadPattern> {
    Ok(path_match(pattern, directory) == Ok(true))
}

/// Argo CD lets Git list files, whose patterns (gitglossary, "pathspec") have no separator; a path means all
/// that lies below it, too. Braces, which Git does not know, are for repositories whose installation has the
/// newer patterns and is not known here.
fn is_file_meant(pattern: &str, file: &str) -> Result<bool, BadPattern> {
    let below = file.strip_prefix(pattern.trim_end_matches('/'));
    let is_below = pattern.is_empty() || below.is_some_and(|below| below.starts_with('/'));
    Ok(is_below || pathspec(pattern, file))
}

/// A pattern of files as Git takes it: without empty parts, `.` and `..`. Parts are empty where a parameter
/// is.
///
/// # Errors
/// It does not lie in the repository, for which Git fails.
fn as_git_takes_it(pattern: &str) -> Result<String, String> {
    if pattern.is_empty() {
        return Err("a path of the files is empty; `.` means all of them".into());
    }
    let outside = || {
        format!(
            "path {pattern} lies outside the repository: a path starts at its root, with neither `/` nor `../` \
             before it"
        )
    };
    if pattern.starts_with('/') {
        return Err(outside());
    }
    let mut parts = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or_else(outside)?),
            part => parts.push(part),
        }
    }
    let end = if pattern.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    Ok(parts.join("/") + end)
}

/// The newer patterns, below the root of the repository.
fn is_file_meant_anew(pattern: &str, file: &str) -> Result<bool, BadPattern> {
    doublestar(path::clean(pattern).trim_start_matches('/'), file)
}

/// Adds the parameters that tell a place in the repository. Where templates see trees, they are all there is
/// below `path`, or below the prefix.
fn place(set: &Map, directory: &str, file: Option<&str>, prefix: &str, renderer: &Renderer) {
    let base = path::base(directory);
    let mut facts = vec![("basename", base.to_owned()), ("basenameNormalized", params::normalize(base))];
    if let Some(file) = file {
        facts.extend([("filename", file.to_owned()), ("filenameNormalized", params::normalize(file))]);
    }
    if renderer.is_go() {
        let facts: Map = facts.into_iter().chain([("path", directory.to_owned())]).collect();
        facts.insert("segments", Value::strings(directory.split('/')));
        match prefix {
            "" => set.insert("path", facts),
            prefix => set.insert(prefix, Map::from_iter([("path", facts)])),
        }
        return;
    }
    let root = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
    for (name, fact) in facts {
        set.insert(format!("{root}.{name}"), fact);
    }
    for (index, segment) in directory.split('/').enumerate() {
        set.insert(format!("{root}[{index}]"), segment);
    }
    set.insert(root, directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_directories_are_left_out_unless_they_are_wanted() {
        let files = ["a/b/x", ".c/d/x", "e/.f/x"].map(str::to_owned);
        assert_eq!(directories(&files, false), ["a", "a/b", "e"]);
        assert_eq!(directories(&files, true), [".c", ".c/d", "a", "a/b", "e", "e/.f"]);
    }

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
            assert_eq!(is_directory_meant(pattern, directory), Ok(expected), "{pattern} {directory}");
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
            ("apps//*/a.yaml", "apps/b/a.yaml", true),
            ("apps/./b/../a.yaml", "apps/a.yaml", true),
            ("*/../a.yaml", "a.yaml", true),
            (".", "apps/a.yaml", true),
            ("a.yaml/", "a.yaml", false),
        ] {
            let pattern = as_git_takes_it(pattern).unwrap();
            assert_eq!(is_file_meant(&pattern, file), Ok(expected), "{pattern} {file}");
        }
        for outside in ["", "/apps/a.yaml", "../a.yaml", "apps/../../a.yaml"] {
            assert!(as_git_takes_it(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn newer_patterns_stop_at_folders() {
        for (pattern, file, expected) in [
            ("apps/*.yaml", "apps/a/b.yaml", false),
            ("**/b.yaml", "b.yaml", true),
            ("apps", "apps/a/b.yaml", false),
            ("./apps/{a,b}.yaml", "apps/b.yaml", true),
            ("/apps//a.yaml", "apps/a.yaml", true),
        ] {
            assert_eq!(is_file_meant_anew(pattern, file), Ok(expected), "{pattern} {file}");
        }
        assert!(is_file_meant_anew("[", "a").is_err());
    }
}
