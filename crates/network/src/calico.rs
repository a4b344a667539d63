//! Calico's own policies.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use crate::{
    expression::Expression,
    flow::{Destination, Direction, Flow},
    kubernetes::{address, filled, title},
    network::Network,
    object::Object,
    plugin::Cni,
    policy::{Action, Entity, Layer, Peer, Policy, PolicyReading, Rule, TierPosition},
    port::{PortName, PortRange, Protocol},
    selector::Selector,
    tri_state::Tri,
};

/// The tiers of a network: those that are declared, and those that Calico brings.
pub(crate) fn tiers<'a>(objects: impl Iterator<Item = Object<'a>>) -> BTreeMap<String, TierPosition> {
    let mut found: BTreeMap<String, TierPosition> = BTreeMap::new();
    for object in objects.filter(|object| is_calico(*object) && object.key.kind == "Tier") {
        let spec = object.value.get("spec").unwrap_or(&Value::Null);
        let order = spec.get("order").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
        let passes = spec.str_at(&["defaultAction"]) == Some("Pass");
        found.insert(object.key.name.clone(), TierPosition { order, passes });
    }
    for (name, order, passes) in [
        ("kube-admin", ADMIN, true),
        ("adminnetworkpolicy", ADMIN, true),
        (DEFAULT_TIER, ORDINARY, false),
        ("kube-baseline", BASELINE, true),
        ("baselineadminnetworkpolicy", BASELINE, true),
    ] {
        found.insert(name.to_owned(), TierPosition { order, passes });
    }
    found
}

/// The label in which Calico tells a pod's service account.
pub(crate) const ACCOUNT: &str = "projectcalico.org/serviceaccount";
/// The tier of policies that name none.
pub(crate) const DEFAULT_TIER: &str = "default";
/// Where Calico puts the policies of administrators.
pub(crate) const ADMIN: f64 = 1_000.0;
/// Where Calico puts the policies of namespaces.
pub(crate) const ORDINARY: f64 = 1_000_000.0;
/// Where Calico puts what is asked last.
pub(crate) const BASELINE: f64 = 10_000_000.0;

/// Whether an object is one of Calico's.
pub(crate) fn is_calico(object: Object<'_>) -> bool {
    matches!(object.key.group.as_str(), "projectcalico.org" | "crd.projectcalico.org")
}

/// Whether an object gives labels to addresses that are no pod's, so that a selector may select those.
pub(crate) fn is_set(object: Object<'_>) -> bool {
    is_calico(object)
        && matches!(object.key.kind.as_str(), "NetworkSet" | "GlobalNetworkSet" | "HostEndpoint")
}

/// Reads a NetworkPolicy or GlobalNetworkPolicy.
pub(crate) fn read(object: Object<'_>) -> PolicyReading {
    let spec = object.value.get("spec").unwrap_or(&Value::Null);
    // These are for the interfaces of nodes.
    if ["doNotTrack", "preDNAT"].iter().any(|key| spec.get(key).and_then(Value::as_bool) == Some(true)) {
        return PolicyReading::Other;
    }
    policy(object, spec).map_or(PolicyReading::Opaque, |policy| PolicyReading::Policies(vec![policy]))
}

fn policy(object: Object<'_>, spec: &Value) -> Option<Policy> {
    if spec.str_at(&["serviceAccountSelector"]).is_some_and(|text| !text.trim().is_empty()) {
        return None;
    }
    let own = (object.key.kind == "NetworkPolicy").then(|| object.key.namespace.clone());
    let rules = |key: &str, other: &str| -> Option<Vec<Rule>> {
        let rules = spec.get(key).and_then(Value::as_array).into_iter().flatten();
        let rules = rules.filter(|rule| !matches!(rule.str_at(&["action"]), Some("Log" | "log")));
        rules.map(|it| rule(it, other, own.as_deref())).collect()
    };
    let types = filled(spec, "types");
    let has = |key: &str| filled(spec, key).is_some();
    let restricts = |name: &str, default: bool| {
        types.map_or(default, |types| types.iter().any(|it| it.as_str() == Some(name)))
    };
    let ingress = restricts("Ingress", has("ingress") || !has("egress"));
    let egress = restricts("Egress", has("egress"));
    let tier = spec.str_at(&["tier"]).filter(|tier| !tier.is_empty()).unwrap_or(DEFAULT_TIER);
    let order = spec.get("order").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
    let namespaces = spec.str_at(&["namespaceSelector"]).filter(|text| !text.trim().is_empty());
    Some(Policy {
        object: object.id,
        title: title(object),
        layer: Layer::Calico { tier: tier.to_owned(), order, rank: rank(object, tier) },
        only: Some(Cni::Calico),
        namespace: own.clone(),
        pods: selector(spec.str_at(&["selector"]).unwrap_or_default())?,
        namespaces: namespaces.map(selector).map_or(Some(None), |read| read.map(Some))?,
        ingress: if ingress { Some(rules("ingress", "source")?) } else { None },
        egress: if egress { Some(rules("egress", "destination")?) } else { None },
        leaves_open: Vec::new(),
    })
}

/// By what policies of one order are sorted: the name as Calico keeps it, with the tier and, before it, the
/// namespace.
fn rank(object: Object<'_>, tier: &str) -> String {
    let key = &object.key;
    let prefix = format!("{tier}.");
    let name = if key.name.starts_with(&prefix) { key.name.clone() } else { prefix + &key.name };
    if key.namespace.is_empty() { name } else { format!("{}/{name}", key.namespace) }
}

fn selector(text: &str) -> Option<Selector> {
    Expression::parse(text).map(Selector::expressed)
}

/// One rule; `None` if it is not understood.
fn rule(value: &Value, other: &str, own: Option<&str>) -> Option<Rule> {
    let action = match value.str_at(&["action"])?.to_ascii_lowercase().as_str() {
        "allow" => Action::Allow,
        "deny" => Action::Deny,
        "pass" | "next-tier" => Action::Pass,
        _ => return None,
    };
    let protocol = value.get("protocol");
    let mut entity = entity(value.get(other).unwrap_or(&Value::Null), own)?;
    // What is said of the side whose policy it is narrows the rule down.
    let near = if other == "source" { "destination" } else { "source" };
    let narrowing = ["selector", "nets", "notSelector", "notNets", "serviceAccounts", "namespaceSelector"];
    entity.is_unclear |= narrowing.iter().any(|key| value.at(&[near, key]).is_some());
    let unclear = ["notProtocol", "http", "icmp", "notICMP", "ipVersion"];
    entity.is_unclear |= unclear.iter().any(|key| value.get(key).is_some_and(|it| !it.is_null()));
    entity.is_unclear |= ["source", "destination"].iter().any(|side| value.at(&[side, "notPorts"]).is_some())
        || value.at(&["source", "ports"]).is_some();
    let protocol = match protocol {
        Some(Value::String(name)) => Some(Protocol::from_name(Some(name))),
        Some(Value::Number(number)) => Some(match number.as_u64() {
            Some(6) => Protocol::Tcp,
            Some(17) => Protocol::Udp,
            _ => Protocol::Other,
        }),
        _ => None,
    };
    let ports = value.get("destination").and_then(|side| filled(side, "ports"));
    let ports = match (ports, protocol) {
        (Some(ports), _) => Some(ports.iter().filter_map(|it| port(it, protocol)).collect()),
        (None, Some(_)) => Some(vec![PortRange { protocol, port: None, end: None }]),
        (None, None) => None,
    };
    let peers = (entity != Entity::default()).then(|| vec![Peer::Calico(Box::new(entity))]);
    Some(Rule { action, peers, ports })
}

/// A port, a name, or `first:last`.
fn port(value: &Value, protocol: Option<Protocol>) -> Option<PortRange> {
    let range = value.as_str().and_then(|text| text.split_once(':'));
    let (port, end) = match range {
        Some((first, last)) => (PortName::Number(first.parse().ok()?), last.parse().ok()),
        None => (PortName::from_value(value)?, None),
    };
    Some(PortRange { protocol, port: Some(port), end })
}

/// One side; `None` if it is not understood.
fn entity(value: &Value, own: Option<&str>) -> Option<Entity> {
    let text = |key: &str| value.str_at(&[key]).filter(|text| !text.trim().is_empty());
    let read = |key: &str| text(key).map(selector).map_or(Some(None), |read| read.map(Some));
    let list = |key: &str| value.get(key).and_then(Value::as_array).into_iter().flatten();
    let service = value.get("services").map(|of| {
        let part = |key: &str| of.str_at(&[key]).map(str::to_owned);
        (part("namespace").or(own.map(str::to_owned)).unwrap_or_default(), part("name").unwrap_or_default())
    });
    let (pods, namespaces) = (read("selector")?, read("namespaceSelector")?);
    let accounts = value.get("serviceAccounts").filter(|of| !of.is_null());
    let names = accounts.and_then(|of| filled(of, "names"));
    // Any of these keeps a rule of a namespaced policy to its namespace.
    let is_near =
        namespaces.is_none() && (pods.is_some() || text("notSelector").is_some() || accounts.is_some());
    Some(Entity {
        namespace: own.filter(|_| is_near).map(str::to_owned),
        pods,
        namespaces,
        not_pods: read("notSelector")?,
        accounts: names.map(|names| {
            let names = names.iter().filter_map(Value::as_str).map(str::to_owned);
            Selector::one_of(ACCOUNT, names.collect())
        }),
        blocks: list("nets").map(|cidr| address(&json!({"cidr": cidr}))).collect::<Option<_>>()?,
        not_blocks: list("notNets").map(|cidr| cidr.as_str()?.parse().ok()).collect::<Option<_>>()?,
        service,
        is_unclear: value.get("domains").is_some() || accounts.is_some_and(|of| of.get("selector").is_some()),
    })
}

impl Network {
    /// Whether one side of a rule of Calico's is the other side of a flow.
    pub(crate) fn is_entity(&self, entity: &Entity, flow: &Flow, cni: Cni) -> Tri {
        let mut answers = vec![self.is_endpoint(entity, flow.other)];
        if !entity.blocks.is_empty() {
            let blocks = entity.blocks.iter();
            answers.push(Tri::any(blocks.map(|it| self.address(it, flow, cni))));
        }
        if !entity.not_blocks.is_empty() {
            answers.push(Tri::Maybe);
        }
        if let Some((namespace, name)) = &entity.service {
            let is_api = namespace == "default" && name == "kubernetes";
            answers.push(match flow.other {
                Destination::ApiServer if is_api && flow.direction == Direction::Egress => Tri::Yes,
                Destination::ApiServer => Tri::No,
                _ => Tri::Maybe,
            });
        }
        if entity.is_unclear {
            answers.push(Tri::Maybe);
        }
        Tri::all(answers)
    }

    /// Whether selectors select the other side. What is no pod is selected only if something gives it labels.
    fn is_endpoint(&self, entity: &Entity, other: Destination) -> Tri {
        let Entity { pods, not_pods, accounts, namespaces, namespace, .. } = entity;
        let selects_none =
            pods.is_none() && accounts.is_none() && namespaces.is_none() && namespace.is_none();
        if selects_none && not_pods.is_none() {
            return Tri::Yes;
        }
        let judge = |own: &str, pods_match: &dyn Fn(&Selector) -> Tri| {
            let near = namespace.as_ref().map_or(Tri::Yes, |namespace| Tri::from(namespace == own));
            let far = namespaces.as_ref().map_or(Tri::Yes, |selector| self.selects_namespace(selector, own));
            let meant = pods.as_ref().map_or(Tri::Yes, pods_match);
            let not_meant = not_pods.as_ref().map_or(Tri::No, pods_match);
            let rest = match not_meant {
                Tri::No => Tri::Yes,
                Tri::Maybe => Tri::Maybe,
                Tri::Yes => Tri::No,
            };
            let account = accounts.as_ref().map_or(Tri::Yes, pods_match);
            near.min(far).min(meant).min(account).min(rest)
        };
        match other {
            Destination::Pod(at) => {
                let pod = &self.pods[at];
                judge(&pod.namespace, &|selector| self.selects(selector, pod))
            }
            // Where DNS runs, and under which labels, is the installer's choice.
            Destination::Dns => {
                let labels = [("k8s-app".to_owned(), "kube-dns".to_owned())].into();
                let usual = judge("kube-system", &|selector| selector.matches(&labels, false));
                let mut wanted = pods.iter().chain(namespaces).flat_map(Selector::wanted_labels);
                let names_dns = wanted.any(|(_, values)| values.iter().any(|value| value.contains("dns")));
                if names_dns { usual.max(Tri::Maybe) } else { usual }
            }
            _ if self.has_sets => Tri::Maybe,
            _ if selects_none => Tri::Yes,
            _ => Tri::No,
        }
    }
}
