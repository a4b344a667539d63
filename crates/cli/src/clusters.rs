//! Clusters that the generators of ApplicationSets may name, from a file that somebody writes for it.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use tiphys_appset::ClusterInfo;
use tiphys_controller::declared_cluster;
use tiphys_model::{Destination, names};
use tiphys_value::{ObjectExt as _, Value};

use crate::{dump, exit::WrongUse};

/// The engine's own cluster, as [`cluster_of`] names it.
pub(crate) const HOME: (&str, &str) = (names::IN_CLUSTER_SERVER, "");

/// What tells the cluster of a destination from others: its address, or else its name.
pub(crate) fn cluster_of(destination: &Destination) -> (&str, &str) {
    let server = destination.server.trim_end_matches('/');
    let is_home = server == names::IN_CLUSTER_SERVER || destination.name == names::IN_CLUSTER_NAME;
    // One without either is no destination at all, and told of elsewhere.
    if is_home || (server.is_empty() && destination.name.is_empty()) {
        HOME
    } else {
        (server, &destination.name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cluster {
    name: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The clusters of a file: Secrets as Argo CD keeps them, or a YAML list of `{name, server, labels}`.
///
/// # Errors
/// It is neither.
pub(crate) fn read(file: &Path) -> Result<Vec<ClusterInfo>, WrongUse> {
    let fail = |why: &dyn std::fmt::Display| WrongUse(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| fail(&error))?;
    if let Ok(list @ Value::Array(_)) = tiphys_yaml::from_yaml(&text) {
        let listed: Vec<Cluster> = serde_json::from_value(list)
            .map_err(|error| fail(&format!("no YAML list of {{name, server, labels}}: {error}")))?;
        return Ok(listed.into_iter().map(info).collect());
    }
    let objects = dump::read(file).map_err(|error| {
        WrongUse(format!(
            "neither Secrets of clusters nor a YAML list of {{name, server, labels}}: {error:#}"
        ))
    })?;
    let secrets: Vec<ClusterInfo> =
        objects.iter().filter(|object| object.kind() == "Secret").map(declared_cluster).collect();
    if secrets.is_empty() {
        return Err(fail(&"it holds no Secret of a cluster"));
    }
    Ok(secrets)
}

fn info(cluster: Cluster) -> ClusterInfo {
    let server = match cluster.server.as_str() {
        "" => format!("https://{}", cluster.name),
        server => server.to_owned(),
    };
    ClusterInfo {
        server,
        name: cluster.name,
        labels: cluster.labels,
        annotations: cluster.annotations,
        declared: true,
        ..ClusterInfo::default()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_forms_are_read_and_others_refused() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let file = folder.path().join("clusters.yaml");
            std::fs::write(&file, text).unwrap();
            super::read(&file)
        };
        let listed =
            read("- name: prod\n  labels: {env: prod}\n- {name: dev, server: https://dev}\n").unwrap();
        let servers: Vec<&str> = listed.iter().map(|it| it.server.as_str()).collect();
        assert_eq!(servers, ["https://prod", "https://dev"]);
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {env: prod}}\nstringData: {name: prod, server: https://prod}\n";
        let declared = read(secret).unwrap();
        assert_eq!((declared[0].name.as_str(), declared[0].labels["env"].as_str()), ("prod", "prod"));
        for text in ["- {nam: x}\n", "a: 1\n", "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
