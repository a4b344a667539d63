//! A copy of a cluster that was saved, in which time passes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tiphys_apiserver::{ApiServer, ApiServerOptions, Outbound, TokioClock};
use tiphys_cluster::{Cluster, PatchType, Propagation};
use tiphys_doctor::{Case, Object};
use tiphys_stage::{Site, Still};
use tiphys_value::{ObjectExt as _, Value, json};
use tiphys_world::{Behaviours, Settings};

use super::repair::{Repair, Step};

/// Who writes repairs.
const MANAGER: &str = "tiphys-doctor";
/// How long a copy goes on as it was seen, and how long a repair has to take effect: longer than any
/// back-off.
const AS_SEEN: Duration = Duration::from_secs(10 * 60);
const REPAIRED: Duration = Duration::from_secs(25 * 60);
/// Larger copies would take too long.
const MOST_PODS: usize = 2000;
/// What a copy consists of: what the world behind it moves, and what that reads.
const KINDS: [&str; 20] = [
    "Node",
    "Namespace",
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ControllerRevision",
    "Service",
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ResourceQuota",
    "LimitRange",
    "PriorityClass",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
];

/// A rule by which the copy behaves as was seen, and whose behaviour it is.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The workload, the node.
    pub of: Object,
    /// The image that cannot be pulled, if it is about one.
    pub image: Option<String>,
    /// The list of rules that it belongs to: `images`, `containers`, `nodes`.
    list: &'static str,
    rule: Value,
}

/// A copy that has gone on for a while as it was seen.
pub(super) struct Copy {
    still: Still,
    rules: Vec<Rule>,
    /// The workloads that are broken in it.
    pub red: BTreeSet<Object>,
}

impl Copy {
    /// Makes the copy of a state, and lets it go on.
    ///
    /// # Errors
    /// What the state lacks, or why it cannot be copied.
    pub(super) async fn make(case: &Case) -> Result<Self, String> {
        let has = |kind: &str| case.objects.iter().any(|object| object.kind() == kind);
        if !has("Node") || !has("Pod") {
            return Err("no node or no pod was saved, so there is nothing to copy".to_owned());
        }
        let pods = case.objects.iter().filter(|object| object.kind() == "Pod").count();
        if pods > MOST_PODS {
            return Err(format!("a copy of {pods} pods would take too long; {MOST_PODS} are the most"));
        }
        let at = case.now().ok_or("nothing tells when the state was saved")?;
        let options = ApiServerOptions {
            seed: Some(1),
            clock: Some(Arc::new(TokioClock::starting_at(at))),
            outbound: Outbound::Assume,
            ..ApiServerOptions::default()
        };
        let server = ApiServer::new(options).map_err(|error| format!("the copy does not start: {error}"))?;
        server.import(objects(case));
        let rules = rules(case);
        let settings = Settings { nodes: 0, behaviours: behaviours(rules.iter())?, ..Settings::default() };
        let site = Still::found(server, at, settings).resume().map_err(|error| error.to_string())?;
        if !case.objects.iter().any(|object| object.kind() == "StorageClass" && object.name() == "standard") {
            delete(&site.cluster(), "storage.k8s.io/v1", &Object::new("StorageClass", "", "standard"))
                .await?;
        }
        tokio::time::sleep(AS_SEEN).await;
        let still = site.still();
        let red = red_in(&still);
        Ok(Self { still, rules, red })
    }

    /// The workloads and nodes that are well after a repair for no other reason than that the repair says so.
    pub(super) fn assumed_by(&self, repair: &Repair) -> BTreeSet<Object> {
        self.rules.iter().filter(|rule| repair.ends(rule)).map(|rule| rule.of.clone()).collect()
    }

    /// The workloads that are broken after a repair.
    ///
    /// # Errors
    /// The copy refuses the repair.
    pub(super) async fn repaired(&self, repair: &Repair) -> Result<BTreeSet<Object>, String> {
        let left = self.rules.iter().filter(|rule| !repair.ends(rule));
        let still = self.still.with_rules(behaviours(left)?);
        let site = still.resume().map_err(|error| error.to_string())?;
        for step in &repair.steps {
            take(&site, step).await?;
        }
        tokio::time::sleep(REPAIRED).await;
        Ok(red_in(&site.still()))
    }
}

async fn take(site: &Site, step: &Step) -> Result<(), String> {
    let cluster = site.cluster();
    let refused = |error: tiphys_cluster::ClusterError| format!("a copy of the cluster refuses it: {error}");
    match step {
        Step::Create(object) => cluster.create(object, MANAGER, false).await.map(drop).map_err(refused),
        Step::Patch { api_version, object, patch } => {
            let gvk = json!({"apiVersion": api_version, "kind": object.kind}).gvk();
            let resource = cluster.resource(&gvk).await.map_err(refused)?;
            let place = (object.namespace.as_str(), object.name.as_str());
            cluster
                .patch(&resource, place, "", PatchType::Merge, patch, MANAGER)
                .await
                .map(drop)
                .map_err(refused)
        }
        Step::Delete { api_version, object } => delete(&cluster, api_version, object).await,
    }
}

async fn delete(cluster: &Cluster, api_version: &str, object: &Object) -> Result<(), String> {
    let refused = |error: tiphys_cluster::ClusterError| format!("a copy of the cluster refuses it: {error}");
    let gvk = json!({"apiVersion": api_version, "kind": object.kind}).gvk();
    let resource = cluster.resource(&gvk).await.map_err(refused)?;
    let place = (object.namespace.as_str(), object.name.as_str());
    cluster.delete(&resource, place, Propagation::Background, "", false).await.map(drop).map_err(refused)
}

fn behaviours<'a>(rules: impl Iterator<Item = &'a Rule>) -> Result<Behaviours, String> {
    let mut lists: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    rules.for_each(|rule| lists.entry(rule.list).or_default().push(rule.rule.clone()));
    Behaviours::from_yaml("what was seen", &json!(lists).to_string()).map_err(|error| error.to_string())
}

fn red_in(still: &Still) -> BTreeSet<Object> {
    let snapshot = still.server().snapshot();
    let objects: Vec<&Value> =
        snapshot.resources().flat_map(|id| snapshot.list(id, None)).map(|object| object.value()).collect();
    red(objects.into_iter())
}

/// The workloads that have fewer ready pods than they want.
pub(super) fn red<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeSet<Object> {
    let count = |object: &Value, path: &[&str]| object.int_at(path).unwrap_or(0);
    let is_short = |object: &&Value| match object.kind() {
        "DaemonSet" => {
            count(object, &["status", "numberReady"]) < count(object, &["status", "desiredNumberScheduled"])
        }
        "Deployment" | "StatefulSet" => {
            let is_stuck = object.kind() == "Deployment"
                && count(object, &["status", "updatedReplicas"])
                    < object.int_at(&["spec", "replicas"]).unwrap_or(1);
            let unavailable = count(object, &["status", "unavailableReplicas"]) > 0;
            count(object, &["status", "readyReplicas"]) < object.int_at(&["spec", "replicas"]).unwrap_or(1)
                || is_stuck
                || unavailable
        }
        _ => false,
    };
    objects.filter(is_short).map(Object::from_live).collect()
}

/// The objects of the copy. Owners that were not saved are not known, and not gone; so is what pods refer to,
/// of kinds of which nothing was saved.
fn objects(case: &Case) -> Vec<Value> {
    let kept: Vec<&Value> = case
        .objects
        .iter()
        .filter(|object| {
            KINDS.contains(&object.kind()) && !(object.kind() == "Pod" && object.is_terminating())
        })
        .collect();
    let uids: BTreeSet<&str> = kept.iter().map(|object| object.uid()).collect();
    let mut all: Vec<Value> = kept
        .iter()
        .map(|object| {
            let mut object = (*object).clone();
            let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
            if let Some(owners) = owners {
                owners.retain(|owner| owner.str_at(&["uid"]).is_some_and(|uid| uids.contains(uid)));
            }
            object
        })
        .collect();
    for kind in ["Secret", "ConfigMap", "ServiceAccount"] {
        if !kept.iter().any(|object| object.kind() == kind) && !case.listed.contains(kind) {
            let names: BTreeSet<(String, String)> = kept
                .iter()
                .filter(|object| object.kind() == "Pod")
                .flat_map(|pod| {
                    super::repair::references(pod, kind)
                        .into_iter()
                        .map(|name| (pod.namespace().to_owned(), name))
                })
                .collect();
            all.extend(
                names
                    .iter()
                    .map(|(namespace, name)| super::repair::configuration_object(kind, namespace, name)),
            );
        }
    }
    all
}

/// The rules by which programs, images and nodes behave as they were seen to.
fn rules(case: &Case) -> Vec<Rule> {
    let mut rules = Vec::new();
    let calls = tiphys_doctor::calls(case);
    let unserved = unserved(case);
    for node in case.objects.iter().filter(|object| object.kind() == "Node") {
        let conditions = node.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
        let mut bad = conditions.filter(|it| {
            let (name, status) = (it.str_at(&["type"]), it.str_at(&["status"]));
            name == Some("Ready") && status != Some("True")
                || name == Some("NetworkUnavailable") && status == Some("True")
        });
        if let Some(bad) = bad.next() {
            let message = bad.str_at(&["message"]).unwrap_or_default();
            let rule = json!({"node": node.name(), "notReady": {"message": message}});
            rules.push(Rule { of: Object::from_live(node), image: None, list: "nodes", rule });
        }
    }
    let owners: BTreeMap<&str, &Value> = case.objects.iter().map(|object| (object.uid(), object)).collect();
    let mut seen = BTreeSet::new();
    for pod in case.objects.iter().filter(|object| object.kind() == "Pod" && !object.is_terminating()) {
        let workload = workload(pod, &owners);
        let of = Object::from_live(workload);
        let prefix =
            if workload.kind() == "Pod" { pod.name().to_owned() } else { format!("{}-*", workload.name()) };
        let needs: Vec<Value> = calls
            .iter()
            .filter(|(caller, service)| *caller == of && unserved.contains(service))
            .map(|(_, service)| json!({"service": {"namespace": service.namespace, "name": service.name}}))
            .collect();
        for (container, status) in containers(pod) {
            let Some((list, rule, image)) = behaviour(pod, container, status, &prefix, &needs) else {
                continue;
            };
            if seen.insert(rule.to_string()) {
                rules.push(Rule { of: of.clone(), image, list, rule });
            }
        }
    }
    rules
}

/// The containers of a pod with their states.
fn containers(pod: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let lists = [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")];
    lists.into_iter().flat_map(move |(specs, statuses)| {
        let list = |path: [&str; 2]| pod.at(&path).and_then(Value::as_array).into_iter().flatten();
        list(["status", statuses]).filter_map(move |status| {
            Some((list(["spec", specs]).find(|spec| spec.get("name") == status.get("name"))?, status))
        })
    })
}

/// How a container behaves that is not well: the list of rules, the rule, and the image if that is the
/// matter.
fn behaviour(
    pod: &Value,
    container: &Value,
    status: &Value,
    prefix: &str,
    needs: &[Value],
) -> Option<(&'static str, Value, Option<String>)> {
    let waits = status.str_at(&["state", "waiting", "reason"]).unwrap_or_default();
    if waits.contains("Image") {
        let image = container.str_at(&["image"])?.to_owned();
        return Some(("images", json!({"image": image, "pull": "notFound"}), Some(image)));
    }
    if status.get("ready") == Some(&Value::Bool(true)) {
        return None;
    }
    let ended = status.at(&["state", "terminated"]).or_else(|| status.at(&["lastState", "terminated"]));
    let mut rule = json!({"pods": {"namespace": pod.namespace(), "name": prefix}, "container": container["name"], "needs": needs});
    match ended.filter(|ended| ended.int_at(&["exitCode"]).is_some_and(|code| code != 0)) {
        Some(ended) => {
            let time = |key: &str| ended.str_at(&[key])?.parse::<jiff::Timestamp>().ok();
            let ran = time("finishedAt")
                .zip(time("startedAt"))
                .map_or(1, |(end, start)| end.as_second() - start.as_second());
            rule["exits"] = json!({"code": ended["exitCode"], "after": format!("{}s", ran.clamp(1, 300))});
            if ended.str_at(&["reason"]) == Some("OOMKilled") {
                rule["exits"]["reason"] = "OOMKilled".into();
            }
        }
        None if waits == "CreateContainerConfigError"
            || waits == "ContainerCreating"
            || waits == "PodInitializing" =>
        {
            return None;
        }
        None if status.at(&["state", "running"]).is_none() => return None,
        None if needs.is_empty() => {
            rule["ready"] = json!({"never": "it was not ready when the state was saved"})
        }
        None => {}
    }
    Some(("containers", rule, None))
}

/// What made a pod in the end.
pub(super) fn workload<'a>(pod: &'a Value, owners: &BTreeMap<&str, &'a Value>) -> &'a Value {
    let mut at = pod;
    for _ in 0..4 {
        let owner = at.controller_reference().and_then(|owner| owners.get(owner.str_at(&["uid"])?));
        match owner {
            Some(owner) => at = owner,
            None => break,
        }
    }
    at
}

/// The Services behind which no pod is ready.
fn unserved(case: &Case) -> BTreeSet<Object> {
    let is_ready = |pod: &&Value| {
        let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
        conditions
            .into_iter()
            .any(|it| it.str_at(&["type"]) == Some("Ready") && it.str_at(&["status"]) == Some("True"))
    };
    let ready: Vec<&Value> =
        case.objects.iter().filter(|object| object.kind() == "Pod").filter(is_ready).collect();
    let is_served = |service: &Value| {
        let Some(selector) = service.at(&["spec", "selector"]).and_then(Value::as_object) else {
            return true;
        };
        let fits = |pod: &&&Value| {
            pod.namespace() == service.namespace()
                && selector.iter().all(|(key, value)| pod.label(key) == value.as_str())
        };
        ready.iter().any(|pod| fits(&pod))
    };
    let services = case.objects.iter().filter(|object| object.kind() == "Service");
    services.filter(|service| !is_served(service)).map(Object::from_live).collect()
}
