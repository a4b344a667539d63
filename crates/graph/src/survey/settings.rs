//! What a repository says of how its sources are rendered: its `argocd-cm`, or what makes one.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_model::{
    ArgoSettings,
    settings::{CONFIG_MAP, RenderSettings},
};
use tiphys_value::{ObjectExt, RenderedObject, Value};
use tiphys_vfs::base_name;

use super::{Files, discover, discover::Manifests};
use crate::unused_folders;

/// What the files of a repository say of how its sources are rendered.
#[derive(Clone, Debug, Default)]
pub struct StatedSettings {
    /// Every `argocd-cm` in files that are no templates.
    pub config_maps: Vec<Arc<RenderedObject>>,
    /// What else says how kustomizations are built: values of Argo CD's chart, its operator's resource,
    /// scripts.
    build_options: BTreeSet<String>,
    /// The files that say so among the parameters of Argo CD's programs, where nothing reads it.
    pub lost_build_options: BTreeSet<String>,
    /// Whether a kustomization inflates charts.
    inflates_charts: bool,
}

impl StatedSettings {
    /// Reads what the files of a folder say.
    pub(super) fn read(files: &Files, manifests: &Manifests, folder: &str) -> Self {
        let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
        let is_used =
            |path: &str| path.get(start..).is_none_or(|below| unused_folders::put_away(below).is_none());
        let is_stated = |it: &&Arc<RenderedObject>| {
            let file = &it.location.file;
            is_config_map(&it.value) && is_used(file) && !discover::is_chart_template(files, file)
        };
        let config_maps = manifests.objects.iter().filter(is_stated).cloned().collect();
        let mut stated = Self { config_maps, ..Self::default() };
        for path in files.ending(&[".yaml", ".yml", ".json"]) {
            if files.text(path).is_some_and(|text| tells(path, &text))
                && !discover::is_chart_template(files, path)
            {
                stated.note(path, &files.text(path).unwrap_or_default());
            }
        }
        stated
    }

    /// What holds for the renderers. What `argocd-cm` does not say of kustomizations, see
    /// [`Self::build_options`].
    pub fn rendering(&self) -> RenderSettings {
        let mut settings = ArgoSettings::from_objects(self.own(), None).rendering;
        if let Some(options) = self.build_options().filter(|_| settings.kustomize.build_options.is_empty()) {
            settings.kustomize.build_options = options;
        }
        settings
    }

    /// The only `argocd-cm` with data, but for those that documentation shows: of several nobody knows which
    /// holds where.
    pub fn own(&self) -> Option<&Value> {
        let counts = |it: &&Arc<RenderedObject>| {
            it.value.get("data").is_some() && !unused_folders::lies_below(&it.location.file, &["doc", "docs"])
        };
        let mut with_data = self.config_maps.iter().filter(counts);
        with_data.next().filter(|_| with_data.next().is_none()).map(|it| &it.value)
    }

    /// How kustomizations are built where no `argocd-cm` tells: as values of Argo CD's chart or its
    /// operator's resource say, if they are of one mind; and where kustomizations inflate charts, somebody
    /// allowed that by other means.
    pub fn build_options(&self) -> Option<String> {
        match self.build_options.len() {
            1 => self.build_options.first().cloned(),
            _ => self.inflates_charts.then(|| "--enable-helm".to_owned()),
        }
    }

    /// Notes what a file that is no `argocd-cm` tells of how kustomizations are built.
    fn note(&mut self, file: &str, text: &str) {
        self.inflates_charts |=
            is_kustomization(file) && text.lines().any(|line| line.starts_with("helmCharts:"));
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        // The lines that the present one stands below with their indentation, the nearest last.
        let mut above: Vec<(usize, &str)> = Vec::new();
        while let Some(line) = lines.next() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let indent = line.len() - line.trim_start().len();
            while above.pop_if(|(outer, _)| *outer >= indent).is_some() {}
            let is_parameter = above.last().is_some_and(|(_, outer)| outer.trim() == "params:");
            above.push((indent, line));
            let key = key.trim().trim_matches(['"', '\'']);
            if !matches!(key, "kustomize.buildOptions" | "kustomizeBuildOptions") {
                continue;
            }
            if is_parameter {
                self.lost_build_options.insert(file.to_owned());
                continue;
            }
            let value = value.trim();
            let value = if value.is_empty() || value.starts_with(['|', '>']) {
                lines.next().unwrap_or_default().trim()
            } else {
                value
            };
            let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
            if value.starts_with('-') && !value.contains("{{") {
                self.build_options.insert(value.to_owned());
            }
        }
    }
}

/// Whether an object is Argo CD's settings.
pub fn is_config_map(object: &Value) -> bool {
    object.kind() == "ConfigMap" && object.name() == CONFIG_MAP
}

/// Whether a file is a kustomization, or mentions the flags of `kustomize build`.
fn tells(file: &str, text: &str) -> bool {
    is_kustomization(file)
        || ["ustomize.buildOptions", "ustomizeBuildOptions"].iter().any(|mark| text.contains(mark))
}

fn is_kustomization(file: &str) -> bool {
    base_name(file).starts_with("kustomization.y")
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use tiphys_vfs::MemTree;

    use super::*;

    fn options<const N: usize>(files: [(&str, &str); N]) -> String {
        let files = Files::list(Arc::new(MemTree::from_files(files)), "");
        let manifests = discover::read(&files, &HashMap::new());
        StatedSettings::read(&files, &manifests, "").rendering().kustomize.build_options
    }

    #[test]
    fn settings_count_if_there_is_one() {
        let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {kustomize.enabled: 'true', kustomize.buildOptions: --enable-helm}\n";
        let other = settings.replace("--enable-helm", "--load-restrictor LoadRestrictionsNone");
        assert_eq!(options([("cm.yaml", settings)]), "--enable-helm");
        assert_eq!(options([("a/cm.yaml", settings), ("b/cm.yaml", other.as_str())]), "");
        assert_eq!(options([("docs/cm.yaml", settings)]), "");
        assert_eq!(options([("tests/cm.yaml", settings)]), "");
    }

    #[test]
    fn how_kustomizations_are_built_is_read_wherever_it_stands() {
        let values = "configs:\n  cm:\n    # kustomize.buildOptions: --no\n    kustomize.buildOptions: \"--enable-helm --enable-exec\" # both\n";
        assert_eq!(options([("argocd/values.yaml", values)]), "--enable-helm --enable-exec");
        let parameters = "configs:\n  params:\n    kustomize.buildOptions: --enable-helm\n";
        assert_eq!(options([("argocd/values.yaml", parameters)]), "");
        let resource = "kind: ArgoCD\nspec:\n  kustomizeBuildOptions: >-\n    --enable-helm\n";
        assert_eq!(options([("argocd.yaml", resource)]), "--enable-helm");
        assert_eq!(options([("a/kustomization.yaml", "helmCharts:\n- name: x\n")]), "--enable-helm");
        assert_eq!(options([("a/kustomization.yaml", "resources: []\n")]), "");
        let several = [
            ("one/values.yaml", "cm:\n  kustomize.buildOptions: --enable-exec\n"),
            ("two/values.yaml", "cm:\n  kustomize.buildOptions: --enable-helm --enable-exec\n"),
            ("a/kustomization.yaml", "helmCharts:\n- name: x\n"),
        ];
        assert_eq!(options(several), "--enable-helm");
    }
}
