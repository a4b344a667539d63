//! An ApplicationSet yields Applications or an error; nothing panics, and it ends.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tiphys_appset::{ClusterInfo, GitFiles, Inputs, Params, preview};

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

struct World;

impl Inputs for World {
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

fuzz_target!(|text: &str| {
    let Ok(set) = tiphys_yaml::from_yaml(text) else { return };
    let _ = preview(&set, &[], &World);
});
