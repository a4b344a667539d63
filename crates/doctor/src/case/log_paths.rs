//! Whose log a file is, told by its path: our own layout and those of kubectl, must-gather, support bundles
//! and nodes.

use super::{HostNote, Log};

/// Whether a file of this name may hold objects.
pub(super) fn holds_objects(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    matches!(end, "json" | "yaml" | "yml") || name == "now" || name == "now.txt"
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
    fn notes_of_nodes() {
        let note = host_note(&["host", "worker-1_kube-proxy.txt"]).unwrap();
        assert_eq!((note.node.as_str(), note.service.as_str()), ("worker-1", "kube-proxy"));
    }
}
