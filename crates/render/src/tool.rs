//! Which tool renders a source (Argo CD user guide, "Tool Detection").

use tiphys_model::{ApplicationSource, SourceType};
use tiphys_vfs::{EntryKind, FileTree};

use crate::{RenderError, Sources};

/// File names that make a folder a kustomization. The tool that the source sets options for, else the one
/// that its folder is made for; a plain directory in the place of one that the installation switched off.
pub(crate) fn choose(
    source: &ApplicationSource,
    tree: &dyn FileTree,
    sources: &dyn Sources,
) -> Result<SourceType, RenderError> {
    if let Some(explicit) = source.explicit_type().map_err(RenderError::new)? {
        return Ok(if sources.is_enabled(explicit) { explicit } else { SourceType::Directory });
    }
    if !source.chart.is_empty() {
        return Ok(SourceType::Helm);
    }
    let entries = tree.read_dir(&source.path).map_err(|e| RenderError::new(e.to_string()))?;
    // In name order, and the last hit counts: a kustomization beside a Chart.yaml wins.
    let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
    let hits = files.filter_map(|entry| {
        if entry.name.ends_with("Chart.yaml") {
            Some(SourceType::Helm)
        } else if tiphys_kustomize::FILE_NAMES.contains(&entry.name.as_str()) {
            Some(SourceType::Kustomize)
        } else {
            None
        }
    });
    let mut enabled = hits.filter(|tool| sources.is_enabled(*tool));
    Ok(enabled.next_back().unwrap_or(SourceType::Directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_vfs::MemTree;

    fn chosen(files: &[&str]) -> SourceType {
        let tree = MemTree::from_files(files.iter().map(|name| (*name, "")));
        let source = ApplicationSource { path: "app".into(), ..ApplicationSource::default() };
        choose(&source, &tree, &Settings(None)).unwrap()
    }

    /// An installation that switched one tool off.
    struct Settings(Option<SourceType>);

    impl Sources for Settings {
        fn repository(&self, _: &str, _: &str) -> Result<crate::SourceTree, RenderError> {
            Ok(crate::SourceTree::default())
        }

        fn chart(&self, _: &str, _: &str, _: &str, _: bool) -> Result<crate::SourceTree, RenderError> {
            Ok(crate::SourceTree::default())
        }

        fn is_enabled(&self, tool: SourceType) -> bool {
            self.0 != Some(tool)
        }
    }

    #[test]
    fn a_tool_that_is_switched_off_leaves_a_plain_directory() {
        let tree = MemTree::from_files([("app/Chart.yaml", "")]);
        let source = ApplicationSource { path: "app".into(), ..ApplicationSource::default() };
        let off = Settings(Some(SourceType::Helm));
        assert_eq!(choose(&source, &tree, &off).unwrap(), SourceType::Directory);
        let named = ApplicationSource {
            helm: Some(tiphys_model::HelmSource { release_name: "x".into(), ..Default::default() }),
            ..source
        };
        assert_eq!(choose(&named, &tree, &off).unwrap(), SourceType::Directory);
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
