//! Reachability: what is known of policies in general, and the verdicts of the incident.

use proptest::prelude::*;
use serde_json::{Value, json};
use tiphys_network::{Cni, Direction, Flow, Need, Network, Object, ObjectId, Tri, Verdict, refusal};
use tiphys_value::{ObjectExt, ResourceKey};

/// Objects with their keys.
struct Objects(Vec<(ResourceKey, Value)>);

impl Objects {
    fn new(objects: &[Value]) -> Self {
        let key = |object: &Value| {
            let group = object.api_version().rsplit_once('/').map_or("", |(group, _)| group);
            ResourceKey::new(group, object.kind(), object.namespace(), object.name())
        };
        Self(objects.iter().map(|object| (key(object), object.clone())).collect())
    }

    fn all(&self) -> Vec<Object<'_>> {
        let objects = self.0.iter().enumerate();
        objects.map(|(at, (key, value))| Object { id: ObjectId(at), key, value }).collect()
    }

    /// The network of these objects, and every connection that is known to be needed in it.
    fn network(&self) -> (Network, Vec<Flow>) {
        let objects = self.all();
        let network = Network::from_objects(objects.iter().copied());
        let flows = network.flows(&objects);
        (network, flows)
    }
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
    Objects::new(&objects).network()
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
fn labels_that_a_mesh_gives_to_pods_may_be_there() {
    let with = |label: &str| {
        let all = json!({"podSelector": {}, "policyTypes": ["Egress"]});
        let open = json!({"podSelector": {"matchLabels": {label: "web"}}, "policyTypes": ["Egress"], "egress": [{}]});
        let (network, flows) = network([policy("all", &all), policy("open", &open)]);
        let flow = flows.iter().find(|flow| flow.need == Need::ApiServer).expect("it is needed");
        network.judge(flow).verdict
    };
    assert_eq!(with("service.istio.io/canonical-name"), Verdict::Unknown);
    assert_eq!(with("app"), Verdict::Allow);
    assert_eq!(with("tier"), Verdict::Deny);
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
fn lists_without_an_entry_restrict_nothing_where_no_type_is_given() {
    let db = |need: &Need| matches!(need, Need::Upstream { service, .. } if service == "db.data");
    let kubernetes = |spec: Value| {
        let (network, flows) = network([policy("p", &spec)]);
        let flow = flows.iter().find(|flow| db(&flow.need) && flow.direction == Direction::Egress);
        network.judge(flow.expect("it is needed")).verdict
    };
    assert_eq!(kubernetes(json!({"podSelector": {}, "egress": []})), Verdict::Allow);
    assert_eq!(kubernetes(json!({"podSelector": {}, "policyTypes": [], "egress": []})), Verdict::Allow);
    assert_eq!(kubernetes(json!({"podSelector": {}, "policyTypes": ["Egress"]})), Verdict::Deny);
    let cilium = |spec: Value| {
        let policy = json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
            "metadata": {"name": "p", "namespace": "shop"}, "spec": spec});
        verdict_under(Cni::Cilium, &[policy], db)
    };
    assert_eq!(cilium(json!({"endpointSelector": {}, "egress": []})), Verdict::Allow);
    assert_eq!(cilium(json!({"endpointSelector": {}, "egress": [{}]})), Verdict::Deny);
    // One direction without rules is open whatever is said of it, and a fault anywhere voids the whole
    // policy.
    let one_way = json!({"endpointSelector": {}, "ingress": [{}], "enableDefaultDeny": {"egress": true}});
    assert_eq!(cilium(one_way), Verdict::Allow);
    let void = json!({"endpointSelector": {}, "egress": [{}],
        "ingress": [{"fromEntities": ["cluster"], "fromCIDR": ["10.0.0.0/8"]}]});
    assert_eq!(cilium(void), Verdict::Allow);
}

#[test]
fn agents_of_cilium_refuse_a_policy_as_a_whole() {
    let refused = |spec: Value| {
        let policy = json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
            "metadata": {"name": "p", "namespace": "shop"}, "spec": spec});
        let refusal = Objects::new(&[policy]).all().into_iter().find_map(refusal);
        refusal.map(|it| format!("{}: {}", it.field, it.message)).unwrap_or_default()
    };
    let ports =
        |port: Value, rules: Value| json!({"ingress": [{"toPorts": [{"ports": [port], "rules": rules}]}]});
    let get = json!({"http": [{"method": "GET"}]});
    let cases = [
        (json!({"ingress": [{}]}), ""),
        (
            json!({"egress": []}),
            ".spec.egress: rule must have at least one of Ingress, IngressDeny, Egress, EgressDeny",
        ),
        (
            json!({"egress": [{"toCIDR": ["1.2.3.4"], "toFQDNs": [{"matchName": "a.example.com"}]}]}),
            ".spec.egress[0].toFQDNs: combining ToCIDR and ToFQDNs is not supported yet",
        ),
        (
            json!({"egress": [{"toCIDR": ["10.0.0.0/33"]}]}),
            ".spec.egress[0].toCIDR[0]: unable to parse CIDR: ParseAddr(\"10.0.0.0/33\"): unexpected character (at \"/33\")",
        ),
        (
            json!({"ingress": [{"fromCIDRSet": [{"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}]}]}),
            ".spec.ingress[0].fromCIDRSet[0].except[0]: allow CIDR prefix 10.0.0.0/8 does not contain exclude CIDR prefix 11.0.0.0/16",
        ),
        (
            json!({"ingress": [{"icmps": [{}], "toPorts": [{}]}]}),
            ".spec.ingress[0].icmps: the ICMPs block may only be present without ToPorts. Define a separate rule to use ToPorts",
        ),
        (ports(json!({"port": "80", "protocol": "TCP"}), get.clone()), ""),
        (
            ports(json!({"port": "80"}), get.clone()),
            ".spec.ingress[0].toPorts[0].ports[0]: L7 rules can only apply to TCP (not ANY) except for DNS rules",
        ),
        (
            ports(json!({"port": "0", "protocol": "TCP"}), get),
            ".spec.ingress[0].toPorts[0].rules: L7 rules can not be used when a port is 0",
        ),
        (
            ports(json!({"port": "53"}), json!({"dns": [{"matchPattern": "*"}]})),
            ".spec.ingress[0].toPorts[0].rules.dns: L7 protocol DNS is not supported on ingress yet",
        ),
        (
            ports(json!({"port": "http_x"}), Value::Null),
            ".spec.ingress[0].toPorts[0].ports[0].port: unable to parse port: strconv.ParseUint: parsing \"http_x\": invalid syntax",
        ),
        (ports(json!({"port": "${PORT}"}), Value::Null), ""),
    ];
    for (spec, expected) in cases {
        assert_eq!(refused(spec), expected);
    }
}

#[test]
fn a_name_is_that_of_a_port_with_the_protocol_of_the_rule() {
    let db = |need: &Need| matches!(need, Need::Upstream { service, .. } if service == "db.data");
    let with = |protocol: &str| verdict(&json!([{"ports": [{"port": "sql", "protocol": protocol}]}]), db);
    assert_eq!(with("TCP"), Verdict::Allow);
    assert_eq!(with("UDP"), Verdict::Deny);
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
fn without_namespaces_there_is_none_in_the_remedy() {
    let mut objects = workloads();
    objects.push(policy("p", &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": []})));
    for object in &mut objects {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    objects[0]["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] =
        "postgres://db:5432/a".into();
    let (network, flows) = Objects::new(&objects).network();
    let to_db = |need: &Need| matches!(need, Need::Upstream { service, .. } if service == "db");
    let flow = flows.iter().find(|flow| to_db(&flow.need)).expect("it is needed");
    let rule = network.remedy(flow).expect("it is dropped").yaml;
    assert!(rule.contains("app: db") && !rule.contains("namespaceSelector"), "{rule}");
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

/// The network of the workloads under Calico's, or an administrator's, policies.
fn verdict_under(cni: Cni, policies: &[Value], need: impl Fn(&Need) -> bool) -> Verdict {
    let (mut network, flows) = network(policies.iter().cloned());
    network.cnis = vec![cni];
    let flow = flows.iter().find(|flow| need(&flow.need) && flow.direction == Direction::Egress);
    network.judge(flow.expect("it is needed")).verdict
}

fn calico(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkPolicy", "metadata": {"name": name}, "spec": spec})
}

fn tier(name: &str, order: i64, default: &str) -> Value {
    json!({"apiVersion": "projectcalico.org/v3", "kind": "Tier", "metadata": {"name": name},
        "spec": {"order": order, "defaultAction": default}})
}

const API: fn(&Need) -> bool = |need| *need == Need::ApiServer;

#[test]
fn the_first_rule_of_calico_decides() {
    let rule = |action: &str| json!([{"action": action, "protocol": "TCP", "destination": {"ports": [443, "6000:7000"]}}]);
    let of = |order: Option<f64>, action: &str| json!({"order": order, "selector": "app == 'web'", "types": ["Egress"], "egress": rule(action)});
    let under = |policies: &[Value]| verdict_under(Cni::Calico, policies, API);
    let (deny, allow) = (of(Some(10.0), "Deny"), of(Some(20.0), "Allow"));
    assert_eq!(under(&[calico("a", &deny), calico("b", &allow)]), Verdict::Deny);
    assert_eq!(under(&[calico("a", &of(Some(30.0), "Deny")), calico("b", &allow)]), Verdict::Allow);
    // Without an order it comes last, and of one order the name decides.
    assert_eq!(under(&[calico("a", &of(None, "Deny")), calico("b", &allow)]), Verdict::Allow);
    assert_eq!(under(&[calico("a", &of(Some(20.0), "Deny")), calico("b", &allow)]), Verdict::Deny);
    // A log decides nothing, and the end of the tier drops.
    assert_eq!(under(&[calico("a", &of(None, "Log"))]), Verdict::Deny);
    // Who is not selected is not restricted; other plugins do not know the policy.
    let other =
        json!({"selector": "app == 'x' || projectcalico.org/namespace == 'data'", "types": ["Egress"]});
    assert_eq!(under(&[calico("a", &other)]), Verdict::Allow);
    assert_eq!(verdict_under(Cni::Cilium, &[calico("a", &deny)], API), Verdict::Allow);
}

#[test]
fn calico_asks_its_tiers_in_order() {
    let in_tier = |tier: &str, action: &str| json!({"tier": tier, "selector": "all()", "types": ["Egress"], "egress": [{"action": action}]});
    let nothing = json!({"selector": "all()", "types": ["Egress"]});
    let under = |policies: &[Value]| verdict_under(Cni::Calico, policies, API);
    let security = tier("security", 100, "Deny");
    // What passes on is judged by the default tier, and what is allowed is not.
    assert_eq!(
        under(&[security.clone(), calico("security.a", &in_tier("security", "Pass")), calico("z", &nothing)]),
        Verdict::Deny
    );
    assert_eq!(
        under(&[
            security.clone(),
            calico("security.a", &in_tier("security", "Allow")),
            calico("z", &nothing)
        ]),
        Verdict::Allow
    );
    let restricting = json!({"tier": "security", "selector": "all()", "types": ["Egress"]});
    assert_eq!(under(&[security, calico("security.a", &restricting)]), Verdict::Deny);
    assert_eq!(under(&[tier("security", 100, "Pass"), calico("security.a", &restricting)]), Verdict::Allow);
    // Where a tier stands that nothing declares is not known.
    assert_eq!(under(&[calico("security.a", &restricting)]), Verdict::Unknown);
    // A NetworkPolicy is in the default tier, at order 1,000.
    let ordinary = policy("p", &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}));
    let late =
        json!({"order": 2000, "selector": "all()", "types": ["Egress"], "egress": [{"action": "Deny"}]});
    assert_eq!(under(&[ordinary.clone(), calico("late", &late)]), Verdict::Allow);
    let early = json!({"order": 5, "selector": "all()", "types": ["Egress"], "egress": [{"action": "Deny"}]});
    assert_eq!(under(&[ordinary, calico("early", &early)]), Verdict::Deny);
}

#[test]
fn peers_of_calico_are_endpoints_addresses_and_services() {
    let under = |rule: Value, need: fn(&Need) -> bool| {
        let mut rule = rule;
        rule["action"] = json!("Allow");
        let spec = json!({"selector": "app == 'web'", "types": ["Egress"], "egress": [rule]});
        verdict_under(Cni::Calico, &[calico("a", &spec)], need)
    };
    let db: fn(&Need) -> bool = |need| matches!(need, Need::Upstream { .. });
    let to = |destination: Value| json!({"destination": destination});
    assert_eq!(under(to(json!({"serviceAccounts": {"names": ["db", "x"]}})), db), Verdict::Allow);
    assert_eq!(under(to(json!({"serviceAccounts": {"names": ["x"]}})), db), Verdict::Deny);
    assert_eq!(under(to(json!({"serviceAccounts": {"names": ["db"]}})), API), Verdict::Deny);
    // What selects endpoints in a policy of a namespace is about that namespace, and about nothing outside of
    // the cluster.
    let of_shop = |need: fn(&Need) -> bool| {
        let mut policy = calico(
            "a",
            &json!({"selector": "app == 'web'", "types": ["Egress"],
                "egress": [{"action": "Allow", "destination": {"notSelector": "app == 'x'"}}]}),
        );
        (policy["kind"], policy["metadata"]["namespace"]) = (json!("NetworkPolicy"), json!("shop"));
        verdict_under(Cni::Calico, &[policy], need)
    };
    assert_eq!((of_shop(db), of_shop(API)), (Verdict::Deny, Verdict::Deny));
    assert_eq!(under(to(json!({"selector": "app == 'db'"})), db), Verdict::Allow);
    assert_eq!(
        under(
            to(json!({"selector": "app == 'db'", "namespaceSelector": "projectcalico.org/name == 'shop'"})),
            db
        ),
        Verdict::Deny
    );
    assert_eq!(
        under(
            to(
                json!({"namespaceSelector": "kubernetes.io/metadata.name in {'data'}", "notSelector": "app == 'db'"})
            ),
            db
        ),
        Verdict::Deny
    );
    assert_eq!(under(to(json!({"selector": "all()"})), API), Verdict::Deny);
    assert_eq!(
        under(to(json!({"services": {"name": "kubernetes", "namespace": "default"}})), API),
        Verdict::Allow
    );
    assert_eq!(under(to(json!({"nets": ["0.0.0.0/0"]})), API), Verdict::Allow);
    assert_eq!(under(to(json!({"nets": ["10.96.0.1/32"]})), API), Verdict::Deny);
    assert_eq!(under(to(json!({"nets": ["10.0.0.0/16"]})), API), Verdict::Unknown);
    assert_eq!(under(to(json!({"domains": ["a.example.com"]})), API), Verdict::Unknown);
    // An expression that is none leaves all open.
    assert_eq!(under(to(json!({"selector": "app = 'db'"})), db), Verdict::Allow);
}

#[test]
fn administrators_are_asked_before_and_after_namespaces() {
    let admin = |kind: &str, action: &str, priority: i64| {
        json!({"apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": kind, "metadata": {"name": format!("p{priority}")},
            "spec": {"priority": priority, "subject": {"namespaces": {}}, "egress": [{"action": action, "to": [{"networks": ["0.0.0.0/0"]}]}]}})
    };
    let ordinary =
        |egress: Value| policy("p", &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": egress}));
    let under = |policies: &[Value]| verdict_under(Cni::OvnKubernetes, policies, API);
    let anp = |action, priority| admin("AdminNetworkPolicy", action, priority);
    assert_eq!(under(&[anp("Deny", 5), ordinary(json!([{}]))]), Verdict::Deny);
    assert_eq!(under(&[anp("Allow", 5), ordinary(json!([]))]), Verdict::Allow);
    assert_eq!(under(&[anp("Pass", 5), anp("Deny", 6), ordinary(json!([{}]))]), Verdict::Allow);
    assert_eq!(under(&[anp("Deny", 5), anp("Pass", 6), ordinary(json!([{}]))]), Verdict::Deny);
    let base = admin("BaselineAdminNetworkPolicy", "Deny", 0);
    assert_eq!(under(std::slice::from_ref(&base)), Verdict::Deny);
    assert_eq!(under(&[base, ordinary(json!([{}]))]), Verdict::Allow);
    // Not every plugin knows them.
    assert_eq!(verdict_under(Cni::Antrea, &[anp("Deny", 5)], API), Verdict::Unknown);
    assert_eq!(verdict_under(Cni::AwsVpc, &[anp("Deny", 5)], API), Verdict::Allow);
    let newer = json!({"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy", "metadata": {"name": "n"},
        "spec": {"tier": "Admin", "priority": 1, "subject": {"pods": {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}},
            "egress": [{"action": "Deny", "to": [{"networks": ["0.0.0.0/0"]}], "protocols": [{"tcp": {"destinationPort": {"range": {"start": 400, "end": 7000}}}}]}]}});
    assert_eq!(under(&[newer]), Verdict::Deny);
}

#[test]
fn cilium_denies_before_it_allows_in_whole_clusters_too() {
    let wide = |spec: Value| json!({"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "metadata": {"name": "c"}, "spec": spec});
    let allow = json!({"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]});
    let deny = json!({"endpointSelector": {"matchLabels": {"app": "web"}}, "egressDeny": [{"toEntities": ["kube-apiserver"]}]});
    assert_eq!(verdict_under(Cni::Cilium, &[wide(allow.clone())], API), Verdict::Allow);
    assert_eq!(verdict_under(Cni::Cilium, &[wide(allow.clone()), wide(deny)], API), Verdict::Deny);
    // A rule without anything in it isolates, and denies and allows nobody.
    let isolated = json!({"endpointSelector": {}, "egressDeny": [{}]});
    assert_eq!(verdict_under(Cni::Cilium, &[wide(isolated.clone())], API), Verdict::Deny);
    assert_eq!(verdict_under(Cni::Cilium, &[wide(isolated), wide(allow)], API), Verdict::Allow);
    // What is told to leave open isolates nobody, and its rules count beside those that do.
    let beside = json!({"endpointSelector": {}, "enableDefaultDeny": {"egress": false}, "egress": [{"toEntities": ["kube-apiserver"]}]});
    let isolated = json!({"endpointSelector": {}, "egressDeny": [{}]});
    assert_eq!(verdict_under(Cni::Cilium, &[wide(beside.clone()), wide(isolated)], API), Verdict::Allow);
    assert_eq!(verdict_under(Cni::Cilium, &[wide(beside)], API), Verdict::Allow);
    let empty = json!({"endpointSelector": {}, "egress": [{}]});
    assert_eq!(verdict_under(Cni::Cilium, &[wide(empty)], API), Verdict::Deny);
}

#[test]
fn pods_of_operators_bear_the_labels_that_they_are_given() {
    let cluster = |more: Value| {
        json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "orders", "namespace": "shop"},
            "spec": {"instances": 1, "inheritedMetadata": {"labels": more}}})
    };
    let closed = policy("closed", &json!({"podSelector": {}, "policyTypes": ["Egress"]}));
    let open = policy(
        "open",
        &json!({"podSelector": {"matchLabels": {"talks": "yes"}}, "policyTypes": ["Egress"], "egress": [{}]}),
    );
    let judge = |labels: Value| {
        let (network, flows) = Objects::new(&[cluster(labels), closed.clone(), open.clone()]).network();
        let of_api =
            flows.iter().find(|flow| flow.need == Need::ApiServer).expect("an instance asks who leads");
        network.judge(of_api).verdict
    };
    assert_eq!(judge(json!({"talks": "yes"})), Verdict::Allow);
    assert_ne!(judge(json!({})), Verdict::Allow);
}

#[test]
fn pods_that_operators_make_are_judged() {
    let cluster = json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {"instances": 1}});
    let client = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client", "namespace": "shop", "labels": {"app": "client"}},
        "spec": {"containers": [{"name": "c", "env": [{"name": "DB", "value": "postgres://orders-rw.shop.svc:5432/a"}]}]}});
    let locked = |from: Value| {
        policy(
            "db",
            &json!({"podSelector": {"matchLabels": {"cnpg.io/cluster": "orders"}}, "policyTypes": ["Ingress"],
            "ingress": [{"from": [from], "ports": [{"port": "postgresql"}]}]}),
        )
    };
    let judge = |from: Value| {
        let (network, flows) = Objects::new(&[cluster.clone(), client.clone(), locked(from)]).network();
        let flow = flows.iter().find(|flow| {
            flow.direction == Direction::Ingress
                && matches!(&flow.need, Need::Upstream { service, .. } if service == "orders-rw.shop")
        });
        network.judge(flow.expect("the client names it")).verdict
    };
    assert_eq!(judge(json!({"podSelector": {"matchLabels": {"app": "client"}}})), Verdict::Allow);
    assert_eq!(judge(json!({"podSelector": {"matchLabels": {"app": "other"}}})), Verdict::Deny);
}
