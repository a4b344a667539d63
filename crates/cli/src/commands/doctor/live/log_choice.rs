//! Which logs matter: of what is not ready or restarted, and of the components that everything else needs.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tiphys_value::ObjectExt as _;

use super::{Logs, operators};

/// A restart is of interest for so long.
const RECENT: SignedDuration = SignedDuration::from_hours(1);
/// How many pods of one owner are looked at: those in trouble for one reason, and ready ones.
const PODS_OF_AN_OWNER: (usize, usize) = (3, 2);
/// How many logs are read.
const MAX_LOGS: (usize, usize) = (200, 3_000);

/// Words in the names of images of components that others need: DNS, network, GitOps, ingress, storage,
/// certificates.
const COMPONENTS: [&str; 32] = [
    "coredns",
    "kube-dns",
    "calico",
    "cilium",
    "flannel",
    "weave",
    "antrea",
    "kindnet",
    "amazon-k8s-cni",
    "multus",
    "ovn-",
    "kube-router",
    "azure-cns",
    "kube-proxy",
    "argocd",
    "argo-cd",
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "ingress-nginx",
    "nginx-ingress",
    "traefik",
    "haproxy-ingress",
    "contour",
    "csi",
    "cert-manager",
    "external-secrets",
    "aws-load-balancer-controller",
    "metrics-server",
    "cluster-autoscaler",
    "karpenter",
    "tigera",
];

/// A log that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// Of the instance before.
    pub previous: bool,
    /// The pod's node.
    pub node: String,
}

/// The logs to read of the pods among these objects, those in trouble first.
pub(super) fn choose(objects: &[Value], now: Timestamp, mode: Logs) -> Vec<Wanted> {
    let pods = || objects.iter().filter(|object| object.kind() == "Pod" && object.gvk().group.is_empty());
    let mut wanted = Vec::new();
    let most = match mode {
        Logs::None => return wanted,
        Logs::All => {
            for pod in pods() {
                all_of(pod).for_each(|status| add(&mut wanted, pod, status));
            }
            MAX_LOGS.1
        }
        Logs::Auto => {
            in_trouble(pods(), now, &mut wanted);
            components(pods(), &operators::backends(objects), &mut wanted);
            MAX_LOGS.0
        }
    };
    wanted.truncate(most);
    wanted
}

/// The logs of containers in trouble, of a few pods for each owner and reason.
fn in_trouble<'a>(pods: impl Iterator<Item = &'a Value>, now: Timestamp, wanted: &mut Vec<Wanted>) {
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    for pod in pods {
        let statuses: Vec<&Value> = all_of(pod).filter(|status| is_in_trouble(pod, status, now)).collect();
        let Some(first) = statuses.first() else { continue };
        let count = seen.entry((owner(pod), reason(first))).or_default();
        *count += 1;
        if *count <= PODS_OF_AN_OWNER.0 {
            statuses.into_iter().for_each(|status| add(wanted, pod, status));
        }
    }
}

/// The logs of ready components, of a few pods for each owner.
fn components<'a>(
    pods: impl Iterator<Item = &'a Value>,
    backends: &BTreeSet<(String, String)>,
    wanted: &mut Vec<Wanted>,
) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for pod in pods {
        let key = (pod.namespace().to_owned(), pod.name().to_owned());
        if !(pod.namespace() == "kube-system" || backends.contains(&key) || is_component(pod)) {
            continue;
        }
        let count = seen.entry(owner(pod)).or_default();
        *count += 1;
        if *count <= PODS_OF_AN_OWNER.1 {
            statuses(pod, "containerStatuses").for_each(|status| add(wanted, pod, status));
        }
    }
}

fn statuses<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    pod.at(&["status", field]).and_then(Value::as_array).into_iter().flatten()
}

fn all_of(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
        .into_iter()
        .flat_map(|field| statuses(pod, field))
}

fn is_in_trouble(pod: &Value, status: &Value, now: Timestamp) -> bool {
    let ended = status.at(&["state", "terminated"]);
    let has_failed = ended.is_some_and(|ended| ended.int_at(&["exitCode"]) != Some(0));
    let is_done = ended.is_some() && !has_failed;
    let is_ready = status["ready"] == true;
    // A pod that has ended is looked at if it failed.
    let is_over = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded"));
    let last = status
        .str_at(&["lastState", "terminated", "finishedAt"])
        .and_then(|time| time.parse::<Timestamp>().ok());
    let restarted = last.is_some_and(|last| now.duration_since(last) <= RECENT);
    !is_over && (has_failed || restarted || !is_ready && !is_done)
}

/// Adds the logs of a container, as far as it has run.
fn add(wanted: &mut Vec<Wanted>, pod: &Value, status: &Value) {
    let has_restarted = status.int_at(&["restartCount"]).is_some_and(|count| count > 0)
        || status.at(&["lastState", "terminated"]).is_some();
    let has_started =
        status.at(&["state", "running"]).or_else(|| status.at(&["state", "terminated"])).is_some();
    let Some(container) = status.str_at(&["name"]) else { return };
    for previous in [false, true] {
        let one = Wanted {
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            container: container.to_owned(),
            previous,
            node: pod.str_at(&["spec", "nodeName"]).unwrap_or_default().to_owned(),
        };
        let exists = if previous { has_restarted } else { has_started || has_restarted };
        if exists && !wanted.contains(&one) {
            wanted.push(one);
        }
    }
}

/// The owner of a pod; a pod on its own owns itself.
fn owner(pod: &Value) -> String {
    let uid = pod.owner_references().first().and_then(|owner| owner.str_at(&["uid"]));
    uid.map_or_else(|| format!("{}/{}", pod.namespace(), pod.name()), str::to_owned)
}

/// Why a container is in trouble, so that one pod of many alike is enough.
fn reason(status: &Value) -> String {
    let waits = status.str_at(&["state", "waiting", "reason"]);
    waits.or_else(|| status.str_at(&["state", "terminated", "reason"])).unwrap_or_default().to_owned()
}

fn is_component(pod: &Value) -> bool {
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array);
    let mut images = containers.into_iter().flatten().filter_map(|container| container.str_at(&["image"]));
    images.any(|image| COMPONENTS.iter().any(|component| image.contains(component)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(namespace: &str, name: &str, image: &str, status: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name,
            "ownerReferences": [{"uid": "rs-1"}]}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": image}]},
            "status": {"containerStatuses": [status]}})
    }

    fn names(objects: &[Value], mode: Logs) -> Vec<String> {
        let now = "2026-03-10T09:00:00Z".parse().unwrap();
        let named =
            |wanted: Wanted| format!("{}{}", wanted.pod, if wanted.previous { " before" } else { "" });
        choose(objects, now, mode).into_iter().map(named).collect()
    }

    #[test]
    fn trouble_comes_first_and_health_is_left_alone() {
        let ready = json!({"name": "c", "ready": true, "restartCount": 0, "state": {"running": {}}});
        let crashes = json!({"name": "c", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"finishedAt": "2026-03-10T08:59:00Z"}}});
        let restarted = |at: &str| {
            json!({"name": "c", "ready": true, "restartCount": 1, "state": {"running": {}},
            "lastState": {"terminated": {"finishedAt": at}}})
        };
        let pulls = json!({"name": "c", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}});
        let objects = [
            pod("kube-system", "dns", "registry/coredns:1", ready.clone()),
            pod("shop", "well", "shop", ready),
            pod("shop", "crashes", "shop", crashes),
            pod("shop", "recent", "shop", restarted("2026-03-10T08:30:00Z")),
            pod("shop", "old", "shop", restarted("2026-03-10T04:00:00Z")),
            pod("shop", "pulls", "shop", pulls),
        ];
        assert_eq!(
            names(&objects, Logs::Auto),
            ["crashes", "crashes before", "recent", "recent before", "dns"]
        );
        assert_eq!(names(&objects, Logs::None), [""; 0]);
        assert_eq!(names(&objects, Logs::All).len(), 8);
    }

    #[test]
    fn of_many_pods_alike_a_few_are_enough() {
        let crashes = json!({"name": "c", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1, "reason": "Error"}}});
        let objects: Vec<Value> =
            (0..50).map(|at| pod("shop", &format!("p{at}"), "shop", crashes.clone())).collect();
        assert_eq!(names(&objects, Logs::Auto), ["p0", "p1", "p2"]);
    }
}
