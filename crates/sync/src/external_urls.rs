//! The addresses at which objects can be reached (Argo CD user guide, "External URLs"). Only those that a
//! browser opens as pages count: an object must not bring a script along (CVE-2024-28175, CVE-2026-45738).

use std::collections::BTreeSet;

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Annotations that begin so hold an address.
const LINK: &str = "link.argocd.argoproj.io/";
/// The annotation of an Ingress that leaves only the addresses that it names.
const IGNORE_DEFAULT: &str = "link.argocd.argoproj.io/ignore-default-links";

/// The addresses that annotations name.
pub(crate) fn annotated_urls<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let links = annotations.filter(|(key, _)| key.starts_with(LINK) && *key != IGNORE_DEFAULT);
    links.filter_map(|(_, value)| page(value)).collect()
}

/// The addresses of an object.
pub(crate) fn external_urls(object: &Value) -> Vec<String> {
    let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let texts =
        annotations.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let mut urls = annotated_urls(texts);
    let is_ingress = object.kind() == "Ingress"
        && ["networking.k8s.io", "extensions"].contains(&object.gvk().group.as_str());
    if is_ingress && object.annotation(IGNORE_DEFAULT) != Some("true") {
        urls.extend(of_ingress(object));
    }
    urls
}

/// `title|address` or an address.
fn page(value: &str) -> Option<String> {
    let address = value.rsplit_once('|').map_or(value, |(_, address)| address).trim();
    let scheme = address.split_once("://")?.0.to_ascii_lowercase();
    let plain = address.chars().all(|c| !c.is_control() && !c.is_whitespace());
    (plain && ["http", "https"].contains(&scheme.as_str())).then(|| address.to_owned())
}

fn list<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> {
    value.at(path).and_then(Value::as_array).into_iter().flatten()
}

/// One address for each host and path; without a host, where the load balancer is.
fn of_ingress(ingress: &Value) -> BTreeSet<String> {
    let secured: Vec<&str> = list(ingress, &["spec", "tls"])
        .flat_map(|tls| list(tls, &["hosts"]))
        .filter_map(Value::as_str)
        .collect();
    let balancers: Vec<&str> = list(ingress, &["status", "loadBalancer", "ingress"])
        .filter_map(|one| one.str_at(&["hostname"]).or_else(|| one.str_at(&["ip"])))
        .collect();
    let mut urls = BTreeSet::new();
    for rule in list(ingress, &["spec", "rules"]) {
        let host = rule.str_at(&["host"]).filter(|host| !host.is_empty());
        let hosts = host.map_or_else(|| balancers.clone(), |host| vec![host]);
        let paths: Vec<&str> = list(rule, &["http", "paths"])
            .map(|path| path.str_at(&["path"]).unwrap_or_default().trim_end_matches('*'))
            .collect();
        for host in hosts {
            let scheme = if secured.contains(&host) { "https" } else { "http" };
            let of = |path: &str| page(&format!("{scheme}://{host}{path}"));
            urls.extend(if paths.is_empty() {
                vec![of("")]
            } else {
                paths.iter().map(|path| of(path)).collect()
            });
        }
    }
    urls.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_ingress_is_reached_at_its_hosts_and_paths() {
        let ingress = |annotations: Value| {
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {"tls": [{"hosts": ["a.example.com"]}], "rules": [
                {"host": "a.example.com", "http": {"paths": [{"path": "/shop/*"}, {"path": "/"}]}},
                {"host": "b.example.com"}, {"http": {"paths": [{"path": "/x"}]}}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}})
        };
        let plain = [
            "http://10.0.0.1/x",
            "http://b.example.com",
            "https://a.example.com/",
            "https://a.example.com/shop/",
        ];
        assert_eq!(external_urls(&ingress(json!({}))), plain);
        let own = ingress(json!({"link.argocd.argoproj.io/docs": "Docs|https://docs.example.com",
            "link.argocd.argoproj.io/ignore-default-links": "true"}));
        assert_eq!(external_urls(&own), ["https://docs.example.com"]);
    }

    #[test]
    fn cve_2024_28175_cve_2026_45738_no_address_is_a_script() {
        for bad in [
            "javascript:alert(1)",
            "data:text/html,x",
            " JavaScript://x%0aalert(1)",
            "https://a b",
            "x|javascript://a",
        ] {
            let annotations = [("link.argocd.argoproj.io/x", bad)];
            assert!(annotated_urls(annotations.into_iter()).is_empty(), "{bad}");
        }
    }
}
