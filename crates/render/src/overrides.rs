//! `.argocd-source.yaml` and `.argocd-source-<app>.yaml` beside the manifests (Argo CD user guide,
//! "Store Overrides In Git").

use serde_json::{Map, Value};
use tiphys_model::ApplicationSource;
use tiphys_vfs::FileTree;

use crate::{RenderError, manifest};

/// What an override may not change: where the source is.
const FIXED: [&str; 4] = ["repoURL", "path", "chart", "targetRevision"];

/// The source with the overrides of its folder merged in (RFC 7396).
pub(crate) fn apply(
    source: &ApplicationSource,
    tree: &dyn FileTree,
    app: &str,
) -> Result<ApplicationSource, RenderError> {
    let mut merged: Option<Value> = None;
    for name in [".argocd-source.yaml".to_owned(), format!(".argocd-source-{app}.yaml")] {
        let path = if source.path.is_empty() { name } else { format!("{}/{name}", source.path) };
        if !tree.is_file(&path) {
            continue;
        }
        let text = manifest::read_text(tree, &path)?;
        let patch =
            tiphys_yaml::from_yaml(&text).map_err(|error| manifest::yaml_error(&path, &text, &error))?;
        let into = merged.get_or_insert_with(|| serde_json::to_value(source).unwrap_or_default());
        merge(into, without_fixed(patch), 0);
    }
    let Some(merged) = merged else { return Ok(source.clone()) };
    serde_json::from_value(merged).map_err(|error| {
        RenderError::new(format!("the overrides in {:?} do not fit a source: {error}", source.path))
    })
}

fn without_fixed(patch: Value) -> Value {
    match patch {
        Value::Object(map) => {
            Value::Object(map.into_iter().filter(|(key, _)| !FIXED.contains(&key.as_str())).collect())
        }
        other => other,
    }
}

/// RFC 7396, to the depth that parsers accept.
fn merge(target: &mut Value, patch: Value, depth: usize) {
    const MAX_DEPTH: usize = 128;
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(&key);
        } else if depth < MAX_DEPTH {
            merge(map.entry(key).or_insert(Value::Null), value, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_vfs::MemTree;

    #[test]
    fn the_application_s_own_file_wins_and_the_place_is_fixed() {
        let tree = MemTree::from_files([
            ("app/.argocd-source.yaml", "helm:\n  releaseName: both\n  values: 'a: 1'\npath: elsewhere\n"),
            ("app/.argocd-source-shop.yaml", "helm:\n  releaseName: own\n"),
            ("app/.argocd-source-other.yaml", "helm:\n  releaseName: other\n"),
        ]);
        let source = ApplicationSource { path: "app".into(), ..ApplicationSource::default() };
        let merged = apply(&source, &tree, "shop").unwrap();
        let helm = merged.helm.unwrap();
        assert_eq!(
            (merged.path.as_str(), helm.release_name.as_str(), helm.values.as_str()),
            ("app", "own", "a: 1")
        );
    }
}
