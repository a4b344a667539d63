//! Helmfiles: lists of the releases that `helmfile apply` makes.

use std::sync::Arc;

use tiphys_value::Location;
use tiphys_yaml::Node;

use super::{Action, Tool, What, Writer};
use crate::Files;

/// The releases of the helmfiles of a repository; a file that a template engine fills in first is read only
/// if it is YAML without that.
pub(super) fn writers(files: &Files) -> Vec<Writer> {
    let helmfiles = files.ending(&[".yaml", ".yml"]).filter(|path| is_helmfile(path));
    helmfiles.flat_map(|path| of_file(files, path)).collect()
}

/// Whether a file is called as helmfile looks for it (helmfile docs, "helmfile.d").
fn is_helmfile(path: &str) -> bool {
    let mut steps = path.rsplit('/');
    let base = steps.next().unwrap_or_default();
    matches!(base, "helmfile.yaml" | "helmfile.yml") || steps.next() == Some("helmfile.d")
}

fn of_file(files: &Files, path: &Arc<str>) -> Vec<Writer> {
    let documents =
        files.text(path).and_then(|text| tiphys_yaml::parse_documents(&text, tiphys_yaml::Profile::Go2).ok());
    let mut found = Vec::new();
    for document in documents.unwrap_or_default() {
        let releases = document.root.get("releases").and_then(Node::items).unwrap_or_default();
        found.extend(releases.iter().filter_map(|release| writer(files, path, release)));
    }
    found
}

fn writer(files: &Files, path: &Arc<str>, release: &Node) -> Option<Writer> {
    let text = |key: &str| release.get(key).and_then(Node::as_str).filter(|text| !text.contains("{{"));
    if release.get("installed").and_then(Node::as_str) == Some("false") {
        return None;
    }
    let chart = text("chart")?;
    let at = release.span.start;
    Some(Writer {
        tool: Tool::Helmfile,
        action: Action::Apply,
        what: What::Release {
            name: text("name").unwrap_or_default().to_owned(),
            chart: chart.to_owned(),
            repository: String::new(),
        },
        is_by_kubectl: false,
        namespace: text("namespace").map(str::to_owned),
        span: files.span(&Location::new(path.clone(), at.line, at.column)),
    })
}
