//! Whose log a file is, told by its path: our own layout and those of kubectl, must-gather, support bundles
//! and nodes; and any other, where a pod that was saved stands in the path.

use std::collections::HashMap;

use tiphys_value::{ObjectExt as _, Value};

use super::{HostNote, Log};
use crate::cluster::pods::containers;

/// Whether a file of this name may hold objects.
pub(super) fn holds_objects(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    matches!(end, "json" | "yaml" | "yml") || name == "now" || name == "now.txt"
}

/// Whether a file of this name holds a text that people read: a log, or what kubectl prints.
pub(super) fn is_text(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    matches!(end, "log" | "txt" | "out" | "describe" | "text")
        || name.contains(".log.")
        || !name.contains('.')
}

/// The node and the service of `host/NODE_SERVICE.txt`.
pub(super) fn host_note(steps: &[&str]) -> Option<HostNote> {
    let [.., "host", file] = steps else { return None };
    let stem = file.strip_suffix(".txt").or_else(|| file.strip_suffix(".log"))?;
    let (node, service) = stem.split_once('_')?;
    Some(HostNote { node: node.to_owned(), service: service.to_owned(), text: String::new() })
}

/// The container of a log, by the file's path; its text is empty.
pub(super) fn log(steps: &[&str]) -> Option<Log> {
    let file = *steps.last()?;
    let (stem, previous) = stem(file)?;
    let log = |namespace: &str, pod: &str, container: &str, previous: bool| {
        let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
        Some(Log { namespace, pod, container, previous, text: String::new() })
    };
    // must-gather
    if let [.., "namespaces", namespace, "pods", pod, container, _, "logs", _] = steps {
        return log(namespace, pod, container, file.starts_with("previous"));
    }
    // kubelet's own folder
    if let [.., "pods", folder, container, _] = steps
        && let Some((namespace, rest)) = folder.split_once('_')
    {
        return log(namespace, rest.split('_').next().unwrap_or(rest), container, previous);
    }
    // a folder for each pod
    if let [.., "logs", namespace, pod, _] | [.., "pod-logs", namespace, pod, _] = steps {
        return log(namespace, pod, stem, previous);
    }
    let parts: Vec<&str> = stem.split('_').collect();
    match parts[..] {
        [namespace, pod, container] if steps.contains(&"containers") => {
            // The runtime's links: POD_NAMESPACE_CONTAINER-ID.
            let container = container.rsplit_once('-').map_or(container, |(container, _)| container);
            log(pod, namespace, container, previous)
        }
        [namespace, pod, container] => log(namespace, pod, container, previous),
        [namespace, pod] => log(namespace, pod, "", previous),
        // a support bundle: NAMESPACE/POD/CONTAINER.log, or POD.log in a folder of the namespace
        [container] => match steps {
            [.., namespace, pod, _] if file.ends_with(".log") => log(namespace, pod, container, previous),
            _ => None,
        },
        _ => None,
    }
}

/// The pods that were saved, by name, with their namespaces and containers.
pub(super) struct KnownPods<'a>(HashMap<&'a str, Vec<(&'a str, Vec<&'a str>)>>);

/// Characters at which collectors join the names of a path.
const JOINTS: &[char] = &['-', '_', '.', ':', '@', ' ', '='];

impl<'a> KnownPods<'a> {
    pub(super) fn new(objects: &'a [Value]) -> Self {
        let mut pods: HashMap<&str, Vec<_>> = HashMap::new();
        for pod in objects.iter().filter(|object| object.kind() == "Pod") {
            let names = pod.get("spec").into_iter().flat_map(containers);
            let names = names.filter_map(|container| container.str_at(&["name"])).collect();
            pods.entry(pod.name()).or_default().push((pod.namespace(), names));
        }
        Self(pods)
    }

    /// Whether a log's pod was saved.
    pub(super) fn has(&self, log: &Log) -> bool {
        let of_name = self.0.get(log.pod.as_str());
        of_name.is_some_and(|pods| pods.iter().any(|(namespace, _)| *namespace == log.namespace))
    }

    /// The container of a log in whose path the name of a pod stands, alone or joined with others.
    pub(super) fn log(&self, steps: &[&str]) -> Option<Log> {
        let parts: Vec<&str> = steps.iter().flat_map(|step| parts(step)).collect();
        let pod = parts.iter().filter(|part| self.0.contains_key(**part)).max_by_key(|part| part.len())?;
        let of_name = self.0.get(pod)?;
        let named = of_name.iter().find(|(namespace, _)| parts.contains(namespace));
        let (namespace, containers) = named.or(of_name.first())?;
        let mut told: Vec<&str> = containers.iter().copied().filter(|name| parts.contains(name)).collect();
        // A container is often named as the start of its pod's name.
        told.sort_by_key(|name| (pod.contains(name), std::cmp::Reverse(name.len())));
        let container = told.first().or(containers.first()).copied().unwrap_or_default();
        let previous = parts.iter().any(|part| matches!(*part, "previous" | "prev" | "last"));
        let [namespace, pod, container] = [namespace, *pod, container].map(str::to_owned);
        Some(Log { namespace, pod, container, previous, text: String::new() })
    }
}

/// Everything between two joints of a step of a path.
fn parts(step: &str) -> Vec<&str> {
    /// Names with more joints are no names of pods.
    const MOST: usize = 24;
    let mut starts = vec![0];
    starts.extend(step.match_indices(JOINTS).map(|(at, joint)| at + joint.len()).take(MOST));
    let mut ends: Vec<usize> = step.match_indices(JOINTS).map(|(at, _)| at).take(MOST).collect();
    ends.push(step.len());
    let pairs = starts.iter().flat_map(|start| ends.iter().map(move |end| (*start, *end)));
    pairs.filter(|(start, end)| start < end).filter_map(|(start, end)| step.get(start..end)).collect()
}

/// A file's name without its end, and whether the end says that it is of the instance before.
fn stem(file: &str) -> Option<(&str, bool)> {
    let stem =
        file.strip_suffix(".log").or_else(|| file.strip_suffix(".txt").filter(|stem| stem.contains('_')))?;
    for end in [".previous", "-previous", "_previous", ".prev"] {
        if let Some(stem) = stem.strip_suffix(end) {
            return Some((stem, true));
        }
    }
    Some((stem, false))
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    fn read(path: &str) -> Option<(String, String, String, bool)> {
        let steps: Vec<&str> = path.split('/').collect();
        log(&steps).map(|log| (log.namespace, log.pod, log.container, log.previous))
    }

    fn log_of(
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
    ) -> Option<(String, String, String, bool)> {
        Some((namespace.into(), pod.into(), container.into(), previous))
    }

    #[test]
    fn layouts_of_collectors() {
        assert_eq!(read("logs/shop_web-1_app.log"), log_of("shop", "web-1", "app", false));
        assert_eq!(read("logs/shop_web-1_app.previous.log"), log_of("shop", "web-1", "app", true));
        let gathered = "x/namespaces/shop/pods/web-1/app/app/logs/previous.log";
        assert_eq!(read(gathered), log_of("shop", "web-1", "app", true));
        assert_eq!(
            read("cluster-resources/pods/logs/shop/web-1/app-previous.log"),
            log_of("shop", "web-1", "app", true)
        );
        assert_eq!(read("shop/web-1/app.log"), log_of("shop", "web-1", "app", false));
        assert_eq!(read("var/log/pods/shop_web-1_uid/app/0.log"), log_of("shop", "web-1", "app", false));
        assert_eq!(read("var/log/containers/web-1_shop_app-0123.log"), log_of("shop", "web-1", "app", false));
        assert_eq!(read("kube-system/web-1/logs.txt"), None);
        assert_eq!(read("notes.txt"), None);
    }

    #[test]
    fn any_path_in_which_a_saved_pod_stands() {
        let pod = |namespace: &str, name: &str, containers: &[&str]| {
            let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
            json!({"kind": "Pod", "metadata": {"namespace": namespace, "name": name}, "spec": {"containers": containers}})
        };
        let objects = [
            pod("shop", "web-7d9-x2", &["web", "istio-proxy"]),
            pod("a", "db-0", &["pg"]),
            pod("b", "db-0", &["pg"]),
        ];
        let known = KnownPods::new(&objects);
        let read = |path: &str| {
            let steps: Vec<&str> = path.split('/').collect();
            known.log(&steps).map(|log| (log.namespace, log.pod, log.container, log.previous))
        };
        assert_eq!(read("shop/logs/web-7d9-x2_web.log"), log_of("shop", "web-7d9-x2", "web", false));
        assert_eq!(read("web-7d9-x2.log"), log_of("shop", "web-7d9-x2", "web", false));
        assert_eq!(
            read("out/shop-web-7d9-x2-istio-proxy-previous.txt"),
            log_of("shop", "web-7d9-x2", "istio-proxy", true)
        );
        assert_eq!(read("b/db-0.txt"), log_of("b", "db-0", "pg", false));
        assert_eq!(read("b/other-0.log"), None);
    }

    #[test]
    fn notes_of_nodes() {
        let note = host_note(&["host", "worker-1_kube-proxy.txt"]).unwrap();
        assert_eq!((note.node.as_str(), note.service.as_str()), ("worker-1", "kube-proxy"));
    }
}
