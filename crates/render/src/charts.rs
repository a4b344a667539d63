//! `helmCharts` of kustomizations, rendered by the Helm crate.

use std::sync::Arc;

use tiphys_gocompat::{csv, strconv::quote};
use tiphys_helm::{Chart, RenderOptions, ValuesSource};
use tiphys_kustomize::{ChartInflator, ChartRequest};
use tiphys_vfs::FileTree;

/// Renders charts as `helm template` does.
#[derive(Clone, Copy, Debug, Default)]
pub struct HelmCharts;

impl ChartInflator for HelmCharts {
    fn inflate(&self, tree: &dyn FileTree, folder: &str, request: &ChartRequest) -> Result<String, String> {
        let chart = Chart::load(tree, folder).map_err(|error| error.to_string())?;
        let values = request.values.iter().enumerate();
        let options = RenderOptions {
            release_name: release_name(request)?,
            namespace: if request.namespace.is_empty() {
                "default".to_owned()
            } else {
                request.namespace.clone()
            },
            values: values
                .map(|(index, text)| {
                    ValuesSource::File(format!("{} values {index}", request.name), Arc::from(text.as_bytes()))
                })
                .collect(),
            kube_version: Some(request.kube_version.clone()).filter(|version| !version.is_empty()),
            api_versions: api_versions(request)?,
            include_crds: request.include_crds,
            skip_tests: request.skip_tests,
            no_hooks: request.skip_hooks,
            ..RenderOptions::default()
        };
        tiphys_helm::template(&chart, &options).map(|output| output.stdout).map_err(|error| error.to_string())
    }
}

/// Each entry is a flag of `helm template`, which takes several versions with commas.
fn api_versions(request: &ChartRequest) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for text in &request.api_versions {
        let record = csv::record(text);
        let fault =
            |error| format!("invalid argument {} for \"-a, --api-versions\" flag: {error}", quote(text));
        all.extend(record.map_err(fault)?);
    }
    Ok(all)
}

/// The name as `helm template` chooses it from the arguments that kustomize gives.
fn release_name(request: &ChartRequest) -> Result<String, String> {
    match (request.release_name.as_str(), request.name_template.as_str()) {
        ("", "") => Ok("release-name".to_owned()),
        ("", template) => tiphys_helm::name_from_template(template).map_err(|error| error.to_string()),
        (name, "") => Ok(name.to_owned()),
        _ => Err("cannot set --name-template and also specify a name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tiphys_kustomize::{BuildOptions, build};
    use tiphys_vfs::MemTree;

    use super::*;

    fn options() -> BuildOptions {
        BuildOptions {
            enable_helm: true,
            chart_inflator: Some(Arc::new(HelmCharts)),
            ..BuildOptions::default()
        }
    }

    fn tree() -> MemTree {
        MemTree::from_files([
            (
                "app/kustomization.yaml",
                "namePrefix: eu-\nhelmCharts:\n- name: web\n  releaseName: r\n  namespace: shop\n  valuesInline:\n    colour: green\n",
            ),
            ("app/charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("app/charts/web/values.yaml", "colour: red\nsize: 3\n"),
            (
                "app/charts/web/templates/c.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\ndata:\n  text: {{ .Values.colour }}-{{ .Values.size }}\n",
            ),
        ])
    }

    #[test]
    fn charts_of_the_tree_are_rendered_and_transformed() {
        let built = build(&tree(), "app", &options()).unwrap();
        let expected = "apiVersion: v1\ndata:\n  text: green-3\nkind: ConfigMap\nmetadata:\n  name: eu-r\n  namespace: shop\n";
        assert_eq!(built.to_yaml(), expected);
    }

    #[test]
    fn charts_need_to_be_enabled_and_present() {
        let error = build(&tree(), "app", &BuildOptions::default()).unwrap_err();
        assert!(error.to_string().contains("must specify --enable-helm"), "{error}");
        let tree = MemTree::from_files([(
            "kustomization.yaml",
            "helmCharts:\n- name: far\n  repo: https://charts.example.com\n  version: 1.0.0\n",
        )]);
        let error = build(&tree, "", &options()).unwrap_err();
        assert!(error.to_string().contains("charts/far-1.0.0/far"), "{error}");
    }
}
