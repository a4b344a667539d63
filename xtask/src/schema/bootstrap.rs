//! What a fresh API server has of access rules and of flow control, one object a line.

use anyhow::Context;
use serde_json::Value;

use super::Server;

/// The collections, and the version and kind of what is in them.
const COLLECTIONS: [(&str, &str, &str); 4] = [
    ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding"),
    ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", "PriorityLevelConfiguration"),
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas", "FlowSchema"),
];

/// The objects as lines of JSON, without what differs between two servers.
pub(super) fn objects(server: &Server) -> anyhow::Result<String> {
    let mut out = String::new();
    for (api_version, plural, kind) in COLLECTIONS {
        let list = server.json(&format!("/apis/{api_version}/{plural}"), "application/json")?;
        for item in list["items"].as_array().context("no items")? {
            let mut object = item.clone();
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
            strip(&mut object);
            out.push_str(&object.to_string());
            out.push('\n');
        }
    }
    Ok(out)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime"] {
                map.remove(key);
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
