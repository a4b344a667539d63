//! Which network Services get their addresses from: repositories that fix addresses were written for a
//! cluster with a certain one.

use std::net::IpAddr;

use tiphys_apiserver::ServiceNetwork;
use tiphys_vfs::FileTree;

/// What common distributions use beside the default.
const COMMON: [(&str, &str); 7] = [
    ("k3s", "10.43.0.0/16"),
    ("kubeadm", "10.96.0.0/12"),
    ("MicroK8s", "10.152.183.0/24"),
    ("OpenShift", "172.30.0.0/16"),
    ("EKS", "172.20.0.0/16"),
    ("EKS", "10.100.0.0/16"),
    ("AKS", "10.0.0.0/16"),
];

/// The range, and what is to be said of it.
pub(crate) struct Chosen {
    /// `None` is that of the state folder, or the default.
    pub range: Option<ServiceNetwork>,
    /// Why it is not the default, if nobody asked for it.
    pub told: Option<String>,
}

/// The range that was asked for, or the one that the repository's fixed addresses need. A cluster that exists
/// has one.
pub(crate) fn chosen(asked: Option<ServiceNetwork>, exists: bool, tree: &dyn FileTree) -> Chosen {
    if asked.is_some() || exists {
        return Chosen { range: asked, told: None };
    }
    let fixed = fixed_addresses(tree);
    let Some((name, range)) = fitting(&fixed.iter().map(|(_, address)| *address).collect::<Vec<_>>()) else {
        return Chosen { range: None, told: None };
    };
    let (file, address) = &fixed[0];
    let told = format!("Services get their addresses from {range}, as on {name}: {file} fixes {address}");
    Chosen { range: Some(range), told: Some(told) }
}

/// The common range that all addresses are of, unless they are all of the default one.
fn fitting(addresses: &[IpAddr]) -> Option<(&'static str, ServiceNetwork)> {
    let all_in = |range: ServiceNetwork| addresses.iter().all(|address| range.contains(*address));
    if all_in(ServiceNetwork::default()) {
        return None;
    }
    COMMON
        .iter()
        .filter_map(|(name, range)| Some((*name, range.parse().ok()?)))
        .find(|(_, range)| all_in(*range))
}

/// The addresses that files of the tree fix for Services, each with its file.
fn fixed_addresses(tree: &dyn FileTree) -> Vec<(String, IpAddr)> {
    let files = tiphys_vfs::walk(tree, "").unwrap_or_default();
    let manifests = files.into_iter().filter(|file| file.ends_with(".yaml") || file.ends_with(".yml"));
    let mut found = Vec::new();
    for file in manifests {
        let Ok(bytes) = tree.read(&file) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        found.extend(text.lines().filter_map(fixed_in).map(|address| (file.clone(), address)));
    }
    found
}

/// The address in a line such as `clusterIP: 10.43.0.10` or `spec: {clusterIP: 10.43.0.10, ports: []}`.
fn fixed_in(line: &str) -> Option<IpAddr> {
    let said = line.split('#').next().unwrap_or_default();
    let (before, value) = said.split_once("clusterIP:")?;
    if before.ends_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let value = value.split([',', '}']).next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    value.parse().ok().filter(IpAddr::is_ipv4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_distribution_decide() {
        let lines = [
            "  clusterIP: 10.43.0.10",
            "clusterIP: \"10.43.7.7\" # dns",
            "clusterIP: None",
            "# clusterIP: 1.2.3.4",
            "spec: {clusterIP: 10.43.0.11, ports: [{port: 80}]}",
            "myclusterIP: 1.2.3.4",
        ];
        let found: Vec<IpAddr> = lines.into_iter().filter_map(fixed_in).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(
            fitting(&found).map(|(name, range)| (name, range.to_string())),
            Some(("k3s", "10.43.0.0/16".to_owned()))
        );
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(fitting(&[]).is_none() && fitting(&[address("10.96.0.10")]).is_none());
        assert!(fitting(&[address("10.43.0.10"), address("10.96.0.10")]).is_none(), "no range has both");
        assert_eq!(
            fitting(&[address("10.103.0.1"), address("10.96.0.10")]).unwrap().1.to_string(),
            "10.96.0.0/12"
        );
    }
}
