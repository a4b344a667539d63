//! One version of a chart, rendered as often as wanted.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use anyhow::Context;
use tiphys_helm::{Chart, RenderOptions, ValuesSource, template};
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::DiskTree;

/// The release's name in a rendering that nothing else is asked of.
pub(super) const RELEASE: &str = "rr";

/// A port of a Service: its name, which may be empty, and its number.
pub(super) type Port = (String, i64);
/// Services by name.
pub(super) type Services = BTreeMap<String, Vec<Port>>;

/// One version of a chart.
pub(super) struct ChartVersion {
    pub name: String,
    pub version: String,
    chart: Chart,
    /// The chart's values, with those of its dependencies below their names.
    pub values: Value,
    /// The names under which dependencies get their values.
    pub dependencies: Vec<String>,
}

impl ChartVersion {
    /// Loads a chart.
    ///
    /// # Errors
    /// It is no chart.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let metadata = read_yaml(&folder.join("Chart.yaml"))?;
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let chart = Chart::load(&DiskTree::open(folder)?, "")?;
        let mut values = read_yaml(&folder.join("values.yaml")).unwrap_or_default();
        let mut declared = metadata["dependencies"].as_array().cloned().unwrap_or_default();
        if let Ok(old) = read_yaml(&folder.join("requirements.yaml")) {
            declared.extend(old["dependencies"].as_array().cloned().unwrap_or_default());
        }
        let mut dependencies = Vec::new();
        for dependency in &declared {
            let name = dependency["name"].as_str().unwrap_or_default();
            let key = dependency["alias"].as_str().unwrap_or(name).to_owned();
            let own = read_yaml(&folder.join("charts").join(name).join("values.yaml")).unwrap_or_default();
            let given = values.get(&key).cloned().unwrap_or_default();
            if let Some(map) = values.as_object_mut() {
                map.insert(key.clone(), merged(own, &given));
            }
            dependencies.push(key);
        }
        Ok(Self { name: text("name"), version: text("version"), chart, values, dependencies })
    }

    /// The Services that it makes under a release name with some values.
    ///
    /// # Errors
    /// It does not render so.
    pub(super) fn services(&self, release: &str, values: &Value) -> anyhow::Result<Services> {
        let options = RenderOptions {
            release_name: release.to_owned(),
            namespace: "probe".to_owned(),
            values: vec![ValuesSource::File(
                "probe.yaml".to_owned(),
                Arc::from(values.to_string().as_bytes()),
            )],
            skip_schema_validation: true,
            skip_tests: true,
            no_hooks: true,
            seed: Some("charts".to_owned()),
            mock_secrets: true,
            ..RenderOptions::default()
        };
        let output = template(&self.chart, &options).context("cannot be rendered")?;
        let mut found = Services::new();
        for manifest in output.manifests.iter().filter(|it| it.kind == "Service") {
            let service = manifest.value();
            // Services of the system's own namespaces have names of their own.
            if service.str_at(&["metadata", "namespace"]).is_some_and(|it| it != "probe") {
                continue;
            }
            // A headless Service leads to every port of its pods.
            let is_headless = service["spec"]["clusterIP"].as_str() == Some("None");
            let ports = service["spec"]["ports"].as_array().filter(|_| !is_headless).into_iter().flatten();
            let port = |port: &Value| {
                Some((port["name"].as_str().unwrap_or_default().to_owned(), port["port"].as_i64()?))
            };
            if let Some(name) = service["metadata"]["name"].as_str() {
                found.insert(name.to_owned(), ports.filter_map(port).collect());
            }
        }
        Ok(found)
    }
}

/// Values with one at a path.
pub(super) fn value_at(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |below, step| Value::from_iter([(step.clone(), below)]))
}

/// One tree of values over another.
pub(super) fn merged(mut below: Value, above: &Value) -> Value {
    match (&mut below, above) {
        (Value::Object(own), Value::Object(others)) => {
            for (key, value) in others {
                let before = own.get(key).cloned().unwrap_or_default();
                own.insert(key.clone(), merged(before, value));
            }
            below
        }
        (_, Value::Null) => below,
        _ => above.clone(),
    }
}

fn read_yaml(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    tiphys_yaml::from_yaml(&text).with_context(|| path.display().to_string())
}
