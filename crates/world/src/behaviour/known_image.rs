//! What is known of images that are used as they are: whether they run as root, and what they listen on.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{image::split, listed};

/// What is known of an image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownImage {
    /// Host and repository.
    image: String,
    /// It runs as root unless a manifest names another user.
    #[serde(default)]
    pub root: bool,
    /// All that it listens on without configuration; nothing is known if there are none.
    #[serde(default)]
    ports: Vec<u16>,
}

static IMAGES: LazyLock<BTreeMap<String, KnownImage>> = LazyLock::new(|| {
    let all: Vec<KnownImage> = listed(include_str!("../../data/images.yaml"));
    all.into_iter().map(|known| (known.image.clone(), known)).collect()
});

/// What is known of an image.
pub(crate) fn known_image(image: &str) -> Option<&'static KnownImage> {
    let (host, repository, _) = split(image);
    IMAGES.get(&format!("{host}/{repository}"))
}

/// All ports that a pod listens on, if they are known: it has one container, of a known image, and nothing
/// that could configure its program otherwise.
pub fn open_ports(pod: &Value) -> Option<&'static [u16]> {
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array)?;
    let [container] = containers.as_slice() else { return None };
    let has =
        |field: &str| container.get(field).and_then(Value::as_array).is_some_and(|values| !values.is_empty());
    let inits = pod.at(&["spec", "initContainers"]).and_then(Value::as_array);
    let has_sidecar =
        inits.into_iter().flatten().any(|init| init.str_at(&["restartPolicy"]) == Some("Always"));
    let mounts = container.get("volumeMounts").and_then(Value::as_array).into_iter().flatten();
    let is_data = |path: &str| path.starts_with("/var/lib/") || path == "/data" || path.starts_with("/data/");
    let is_configured = mounts
        .filter_map(|mount| mount.str_at(&["mountPath"]))
        .any(|path| !is_data(path) && path != "/var/run/secrets/kubernetes.io/serviceaccount");
    if has("command") || has("args") || has("env") || has("envFrom") || has_sidecar || is_configured {
        return None;
    }
    let known = known_image(container.str_at(&["image"])?)?;
    (!known.ports.is_empty()).then_some(&known.ports)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_ports_of_a_known_image_are_known_unless_something_configures_it() {
        let pod = |container: Value| json!({"spec": {"containers": [container]}});
        assert_eq!(open_ports(&pod(json!({"image": "nginx:1.27"}))), Some(&[80][..]));
        assert_eq!(open_ports(&pod(json!({"image": "registry.example.com/nginx:1.27"}))), None);
        for more in [
            json!({"command": ["nginx"]}),
            json!({"env": [{"name": "NGINX_PORT", "value": "8080"}]}),
            json!({"volumeMounts": [{"name": "c", "mountPath": "/etc/nginx/conf.d"}]}),
        ] {
            let mut container = more;
            container["image"] = "nginx".into();
            assert_eq!(open_ports(&pod(container.clone())), None, "{container}");
        }
        let data = json!({"image": "redis:7", "volumeMounts": [{"name": "d", "mountPath": "/data"}]});
        assert_eq!(open_ports(&pod(data)), Some(&[6379][..]));
        let two = json!({"spec": {"containers": [{"image": "nginx"}, {"image": "other"}]}});
        assert_eq!(open_ports(&two), None);
    }

    #[test]
    fn official_images_run_as_root() {
        assert!(known_image("postgres:16").unwrap().root);
        assert!(!known_image("nginxinc/nginx-unprivileged:1.27").unwrap().root);
        assert!(known_image("ghcr.io/acme/postgres:16").is_none());
    }
}
