//! The state of a cluster, indexed: objects by name, kind and owner, events and logs by what they are about.

pub(crate) mod certificate;
pub(crate) mod complaint;
pub(crate) mod pod_references;
pub(crate) mod pods;
pub(crate) mod quantity;
pub(crate) mod rights;
pub(crate) mod selector;
pub(crate) mod services;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::OnceLock,
};

use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

use crate::{Case, Event, Log, Object};

/// An indexed case.
pub(crate) struct Cluster<'a> {
    pub(crate) case: &'a Case,
    pub(crate) now: Option<Timestamp>,
    by_name: HashMap<Object, &'a Value>,
    by_kind: BTreeMap<String, Vec<&'a Value>>,
    /// Pods by namespace.
    pods: HashMap<&'a str, Vec<&'a Value>>,
    /// EndpointSlices by the namespace and then the name of their Service.
    endpoint_slices: HashMap<&'a str, HashMap<&'a str, Vec<&'a Value>>>,
    owned: HashMap<Object, Vec<&'a Value>>,
    /// The workloads of pods whose owners were not saved, by the namespace and the name of the pod.
    adopted: HashMap<(&'a str, &'a str), Object>,
    /// The objects that bear the mark of an Application, by its name.
    tracked: HashMap<&'a str, Vec<&'a Value>>,
    events: HashMap<Object, Vec<&'a Event>>,
    logs: HashMap<(&'a str, &'a str), Vec<&'a Log>>,
    namespaces: HashSet<&'a str>,
    near_ranges: OnceLock<HashSet<[u8; 2]>>,
    /// The objects of operators' groups, by their names.
    extensions: HashMap<&'a str, Vec<&'a Value>>,
    /// The objects that may say which Secret they write: Jobs, and resources that keep credentials.
    writers: Vec<&'a Value>,
}

/// Kinds whose name several groups use, with the groups that are meant.
const SHARED_NAMES: &[(&str, &[&str])] = &[
    ("Service", &[""]),
    ("NetworkPolicy", &["networking.k8s.io", "extensions"]),
    ("Ingress", &["networking.k8s.io", "extensions"]),
    ("Certificate", &["cert-manager.io"]),
    ("Application", &["argoproj.io"]),
    ("Gateway", &["gateway.networking.k8s.io"]),
    ("Node", &[""]),
    ("Namespace", &[""]),
    ("Job", &["batch"]),
    ("Role", &["rbac.authorization.k8s.io"]),
    ("Deployment", &["apps", "extensions"]),
    ("Secret", &[""]),
    ("Pod", &[""]),
    ("ConfigMap", &[""]),
    ("Subscription", &["operators.coreos.com"]),
    ("Cluster", &[]),
];

/// Whether an object is of a group that is not of Kubernetes itself.
fn is_of_operator(object: &Value) -> bool {
    let group = object.gvk().group;
    group.contains('.') && !group.ends_with("k8s.io")
}

/// The kind under which an object is found: with its group where another group's kind is meant.
fn kind_of(object: &Value) -> String {
    let (kind, group) = (object.kind(), object.gvk().group);
    let meant = SHARED_NAMES.iter().find(|(name, _)| *name == kind);
    match meant {
        Some((_, groups)) if !groups.is_empty() && !groups.contains(&group.as_str()) => {
            format!("{kind}.{group}")
        }
        _ => kind.to_owned(),
    }
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(case: &'a Case) -> Self {
        let mut cluster = Self {
            case,
            now: case.now(),
            by_name: HashMap::new(),
            by_kind: BTreeMap::new(),
            pods: HashMap::new(),
            endpoint_slices: HashMap::new(),
            owned: HashMap::new(),
            adopted: HashMap::new(),
            tracked: HashMap::new(),
            events: HashMap::new(),
            logs: HashMap::new(),
            near_ranges: OnceLock::new(),
            extensions: HashMap::new(),
            writers: Vec::new(),
            namespaces: case.objects.iter().map(|object| object.namespace()).collect(),
        };
        let saved = case.objects.iter().filter(|object| object.kind() == "Namespace");
        cluster.namespaces.extend(saved.map(|namespace| namespace.name()));
        for object in &case.objects {
            let kind = kind_of(object);
            cluster.by_name.insert(Object::new(&kind, object.namespace(), object.name()), object);
            for owner in owners(object) {
                cluster.owned.entry(owner).or_default().push(object);
            }
            if let Some(app) = tracking_mark(object) {
                cluster.tracked.entry(app).or_default().push(object);
            }
            cluster.by_kind.entry(kind).or_default().push(object);
            if object.gvk().group.contains('.') {
                cluster.extensions.entry(object.name()).or_default().push(object);
            }
            if object.kind() == "Job" || object.at(&["spec", "writeConnectionSecretToRef"]).is_some() {
                cluster.writers.push(object);
            }
        }
        for pod in cluster.by_kind.get("Pod").into_iter().flatten() {
            cluster.pods.entry(pod.namespace()).or_default().push(pod);
        }
        for slice in cluster.by_kind.get("EndpointSlice").into_iter().flatten() {
            if let Some(service) = slice.label("kubernetes.io/service-name") {
                let near = cluster.endpoint_slices.entry(slice.namespace()).or_default();
                near.entry(service).or_default().push(slice);
            }
        }
        for event in &case.events {
            cluster.events.entry(event.object.clone()).or_default().push(event);
        }
        for events in cluster.events.values_mut() {
            events.sort_by_key(|event| event.last);
        }
        for log in &case.logs {
            cluster.logs.entry((&log.namespace, &log.pod)).or_default().push(log);
        }
        cluster.adopt();
        cluster
    }

    /// Gives pods back to their workloads where what lies between was not saved.
    fn adopt(&mut self) {
        let pods = self.by_kind.get("Pod").cloned().unwrap_or_default();
        let knows_owners = pods.iter().any(|pod| !pod.owner_references().is_empty());
        for pod in pods {
            let owner = if knows_owners {
                let of_lost = controller(pod)
                    .filter(|owner| owner.kind == "ReplicaSet" && self.live(owner).is_none())
                    .map(|_| self.workload(pod));
                of_lost.filter(|owner| owner.kind == "Deployment")
            } else {
                self.selecting(pod)
            };
            if let Some(owner) = owner.filter(|owner| self.live(owner).is_some()) {
                self.owned.entry(owner.clone()).or_default().push(pod);
                self.adopted.insert((pod.namespace(), pod.name()), owner);
            }
        }
    }

    /// The workload that selects a pod and whose name the pod's begins with.
    fn selecting(&self, pod: &Value) -> Option<Object> {
        if let Some(job) = pod.label("job-name").or_else(|| pod.label("batch.kubernetes.io/job-name")) {
            return Some(Object::new("Job", pod.namespace(), job));
        }
        let labels = Some(selector::labels(pod)?);
        let kinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];
        let all = kinds.iter().flat_map(|kind| self.all(kind).iter());
        let selects = |live: &&&Value| {
            let wanted = live.at(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
            live.namespace() == pod.namespace()
                && pod.name().strip_prefix(live.name()).is_some_and(|rest| rest.starts_with('-'))
                && wanted.is_some_and(|wanted| !wanted.is_empty() && selector::has_all(labels, wanted))
        };
        all.filter(selects).max_by_key(|live| live.name().len()).map(|live| Object::from_live(live))
    }

    /// An object by its names.
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&'a Value> {
        self.by_name.get(&Object::new(kind, namespace, name)).copied()
    }

    /// A live object.
    pub(crate) fn live(&self, object: &Object) -> Option<&'a Value> {
        self.by_name.get(object).copied()
    }

    /// Whether a namespace exists: it was saved, or something in it.
    pub(crate) fn has_namespace(&self, name: &str) -> bool {
        !name.is_empty() && self.namespaces.contains(name)
    }

    /// All objects of a kind.
    pub(crate) fn all(&self, kind: &str) -> &[&'a Value] {
        self.by_kind.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The objects of that name whose group is an operator's.
    pub(crate) fn extensions_named(&self, name: &str) -> &[&'a Value] {
        self.extensions.get(name).map_or(&[], Vec::as_slice)
    }

    /// The objects that may say which Secret they write: Jobs, and resources that keep credentials.
    pub(crate) fn secret_writers(&self) -> &[&'a Value] {
        &self.writers
    }

    /// The ranges of addresses near those of pods, Services and nodes; read when first asked for.
    pub(crate) fn near_ranges(&self) -> &HashSet<[u8; 2]> {
        self.near_ranges.get_or_init(|| self.read_near_ranges())
    }

    /// The pods of a namespace.
    pub(crate) fn pods_in(&self, namespace: &str) -> &[&'a Value] {
        self.pods.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// The EndpointSlices of a Service.
    pub(crate) fn endpoint_slices(&self, namespace: &str, service: &str) -> &[&'a Value] {
        let near = self.endpoint_slices.get(namespace);
        near.and_then(|near| near.get(service)).map_or(&[], Vec::as_slice)
    }

    /// Whether objects of a kind were saved at all, or there are none: otherwise one that is absent proves
    /// nothing.
    pub(crate) fn has_kind(&self, kind: &str) -> bool {
        let is_known = self.by_kind.contains_key(kind) && !self.case.in_part.contains(kind);
        is_known || self.case.listed.contains(kind)
    }

    /// Whether nearly everything was saved: kinds that nobody chooses one by one. A kind of which there is
    /// nothing then has no objects.
    pub(crate) fn is_whole(&self) -> bool {
        const SELDOM_CHOSEN: &[&str] = &[
            "Lease",
            "APIService",
            "EndpointSlice",
            "CustomResourceDefinition",
            "StorageClass",
            "Namespace",
            "ConfigMap",
            "ServiceAccount",
            "IngressClass",
            "PriorityClass",
            "ControllerRevision",
            "ClusterRole",
        ];
        const ENOUGH: usize = 5;
        SELDOM_CHOSEN.iter().filter(|kind| self.has_kind(kind)).count() >= ENOUGH
    }

    /// Whether operators run here, and none of the resources that they care for was saved.
    pub(crate) fn misses_resources(&self) -> bool {
        self.all("Deployment").iter().any(|it| it.name().contains("operator"))
            && !self.case.objects.iter().any(is_of_operator)
    }

    /// Whether an operator that makes Secrets runs here, and nothing of what it is told to make was saved.
    fn misses_requests(&self) -> bool {
        const MAKERS: &[(&str, &[&str])] = &[
            ("external-secrets", &["ExternalSecret", "ClusterExternalSecret"]),
            ("vault-secrets-operator", &["VaultStaticSecret", "VaultDynamicSecret", "VaultPKISecret"]),
            ("sealed-secrets", &["SealedSecret"]),
        ];
        // Operators that write credentials of what they make, with the groups of their resources.
        const WRITERS: &[(&str, &[&str])] = &[
            ("crossplane", &["crossplane.io", "upbound.io"]),
            ("upbound", &["crossplane.io", "upbound.io"]),
            ("cloudnative-pg", &["cnpg.io"]),
            ("cnpg", &["cnpg.io"]),
            ("postgres-operator", &["zalan.do", "crunchydata.com"]),
            ("strimzi", &["strimzi.io"]),
            ("rabbitmq-cluster-operator", &["rabbitmq.com"]),
            ("mongodb-kubernetes-operator", &["mongodb.com"]),
            ("percona", &["percona.com"]),
            ("minio-operator", &["min.io"]),
            ("onepassword", &["onepassword.com"]),
            ("infisical", &["infisical.com"]),
            ("doppler", &["doppler.com"]),
            ("azure-service-operator", &["azure.com"]),
            ("config-connector", &["cnrm.cloud.google.com"]),
        ];
        let runs = |name: &str| self.all("Deployment").iter().any(|it| it.name().starts_with(name));
        let asks = |kinds: &[&str]| kinds.iter().any(|kind| self.has_kind(kind));
        let is_in = |name: &str| {
            let of = |word: &str| {
                word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            self.all("Deployment").iter().any(|it| of(it.name()) || of(it.namespace()))
        };
        let knows_group = |groups: &[&str]| {
            let saved = self.case.objects.iter().filter(|it| !self.case.in_part.contains(it.kind()));
            saved.into_iter().any(|it| groups.iter().any(|group| it.gvk().group.ends_with(group)))
        };
        MAKERS.iter().any(|(name, kinds)| runs(name) && !asks(kinds))
            || WRITERS.iter().any(|(name, groups)| is_in(name) && !knows_group(groups))
    }

    /// Whether who makes Secrets and Services would be known: more was saved than workloads and Services.
    pub(crate) fn knows_makers(&self) -> bool {
        if self.misses_requests() {
            return false;
        }
        let beyond = ["Secret", "ConfigMap", "CustomResourceDefinition", "ServiceAccount"];
        let has_stores = self.has_kind("SecretStore") || self.has_kind("ClusterSecretStore");
        let has_custom = || self.case.objects.iter().any(is_of_operator);
        (beyond.iter().any(|kind| self.has_kind(kind)) || has_custom())
            && (!has_stores || self.has_kind("ExternalSecret"))
    }

    /// The objects that name this one as their owner.
    pub(crate) fn owned(&self, owner: &Object) -> &[&'a Value] {
        self.owned.get(owner).map_or(&[], Vec::as_slice)
    }

    /// The Deployments and DaemonSets that are meant: those that were saved, and those that only their pods
    /// tell of.
    pub(crate) fn running(&self, is_meant: impl Fn(&Object) -> bool) -> Vec<Object> {
        let kinds = ["Deployment", "DaemonSet"];
        let saved = kinds.iter().flat_map(|kind| self.all(kind).iter()).map(|live| Object::from_live(live));
        let told = self.all("Pod").iter().map(|pod| self.workload(pod));
        let mut found: Vec<Object> = Vec::new();
        for workload in saved.chain(told.filter(|it| kinds.contains(&it.kind.as_str()))) {
            if is_meant(&workload) && !found.contains(&workload) {
                found.push(workload);
            }
        }
        found
    }

    /// The objects that bear the mark of an Application.
    pub(crate) fn tracked(&self, app: &str) -> &[&'a Value] {
        self.tracked.get(app).map_or(&[], Vec::as_slice)
    }

    /// The events about an object, the newest last, without those of an earlier object of the same name.
    pub(crate) fn events(&self, object: &Object) -> impl DoubleEndedIterator<Item = &'a Event> {
        let uid = self.live(object).map(|live| live.uid()).unwrap_or_default();
        let events = self.events.get(object).map_or(&[][..], Vec::as_slice);
        events.iter().copied().filter(move |event| uid.is_empty() || event.uid.is_empty() || event.uid == uid)
    }

    /// The logs of a pod, those of instances before first.
    pub(crate) fn logs(&self, namespace: &'a str, pod: &'a str) -> Vec<&'a Log> {
        let mut logs = self.logs.get(&(namespace, pod)).cloned().unwrap_or_default();
        logs.sort_by_key(|log| !log.previous);
        logs
    }

    /// The seconds between a time and now.
    pub(crate) fn seconds_since(&self, time: Timestamp) -> Option<i64> {
        Some(self.now?.as_second() - time.as_second())
    }

    /// The age of an object in seconds; without a clock it counts as old.
    pub(crate) fn age(&self, object: &Value) -> i64 {
        let created = time(object, &["metadata", "creationTimestamp"]);
        created.and_then(|time| self.seconds_since(time)).unwrap_or(i64::MAX)
    }

    /// The workload that a pod belongs to in the end, or the object itself.
    pub(crate) fn workload(&self, object: &Value) -> Object {
        let mut top = Object::from_live(object);
        for _ in 0..8 {
            let Some(live) = self.live(&top) else { break };
            let adopter = || self.adopted.get(&(live.namespace(), live.name())).cloned();
            let Some(owner) = controller(live).or_else(|| adopter().filter(|_| top.kind == "Pod")) else {
                break;
            };
            if !is_workload(&owner.kind) {
                break;
            }
            // An owner that was not saved is told by the name that its child got.
            top = owner;
        }
        if top.kind == "ReplicaSet" && self.live(&top).is_none() {
            let hash = object.label("pod-template-hash").unwrap_or_default();
            let name = top.name.strip_suffix(hash).map(|name| name.trim_end_matches('-'));
            // Deployments name their ReplicaSets so; where none was saved the name is all that is left.
            let is_possible = |name: &str| {
                !self.has_kind("Deployment") || self.get("Deployment", &top.namespace, name).is_some()
            };
            if let Some(name) = name.filter(|name| !hash.is_empty() && !name.is_empty() && is_possible(name))
            {
                return Object::new("Deployment", &top.namespace, name);
            }
        }
        top
    }
}

/// The Application whose mark an object bears.
fn tracking_mark(object: &Value) -> Option<&str> {
    let id = object.annotation("argocd.argoproj.io/tracking-id").and_then(|id| id.split(':').next());
    let labels = ["argocd.argoproj.io/instance", "app.kubernetes.io/instance"];
    id.or_else(|| labels.iter().find_map(|label| object.label(label)))
}

/// Kinds that make pods.
pub(crate) fn is_workload(kind: &str) -> bool {
    matches!(
        kind,
        "Deployment"
            | "ReplicaSet"
            | "StatefulSet"
            | "DaemonSet"
            | "Job"
            | "CronJob"
            | "ReplicationController"
            | "Rollout"
            | "DeploymentConfig"
    )
}

/// The owners of an object.
pub(crate) fn owners(object: &Value) -> Vec<Object> {
    let named = object.owner_references().iter().filter_map(|owner| {
        let kind = owner.str_at(&["kind"])?;
        let namespace = if kind == "Node" { "" } else { object.namespace() };
        Some(Object::new(kind, namespace, owner.str_at(&["name"])?))
    });
    named.collect()
}

/// The owner that controls an object.
pub(crate) fn controller(object: &Value) -> Option<Object> {
    owners(object).into_iter().next()
}

/// A time at a path.
pub(crate) fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    object.str_at(path)?.parse().ok()
}

/// The conditions of a status.
pub(crate) fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten()
}

/// One condition.
pub(crate) fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    conditions(object).find(|condition| condition.str_at(&["type"]) == Some(name))
}

/// Whether a condition has this status.
pub(crate) fn has_condition(object: &Value, name: &str, status: &str) -> bool {
    condition(object, name).is_some_and(|condition| condition.str_at(&["status"]) == Some(status))
}

/// The message of a condition, with its reason.
pub(crate) fn condition_text(condition: &Value) -> String {
    let reason = condition.str_at(&["reason"]).unwrap_or_default();
    let message = condition.str_at(&["message"]).unwrap_or_default();
    match (reason, message) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// The items of an array at a path.
pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.at(path).and_then(Value::as_array).into_iter().flatten()
}
