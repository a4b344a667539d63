//! Kinds without a namespace, and objects of other namespaces, that charts are known to bring, for where they
//! were not seen.

use tiphys_value::Value;

use super::chart_crds::Defining;

const TABLE: &str = include_str!("../../data/charts-cluster-kinds.txt");
const NAMESPACES: &str = include_str!("../../data/charts-other-namespaces.txt");

/// API groups of the kinds of the table.
const GROUPS: [(&str, &str); 8] = [
    ("APIService", "apiregistration.k8s.io"),
    ("CSIDriver", "storage.k8s.io"),
    ("ClusterRole", "rbac.authorization.k8s.io"),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io"),
    ("IngressClass", "networking.k8s.io"),
    ("MutatingWebhookConfiguration", "admissionregistration.k8s.io"),
    ("PriorityClass", "scheduling.k8s.io"),
    ("ValidatingWebhookConfiguration", "admissionregistration.k8s.io"),
];

/// The groups and kinds that a chart brings with values, the weakest first. Values that speak of roles,
/// webhooks or classes may switch these off: those are left out.
pub(crate) fn brought_by(chart: &str, values: &[Value]) -> Vec<(&'static str, &'static str)> {
    const SWITCHES: [(&str, &str); 4] = [
        ("rbac", "Cluster"),
        ("ebhook", "Webhook"),
        ("ngressClass", "IngressClass"),
        ("apiService", "APIService"),
    ];
    let text: String = values.iter().map(ToString::to_string).collect();
    let is_open = |kind: &str| SWITCHES.iter().any(|(word, part)| text.contains(word) && kind.contains(part));
    let mut found: Vec<(&str, &str)> = Vec::new();
    if Defining::find(chart).is_some_and(|it| it.brings(values)) {
        found.push(("apiextensions.k8s.io", "CustomResourceDefinition"));
    }
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        if words.next() != Some(chart) {
            continue;
        }
        let kinds = words.flat_map(|word| match word {
            "@" => vec!["ClusterRole", "ClusterRoleBinding"],
            kind => vec![kind],
        });
        let grouped = |kind: &'static str| Some((GROUPS.iter().find(|(it, _)| *it == kind)?.1, kind));
        found.extend(kinds.filter(|kind| !is_open(kind)).filter_map(grouped));
    }
    found
}

/// The namespaces beside its own into which a chart renders objects with values.
pub(crate) fn namespaces_of(chart: &str, values: &[Value]) -> Vec<&'static str> {
    let is_off = |part: &str| {
        let says_no = |value: &Value| value["enabled"] == Value::Bool(false);
        let said = values.iter().map(|values| &values[part]);
        said.clone().any(says_no) || said.map(|part| &part["service"]).any(says_no)
    };
    let text: String = values.iter().map(ToString::to_string).collect();
    let lines = NAMESPACES.lines().filter(|line| !line.starts_with('#'));
    let mut found = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, namespace, deciding @ ..] = words.as_slice() else { continue };
        let (open, parts): (Vec<&str>, Vec<&str>) = deciding.iter().partition(|word| word.starts_with('~'));
        let is_open = open.iter().any(|word| text.contains(word.trim_start_matches('~')));
        let is_out = !parts.is_empty() && parts.iter().all(|part| is_off(part));
        if *name == chart && !is_open && !is_out {
            found.push(*namespace);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::{GROUPS, TABLE, brought_by, namespaces_of};

    #[test]
    fn every_kind_of_the_table_has_a_group() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let kinds = lines.flat_map(|line| line.split_whitespace().skip(1)).filter(|word| *word != "@");
        for kind in kinds {
            assert!(GROUPS.iter().any(|(known, _)| *known == kind), "{kind}");
        }
    }

    #[test]
    fn values_may_leave_kinds_out() {
        let kinds = |values| brought_by("metrics-server", &[values]).len();
        assert_eq!((kinds(json!({})), kinds(json!({"rbac": {"create": false}}))), (3, 1));
    }

    #[test]
    fn parts_that_are_off_bring_nothing_into_other_namespaces() {
        let count = |chart, values| namespaces_of(chart, &[values]).len();
        assert_eq!(count("cert-manager", json!({"crds": {"enabled": true}})), 1);
        assert_eq!(count("cert-manager", json!({"global": {"leaderElection": {"namespace": "certs"}}})), 0);
        let off = || json!({"enabled": false});
        let but_dns = json!({"kubeEtcd": off(), "kubeProxy": off(), "kubeScheduler": off(), "kubeControllerManager": off()});
        assert_eq!(count("kube-prometheus-stack", but_dns.clone()), 1);
        let mut none = but_dns;
        none["coreDns"] = json!({"service": {"enabled": false}});
        assert_eq!(count("kube-prometheus-stack", none), 0);
    }
}
