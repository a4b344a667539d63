//! What an address is: a Service, a pod, the API server, something outside.

use std::collections::HashSet;

use tiphys_cause::Address;
use tiphys_value::{ObjectExt as _, Value};

use crate::cluster::{Cluster, items};

/// The other end of a call.
#[derive(Clone, Debug)]
pub(crate) enum Target<'a> {
    Service(&'a Value),
    /// A name of the cluster's zone that no Service has.
    Absent {
        namespace: String,
        name: String,
    },
    Pod(&'a Value),
    ApiServer,
    Node(&'a Value),
    /// The caller's own pod.
    Own,
    Outside,
    /// An address of the cluster that nothing bears now.
    Unknown,
}

impl<'a> Cluster<'a> {
    /// What an address is to a caller in a namespace.
    pub(crate) fn target(&self, address: &Address, namespace: &str) -> Target<'a> {
        let host = address.host.as_str();
        let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if is_loopback || matches!(host, "localhost" | "0.0.0.0") {
            return Target::Own;
        }
        if address.is_ip() {
            self.target_of_ip(host, address.port)
        } else {
            self.target_of_name(host, namespace)
        }
    }

    fn target_of_ip(&self, ip: &str, port: Option<u16>) -> Target<'a> {
        let service = self.all("Service").iter().find(|service| {
            service.str_at(&["spec", "clusterIP"]) == Some(ip)
                || items(service, &["spec", "clusterIPs"]).any(|it| it.as_str() == Some(ip))
                || items(service, &["status", "loadBalancer", "ingress"])
                    .any(|it| it.str_at(&["ip"]) == Some(ip))
        });
        if let Some(service) = service {
            let is_api = service.name() == "kubernetes" && service.namespace() == "default";
            return if is_api { Target::ApiServer } else { Target::Service(service) };
        }
        let pod = self.all("Pod").iter().find(|pod| {
            pod.str_at(&["status", "podIP"]) == Some(ip) && pod.at(&["spec", "hostNetwork"]).is_none()
        });
        if let Some(pod) = pod {
            return Target::Pod(pod);
        }
        let node = self
            .all("Node")
            .iter()
            .find(|node| items(node, &["status", "addresses"]).any(|it| it.str_at(&["address"]) == Some(ip)));
        if port == Some(6443) || port == Some(443) && ip.ends_with(".0.1") && is_private(ip) {
            return Target::ApiServer;
        }
        match node {
            Some(node) => Target::Node(node),
            None if is_private(ip) && !is_metadata(ip) && self.may_hold(ip) => Target::Unknown,
            None => Target::Outside,
        }
    }

    /// Whether a private address may be one of this cluster: it lies near one of its pods, Services or nodes.
    fn may_hold(&self, ip: &str) -> bool {
        let is_complete = ["Pod", "Service", "Node"].iter().all(|kind| self.has_kind(kind));
        match near(ip) {
            Some(range) => !is_complete || self.near_ranges().contains(&range),
            None => true,
        }
    }

    /// The ranges near what this cluster has, as [`near`] tells them.
    pub(crate) fn read_near_ranges(&self) -> HashSet<[u8; 2]> {
        let pods = self.all("Pod").iter().filter_map(|pod| pod.str_at(&["status", "podIP"]));
        let services = self.all("Service").iter().filter_map(|it| it.str_at(&["spec", "clusterIP"]));
        let nodes = self.all("Node").iter().flat_map(|node| items(node, &["status", "addresses"]));
        let nodes = nodes.filter_map(|it| it.str_at(&["address"]));
        let ranges = self.all("Node").iter().filter_map(|node| node.str_at(&["spec", "podCIDR"]));
        let ranges = ranges.filter_map(|range| range.split('/').next());
        pods.chain(services).chain(nodes).chain(ranges).filter_map(near).collect()
    }

    fn target_of_name(&self, host: &str, namespace: &str) -> Target<'a> {
        let parts: Vec<&str> = host.split('.').collect();
        let find = |namespace: &str, name: &str| match self.get("Service", namespace, name) {
            Some(_) if namespace == "default" && name == "kubernetes" => Target::ApiServer,
            Some(service) => Target::Service(service),
            None if namespace == "default" && name == "kubernetes" => Target::ApiServer,
            None => Target::Absent { namespace: namespace.to_owned(), name: name.to_owned() },
        };
        match parts[..] {
            [name] => find(namespace, name),
            [name, other, "svc", ..] => find(other, name),
            [pod, name, other, "svc", ..] => match self.get("Pod", other, pod) {
                Some(pod) if self.get("Service", other, name).is_some() => Target::Pod(pod),
                _ => find(other, name),
            },
            [_, _, "pod", ..] => Target::Unknown,
            [name, other] if self.get("Service", other, name).is_some() || self.has_namespace(other) => {
                find(other, name)
            }
            [pod, name] if self.get("Service", namespace, name).is_some() => {
                self.get("Pod", namespace, pod).map_or_else(|| find(namespace, name), Target::Pod)
            }
            // The governing Service of a StatefulSet gives its pods their names.
            [pod, name] if self.get("Pod", namespace, pod).is_some() => find(namespace, name),
            [pod, name, other] if self.get("Service", other, name).is_some() => {
                self.get("Pod", other, pod).map_or_else(|| find(other, name), Target::Pod)
            }
            [pod, name, other] if self.get("Pod", other, pod).is_some() => find(other, name),
            // No name outside ends so: a namespace is meant that is not there.
            [name, other] | [_, name, other] if self.has_kind("Namespace") && !ends_names_outside(other) => {
                find(other, name)
            }
            // Where namespaces were not saved, another one may be meant.
            [_, other] | [_, _, other] if !self.has_kind("Namespace") && !ends_known_names(other) => {
                Target::Unknown
            }
            _ => Target::Outside,
        }
    }

    /// Whether names that are absent prove something: Services were saved.
    pub(crate) fn knows_services(&self) -> bool {
        self.has_kind("Service")
    }
}

/// The first half of an address, of version 4: what is near it has the same.
fn near(ip: &str) -> Option<[u8; 2]> {
    let [first, second, ..] = ip.parse::<std::net::Ipv4Addr>().ok()?.octets();
    Some([first, second])
}

/// Whether names of the world, or of a company's own network, may end with this: two letters are a country.
fn ends_names_outside(last: &str) -> bool {
    last.len() <= 2 || ends_known_names(last)
}

/// Whether hardly anything else than a name of the world, or of a company's own network, ends with this.
fn ends_known_names(last: &str) -> bool {
    const LONG: &[&str] = &[
        "academy",
        "agency",
        "app",
        "arpa",
        "biz",
        "cloud",
        "com",
        "company",
        "corp",
        "dev",
        "digital",
        "edu",
        "email",
        "engineering",
        "example",
        "finance",
        "global",
        "gov",
        "group",
        "health",
        "home",
        "host",
        "info",
        "int",
        "internal",
        "intern",
        "intra",
        "intranet",
        "invalid",
        "jobs",
        "lan",
        "live",
        "local",
        "localdomain",
        "localhost",
        "media",
        "mil",
        "mobi",
        "name",
        "net",
        "network",
        "one",
        "online",
        "org",
        "page",
        "private",
        "pro",
        "run",
        "services",
        "shop",
        "site",
        "software",
        "solutions",
        "space",
        "store",
        "studio",
        "systems",
        "team",
        "tech",
        "technology",
        "test",
        "tools",
        "work",
        "works",
        "world",
        "xyz",
        "zone",
    ];
    LONG.contains(&last.to_ascii_lowercase().as_str()) || last.starts_with("xn--")
}

/// Whether an address is one at which clouds tell machines and pods who they are.
pub(crate) fn is_metadata(ip: &str) -> bool {
    ip.starts_with("169.254.169.") || ip.starts_with("169.254.170.") || ip.starts_with("fd00:ec2:")
}

fn is_private(ip: &str) -> bool {
    match ip.parse() {
        Ok(std::net::IpAddr::V4(ip)) => {
            ip.is_private() || ip.is_link_local() || ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64
        }
        Ok(std::net::IpAddr::V6(ip)) => (ip.segments()[0] & 0xfe00) == 0xfc00,
        Err(_) => false,
    }
}

/// How far two names are apart: how many letters must change.
pub(crate) fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (column, b) in two.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] = (corner + usize::from(a != *b)).min(above + 1).min(row[column] + 1);
            corner = above;
        }
    }
    row[two.len()]
}

/// Whether two names are nearly the same: a letter or two differ, or one is the other with something before
/// or after.
pub(crate) fn is_near(one: &str, two: &str) -> bool {
    let (short, long) = if one.len() <= two.len() { (one, two) } else { (two, one) };
    let contained = short.len() >= 3
        && (long.starts_with(&format!("{short}-"))
            || long.ends_with(&format!("-{short}"))
            || long.contains(&format!("-{short}-")));
    one != two
        && (contained || short.len() >= 3 && distance(one, two) <= if short.len() >= 5 { 2 } else { 1 })
}
