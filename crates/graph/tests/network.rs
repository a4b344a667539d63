//! Reachability: what is known of policies in general, and the verdicts of the incident.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tiphys_graph::{
    Input, NoSources, Survey,
    network::{Cni, Direction, Flow, Need, Network, Tri, Verdict},
};
use tiphys_vfs::MemTree;

fn survey(objects: &[Value]) -> Survey {
    let texts: Vec<String> = objects.iter().map(tiphys_yaml::to_yaml).collect();
    let text = texts.join("---\n");
    Survey::of(&Input {
        tree: Arc::new(MemTree::from_files([("all.yaml", text.as_str())])),
        folder: "",
        sources: &NoSources,
        is_given: &|_| true,
        clusters: Vec::new(),
        kube_version: "",
        progress: &|_, _| {},
    })
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

/// A workload with rights that names a Service, that Service, and its pods.
fn workloads() -> Vec<Value> {
    let workload = |name: &str, namespace: &str, container: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
            "spec": {"template": {"metadata": {"labels": {"app": name}},
                "spec": {"serviceAccountName": name, "containers": [container]}}}})
    };
    vec![
        workload(
            "web",
            "shop",
            json!({"name": "web", "env": [{"name": "DB", "value": "postgres://db.data:5432/a"}]}),
        ),
        workload("db", "data", json!({"name": "db", "ports": [{"name": "sql", "containerPort": 5432}]})),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "data"},
            "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432, "targetPort": "sql"}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "web", "namespace": "shop"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "shop"}]}),
    ]
}

/// The network of the workloads under policies, and what `web` needs.
fn network(policies: impl IntoIterator<Item = Value>) -> (Network, Vec<Flow>) {
    let objects: Vec<Value> = workloads().into_iter().chain(policies).collect();
    let survey = survey(&objects);
    let network = Network::of(survey.objects.iter());
    let flows = network.flows(&survey);
    (network, flows)
}

fn verdict(rules: &Value, need: impl Fn(&Need) -> bool) -> Verdict {
    let (network, flows) =
        network([policy("p", &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}))]);
    let flow = flows.iter().find(|flow| need(&flow.need) && flow.direction == Direction::Egress);
    network.judge(flow.expect("it is needed")).verdict
}

#[test]
fn selectors_never_select_the_api_server() {
    let api = |rules: Value| verdict(&rules, |need| *need == Need::ApiServer);
    assert_eq!(api(json!([{"to": [{"namespaceSelector": {}}]}])), Verdict::Deny);
    assert_eq!(api(json!([{"ports": [{"port": 443}, {"port": 6443}]}])), Verdict::Allow);
    assert_eq!(api(json!([{"to": [{"namespaceSelector": {}}]}, {}])), Verdict::Allow);
    assert_eq!(api(json!([{"ports": [{"port": 80}]}])), Verdict::Deny);
    // Where the nodes are is not known.
    assert_eq!(api(json!([{"to": [{"ipBlock": {"cidr": "10.0.0.0/16"}}]}])), Verdict::Unknown);
}

#[test]
fn the_address_of_the_service_helps_only_where_it_is_judged_before_translation() {
    let rules = json!([{"to": [{"ipBlock": {"cidr": "10.96.0.1/32"}}], "ports": [{"port": 443}]}]);
    let (mut network, flows) =
        network([policy("p", &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}))]);
    network.is_managed = Some(false);
    let flow = flows.iter().find(|flow| flow.need == Need::ApiServer).expect("it has rights");
    assert_eq!(network.passes(flow, Cni::Calico), Tri::No);
    assert_eq!(network.passes(flow, Cni::Cilium), Tri::No);
    assert_eq!(network.passes(flow, Cni::AwsVpc), Tri::Yes);
    assert!(matches!(network.judge(flow).verdict, Verdict::Depends(by) if !by.contains(&Cni::AwsVpc)));
}

#[test]
fn upstreams_and_names_are_needed() {
    let db = |need: &Need| matches!(need, Need::Upstream { service, .. } if service == "db.data");
    assert_eq!(verdict(&json!([]), db), Verdict::Deny);
    let to_db = json!([{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "data"}},
        "podSelector": {"matchLabels": {"app": "db"}}}], "ports": [{"port": 5432}]}]);
    assert_eq!(verdict(&to_db, db), Verdict::Allow);
    assert_eq!(verdict(&to_db, |need| *need == Need::Dns), Verdict::Deny);
    let other = json!([{"to": [{"namespaceSelector": {"matchLabels": {"team": "data"}}}]}]);
    assert_eq!(verdict(&other, db), Verdict::Unknown);
}

#[test]
fn cilium_policies_are_read() {
    let cilium = |rule: Value| {
        json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": "c", "namespace": "shop"},
            "spec": {"endpointSelector": {"matchLabels": {"app": "web"}}, "egress": [rule]}})
    };
    let api = |rule: Value| {
        let (mut network, flows) = network([cilium(rule)]);
        network.cnis = vec![Cni::Cilium];
        let flow = flows.iter().find(|flow| flow.need == Need::ApiServer).expect("it has rights").clone();
        network.judge(&flow).verdict
    };
    assert_eq!(api(json!({"toEntities": ["kube-apiserver"]})), Verdict::Allow);
    assert_eq!(api(json!({"toEndpoints": [{}]})), Verdict::Deny);
    assert_eq!(api(json!({"toFQDNs": [{"matchName": "a.example.com"}]})), Verdict::Unknown);
}

fn rules() -> impl Strategy<Value = Value> {
    let peer = prop_oneof![
        Just(json!({"namespaceSelector": {}})),
        Just(json!({"podSelector": {}})),
        Just(json!({"podSelector": {"matchLabels": {"app": "db"}}})),
        Just(json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "data"}}})),
        Just(json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})),
        Just(json!({"ipBlock": {"cidr": "0.0.0.0/0"}})),
        Just(json!({"ipBlock": {"cidr": "10.96.0.1/32"}})),
        Just(json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}})),
    ];
    let port = prop_oneof![
        Just(json!({"port": 443})),
        Just(json!({"port": 6443, "protocol": "TCP"})),
        Just(json!({"port": 53, "protocol": "UDP"})),
        Just(json!({"port": 5000, "endPort": 6000})),
        Just(json!({"port": "sql"})),
        Just(json!({"protocol": "TCP"})),
    ];
    (prop::collection::vec(peer, 0..3), prop::collection::vec(port, 0..3))
        .prop_map(|(to, ports)| json!({"to": to, "ports": ports}))
}

fn policies() -> impl Strategy<Value = Vec<Value>> {
    let chosen = prop_oneof![
        Just(json!({})),
        Just(json!({"matchLabels": {"app": "web"}})),
        Just(json!({"matchLabels": {"app": "x"}}))
    ];
    let spec = (chosen, prop::collection::vec(rules(), 0..3))
        .prop_map(|(pods, egress)| json!({"podSelector": pods, "policyTypes": ["Egress"], "egress": egress}));
    prop::collection::vec(spec, 1..4).prop_map(|specs| {
        specs.iter().enumerate().map(|(at, spec)| policy(&format!("p{at}"), spec)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_more_rule_never_cuts_a_connection(policies in policies(), rule in rules(), at in 0usize..3) {
        let (network, flows) = network(policies);
        let more = network.with(at % network.policies.len(), Direction::Egress, &rule);
        for flow in &flows {
            for cni in Cni::ENFORCING {
                prop_assert!(more.passes(flow, cni) >= network.passes(flow, cni));
            }
        }
    }

    #[test]
    fn a_dropped_connection_has_a_remedy_that_helps(policies in policies()) {
        let (network, flows) = network(policies);
        for flow in flows.iter().filter(|flow| network.judge(flow).is_denied()) {
            let remedy = network.remedy(flow);
            prop_assert!(remedy.is_some(), "{flow:?}");
            let remedy = remedy.expect("just looked");
            let rule = tiphys_yaml::from_yaml(&remedy.yaml).expect("it is YAML")[0].clone();
            let mended = network.with(remedy.policy, flow.direction, &rule);
            prop_assert_eq!(mended.judge(flow).verdict, Verdict::Allow);
        }
    }
}
