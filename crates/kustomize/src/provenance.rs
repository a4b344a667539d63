//! The annotations that `buildMetadata` asks for: where an object came from, and what changed it.

use crate::{node::Node, repo_url::RepoUrl};

/// Annotation that says where an object came from.
pub(crate) const ORIGIN: &str = "config.kubernetes.io/origin";
/// Annotation that lists what changed an object.
pub(crate) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// Who configured a generator or transformer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfiguredBy {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

/// Where an object, generator or transformer came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Provenance {
    pub path: String,
    pub repo: String,
    pub revision: String,
    pub configured_in: String,
    pub configured_by: Option<ConfiguredBy>,
}

impl Provenance {
    /// One step further along a path or into a repository.
    pub(crate) fn append(&self, path: &str) -> Self {
        let mut next = self.clone();
        let mut path = path.to_owned();
        if let Some(url) = RepoUrl::parse(&path) {
            next.repo = url.clone_url();
            next.revision.clone_from(&url.revision);
            next.path.clear();
            path = url.folder;
        }
        next.path = join_clean(&next.path, &path);
        next
    }

    /// The same place, as the configuration of a builtin in a file of this folder.
    pub(crate) fn builtin(&self, file: &str, kind: &str) -> Self {
        Self {
            path: String::new(),
            configured_in: join_clean(&self.path, file),
            configured_by: Some(ConfiguredBy {
                api_version: "builtin".to_owned(),
                kind: kind.to_owned(),
                ..ConfiguredBy::default()
            }),
            ..self.clone()
        }
    }

    /// The provenance of what a plugin's configuration makes, from the configuration itself.
    pub(crate) fn of_plugin(config: &Node) -> Option<Self> {
        let origin = Self::parse(config.annotation(ORIGIN)?);
        Some(Self {
            path: String::new(),
            configured_in: origin.path.clone(),
            configured_by: Some(ConfiguredBy {
                api_version: config.api_version().to_owned(),
                kind: config.object_kind().to_owned(),
                name: config.name().to_owned(),
                namespace: config.namespace().to_owned(),
            }),
            ..origin
        })
    }

    fn parse(text: &str) -> Self {
        let value = tiphys_yaml::from_yaml(text).unwrap_or_default();
        let field = |name: &str| value.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        Self {
            path: field("path"),
            repo: field("repo"),
            revision: field("ref"),
            configured_in: field("configuredIn"),
            configured_by: None,
        }
    }

    /// The text of the annotation.
    pub(crate) fn to_text(&self) -> String {
        self.lines().into_iter().map(|line| format!("{line}\n")).collect()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, value) in [
            ("path", &self.path),
            ("repo", &self.repo),
            ("ref", &self.revision),
            ("configuredIn", &self.configured_in),
        ] {
            push_field(&mut lines, "", name, value);
        }
        if let Some(by) = self.configured_by.as_ref().filter(|by| **by != ConfiguredBy::default()) {
            lines.push("configuredBy:".to_owned());
            push_field(&mut lines, "  ", "apiVersion", &by.api_version);
            push_field(&mut lines, "  ", "kind", &by.kind);
            push_field(&mut lines, "  ", "name", &by.name);
            push_field(&mut lines, "  ", "namespace", &by.namespace);
        }
        lines
    }
}

fn push_field(lines: &mut Vec<String>, indent: &str, name: &str, value: &str) {
    if !value.is_empty() {
        let text = tiphys_yaml::to_yaml(&value.into());
        lines.push(format!("{indent}{name}: {}", text.trim_end()));
    }
}

/// Joins and cleans two paths as Go's `filepath.Join`.
pub(crate) fn join_clean(base: &str, path: &str) -> String {
    let joined = if base.is_empty() { path.to_owned() } else { format!("{base}/{path}") };
    let absolute = joined.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    match (absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) if joined.is_empty() => String::new(),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

/// Sets the origin annotation where there is none.
///
/// # Errors
/// Metadata that is no mapping.
pub(crate) fn set_origin(node: &mut Node, provenance: &Provenance) -> Result<(), String> {
    if node.annotation(ORIGIN).is_some() {
        return Ok(());
    }
    let mut annotations = node.metadata_map("annotations");
    annotations.insert(ORIGIN.to_owned(), provenance.to_text());
    node.set_metadata_map("annotations", &annotations)
}

/// Notes that a transformer passed over an object; one without origin was made by it.
///
/// # Errors
/// Metadata that is no mapping.
pub(crate) fn add_transformation(node: &mut Node, provenance: &Provenance) -> Result<(), String> {
    if node.annotation(ORIGIN).is_none() {
        return set_origin(node, provenance);
    }
    let mut annotations = node.metadata_map("annotations");
    let mut text = annotations.remove(TRANSFORMATIONS).unwrap_or_default();
    for (index, line) in provenance.lines().into_iter().enumerate() {
        text.push_str(if index == 0 { "- " } else { "  " });
        text.push_str(&line);
        text.push('\n');
    }
    annotations.insert(TRANSFORMATIONS.to_owned(), text);
    node.set_metadata_map("annotations", &annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_paths_and_repositories() {
        let base = Provenance::default().append("../base");
        assert_eq!(base.append("a.yaml").path, "../base/a.yaml");
        let remote = base.append("https://example.com/o/r//deploy?ref=v1");
        assert_eq!((remote.repo.as_str(), remote.path.as_str()), ("https://example.com/o/r", "deploy"));
        assert_eq!(remote.builtin("kustomization.yaml", "PatchTransformer").to_text().lines().count(), 6);
    }
}
