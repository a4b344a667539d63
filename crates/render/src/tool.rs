//! Which tool renders a source (Argo CD user guide, "Tool Detection").

use tiphys_model::{ApplicationSource, SourceType};
use tiphys_vfs::{EntryKind, FileTree};

use crate::{Cause, RenderError};

/// File names that make a folder a kustomization.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The tool that the source sets options for, else the one that its folder is made for.
pub(crate) fn choose(source: &ApplicationSource, tree: &dyn FileTree) -> Result<SourceType, RenderError> {
    if let Some(explicit) = source.explicit_type().map_err(RenderError::new)? {
        return Ok(explicit);
    }
    if !source.chart.is_empty() {
        return Ok(SourceType::Helm);
    }
    let entries = tree.read_dir(&source.path).map_err(|e| RenderError::new(e.to_string()))?;
    // In name order, and the last hit counts: a kustomization beside a Chart.yaml wins.
    let mut hits = entries.iter().filter(|entry| entry.kind == EntryKind::File).filter_map(|entry| {
        if entry.name.ends_with("Chart.yaml") {
            Some(SourceType::Helm)
        } else if KUSTOMIZATIONS.contains(&entry.name.as_str()) {
            Some(SourceType::Kustomize)
        } else {
            None
        }
    });
    Ok(hits.next_back().unwrap_or(SourceType::Directory))
}

/// Plugins run programs, which Tiphys does not.
pub(crate) fn refuse_plugin(source: &ApplicationSource) -> RenderError {
    let name = source.plugin.as_ref().map(|plugin| plugin.name.as_str()).unwrap_or_default();
    let name = if name.is_empty() {
        "a config management plugin".into()
    } else {
        format!("config management plugin {name:?}")
    };
    RenderError::new(format!(
        "the source is rendered by {name}; plugins run programs of their own, which is not supported"
    ))
    .caused_by(Cause::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_vfs::MemTree;

    fn chosen(files: &[&str]) -> SourceType {
        let tree = MemTree::from_files(files.iter().map(|name| (*name, "")));
        let source = ApplicationSource { path: "app".into(), ..ApplicationSource::default() };
        choose(&source, &tree).unwrap()
    }

    #[test]
    fn only_the_top_folder_counts_and_kustomize_wins() {
        assert_eq!(chosen(&["app/x.yaml", "app/sub/Chart.yaml"]), SourceType::Directory);
        assert_eq!(chosen(&["app/Chart.yaml"]), SourceType::Helm);
        assert_eq!(chosen(&["app/OldChart.yaml"]), SourceType::Helm);
        assert_eq!(chosen(&["app/Chart.yaml", "app/kustomization.yml"]), SourceType::Kustomize);
        // `Kustomization` sorts before `myChart.yaml`, so Helm is the later hit.
        assert_eq!(chosen(&["app/Kustomization", "app/myChart.yaml"]), SourceType::Helm);
    }
}
