//! Nodes that pods ask for and no repository brings: with the labels and devices that they name, or with
//! room.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use tiphys_cluster::{Cluster, LiveCache, PatchType};
use tiphys_diag::similar_names::nearest_slip_beside_numbers;
use tiphys_schema::Quantity;
use tiphys_value::{GroupKind, GroupVersionKind, Map, ObjectExt, ResourceKey, Value, json};

use super::{FIELD_MANAGER, apply_options};

/// The label that says which node a node is.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// How many devices of a kind a node has.
const DEVICES: &str = "8";
/// What a node has that joins for a pod which takes much of an ordinary one. Nobody knows how large the nodes
/// are; what asks for more than this is more likely written wrongly (`cpu: 500` for `500m`).
const LARGE: [(&str, &str); 2] = [("cpu", "128"), ("memory", "1Ti")];
/// From how many letters on the value of a label can be a slip for another one.
const LONG_VALUE: usize = 6;
/// How many nodes of a kind join at most.
const MOST: usize = 24;
/// How many pods a node holds.
const MOST_PODS: u64 = 110;
/// A whole node, in the unit that parts of it are added up in.
const NODE: u64 = 1_000_000;
/// What the scheduler says of nodes that are as a pod wants them, and have no room for it.
const NO_ROOM: [&str; 3] = ["Too many pods", "Insufficient cpu", "Insufficient memory"];
/// What it says where other pods keep a pod away.
const KEPT_AWAY: &str = "anti-affinity rules";

/// What a node is like that pods ask for: its labels, the devices that containers want of it, and its size.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    labels: BTreeMap<String, String>,
    devices: BTreeSet<String>,
    /// Whether it has as much as [`LARGE`] says.
    large: bool,
}

/// What is missing of a kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// No node is like that: one is enough.
    Kind,
    /// So many more.
    Room(usize),
}

/// The nodes that are missing, or that have joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes(BTreeMap<Node, (Missing, usize)>);

impl Nodes {
    /// The nodes that the pods of a cluster wait for.
    pub(super) fn missing(cache: &LiveCache) -> Self {
        let model = cache.of_kind(&GroupKind::new("", "Node")).into_iter().next();
        let model_room = model.as_ref().and_then(|model| model.at(&["status", "allocatable"]));
        let mut found: BTreeMap<Node, (Missing, u64)> = BTreeMap::new();
        let pods = cache.of_kind(&GroupKind::new("", "Pod"));
        let wanted = LazyCell::new(|| WantedLabels::from_pods(pods.iter().map(AsRef::as_ref)));
        for pod in &pods {
            let Some((mut node, missing)) = node_for(pod) else { continue };
            // Nobody brings a node for a label that is mistyped.
            if node.labels.iter().any(|(name, value)| wanted.is_slip(name, value)) {
                continue;
            }
            // No number of nodes is of use to a pod that wants more than one has.
            if missing != Missing::Kind && !fits(pod, &large_room(), 1) {
                continue;
            }
            // What runs on every node takes its part of this one, too.
            node.large = model_room.is_some_and(|room| !fits(pod, room, 2));
            let of_volumes = labels_of_volumes(cache, pod);
            // The nodes that its volumes are on are there, and away: nobody can put others in their place.
            let asks_for_nothing_else = node.labels.is_empty() && node.devices.is_empty();
            if missing == Missing::Kind && asks_for_nothing_else && is_borne(cache, &of_volumes) {
                continue;
            }
            node.labels.extend(of_volumes);
            let large = node.large.then(large_room);
            let room = large.as_ref().or(model_room);
            let part = NODE / room.map_or(MOST_PODS, |room| how_many(pod, room)).clamp(1, MOST_PODS);
            let entry = found.entry(node).or_insert((missing, 0));
            entry.1 = entry.1.saturating_add(part);
            entry.0 = match (entry.0, missing) {
                (Missing::Room(one), Missing::Room(other)) => Missing::Room(one + other),
                (room @ Missing::Room(_), Missing::Kind) | (Missing::Kind, room) => room,
            };
        }
        let counted = found.into_iter().map(|(node, (missing, parts))| {
            let whole = usize::try_from(parts.div_ceil(NODE)).unwrap_or(usize::MAX);
            let count = match missing {
                Missing::Kind => 1,
                Missing::Room(more) => whole.max(more).max(1),
            };
            (node, (missing, count))
        });
        Self(counted.collect())
    }

    /// Takes up what is missing, and returns what of it is new: of a kind that has joined another one is no
    /// help unless room is what is missing, and at some number it is none either.
    pub(super) fn add(&mut self, found: Self) -> Self {
        let mut new = BTreeMap::new();
        for (node, (missing, count)) in found.0 {
            let joined = self.0.get(&node).map_or(0, |(_, joined)| *joined);
            let count = match missing {
                Missing::Kind if joined > 0 => 0,
                _ => count.min(MOST.saturating_sub(joined)),
            };
            if count > 0 {
                self.0.insert(node.clone(), (missing, joined + count));
                new.insert(node, (missing, count));
            }
        }
        Self(new)
    }

    /// The nodes for people.
    pub(super) fn descriptions(&self) -> BTreeSet<String> {
        let shown = |(node, (_, count)): (&Node, &(Missing, usize))| {
            let labels = node.labels.iter().map(|(name, value)| format!("{name}={value}"));
            let size = LARGE.iter().filter(|_| node.large).map(|(name, has)| format!("{name}={has}"));
            let all: Vec<String> = labels.chain(node.devices.iter().cloned()).chain(size).collect();
            match (all.is_empty(), count) {
                (true, count) => format!("{count} more"),
                (false, 1) => all.join(" "),
                (false, count) => format!("{} ({count})", all.join(" ")),
            }
        };
        self.0.iter().map(shown).collect()
    }

    /// Lets them join a cluster.
    ///
    /// # Errors
    /// The cluster refuses one.
    pub(super) async fn join(&self, cluster: &Cluster, cache: &LiveCache) -> anyhow::Result<()> {
        let known = cache.of_kind(&GroupKind::new("", "Node"));
        let mut names: BTreeSet<String> = known.iter().map(|node| node.name().to_owned()).collect();
        let Some(model) = known.first() else { return Ok(()) };
        for (node, (_, count)) in &self.0 {
            for _ in 0..*count {
                let name = match node.labels.get(HOSTNAME) {
                    Some(name) => name.clone(),
                    None => free_name(&names),
                };
                let same = known.iter().find(|node| node.name() == name);
                join(cluster, same.unwrap_or(model), &name, names.len(), node).await?;
                names.insert(name);
            }
        }
        Ok(())
    }
}

/// A name that no node has.
fn free_name(names: &BTreeSet<String>) -> String {
    let mut number = names.len() + 1;
    while names.contains(&format!("node-{number}")) {
        number += 1;
    }
    format!("node-{number}")
}

/// The node that a pod asks for, if it fits none because of labels or devices, or because those are full.
fn node_for(pod: &Value) -> Option<(Node, Missing)> {
    let conditions = pod.at(&["status", "conditions"])?.as_array()?;
    let refused = conditions
        .iter()
        .find(|c| c.str_at(&["type"]) == Some("PodScheduled") && c.str_at(&["status"]) == Some("False"))?;
    let why = refused.str_at(&["message"])?;
    let says = |text: &str| why.contains(text);
    let devices: BTreeSet<String> =
        devices_of(pod).into_iter().filter(|device| says(&format!("Insufficient {device}"))).collect();
    let spread = says("topology spread constraints (missing required label)");
    let misfits = says("didn't match Pod's node affinity/selector")
        || says("didn't match PersistentVolume's node affinity")
        || spread;
    let missing = match () {
        () if says(KEPT_AWAY) => Missing::Room(1),
        () if NO_ROOM.iter().any(|reason| says(reason)) => Missing::Room(0),
        () if misfits || !devices.is_empty() => Missing::Kind,
        () => return None,
    };
    let mut labels = labels_for(pod);
    if spread {
        labels.extend(topologies_of(pod).map(|key| (key, "stands-in".to_owned())));
    }
    Some((Node { labels, devices, large: false }, missing))
}

/// Which labels workloads ask of nodes: by name and value the owners of their pods.
#[derive(Default)]
struct WantedLabels(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl WantedLabels {
    fn from_pods<'a>(pods: impl Iterator<Item = &'a Value>) -> Self {
        let mut all = Self::default();
        for pod in pods {
            let owner = pod.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
            let owner = owner.unwrap_or_else(|| pod.uid());
            for (name, value) in labels_for(pod) {
                all.0.entry(name).or_default().entry(value).or_default().insert(owner.to_owned());
            }
        }
        all
    }

    /// Whether one workload alone asks for a label that is nearly the one which several others ask for.
    fn is_slip(&self, name: &str, value: &str) -> bool {
        self.is_slip_of_value(name, value) || self.is_slip_of_name(name, value)
    }

    /// Whether the name of a label is one that nobody else uses, and nearly one under which several others
    /// ask for the same value.
    fn is_slip_of_name(&self, name: &str, value: &str) -> bool {
        let owners = |values: &BTreeMap<String, BTreeSet<String>>| values.get(value).map_or(0, BTreeSet::len);
        let is_alone = self.0.get(name).is_none_or(|values| values.len() == 1 && owners(values) <= 1);
        let common = self.0.iter().filter(|(_, values)| owners(values) > 1).map(|(name, _)| name.as_str());
        is_alone && !value.is_empty() && nearest_slip_beside_numbers(name, common).is_some()
    }

    /// Whether a value is nearly the one which several others ask for under the same name. Short values are
    /// names of their own: `app` is none for `api`.
    fn is_slip_of_value(&self, name: &str, value: &str) -> bool {
        let Some(values) = self.0.get(name).filter(|_| value.chars().count() >= LONG_VALUE) else {
            return false;
        };
        let is_alone = values.get(value).is_none_or(|owners| owners.len() == 1);
        let common = values.iter().filter(|(_, owners)| owners.len() > 1).map(|(value, _)| value.as_str());
        is_alone && nearest_slip_beside_numbers(value, common).is_some()
    }
}

/// The labels by which a pod has to be spread.
fn topologies_of(pod: &Value) -> impl Iterator<Item = String> {
    let constraints = pod.at(&["spec", "topologySpreadConstraints"]).and_then(Value::as_array);
    let strict = constraints
        .into_iter()
        .flatten()
        .filter(|constraint| constraint.str_at(&["whenUnsatisfiable"]) != Some("ScheduleAnyway"));
    let keys = strict.filter_map(|constraint| constraint.str_at(&["topologyKey"]));
    keys.filter(|key| *key != HOSTNAME).map(str::to_owned)
}

/// The labels of a node that a pod goes to.
fn labels_for(pod: &Value) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    for (name, value) in selector.into_iter().flatten() {
        labels.insert(name.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    let affinity = pod.at(&["spec", "affinity", "nodeAffinity"]);
    let required =
        affinity.and_then(|affinity| affinity.get("requiredDuringSchedulingIgnoredDuringExecution"));
    labels.extend(required.into_iter().flat_map(labels_of_first_term));
    labels
}

/// The labels of a node that the first term of a node selector takes.
fn labels_of_first_term(selector: &Value) -> BTreeMap<String, String> {
    let first = selector.pointer("/nodeSelectorTerms/0/matchExpressions").and_then(Value::as_array);
    let label = |expression: &Value| match expression.str_at(&["operator"])? {
        "In" | "Exists" => {
            let value = expression.pointer("/values/0").and_then(Value::as_str).unwrap_or_default();
            Some((expression.str_at(&["key"])?.to_owned(), value.to_owned()))
        }
        _ => None,
    };
    first.into_iter().flatten().filter_map(label).collect()
}

/// The labels of the nodes that a pod's volumes are on.
fn labels_of_volumes(cache: &LiveCache, pod: &Value) -> BTreeMap<String, String> {
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).into_iter().flatten();
    let claims = volumes.filter_map(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]));
    let volume_of = |claim: &str| {
        let claim = cache.get(&ResourceKey::new("", "PersistentVolumeClaim", pod.namespace(), claim))?;
        cache.get(&ResourceKey::new("", "PersistentVolume", "", claim.str_at(&["spec", "volumeName"])?))
    };
    let labels = |volume: &Value| volume.at(&["spec", "nodeAffinity", "required"]).map(labels_of_first_term);
    claims.filter_map(volume_of).filter_map(|volume| labels(&volume)).flatten().collect()
}

/// Whether some node has labels, of which there are some.
fn is_borne(cache: &LiveCache, labels: &BTreeMap<String, String>) -> bool {
    let bears = |node: &Value| labels.iter().all(|(name, value)| node.label(name) == Some(value.as_str()));
    !labels.is_empty() && cache.of_kind(&GroupKind::new("", "Node")).iter().any(|node| bears(node))
}

/// The containers of a pod.
fn containers_of(pod: &Value) -> impl Iterator<Item = &Value> {
    pod.at(&["spec", "containers"]).and_then(Value::as_array).into_iter().flatten()
}

/// What a large node has for pods.
fn large_room() -> Value {
    LARGE.iter().map(|(name, has)| ((*name).to_owned(), Value::from(*has))).collect::<Map<_, _>>().into()
}

/// Whether an empty node with some room could hold so many of a pod.
fn fits(pod: &Value, room: &Value, times: u64) -> bool {
    how_many(pod, room) >= times
}

/// How many of a pod an empty node with some room could hold, as far as processors and memory go.
fn how_many(pod: &Value, room: &Value) -> u64 {
    let amount = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse::<Quantity>().ok().map(|quantity| quantity.milli())
    };
    let by_resource = ["cpu", "memory"].into_iter().filter_map(|name| {
        let asked = containers_of(pod).filter_map(|container| {
            let of = |part: &str| container.at(&["resources", part, name]).and_then(amount);
            of("requests").or_else(|| of("limits"))
        });
        let has = room.get(name).and_then(amount)?.max(0);
        has.checked_div(asked.fold(0, i64::saturating_add))
    });
    by_resource.min().map_or(u64::MAX, |count| u64::try_from(count).unwrap_or(0))
}

/// The devices that a pod's containers ask for: resources with a vendor's name.
fn devices_of(pod: &Value) -> BTreeSet<String> {
    let resources = containers_of(pod).flat_map(|container| {
        ["limits", "requests"].into_iter().filter_map(|part| container.at(&["resources", part])?.as_object())
    });
    resources.flat_map(Map::keys).filter(|name| name.contains('/')).cloned().collect()
}

/// Lets a node join that is as another one is, with more labels and devices.
async fn join(
    cluster: &Cluster,
    model: &Value,
    name: &str,
    number: usize,
    Node { labels, devices, large }: &Node,
) -> anyhow::Result<()> {
    let mut all = model.at(&["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    all[HOSTNAME] = name.into();
    for (name, value) in labels {
        all[name] = value.as_str().into();
    }
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": all}});
    let mut status = model.at(&["status"]).cloned().unwrap_or_else(|| json!({}));
    if let Some(map) = status.as_object_mut() {
        map.remove("conditions");
    }
    status["addresses"] = json!([
        {"type": "InternalIP", "address": format!("192.168.0.{}", 10 + number % 200)},
        {"type": "Hostname", "address": name},
    ]);
    for part in ["capacity", "allocatable"] {
        for device in devices {
            status[part][device] = DEVICES.into();
        }
        for (name, has) in LARGE.iter().filter(|_| *large) {
            status[part][name] = (*has).into();
        }
    }
    cluster.apply(&node, &apply_options()).await?;
    let resource = cluster.resource(&GroupVersionKind::new("", "v1", "Node")).await?;
    let status = json!({"status": status});
    cluster.patch(&resource, ("", name), "status", PatchType::Merge, &status, FIELD_MANAGER).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(message: &str) -> Value {
        json!({"spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"resources": {"limits": {"gpu.example.com/one": 1, "cpu": 1}}}],
            "topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}}},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}})
    }

    #[test]
    fn a_label_that_one_workload_spells_otherwise_is_a_slip() {
        let pod = |owner: &str, pool: &str| json!({"metadata": {"ownerReferences": [{"uid": owner}]}, "spec": {"nodeSelector": {"pool": pool}}});
        let pods = [pod("a", "compute"), pod("b", "compute"), pod("c", "compuet"), pod("d", "storage")];
        let wanted = WantedLabels::from_pods(pods.iter());
        assert!(wanted.is_slip("pool", "compuet"));
        assert!(!wanted.is_slip("pool", "compute") && !wanted.is_slip("pool", "storage"));
        let under = |owner: &str, name: &str| json!({"metadata": {"ownerReferences": [{"uid": owner}]}, "spec": {"nodeSelector": {name: "gpu"}}});
        let pods = [
            under("a", "example.com/node-pool"),
            under("b", "example.com/node-pool"),
            under("c", "example.com/nodepool"),
        ];
        let wanted = WantedLabels::from_pods(pods.iter());
        assert!(wanted.is_slip("example.com/nodepool", "gpu"));
        assert!(!wanted.is_slip("example.com/node-pool", "gpu"));
        // Pools that are numbered, or that several ask for, are pools of their own.
        let pods = [pod("a", "workers-1"), pod("b", "workers-1"), pod("c", "workers-2")];
        assert!(!WantedLabels::from_pods(pods.iter()).is_slip("pool", "workers-2"));
    }

    #[test]
    fn a_node_has_the_labels_and_devices_that_a_pod_asks_for() {
        let (Node { labels, devices, .. }, missing) =
            node_for(&waiting("0/3 nodes are available: 3 Insufficient gpu.example.com/one.")).unwrap();
        assert_eq!(missing, Missing::Kind);
        assert_eq!(
            labels.into_iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
            ["disk=ssd", "zone=a"]
        );
        assert_eq!(devices.into_iter().collect::<Vec<_>>(), ["gpu.example.com/one"]);
        assert!(node_for(&waiting("3 node(s) didn't match Pod's node affinity/selector")).is_some());
        assert!(node_for(&waiting("pod has unbound immediate PersistentVolumeClaims")).is_none());
        let spread = "3 node(s) didn't match pod topology spread constraints (missing required label)";
        assert_eq!(node_for(&waiting(spread)).unwrap().0.labels["rack"], "stands-in");
    }

    #[test]
    fn where_nodes_are_full_more_of_them_join_and_otherwise_one() {
        let full =
            "0/4 nodes are available: 1 Too many pods, 3 node(s) didn't match Pod's node affinity/selector.";
        let (node, missing) = node_for(&waiting(full)).unwrap();
        assert_eq!(missing, Missing::Room(0));
        let nodes = |missing, count| Nodes(BTreeMap::from([(node.clone(), (missing, count))]));
        let mut joined = Nodes::default();
        assert_eq!(joined.add(nodes(Missing::Kind, 1)), nodes(Missing::Kind, 1));
        assert_eq!(joined.add(nodes(Missing::Kind, 1)), Nodes::default());
        assert_eq!(joined.add(nodes(Missing::Room(0), 1)), nodes(Missing::Room(0), 1));
        assert_eq!(joined.add(nodes(Missing::Room(99), 99)), nodes(Missing::Room(99), MOST - 2));
        assert_eq!(joined.add(nodes(Missing::Room(1), 1)), Nodes::default());
    }

    #[test]
    fn no_number_of_nodes_helps_a_pod_that_wants_more_than_one_has() {
        let room = json!({"cpu": "4", "memory": "8Gi"});
        let pod = |cpu: &str, memory: &str| json!({"spec": {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}, {}]}});
        assert!(fits(&pod("3500m", "1Gi"), &room, 1) && fits(&json!({}), &room, 1));
        assert!(!fits(&pod("5", "1Gi"), &room, 1) && !fits(&pod("1", "9Gi"), &room, 1));
        assert!(fits(&pod("2", "4Gi"), &room, 2) && !fits(&pod("2", "5Gi"), &room, 2));
        assert!(fits(&pod("64", "512Gi"), &large_room(), 1) && !fits(&pod("500", "1Gi"), &large_room(), 1));
    }

    #[test]
    fn as_many_of_a_pod_fit_on_a_node_as_the_scarcer_of_processors_and_memory_allows() {
        let room = json!({"cpu": "8", "memory": "32Gi"});
        let pod =
            |requests: Value| json!({"spec": {"containers": [{"resources": {"requests": requests}}, {}]}});
        assert_eq!(how_many(&pod(json!({"cpu": "2"})), &room), 4);
        assert_eq!(how_many(&pod(json!({"cpu": "3", "memory": "1Gi"})), &room), 2);
        assert_eq!(how_many(&pod(json!({"cpu": "500m", "memory": "20Gi"})), &room), 1);
        assert_eq!(how_many(&pod(json!({"cpu": "9"})), &room), 0);
        assert_eq!(how_many(&pod(json!({"cpu": "0"})), &room), u64::MAX);
        assert_eq!(how_many(&json!({}), &room), u64::MAX);
    }

    #[test]
    fn nodes_that_join_at_once_have_names_of_their_own() {
        let mut names = BTreeSet::from(["node-1".to_owned(), "node-3".to_owned(), "other".to_owned()]);
        assert_eq!(free_name(&names), "node-4");
        names.insert("node-4".to_owned());
        assert_eq!(free_name(&names), "node-5");
    }
}
