//! The repair of each cause that a copy of a cluster can play.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_doctor::{Case, Cause, Object, Root, diagnose};
use tiphys_merge::merge_patch;
use tiphys_value::{ObjectExt as _, Value, json};

use super::copy::{Rule, workload};

/// The world takes an object with this mark to have every key.
const MORE_KEYS: &str = "tiphys.dev/more-keys";

/// A change of the copy.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Create(Value),
    Patch { api_version: String, object: Object, patch: Value },
    Delete { api_version: String, object: Object },
}

/// What is done to a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Repair {
    pub steps: Vec<Step>,
    /// Workloads and nodes that behave well from now on.
    well: BTreeSet<Object>,
    /// Images that can be pulled from now on.
    images: BTreeSet<String>,
    /// What behaves well does so since what kept it from its work was evaluated again, and no longer keeps it
    /// from it.
    pub is_judged: bool,
}

impl Repair {
    /// Whether a rule holds no longer after it.
    pub(super) fn ends(&self, rule: &Rule) -> bool {
        match &rule.image {
            Some(image) => self.images.contains(image),
            None => self.well.contains(&rule.of),
        }
    }
}

/// The repair of a root; why a copy cannot play it.
///
/// # Errors
/// A copy does not play what is broken.
pub(super) fn repair(root: &Root, case: &Case) -> Result<Repair, String> {
    let mut repair = Repair::default();
    let object = &root.object;
    let live = case.objects.iter().find(|live| Object::from_live(live) == *object);
    let patch = |object: &Object, patch: Value| Step::Patch {
        api_version: api_version(&object.kind).to_owned(),
        object: object.clone(),
        patch,
    };
    match root.cause {
        Cause::ImageNotFound
        | Cause::ImageUnauthorized
        | Cause::ImageForbidden
        | Cause::ImageRegistryUnreachable
        | Cause::ImageRateLimited => repair.images = images_of(root, case),
        Cause::RunExits
        | Cause::RunCommand
        | Cause::RunOom
        | Cause::RunLiveness
        | Cause::RunReadiness
        | Cause::RunPermission
        | Cause::ConfigCredentials
        | Cause::NodeNotReady
        | Cause::NodeRuntime => {
            repair.well.insert(object.clone());
        }
        // With the right configuration its pods answer.
        Cause::DnsConfig => {
            let pods = root.sufferers.iter().filter(|it| it.namespace == object.namespace && is_server(it));
            repair.well.extend(pods.cloned());
        }
        Cause::ConfigMissing | Cause::ConfigKeyMissing => repair.steps.push(configuration(root, case)?),
        Cause::AdmitServiceAccount if object.kind == "ServiceAccount" => {
            repair.steps.push(Step::Create(configuration_object("ServiceAccount", &object.namespace, &object.name)));
        }
        Cause::AdmitQuota | Cause::AdmitLimitRange if live.is_some() => {
            let (api_version, object) = (api_version(&object.kind).to_owned(), object.clone());
            repair.steps.push(Step::Delete { api_version, object });
        }
        cause if EVALUATED.contains(&cause) => return judged(root, case),
        Cause::OperatorDown | Cause::DnsDown if live.is_some_and(is_at_zero) => {
            repair.steps.push(patch(object, json!({"spec": {"replicas": 1}})));
        }
        Cause::RunScaledZero => repair.steps.push(patch(object, json!({"spec": {"replicas": 1}}))),
        Cause::VolumeNoClass if object.kind == "StorageClass" => repair.steps.push(Step::Create(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": object.name}, "provisioner": "tiphys.dev/world", "volumeBindingMode": "WaitForFirstConsumer"}),
        )),
        Cause::ScheduleNodeSelector => repair.steps.extend(labels(object, live, case)?),
        Cause::ServiceSelector | Cause::ServicePort => match &root.remedy.patch {
            Some(change) => repair.steps.push(patch(object, change.clone())),
            None => return Err("there is no patch to try out".to_owned()),
        },
        _ => return Err("a copy of the cluster does not play what is broken here".to_owned()),
    }
    Ok(repair)
}

fn is_server(object: &Object) -> bool {
    matches!(object.kind.as_str(), "Deployment" | "DaemonSet")
}

fn is_at_zero(workload: &Value) -> bool {
    workload.int_at(&["spec", "replicas"]) == Some(0)
}

/// Causes that are evaluated: whether a request or a packet passes is decided by objects alone.
const EVALUATED: [Cause; 7] = [
    Cause::ApiRbac,
    Cause::NetPolicyIngress,
    Cause::NetPolicyEgress,
    Cause::NetPolicyDns,
    Cause::NetPolicyApiServer,
    Cause::NetPolicyProbe,
    Cause::NetPolicyWebhook,
];

/// The repair of a root that roles or policies are: they are changed and evaluated again.
fn judged(root: &Root, case: &Case) -> Result<Repair, String> {
    let change = root.remedy.patch.as_ref().ok_or("there is no patch to try out")?;
    let mut after = case.clone();
    let live = after.objects.iter_mut().find(|live| Object::from_live(live) == root.object);
    let live = live.ok_or_else(|| format!("{} was not saved", root.object))?;
    *live = merge_patch(live, change);
    let left = diagnose(&after).causes.into_iter().find(|other| {
        EVALUATED.contains(&other.cause)
            && other.confidence >= 0.5
            && other.sufferers.iter().any(|object| root.sufferers.contains(object))
    });
    match left {
        Some(other) => Err(format!("with this change, {} still blocks it: {}", other.object, other.summary)),
        None => Ok(Repair {
            well: root.sufferers.iter().cloned().collect(),
            is_judged: true,
            ..Repair::default()
        }),
    }
}

fn api_version(kind: &str) -> &'static str {
    match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps/v1",
        "StorageClass" => "storage.k8s.io/v1",
        _ => "v1",
    }
}

/// An object of a kind that holds configuration, with whatever key is asked for.
pub(super) fn configuration_object(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    if kind != "ServiceAccount" {
        object["metadata"]["annotations"] = json!({MORE_KEYS: "true"});
    }
    object
}

/// The names of a kind that a pod refers to.
pub(super) fn references(pod: &Value, kind: &str) -> BTreeSet<String> {
    fn walk(value: &Value, keys: &[&str], found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if keys.contains(&key.as_str()) {
                        let name = ["name", "secretName"].iter().find_map(|key| value.str_at(&[key]));
                        found.extend(name.or(value.as_str()).map(str::to_owned));
                    }
                    walk(value, keys, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, keys, found)),
            _ => {}
        }
    }
    let keys: &[&str] = match kind {
        "Secret" => &["secretRef", "secretKeyRef", "secret"],
        "ConfigMap" => &["configMapRef", "configMapKeyRef", "configMap"],
        _ => &["serviceAccountName"],
    };
    let mut found = BTreeSet::new();
    walk(&pod["spec"], keys, &mut found);
    found
}

/// Makes what is missing; gives what is there every key.
fn configuration(root: &Root, case: &Case) -> Result<Step, String> {
    let object = &root.object;
    if !matches!(object.kind.as_str(), "Secret" | "ConfigMap") {
        return Err("what is missing is not told by its name".to_owned());
    }
    if case.objects.iter().any(|live| Object::from_live(live) == *object) {
        let patch = json!({"metadata": {"annotations": {MORE_KEYS: "true"}}});
        return Ok(Step::Patch { api_version: "v1".to_owned(), object: object.clone(), patch });
    }
    Ok(Step::Create(configuration_object(&object.kind, &object.namespace, &object.name)))
}

/// The images that the pods of a root, and of what shares its fault, wait for.
fn images_of(root: &Root, case: &Case) -> BTreeSet<String> {
    let owners: BTreeMap<&str, &Value> = case.objects.iter().map(|object| (object.uid(), object)).collect();
    let hit: BTreeSet<&Object> =
        root.consequences.iter().map(|it| &it.object).chain([&root.object]).collect();
    let pods = case.objects.iter().filter(|object| object.kind() == "Pod");
    let pods = pods.filter(|pod| {
        hit.contains(&Object::from_live(pod)) || hit.contains(&Object::from_live(workload(pod, &owners)))
    });
    let containers = pods.flat_map(|pod| {
        let lists = ["initContainers", "containers"].into_iter();
        lists.filter_map(move |list| pod.at(&["spec", list])?.as_array()).flatten()
    });
    containers.filter_map(|container| container.str_at(&["image"])).map(str::to_owned).collect()
}

/// Gives a node the labels that a workload asks for.
fn labels(object: &Object, live: Option<&Value>, case: &Case) -> Result<Option<Step>, String> {
    let selector = live.and_then(|live| live.at(&["spec", "template", "spec", "nodeSelector"]));
    let selector = selector.ok_or_else(|| format!("{object} has no nodeSelector that a copy could serve"))?;
    let node = case.objects.iter().find(|object| object.kind() == "Node");
    Ok(node.map(|node| Step::Patch {
        api_version: "v1".to_owned(),
        object: Object::from_live(node),
        patch: json!({"metadata": {"labels": selector}}),
    }))
}
