//! Packages of Node.js: `package.json` and what lies beside it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tiphys_diag::Span;
use tiphys_value::{Budget, json_within};
use tiphys_vfs::parent;

use super::Lines;
use crate::Files;

/// A `package.json`.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its path.
    pub file: Arc<str>,
    /// Its folder.
    pub folder: String,
    /// Its content.
    pub value: Value,
}

/// The packages of a repository by folder.
pub fn packages(files: &Files) -> BTreeMap<String, Package> {
    let found =
        files.ending(&["package.json"]).filter(|path| path.rsplit('/').next() == Some("package.json"));
    found
        .filter_map(|path| {
            let value = json_within(files.text(path)?.as_bytes(), &Budget::of_document()).ok()?;
            let folder = parent(path).unwrap_or_default().to_owned();
            Some((folder.clone(), Package { file: path.clone(), folder, value }))
        })
        .collect()
}

impl Package {
    /// The version range of a dependency of any sort.
    pub fn dependency(&self, name: &str) -> Option<&str> {
        let sorts = ["dependencies", "devDependencies", "peerDependencies"];
        sorts.iter().find_map(|sort| self.value.get(sort)?.get(name)?.as_str())
    }

    /// Its scripts.
    pub fn scripts(&self) -> impl Iterator<Item = (&str, &str)> {
        let scripts = self.value.get("scripts").and_then(Value::as_object);
        scripts.into_iter().flatten().filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)))
    }

    /// The place of a text in it, such as `"eslint":`.
    pub fn span(&self, files: &Files, text: &str) -> Span {
        let Some(content) = files.text(&self.file) else { return Span::point(self.file.clone(), 1, 1) };
        let at = content.find(text).unwrap_or_default();
        Lines::new(&self.file, &content).span(at..at + text.len())
    }
}

/// The smallest major version that a range allows: 9 of `^9.1.0`.
pub fn major(range: &str) -> Option<u32> {
    let digits =
        range.trim_start_matches(|c: char| matches!(c, '^' | '~' | '=' | '>' | 'v') || c.is_whitespace());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// A folder and those above it, to the root.
pub fn upwards(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| {
        if folder.is_empty() { None } else { Some(parent(folder).unwrap_or_default()) }
    })
}

/// A file of a folder.
pub fn inside(folder: &str, base: &str) -> String {
    if folder.is_empty() { base.to_owned() } else { format!("{folder}/{base}") }
}
