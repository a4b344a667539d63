//! Repairs of pods: what they name, pull, run and ask of nodes.

use std::collections::BTreeSet;

use tiphys_cause::{Obstacle, absent, placement};
use tiphys_check::rules::replacement_of_withdrawn;
use tiphys_diag::similar_names::similar;
use tiphys_stage::{
    causes::{Cause, Repair},
    mechanism::Mechanism,
};
use tiphys_value::{ObjectExt, ResourceKey, Value, json, taint};
use tiphys_world::behaviour::{image_host, open_ports};

use super::{Ground, in_namespace, object_name, yaml};
use crate::rehearse::strict_world::pull_secrets::is_for_pulls;

impl Ground<'_> {
    /// A Secret or ConfigMap that is not there: a name like it is a slip, otherwise it has to be made.
    pub(super) fn missing(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let missing = mechanism.objects.first()?;
        let plural = if missing.kind == "Secret" { "secrets" } else { "configmaps" };
        let names: Vec<&str> = self
            .live("", plural)
            .filter(|object| object.namespace() == missing.namespace)
            .map(Value::name)
            .collect();
        let near = similar(&missing.name, names.iter().copied()).into_iter().next();
        if let Some(near) = near {
            return Some(Repair {
                text: format!(
                    "write {near:?} in place of {:?}: that {} is there",
                    missing.name, missing.kind
                ),
                place: self.place_of(cause),
                ..Repair::default()
            });
        }
        let elsewhere = self.live("", plural).find(|object| object.name() == missing.name);
        let keys = self.pod_of(cause).map(|pod| wanted_keys(pod, missing)).unwrap_or_default();
        let data: serde_json::Map<String, Value> = keys.into_iter().map(|key| (key, json!("…"))).collect();
        let field = if missing.kind == "Secret" { "stringData" } else { "data" };
        let patch = json!({"apiVersion": "v1", "kind": missing.kind,
            "metadata": {"name": missing.name, "namespace": missing.namespace}, field: data});
        let hint = elsewhere.map(|it| format!(" (there is one in namespace {})", it.namespace()));
        Some(Repair {
            text: format!("bring {}{}", object_name(missing), hint.unwrap_or_default()),
            patch: yaml(&patch),
            ..Repair::default()
        })
    }

    /// A key that a Secret or ConfigMap lacks.
    pub(super) fn missing_key(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let key = absent(&cause.text)?.key?;
        let object = mechanism.objects.first()?;
        let plural = if object.kind == "Secret" { "secrets" } else { "configmaps" };
        let live = self
            .live("", plural)
            .find(|it| it.namespace() == object.namespace && it.name() == object.name)?;
        let fields = ["data", "stringData", "binaryData"].into_iter();
        let keys: Vec<&str> = fields
            .filter_map(|field| live.get(field)?.as_object())
            .flat_map(|data| data.keys().map(String::as_str))
            .collect();
        let near = similar(&key, keys.iter().copied()).into_iter().next();
        let text = match near {
            Some(near) => {
                format!("write the key {near:?} in place of {key:?}: {} has that", object_name(object))
            }
            None => format!("add the key {key:?} to {}", object_name(object)),
        };
        let place = if near.is_some() { self.place_of(cause) } else { self.place(object) };
        Some(Repair { text, place, ..Repair::default() })
    }

    /// The Secret with which neighbours pull from the same host.
    pub(super) fn credentials(&self, cause: &Cause) -> Option<Repair> {
        let pod = self.pod_of(cause)?;
        let host = containers(pod).filter_map(|it| it.str_at(&["image"])).map(image_host).next()?.to_owned();
        let secrets = |pod: &Value| -> Vec<String> {
            let secrets = pod.at(&["spec", "imagePullSecrets"]).and_then(Value::as_array);
            let names = secrets.into_iter().flatten().filter_map(|secret| secret.str_at(&["name"]));
            names.map(str::to_owned).collect()
        };
        if let Some(named) = secrets(pod).into_iter().next() {
            return self.absent_credentials(cause, pod, &named);
        }
        let pulls_there = |other: &&Value| {
            other.namespace() == pod.namespace()
                && containers(other).any(|it| it.str_at(&["image"]).is_some_and(|it| image_host(it) == host))
        };
        let used: BTreeSet<String> = self.live("", "pods").filter(pulls_there).flat_map(secrets).collect();
        let Some(secret) = used.into_iter().next() else {
            return Some(Repair {
                text: format!("give the pods a Secret for {host}, and name it in imagePullSecrets"),
                place: self.place_of(cause),
                command: Some(format!(
                    "kubectl create secret docker-registry {} --namespace {} --docker-server={host} --docker-username=… --docker-password=…",
                    host.replace('.', "-"),
                    pod.namespace()
                )),
                ..Repair::default()
            });
        };
        Some(Repair {
            text: format!("name the Secret {secret:?}, with which its neighbours pull from {host}"),
            patch: yaml(&json!({"spec": {"template": {"spec": {"imagePullSecrets": [{"name": secret}]}}}})),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// What mends that a pod names a pull secret which is not there.
    fn absent_credentials(&self, cause: &Cause, pod: &Value, named: &str) -> Option<Repair> {
        let here: Vec<&Value> =
            self.live("", "secrets").filter(|it| it.namespace() == pod.namespace()).collect();
        if here.iter().any(|secret| secret.name() == named) {
            return None;
        }
        let place = self.place_of(cause);
        let for_pulls = here.iter().find(|secret| is_for_pulls(secret, &["type"]));
        let Some(instead) = for_pulls.map(|secret| secret.name()) else {
            let text = format!("make the pull secret {named:?} in namespace {} too", pod.namespace());
            return Some(Repair { text, place, ..Repair::default() });
        };
        Some(Repair {
            text: format!(
                "name the pull secret {instead:?} in place of {named:?}, which namespace {} does not have",
                pod.namespace()
            ),
            patch: yaml(&json!({"spec": {"template": {"spec": {"imagePullSecrets": [{"name": instead}]}}}})),
            place,
            ..Repair::default()
        })
    }

    /// What there is in place of an image that was withdrawn.
    pub(super) fn withdrawn(&self, cause: &Cause) -> Option<Repair> {
        let pod = self.pod_of(cause)?;
        let known = containers(pod)
            .filter_map(|it| it.str_at(&["image"]))
            .find_map(|image| Some((image, replacement_of_withdrawn(image)?)));
        let (image, instead) = known?;
        let text = format!("replace {image}, which was withdrawn: {instead}");
        Some(Repair { text, place: self.place_of(cause), ..Repair::default() })
    }

    /// Arguments that begin with the program itself, which the image's entrypoint is already.
    pub(super) fn repeated_program(&self, cause: &Cause) -> Option<Repair> {
        let pod = self.pod_of(cause)?;
        let repeated = containers(pod).find_map(|container| {
            let args = container.get("args")?.as_array()?;
            let first = args.first()?.as_str()?;
            let is_named = first.contains('/') && cause.text.contains(&format!("{first:?}"));
            is_named.then(|| (container, first, args[1..].to_vec()))
        });
        let (container, first, rest) = repeated?;
        let name = container.str_at(&["name"]).unwrap_or_default();
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": name, "args": rest}]}}}});
        Some(Repair {
            text: format!("leave {first:?} out of args: the program is started already"),
            patch: yaml(&patch),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// Who holds the port.
    pub(super) fn host_port(&self, cause: &Cause) -> Option<Repair> {
        let pod = self.pod_of(cause)?;
        let wanted = host_ports(pod);
        let holder = self.live("", "pods").find(|other| {
            other.uid() != pod.uid()
                && other.str_at(&["spec", "nodeName"]).is_some()
                && !host_ports(other).is_disjoint(&wanted)
                && !cause.objects.contains(&other.resource_key())
        })?;
        let ports: Vec<String> = host_ports(holder).intersection(&wanted).map(ToString::to_string).collect();
        Some(Repair {
            text: format!(
                "keep one of the two: {} holds port {} on its node",
                object_name(&holder.resource_key()),
                ports.join(", ")
            ),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// A toleration of the taint that keeps a pod away.
    pub(super) fn toleration(&self, cause: &Cause) -> Option<Repair> {
        let taint =
            placement(&cause.text).obstacles.into_iter().find_map(|(_, obstacle)| match obstacle {
                Obstacle::Taint(taint) => Some(taint.trim().to_owned()),
                _ => None,
            })?;
        // Newer schedulers do not say which.
        let taint = match taint.is_empty() {
            true => self.untolerated(self.pod_of(cause)?)?,
            false => taint,
        };
        let toleration = json!([{"key": taint, "operator": "Exists"}]);
        Some(Repair {
            text: format!("let the pods tolerate the taint {taint:?}, or take it off a node"),
            patch: yaml(&json!({"spec": {"template": {"spec": {"tolerations": toleration}}}})),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// The first taint of a node that a pod selects which it does not tolerate.
    fn untolerated(&self, pod: &Value) -> Option<String> {
        let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
        let is_selected = |node: &&Value| {
            let wanted = selector.into_iter().flatten();
            wanted.into_iter().all(|(name, value)| node.label(name) == value.as_str())
        };
        let nodes = self.live("", "nodes").filter(is_selected);
        let open = nodes.flat_map(|node| taint::untolerated(pod, node, &taint::KEEPS_AWAY));
        // A node that tells of its own troubles is mended otherwise.
        let mut keys = open
            .filter_map(|taint| taint.str_at(&["key"]))
            .filter(|key| !key.starts_with("node.kubernetes.io/"));
        keys.next().map(str::to_owned)
    }

    /// Classes that there are.
    pub(super) fn storage_class(&self, cause: &Cause) -> Option<Repair> {
        let claim = cause.objects.first()?;
        let classes: Vec<&str> = self.live("storage.k8s.io", "storageclasses").map(Value::name).collect();
        let live = self
            .live("", "persistentvolumeclaims")
            .find(|it| it.namespace() == claim.namespace && it.name() == claim.name)?;
        let wanted = live.str_at(&["spec", "storageClassName"]).unwrap_or_default();
        let near = similar(wanted, classes.iter().copied()).into_iter().next();
        let text = match near {
            Some(near) => format!("write the class {near:?} in place of {wanted:?}"),
            None => format!("bring StorageClass {wanted:?}; there are {}", classes.join(", ")),
        };
        Some(Repair { text, place: self.place_of(cause), ..Repair::default() })
    }

    /// A claim that pods mount and nobody makes.
    pub(super) fn claim(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let claim = mechanism.objects.first()?;
        let own = self.live("", "persistentvolumeclaims").filter(|it| it.namespace() == claim.namespace);
        let near = similar(&claim.name, own.map(Value::name)).into_iter().next();
        if let Some(near) = near {
            let text = format!("write the claim {near:?} in place of {:?}: that one is there", claim.name);
            return Some(Repair { text, place: self.place_of(cause), ..Repair::default() });
        }
        let patch = json!({"apiVersion": "v1", "kind": claim.kind,
            "metadata": {"name": claim.name, "namespace": claim.namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        Some(Repair {
            text: format!("bring {}", object_name(claim)),
            patch: yaml(&patch),
            ..Repair::default()
        })
    }

    /// A probe of a port on which a known image does not listen.
    pub(super) fn probed_port(&self, cause: &Cause) -> Option<Repair> {
        let pod = self.pod_of(cause)?;
        let open = open_ports(pod)?;
        let container = containers(pod).next()?;
        let probes = ["readinessProbe", "livenessProbe", "startupProbe"].into_iter();
        let asks_elsewhere = |probe: &&str| {
            let port = ["httpGet", "tcpSocket"].iter().find_map(|how| container.at(&[probe, how, "port"]));
            let named = |name: &str| {
                let ports = container.get("ports")?.as_array()?;
                ports.iter().find(|it| it.str_at(&["name"]) == Some(name))?.int_at(&["containerPort"])
            };
            let number = port.and_then(|port| port.as_i64().or_else(|| named(port.as_str()?)));
            number.is_some_and(|number| !open.iter().any(|it| i64::from(*it) == number))
        };
        let probe = probes.into_iter().find(|probe| asks_elsewhere(probe))?;
        let ports: Vec<String> = open.iter().map(ToString::to_string).collect();
        let image = container.str_at(&["image"]).unwrap_or_default();
        let text = format!("let the {probe} ask for port {}: {image} listens there", ports.join(" or "));
        Some(Repair { text, place: self.place_of(cause), ..Repair::default() })
    }

    /// A disruption budget that lets no pod go.
    pub(super) fn budget(&self, mechanism: &Mechanism) -> Option<Repair> {
        let key = mechanism.objects.first()?;
        let budget = self
            .live("policy", "poddisruptionbudgets")
            .find(|it| it.namespace() == key.namespace && it.name() == key.name)?;
        let count = |field: &str| budget.int_at(&["status", field]);
        let (pods, healthy) = (count("expectedPods")?, count("desiredHealthy")?);
        if healthy < pods {
            return None;
        }
        let more = if pods == 1 { ", and run more than one pod" } else { "" };
        let patch = json!({"spec": {"minAvailable": null, "maxUnavailable": 1}});
        Some(Repair {
            text: format!(
                "let {} allow one pod to go{more}: it wants {healthy} of {pods} healthy",
                object_name(key)
            ),
            patch: yaml(&patch),
            place: self.place(key),
            ..Repair::default()
        })
    }

    /// What holds something that is being deleted.
    pub(super) fn finalizer(&self, cause: &Cause) -> Option<Repair> {
        let held = cause.objects.iter().find(|key| !key.kind.starts_with("Application"))?;
        let kind = match held.group.as_str() {
            "" => held.kind.to_lowercase(),
            group => format!("{}.{group}", held.kind.to_lowercase()),
        };
        Some(Repair {
            text: format!(
                "bring back the controller that takes the finalizer off {}; if it is gone for good, take it off by hand",
                object_name(held)
            ),
            command: Some(format!(
                "kubectl patch {kind} {}{} --type=merge --patch '{{\"metadata\":{{\"finalizers\":null}}}}'",
                held.name,
                in_namespace(held)
            )),
            ..Repair::default()
        })
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"].into_iter();
    lists.filter_map(|list| pod.at(&["spec", list])?.as_array()).flatten()
}

fn host_ports(pod: &Value) -> BTreeSet<i64> {
    let ports = containers(pod).filter_map(|it| it.get("ports")?.as_array()).flatten();
    ports.filter_map(|port| port.int_at(&["hostPort"])).collect()
}

/// The keys that a pod takes from a Secret or ConfigMap.
fn wanted_keys(pod: &Value, object: &ResourceKey) -> BTreeSet<String> {
    let field = if object.kind == "Secret" { "secretKeyRef" } else { "configMapKeyRef" };
    let env = containers(pod).filter_map(|it| it.get("env")?.as_array()).flatten();
    let references = env.filter_map(|it| it.at(&["valueFrom", field]));
    let own = references.filter(|it| it.str_at(&["name"]) == Some(object.name.as_str()));
    own.filter_map(|it| it.str_at(&["key"])).map(str::to_owned).collect()
}
