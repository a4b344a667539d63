//! Which operator cares for a custom resource.

use std::collections::BTreeMap;

use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{Cluster, items, pods},
    search_context::Look,
};

/// Groups whose objects are not judged here: those of Kubernetes itself, of delivery, and of routes.
const OTHER_GROUPS: &[&str] = &["k8s.io", "argoproj.io", "fluxcd.io", "gateway.networking.k8s.io"];

/// Kinds of Argo Workflows and Argo Events, whose group is that of Argo CD.
const ARGO_KINDS: &[&str] = &["Workflow", "CronWorkflow", "EventSource", "Sensor", "EventBus"];

/// Whether an object is judged by what its operator says of it.
pub(crate) fn is_custom(live: &Value) -> bool {
    let group = live.gvk().group;
    group.contains('.')
        && (!OTHER_GROUPS.iter().any(|other| group.ends_with(other))
            || group.ends_with("x-k8s.io")
            || group == "snapshot.storage.k8s.io"
            || group == "metal3.io"
            || ARGO_KINDS.contains(&live.kind())
            // Its pods tell of it, unless its controller refuses it.
            || live.kind() == "Rollout" && crate::cluster::has_condition(live, "InvalidSpec", "True"))
        && live.kind() != "CustomResourceDefinition"
}

/// The parts of a name that tell an operator apart.
pub(crate) fn words(name: &str) -> Vec<String> {
    const COMMON: &[&str] = &[
        "io",
        "com",
        "org",
        "dev",
        "net",
        "k8s",
        "x-k8s",
        "kubernetes",
        "operator",
        "operators",
        "finalizer",
        "finalizers",
        "cleanup",
        "resources",
        "cloud",
        "sh",
        "svc",
        "app",
        "apps",
        "api",
        "www",
        "core",
        "example",
        "v1",
        "v1alpha1",
        "v1beta1",
        "controller",
        "cluster",
        "protection",
        "resource",
    ];
    const SHORT: &[(&str, &str)] = &[
        ("cnpg", "cloudnative-pg"),
        ("coreos", "prometheus-operator"),
        ("tigera", "tigera-operator"),
        ("argocd", "argocd-application-controller"),
        ("argoproj", "argo"),
        ("toolkit", "flux"),
        ("zalan", "postgres-operator"),
        ("banzaicloud", "logging-operator"),
        ("elbv2", "aws-load-balancer-controller"),
        ("keda", "keda-operator"),
        ("karpenter", "karpenter"),
        ("service", "cloud-controller"),
        ("secrets-store", "secrets-store"),
    ];
    let parts = name.split(['/', '.']).filter(|part| part.len() >= 4 && !COMMON.contains(part));
    parts
        .map(|part| {
            SHORT
                .iter()
                .find(|(short, _)| *short == part)
                .map_or_else(|| part.to_owned(), |(_, long)| (*long).to_owned())
        })
        .collect()
}

/// The controllers whose image bears one of some words as its name, where no workload is named so.
fn by_image(look: &Look<'_>, words: &[String]) -> Vec<Object> {
    let kinds = ["Deployment", "StatefulSet"];
    let runs = |live: &&&Value| {
        let containers = pods::spec(live).into_iter().flat_map(|spec| items(spec, &["containers"]));
        let images = containers.filter_map(|it| it.str_at(&["image"])).map(tiphys_cause::image_parts);
        images.into_iter().any(|(_, path, _)| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_word = |word: &String| {
                name == word
                    || name.strip_prefix(word.as_str()).is_some_and(|rest| {
                        matches!(rest, "-operator" | "-controller" | "-manager" | "-controller-manager")
                    })
            };
            let is_controller = ["operator", "controller", "manager"].iter().any(|it| name.contains(it));
            is_controller && words.iter().any(is_word)
        })
    };
    let all = kinds.iter().flat_map(|kind| look.cluster.all(kind).iter());
    all.filter(runs).map(|live| Object::from_live(live)).collect()
}

/// How the workloads of some words are looked up.
type Lookup = fn(&Look<'_>, &[String]) -> Vec<Object>;

/// The workloads whose names hold one of some words, an operator before others; or whose image does.
pub(crate) fn by_words(look: &Look<'_>, words: &[String]) -> Vec<Object> {
    let searches: [Lookup; 4] = [
        |look, words| by_name(look, words, bears),
        by_image,
        // Some write the word and what it is in one: `azureserviceoperator`.
        |look, words| by_name(look, words, is_operator_of),
        // What runs under the first part of the word may be what is cared for, and not who cares.
        |look, words| {
            by_name(look, words, |name, word| name.len() >= 5 && word.starts_with(&format!("{name}-")))
        },
    ];
    searches.iter().map(|search| search(look, words)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Whether the name of a workload has a word among its parts.
fn bears(name: &str, word: &str) -> bool {
    name == word
        || name.starts_with(&format!("{word}-"))
        || name.ends_with(&format!("-{word}"))
        || name.contains(&format!("-{word}-"))
}

/// Whether a part of the name of a workload begins with a word and ends as an operator's does.
fn is_operator_of(name: &str, word: &str) -> bool {
    name.split('-')
        .any(|part| part.len() > word.len() && part.starts_with(word) && part.ends_with("operator"))
}

fn by_name(look: &Look<'_>, words: &[String], fits: fn(&str, &str) -> bool) -> Vec<Object> {
    let kinds = ["Deployment", "StatefulSet", "DaemonSet"];
    let all = kinds.iter().flat_map(|kind| look.cluster.all(kind).iter());
    let is_meant = |live: &&&Value| words.iter().any(|word| fits(live.name(), word));
    let mut found: Vec<&Value> = all.filter(is_meant).copied().collect();
    let rank = |live: &Value| {
        let name = live.name();
        let is_helper =
            ["webhook", "cainjector", "ui", "server", "exporter", "cert-controller", "repo", "redis", "dex"]
                .iter()
                .any(|word| name.contains(word))
                && !words.iter().any(|known| known == name);
        let is_controller =
            name.contains("operator") || name.contains("controller") || words.iter().any(|word| word == name);
        (is_helper, !is_controller)
    };
    found.sort_by_key(|live| rank(live));
    let best = found.first().map(|live| rank(live));
    found.into_iter().filter(|live| Some(rank(live)) == best).map(Object::from_live).collect()
}

/// Kinds that another program than the operator of their group cares for: a part of the group, the kinds, and
/// how its name ends; where a label names the instance, it begins with that.
const OTHER_OPERATORS: &[(&str, &[&str], &str, Option<&str>)] = &[
    ("strimzi.io", &["KafkaUser", "KafkaTopic"], "-entity-operator", Some("strimzi.io/cluster")),
    (
        "rabbitmq.com",
        &["Queue", "Exchange", "Binding", "User", "Vhost", "Permission", "Policy"],
        "messaging-topology-operator",
        None,
    ),
];

/// The workload that cares for a resource of such a kind, if it was saved.
fn other_operator(look: &Look<'_>, live: &Value) -> Option<Object> {
    let group = live.gvk().group;
    let (.., end, label) = OTHER_OPERATORS
        .iter()
        .find(|(known, kinds, ..)| group.ends_with(known) && kinds.contains(&live.kind()))?;
    let start = label.map_or(Some(""), |label| live.label(label))?;
    let is_meant = |it: &Value| match label {
        Some(_) => it.namespace() == live.namespace() && it.name() == format!("{start}{end}"),
        None => it.name().ends_with(end),
    };
    look.cluster.all("Deployment").iter().find(|it| is_meant(it)).map(|it| Object::from_live(it))
}

/// The operator that cares for a custom resource: by its name, or else by what its account may write.
pub(super) fn operators(look: &Look<'_>, live: &Value) -> Vec<Object> {
    if let Some(other) = other_operator(look, live) {
        return vec![other];
    }
    let group = live.gvk().group;
    let named = by_words(look, &words(&group));
    if named.is_empty() { look.status_writers(&group).to_vec() } else { named }
}

/// The workloads that may write the status of custom resources, by the group of these. Nobody else than the
/// operator of a kind does so; roles for every group tell nothing.
pub(crate) fn status_writers(cluster: &Cluster<'_>) -> BTreeMap<String, Vec<Object>> {
    let mut accounts: BTreeMap<(&str, &str), Vec<Object>> = BTreeMap::new();
    for live in ["Deployment", "StatefulSet", "DaemonSet"].iter().flat_map(|kind| cluster.all(kind).iter()) {
        let account = pods::spec(live).and_then(|spec| spec.str_at(&["serviceAccountName"]));
        let account = account.filter(|account| *account != "default");
        if let Some(account) = account {
            accounts.entry((live.namespace(), account)).or_default().push(Object::from_live(live));
        }
    }
    let mut writers: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    let bindings = cluster.all("ClusterRoleBinding").iter().chain(cluster.all("RoleBinding"));
    for binding in bindings {
        let reference = |key| binding.str_at(&["roleRef", key]).unwrap_or_default();
        let namespace = if reference("kind") == "Role" { binding.namespace() } else { "" };
        let Some(role) = cluster.get(reference("kind"), namespace, reference("name")) else { continue };
        let bound: Vec<&Object> = items(binding, &["subjects"])
            .filter(|subject| subject.str_at(&["kind"]) == Some("ServiceAccount"))
            .filter_map(|subject| {
                let namespace = subject.str_at(&["namespace"]).unwrap_or(binding.namespace());
                accounts.get(&(namespace, subject.str_at(&["name"])?))
            })
            .flatten()
            .collect();
        for rule in items(role, &["rules"]).filter(|_| !bound.is_empty()).filter(|rule| writes_status(rule)) {
            let groups = items(rule, &["apiGroups"]).filter_map(Value::as_str);
            for group in groups.filter(|group| group.contains('.')) {
                let known = writers.entry(group.to_owned()).or_default();
                for workload in &bound {
                    if !known.contains(workload) {
                        known.push((*workload).clone());
                    }
                }
            }
        }
    }
    writers
}

/// Whether a rule lets somebody write the status of what it names.
fn writes_status(rule: &Value) -> bool {
    let lists =
        |key: &str, is_meant: fn(&str) -> bool| items(rule, &[key]).filter_map(Value::as_str).any(is_meant);
    lists("resources", |it| it == "*" || it.ends_with("/status") || it.ends_with("/finalizers"))
        && lists("verbs", |it| matches!(it, "*" | "update" | "patch"))
}

/// The resources in the care of a workload that it never looked at, or not since they were changed.
pub(crate) fn neglected_by(look: &Look<'_>, workload: &Object) -> Vec<Object> {
    let custom = look.cluster.case.objects.iter().filter(|live| is_custom(live) && is_waiting(look, live));
    custom.filter(|live| operators(look, live).contains(workload)).map(Object::from_live).collect()
}

/// Whether a workload cares for an object.
pub(crate) fn is_cared_for_by(look: &Look<'_>, object: &Object, workload: &Object) -> bool {
    look.cluster.live(object).is_some_and(|live| is_custom(live) && operators(look, live).contains(workload))
}

/// The operator of a resource that nobody cares for, since it is scaled to zero.
pub(super) fn scaled_to_zero(look: &Look<'_>, live: &Value) -> Option<Object> {
    let operators = operators(look, live);
    let state = look.cluster.live(operators.first()?)?;
    let is_zero = state.kind() != "DaemonSet" && pods::replicas(state) == 0;
    (is_zero && is_waiting(look, live)).then(|| operators[0].clone())
}

/// Whether a resource waits for its operator: red, never looked at, or changed since.
pub(super) fn is_waiting(look: &Look<'_>, live: &Value) -> bool {
    let observed = live.int_at(&["status", "observedGeneration"]);
    let behind = observed.is_some_and(|observed| observed < live.generation());
    let untouched = has_no_status(live)
        && look.cluster.age(live) > 300
        && live.get("spec").is_some()
        && has_status(live.kind());
    look.is_red(&Object::from_live(live)) || behind || untouched
}

/// Whether nobody has written a status; some definitions begin with an empty one.
pub(crate) fn has_no_status(live: &Value) -> bool {
    live.get("status").is_none_or(|status| status.as_object().is_some_and(|it| it.is_empty()))
}

/// Kinds that never get a status.
fn has_status(kind: &str) -> bool {
    !matches!(
        kind,
        "PrometheusRule"
            | "ServiceMonitor"
            | "PodMonitor"
            | "EnvoyFilter"
            | "PeerAuthentication"
            | "DestinationRule"
            | "Sidecar"
            | "AuthorizationPolicy"
            | "RequestAuthentication"
            | "Middleware"
            | "IngressRoute"
            | "TriggerAuthentication"
            | "VirtualService"
            | "ClusterTriggerAuthentication"
            | "AlertmanagerConfig"
            | "Probe"
            | "ServersTransport"
            | "CiliumNetworkPolicy"
            | "ResourceFlavor"
            | "NetworkAttachmentDefinition"
            | "ENIConfig"
            | "NetworkPolicy"
            | "GlobalNetworkPolicy"
            | "IPPool"
            | "FelixConfiguration"
            | "BGPPeer"
            | "BGPConfiguration"
            | "L2Advertisement"
            | "SecretProviderClass"
            | "MachineConfig"
    )
}
