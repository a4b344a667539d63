//! Objects and events out of what `kubectl describe` prints. It tells less than the object, and of single
//! ones: that another one of the kind is absent proves nothing.

mod custom;
mod nodes;
mod pods;
mod text;
mod workloads;

use tiphys_value::{ObjectExt as _, Value, json};

use self::text::{Field, cell, fields, pairs, rows, time, value, values};
use super::{Case, Event};
use crate::Object;

/// Whether a text begins as a description does.
pub(super) fn is_description(start: &str) -> bool {
    let first = start.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.starts_with("Name:")
        && first.len() > "Name:".len()
        && start.lines().skip(1).take(3).any(|line| line.contains(":"))
}

/// Adds the objects and events of descriptions to a case; returns what could not be read.
pub(super) fn parse(text: &str, case: &mut Case) -> Vec<String> {
    let mut faults = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().chain(["Name:"]) {
        if line.starts_with("Name:") && !lines.is_empty() {
            faults.extend(parse_one(&lines, case));
            lines.clear();
        }
        lines.push(line);
    }
    faults
}

/// Reads one description; returns what is wrong with it.
fn parse_one(lines: &[&str], case: &mut Case) -> Option<String> {
    let fields = fields(lines);
    let name = value(&fields, "Name")?;
    let namespace = value(&fields, "Namespace").unwrap_or_default();
    let Some(kind) = kind(&fields) else {
        return Some(format!("the description of {name} does not tell its kind"));
    };
    let object = Object::new(kind, namespace, name);
    case.events.extend(events(&fields, &object));
    let mut live = match kind {
        "Pod" => pods::pod(&fields),
        "Node" => nodes::node(&fields),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" => {
            workloads::workload(kind, &fields)
        }
        "PersistentVolumeClaim" => nodes::claim(&fields),
        "Service" => nodes::service(&fields),
        "HorizontalPodAutoscaler" => nodes::autoscaler(&fields),
        _ => custom::resource(&fields),
    };
    live["kind"] = json!(kind);
    let version = value(&fields, "API Version").unwrap_or(match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => "apps/v1",
        "Job" => "batch/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "Ingress" => "networking.k8s.io/v1",
        _ => "v1",
    });
    live["apiVersion"] = json!(version);
    live["metadata"] = metadata(&fields, &object);
    case.in_part.insert(kind.to_owned());
    case.objects.push(live);
    None
}

/// The kind of a description: named for custom resources, for others told by the fields that only they have.
fn kind<'a>(fields: &[Field<'a>]) -> Option<&'a str> {
    let has = |key: &str| fields.iter().any(|field| field.key == key);
    let told = value(fields, "Kind").filter(|_| has("API Version"));
    let known: [(&str, &[&str]); 10] = [
        ("Pod", &["Node", "Containers"]),
        ("Node", &["Roles", "Conditions"]),
        ("Deployment", &["StrategyType"]),
        ("DaemonSet", &["Desired Number of Nodes Scheduled"]),
        ("StatefulSet", &["Update Strategy", "Pod Template"]),
        ("Job", &["Parallelism"]),
        ("ReplicaSet", &["Replicas", "Pod Template"]),
        ("PersistentVolumeClaim", &["StorageClass", "Volume", "Status"]),
        ("HorizontalPodAutoscaler", &["Reference", "Min replicas"]),
        ("Service", &["Selector", "Type", "Endpoints"]),
    ];
    let known = known.iter().find(|(_, keys)| keys.iter().all(|key| has(key))).map(|(kind, _)| *kind);
    told.or(known).or_else(|| (has("Ingress Class") || has("Default backend")).then_some("Ingress"))
}

fn metadata(fields: &[Field<'_>], object: &Object) -> Value {
    let mut metadata = json!({"name": object.name});
    if !object.namespace.is_empty() {
        metadata["namespace"] = json!(object.namespace);
    }
    for (key, name) in [("Labels", "labels"), ("Annotations", "annotations")] {
        let found = pairs(&values(fields, key));
        if !found.is_empty() {
            metadata[name] = found.into_iter().map(|(key, value)| (key, json!(value))).collect();
        }
    }
    let created = ["CreationTimestamp", "Start Time", "Creation Timestamp"];
    if let Some(time) = created.iter().find_map(|key| value(fields, key)).and_then(time) {
        metadata["creationTimestamp"] = json!(time);
    }
    if let Some((kind, name)) = value(fields, "Controlled By").and_then(|owner| owner.split_once('/')) {
        metadata["ownerReferences"] = json!([{"kind": kind, "name": name, "controller": true}]);
    }
    metadata
}

/// The events of a description. How long ago they were is told in words, and counts from an unknown time.
fn events(fields: &[Field<'_>], object: &Object) -> Vec<Event> {
    let table = rows(text::below(fields, "Events"));
    let read = table.iter().map(|row| {
        let age = cell(row, "Age");
        let count = age.split_once("(x").and_then(|(_, rest)| text::number(rest)).unwrap_or(1);
        Event {
            object: object.clone(),
            kind: cell(row, "Type").to_owned(),
            reason: cell(row, "Reason").to_owned(),
            message: cell(row, "Message").to_owned(),
            count: u64::try_from(count).unwrap_or(1),
            source: cell(row, "From").to_owned(),
            ..Event::default()
        }
    });
    read.filter(|event| !event.reason.is_empty() && !event.message.is_empty()).collect()
}

/// The conditions of a table, with the words where they are told.
fn conditions(fields: &[Field<'_>]) -> Value {
    let table = rows(text::below(fields, "Conditions"));
    let read = table.iter().map(|row| {
        let mut condition = json!({"type": cell(row, "Type"), "status": cell(row, "Status")});
        for (title, key) in [("Reason", "reason"), ("Message", "message")] {
            if !cell(row, title).is_empty() {
                condition[key] = json!(cell(row, title));
            }
        }
        for (title, key) in
            [("LastTransitionTime", "lastTransitionTime"), ("LastHeartbeatTime", "lastHeartbeatTime")]
        {
            if let Some(time) = time(cell(row, title)) {
                condition[key] = json!(time);
            }
        }
        condition
    });
    read.collect()
}

impl Case {
    /// Kinds of which whole objects were saved too are known as far as those tell.
    pub(super) fn settle_described(&mut self) {
        let objects = &self.objects;
        self.in_part.retain(|kind| {
            let all = objects.iter().filter(|object| object.kind() == kind);
            all.into_iter().all(|object| object.uid().is_empty() && object.resource_version().is_empty())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "Name:             web-7d9f8b6c5-abcde
Namespace:        shop
Node:             node-1/10.0.1.11
Start Time:       Tue, 10 Mar 2026 11:00:00 +0000
Labels:           app=web
                  pod-template-hash=7d9f8b6c5
Status:           Running
IP:               10.244.0.5
Controlled By:  ReplicaSet/web-7d9f8b6c5
Containers:
  web:
    Image:          registry.example.org/web:1
    Port:           8080/TCP
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Tue, 10 Mar 2026 11:51:00 +0000
    Ready:          False
    Restart Count:  9
    Limits:
      memory:  256Mi
    Liveness:     http-get http://:8080/healthz delay=0s timeout=1s period=10s #success=1 #failure=3
    Environment:
      DB_HOST:    pg.data
      PASSWORD:   <set to the key 'password' in secret 'pg'>  Optional: false
    Mounts:
      /data from data (rw)
Conditions:
  Type              Status
  Initialized       True
  Ready             False
Volumes:
  data:
    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)
    ClaimName:  web-data
Events:
  Type     Reason   Age                 From     Message
  ----     ------   ----                ----     -------
  Warning  BackOff  2m (x80 over 39m)   kubelet  Back-off restarting failed container: web in pod web


Name:         main
Namespace:    data
API Version:  postgres.example.org/v1
Kind:         Database
Spec:
  Secret Ref:
    Name:  creds
Status:
  Conditions:
    Last Transition Time:  2026-03-10T11:00:00Z
    Message:               secret \"creds\" not found
    Reason:                Failed
    Status:                False
    Type:                  Ready
Events:                    <none>
";

    #[test]
    fn a_pod_and_a_custom_resource() {
        let mut case = Case::default();
        assert!(is_description(POD));
        assert_eq!(parse(POD, &mut case), Vec::<String>::new());
        let pod = &case.objects[0];
        let container = pod.at(&["spec", "containers"]).and_then(|it| it.get(0)).unwrap();
        assert_eq!(container.str_at(&["resources", "limits", "memory"]), Some("256Mi"));
        assert_eq!(container.int_at(&["livenessProbe", "httpGet", "port"]), Some(8080));
        let env = container.get("env").and_then(|env| env.get(1)).unwrap();
        assert_eq!(env.str_at(&["valueFrom", "secretKeyRef", "name"]), Some("pg"));
        let status = pod.at(&["status", "containerStatuses"]).and_then(|it| it.get(0)).unwrap();
        assert_eq!(status.str_at(&["state", "waiting", "reason"]), Some("CrashLoopBackOff"));
        assert_eq!(status.int_at(&["lastState", "terminated", "exitCode"]), Some(137));
        assert_eq!(status.str_at(&["lastState", "terminated", "finishedAt"]), Some("2026-03-10T11:51:00Z"));
        let volume = pod.at(&["spec", "volumes"]).and_then(|it| it.get(0)).unwrap();
        assert_eq!(volume.str_at(&["persistentVolumeClaim", "claimName"]), Some("web-data"));
        assert_eq!((case.events[0].reason.as_str(), case.events[0].count), ("BackOff", 80));
        assert!(case.events[0].message.starts_with("Back-off restarting failed container: web"));
        let database = &case.objects[1];
        assert_eq!(database.str_at(&["spec", "secretRef", "name"]), Some("creds"));
        let condition = database.at(&["status", "conditions"]).and_then(|it| it.get(0)).unwrap();
        assert_eq!(
            (condition.str_at(&["type"]), condition.str_at(&["status"])),
            (Some("Ready"), Some("False"))
        );
        assert!(case.in_part.contains("Pod"));
    }

    #[test]
    fn what_is_cut_off_or_strange_is_no_reason_to_fail() {
        for end in 0..POD.len() {
            let mut case = Case::default();
            parse(POD.get(..end).unwrap_or_default(), &mut case);
        }
        for text in [
            "Name:",
            "Name: x",
            "Name: x\nContainers:\nNode: y\n",
            "Name: x\nEvents:\n  a\n",
            "Name: é\nKind: K\nAPI Version: v\nStatus:\n  Conditions:\n    Type: x\n    :\n",
        ] {
            parse(text, &mut Case::default());
        }
    }
}
