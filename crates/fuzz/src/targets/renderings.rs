//! Kustomizations and ApplicationSets.

use std::sync::Arc;

use serde_json::Value;
use tiphys_appset::{ClusterInfo, GitFiles, Inputs, Params, preview};
use tiphys_kustomize::{BuildOptions, build};
use tiphys_vfs::MemTree;

use crate::input::{parts, text};

/// A kustomization with one resource builds or fails. The input: kustomization, resource.
pub fn kustomization(bytes: &[u8]) {
    let Some([kustomization, resource]) = text(bytes).map(parts) else { return };
    let files = [("base/kustomization.yaml", kustomization), ("base/resource.yaml", resource)];
    if let Ok(built) = build(&MemTree::from_files(files), "base", &BuildOptions::default()) {
        built.to_yaml();
    }
}

/// An ApplicationSet yields Applications or an error, and ends.
pub fn applicationset(bytes: &[u8]) {
    let Some(set) = text(bytes).and_then(|text| tiphys_yaml::from_yaml(text).ok()) else { return };
    let _ = preview(&set, &[], &SampleInputs);
}

struct Files;

impl GitFiles for Files {
    fn files(&self) -> Vec<String> {
        ["apps/api/kustomization.yaml", "apps/web/Chart.yaml", "config/eu.yaml", "config/us.json"]
            .map(str::to_owned)
            .to_vec()
    }

    fn read(&self, path: &str) -> Result<String, String> {
        Ok(match path {
            "config/eu.yaml" => "name: eu\nport: 80\nnested: {deep: [1, x]}\n",
            "config/us.json" => r#"[{"name": "us1"}, {"name": "us2"}]"#,
            _ => "",
        }
        .to_owned())
    }
}

struct SampleInputs;

impl Inputs for SampleInputs {
    fn clusters(&self) -> Result<Vec<ClusterInfo>, String> {
        let cluster = |name: &str| ClusterInfo {
            name: name.to_owned(),
            server: format!("https://{name}"),
            labels: [("env".to_owned(), name.to_owned())].into(),
            declared: true,
            ..ClusterInfo::default()
        };
        Ok(vec![cluster("prod"), cluster("Test_1")])
    }

    fn git(&self, _: &str, _: &str) -> Result<Arc<dyn GitFiles>, String> {
        Ok(Arc::new(Files))
    }

    fn decisions(&self, _: &Value) -> Result<Vec<Params>, String> {
        Ok(Vec::new())
    }

    fn plugin(&self, _: &Value) -> Result<Vec<Params>, String> {
        Ok(Vec::new())
    }
}
