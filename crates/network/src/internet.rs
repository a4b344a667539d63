//! Hosts of the internet that the configuration of a pod names.
//!
//! Only a value that is an address as a whole counts, under a name that says that something is sent there,
//! and only a host that no route of the repository brings in: of its own addresses a program tells its users.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde_json::Value;
use tiphys_value::FieldPath;

use crate::{
    endpoint::Pod,
    flow::{Destination, Direction, Flow, Need},
    flows::variables,
    network::Network,
    object::Object,
    port::Protocol,
};

impl Network {
    pub(crate) fn internet(&self, objects: &[Object<'_>], flows: &mut Vec<Flow>) {
        let own = own_domains(objects);
        for (at, pod) in self.pods.iter().enumerate() {
            let mut seen = BTreeSet::new();
            for (field, name, text) in settings(pod) {
                let Some((host, port)) = address(text).filter(|_| is_sent_to(name)) else { continue };
                let is_own = domain(host).is_some_and(|domain| own.contains(domain));
                if is_own || !seen.insert((host, port)) {
                    continue;
                }
                flows.push(Flow {
                    pod: at,
                    direction: Direction::Egress,
                    other: Destination::World,
                    addresses: Vec::new(),
                    ports: vec![(Protocol::Tcp, port)],
                    need: Need::Internet { host: host.to_owned(), field },
                });
            }
        }
    }
}

/// The variables of a pod's environment: the field, the name and the value.
fn settings(pod: &Pod) -> Vec<(FieldPath, &str, &str)> {
    let containers = pod.spec.get("containers").and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for (at, container) in containers.enumerate() {
        found.extend(variables(container, &pod.path.key("containers").index(at)));
    }
    let taken = pod.configuration.iter();
    found.extend(taken.map(|it| (it.field.clone(), it.key.as_str(), it.text.as_str())));
    found
}

/// The host and port of a text that is an address of the internet.
fn address(text: &str) -> Option<(&str, u16)> {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^https://((?:[a-z0-9-]+\.)+[a-z]{2,})(?::(\d{1,5}))?(?:/\S*)?$")
            .expect("the expression is right")
    });
    /// Ends of names that the internet does not have.
    const INNER: [&str; 12] = [
        "svc",
        "local",
        "internal",
        "lan",
        "home",
        "corp",
        "intranet",
        "private",
        "example",
        "test",
        "invalid",
        "localhost",
    ];
    let found = ADDRESS.captures(text.trim())?;
    let host = found.get(1)?.as_str();
    let last = host.rsplit('.').next()?;
    let is_documentation = ["example.com", "example.org", "example.net"].iter().any(|it| host.ends_with(it));
    let port = found.get(2).map_or(Some(443), |port| port.as_str().parse().ok())?;
    (!INNER.contains(&last) && !is_documentation).then_some((host, port))
}

/// Whether the name of a setting says that something is sent to the address.
fn is_sent_to(name: &str) -> bool {
    const SHOWN: [&str; 16] = [
        "BASE", "CALLBACK", "CORS", "DOC", "EXTERNAL", "FRONT", "HELP", "HOME", "ICON", "ISSUER", "LOGO",
        "ORIGIN", "PUBLIC", "REDIRECT", "ROOT", "SITE",
    ];
    const SENT: [&str; 8] = ["API", "ENDPOINT", "HOST", "UPSTREAM", "URI", "URL", "WEBHOOK", "SERVER"];
    let name = name.to_ascii_uppercase();
    SENT.iter().any(|word| name.contains(word)) && !SHOWN.iter().any(|word| name.contains(word))
}

/// The domains of hosts that Ingresses, Gateways and routes of the repository bring in.
fn own_domains<'a>(objects: &[Object<'a>]) -> BTreeSet<&'a str> {
    const BRINGING: [&str; 6] = [
        "networking.k8s.io",
        "gateway.networking.k8s.io",
        "networking.istio.io",
        "traefik.io",
        "cert-manager.io",
        "projectcontour.io",
    ];
    let mut found = BTreeSet::new();
    let is_route = |it: &&Object<'_>| {
        BRINGING.contains(&it.key.group.as_str())
            && !matches!(it.key.kind.as_str(), "ServiceEntry" | "Sidecar")
    };
    for object in objects.iter().filter(is_route) {
        hosts(object.value.get("spec").unwrap_or(&Value::Null), &mut found, 0);
    }
    found
}

fn hosts<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>, depth: usize) {
    const DEEPEST: usize = 12;
    match value {
        _ if depth > DEEPEST => {}
        Value::String(text) => found.extend(domain(text)),
        Value::Array(items) => items.iter().for_each(|item| hosts(item, found, depth + 1)),
        Value::Object(map) => map.values().for_each(|item| hosts(item, found, depth + 1)),
        _ => {}
    }
}

/// The last two labels of a name.
fn domain(host: &str) -> Option<&str> {
    let (rest, _) = host.rsplit_once('.')?;
    let start = rest.rfind('.').map_or(0, |at| at + 1);
    Some(&host[start..])
}

#[cfg(test)]
mod tests {
    use super::{address, domain, is_sent_to};

    #[test]
    fn only_addresses_of_the_internet_count() {
        assert_eq!(address("https://api.payments.io/v1"), Some(("api.payments.io", 443)));
        assert_eq!(address("https://api.payments.io:8443"), Some(("api.payments.io", 8443)));
        for text in [
            "http://web.shop.svc",
            "https://web.shop.svc/",
            "https://idp.example.com",
            "api.payments.io",
            "https://nas.lan",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn names_say_whether_something_is_sent() {
        assert!(is_sent_to("PAYMENT_URL") && is_sent_to("smtp_api_endpoint"));
        assert!(!is_sent_to("PUBLIC_URL") && !is_sent_to("DOCS_URL") && !is_sent_to("THEME"));
    }

    #[test]
    fn a_domain_is_two_labels() {
        assert_eq!(domain("a.b.example.io"), Some("example.io"));
        assert_eq!(domain("example.io"), Some("example.io"));
        assert_eq!(domain("web"), None);
    }
}
