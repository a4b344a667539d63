//! Objects and events out of what `kubectl describe` prints. It tells less than the object, and of single
//! ones: that another one of the kind is absent proves nothing.

mod access;
mod custom;
mod data;
mod joined;
mod limits;
mod network;
mod nodes;
mod pods;
mod storage;
mod text;
mod workloads;

use tiphys_value::{ObjectExt as _, Value, json};

use self::joined::joined;
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

/// Adds the objects and events of descriptions to a case; returns what could not be read. The name of the
/// file tells what descriptions of roles do not: whether they are of the whole cluster.
pub(super) fn parse(text: &str, file: &str, case: &mut Case) -> Vec<String> {
    let mut faults = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().chain(["", "Name:"]) {
        // A line of a ConfigMap's data may begin so too; between descriptions a line is empty.
        let is_data = || lines.last().is_some_and(|last| !last.is_empty()) && data::start(&lines).is_some();
        if line.starts_with("Name:") && !lines.is_empty() && !is_data() {
            faults.extend(parse_one(&lines, file, case));
            lines.clear();
        }
        lines.push(line);
    }
    faults
}

/// Reads one description; returns what is wrong with it.
fn parse_one(lines: &[&str], file: &str, case: &mut Case) -> Option<String> {
    let whole = joined(lines);
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let fields = fields(&whole);
    let name = value(&fields, "Name")?;
    let namespace = value(&fields, "Namespace").unwrap_or_default();
    let Some(kind) = kind(&fields, lines, file) else {
        return Some(format!("the description of {name} does not tell its kind"));
    };
    let object = Object::new(kind, namespace, name);
    case.events.extend(events(&fields, &object));
    let mut live = match kind {
        // Printed field by field, and not in a form of its own.
        _ if value(&fields, "API Version").is_some() => custom::resource(&fields),
        "Pod" => pods::pod(&fields),
        "Node" => nodes::node(&fields),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" | "CronJob" => {
            workloads::workload(kind, &fields)
        }
        "PersistentVolumeClaim" => storage::claim(&fields),
        "PersistentVolume" => storage::volume(&fields),
        "StorageClass" => storage::class(&fields),
        "Service" => nodes::service(&fields),
        "HorizontalPodAutoscaler" => nodes::autoscaler(&fields),
        "Namespace" => nodes::namespace(&fields),
        "CertificateSigningRequest" => nodes::request(&fields),
        "NetworkPolicy" => network::policy(&fields),
        "Ingress" => network::ingress(&fields),
        "IngressClass" => network::class(&fields),
        "EndpointSlice" => network::ends(&fields),
        "ResourceQuota" => limits::quota(&fields),
        "LimitRange" => limits::range(&fields),
        "PodDisruptionBudget" => limits::budget(&fields),
        "ClusterRole" => access::role(&fields),
        "ClusterRoleBinding" => access::binding(&fields),
        "ServiceAccount" => {
            let names = values(&fields, "Image pull secrets").into_iter();
            json!({"imagePullSecrets": names.map(|name| json!({"name": name})).collect::<Vec<Value>>()})
        }
        "ConfigMap" => data::map(lines),
        "Secret" => data::secret(&fields, lines),
        _ => custom::resource(&fields),
    };
    if kind == "Job" {
        tell_end(&mut live, &case.events, &object);
    }
    live["kind"] = json!(kind);
    let version = value(&fields, "API Version").unwrap_or(match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => "apps/v1",
        "Job" | "CronJob" => "batch/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "Ingress" | "IngressClass" | "NetworkPolicy" => "networking.k8s.io/v1",
        "StorageClass" => "storage.k8s.io/v1",
        "EndpointSlice" => "discovery.k8s.io/v1",
        "PodDisruptionBudget" => "policy/v1",
        "ClusterRole" | "ClusterRoleBinding" => "rbac.authorization.k8s.io/v1",
        "CertificateSigningRequest" => "certificates.k8s.io/v1",
        _ => "v1",
    });
    live["apiVersion"] = json!(version);
    live["metadata"] = metadata(&fields, &object);
    case.in_part.insert(kind.to_owned());
    case.objects.push(live);
    None
}

/// How a Job ended: its description has no conditions, and its events tell.
fn tell_end(job: &mut Value, events: &[Event], object: &Object) {
    const ENDS: &[&str] = &["BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"];
    let told = events.iter().rfind(|it| it.object == *object && ENDS.contains(&it.reason.as_str()));
    if let Some(event) = told {
        job["status"]["conditions"] = json!([
            {"type": "Failed", "status": "True", "reason": event.reason, "message": event.message},
        ]);
    }
}

/// The kind of a description: named for custom resources, for others told by the fields that only they have.
fn kind<'a>(fields: &[Field<'a>], lines: &[&str], file: &str) -> Option<&'a str> {
    let has = |key: &str| fields.iter().any(|field| field.key == key);
    let has_line = |words: [&str; 2]| {
        lines.iter().any(|line| line.starts_with(words[0]) && line.trim_end().ends_with(words[1]))
    };
    if !has("API Version") {
        if has_line(["Resource ", "Hard"]) && !has("Status") {
            return Some("ResourceQuota");
        }
        if has_line(["Type ", "Max Limit/Request Ratio"]) {
            return Some("LimitRange");
        }
        if data::start(lines).is_some() {
            return Some(if has("Type") { "Secret" } else { "ConfigMap" });
        }
        let is_wide = file.to_ascii_lowercase().contains("clusterrole");
        if is_wide && has("PolicyRule") {
            return Some("ClusterRole");
        }
        if is_wide && has("Role") && has("Subjects") {
            return Some("ClusterRoleBinding");
        }
    }
    let told = value(fields, "Kind").filter(|_| has("API Version"));
    let known: &[(&str, &[&str])] = &[
        ("Pod", &["Node", "Containers"]),
        ("Node", &["Roles", "Conditions"]),
        ("Deployment", &["StrategyType"]),
        ("DaemonSet", &["Desired Number of Nodes Scheduled"]),
        ("StatefulSet", &["Update Strategy", "Pod Template"]),
        ("CronJob", &["Schedule", "Concurrency Policy"]),
        ("Job", &["Parallelism"]),
        ("Job", &["Pods Statuses"]),
        ("NetworkPolicy", &["Created on", "Spec"]),
        ("EndpointSlice", &["AddressType"]),
        ("StorageClass", &["Provisioner", "VolumeBindingMode"]),
        ("PersistentVolume", &["Reclaim Policy", "Source"]),
        ("PodDisruptionBudget", &["Min available", "Selector"]),
        ("PodDisruptionBudget", &["Max unavailable", "Selector"]),
        ("CertificateSigningRequest", &["Requesting User", "Signer"]),
        ("ServiceAccount", &["Image pull secrets"]),
        ("IngressClass", &["Controller"]),
        ("ReplicaSet", &["Replicas", "Pod Template"]),
        ("PersistentVolumeClaim", &["StorageClass", "Volume", "Status"]),
        ("HorizontalPodAutoscaler", &["Reference", "Min replicas"]),
        ("Service", &["Selector", "Type", "Endpoints"]),
    ];
    let known = known.iter().find(|(_, keys)| keys.iter().all(|key| has(key))).map(|(kind, _)| *kind);
    let is_namespace = || {
        let quotas = ["No resource quota.", "Resource Quotas"];
        lines.iter().any(|line| quotas.iter().any(|words| line.starts_with(words)))
    };
    told.or(known)
        .or_else(|| (has("Ingress Class") || has("Default backend")).then_some("Ingress"))
        .or_else(|| is_namespace().then_some("Namespace"))
}

fn metadata(fields: &[Field<'_>], object: &Object) -> Value {
    let mut metadata = json!({"name": object.name});
    if !object.namespace.is_empty() {
        metadata["namespace"] = json!(object.namespace);
    }
    for (key, name) in [("Labels", "labels"), ("Annotations", "annotations")] {
        let mut found = pairs(&values(fields, key));
        // Annotations of an Ingress are written otherwise.
        if object.kind == "Ingress" && key == "Annotations" {
            let colons = values(fields, key).into_iter().filter_map(|it| it.split_once(": "));
            found.extend(colons.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
        if !found.is_empty() {
            metadata[name] = found.into_iter().map(|(key, value)| (key, json!(value))).collect();
        }
    }
    let created = ["CreationTimestamp", "Start Time", "Creation Timestamp"];
    if let Some(time) = created.iter().find_map(|key| value(fields, key)).and_then(time) {
        metadata["creationTimestamp"] = json!(time);
    }
    custom::add_metadata(fields, &mut metadata);
    let ends = time_of_end(fields, &object.kind);
    if let Some(time) = ends {
        metadata["deletionTimestamp"] = json!(time);
    }
    if let Some((kind, name)) = value(fields, "Controlled By").and_then(|owner| owner.split_once('/')) {
        metadata["ownerReferences"] = json!([{"kind": kind, "name": name, "controller": true}]);
    }
    metadata
}

/// Since when a namespace is being deleted: its conditions tell of nothing else.
fn time_of_end(fields: &[Field<'_>], kind: &str) -> Option<String> {
    if kind != "Namespace" || value(fields, "Status") != Some("Terminating") {
        return None;
    }
    let table = rows(text::below(fields, "Conditions"));
    table.iter().filter_map(|row| time(cell(row, "LastTransitionTime"))).min()
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
        assert_eq!(parse(POD, "", &mut case), Vec::<String>::new());
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

    const OTHERS: &str = "Name:         small
Namespace:    web
Resource      Used   Hard
--------      ----   ----
limits.cpu    1900m  2


Name:         only-front
Namespace:    web
Created on:   2026-03-10 07:00:00 +0000 UTC
Labels:       <none>
Spec:
  PodSelector:     app=api
  Allowing ingress traffic:
    To Port: 8080/TCP
    From:
      NamespaceSelector: team=shop
      PodSelector: app in (front,bff)
    From:
      IPBlock:
        CIDR: 192.0.2.0/24
        Except: 192.0.2.8/32
  Not affecting egress traffic
  Policy Types: Ingress


Name:             front
Labels:           <none>
Namespace:        web
Address:          203.0.113.7
Ingress Class:    edge
Default backend:  <default>
TLS:
  front-tls terminates shop.example.org
Rules:
  Host              Path  Backends
  ----              ----  --------
  shop.example.org
                    /     front:80 (192.0.2.9:8080)
Annotations:        team: shop
Events:             <none>


Name:         settings
Namespace:    web
Labels:       <none>

Data
====
db:
----
host: pg.data
Name: main

url:
----
http://api.web

BinaryData
====

Events:  <none>


Name:         main
Namespace:    web
API Version:  sql.example.org/v1
Kind:         Database
Metadata:
  Creation Timestamp:  2026-03-10T10:00:00Z
  Finalizers:
    sql.example.org/keep
Status:
  Conditions:
    Message:  it does not answer
URL: PUT http://pg.data/login
Code: 500. Errors:

* no leader
    Reason:   Failed
    Status:   False
    Type:     Ready
Events:
  Type     Reason  Age  From      Message
  ----     ------  ---  ----      -------
  Warning  Failed  3m   operator  mount failed
Mounting command: mount
  Normal   Again   2m   operator  tried again
";

    #[test]
    fn kinds_that_limit_and_lead() {
        let mut case = Case::default();
        assert_eq!(parse(OTHERS, "", &mut case), Vec::<String>::new());
        let [quota, policy, ingress, map, database] = &case.objects[..] else {
            panic!("{:?}", case.objects);
        };
        assert_eq!(quota.str_at(&["status", "used", "limits.cpu"]), Some("1900m"));
        assert_eq!(
            policy.at(&["spec", "ingress"]),
            Some(&json!([{
                "ports": [{"port": 8080, "protocol": "TCP"}],
                "from": [
                    {
                        "namespaceSelector": {"matchLabels": {"team": "shop"}},
                        "podSelector": {
                            "matchExpressions": [{"key": "app", "operator": "In", "values": ["front", "bff"]}],
                        },
                    },
                    {"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.8/32"]}},
                ],
            }]))
        );
        let path = json!({
            "path": "/",
            "pathType": "Prefix",
            "backend": {"service": {"name": "front", "port": {"number": 80}}},
        });
        let rule = json!({"host": "shop.example.org", "http": {"paths": [path]}});
        assert_eq!(ingress.at(&["spec", "rules"]), Some(&json!([rule])));
        assert_eq!(ingress.annotation("team"), Some("shop"));
        assert_eq!(map.str_at(&["data", "db"]), Some("host: pg.data\nName: main"));
        assert_eq!(map.str_at(&["data", "url"]), Some("http://api.web"));
        let condition = database.at(&["status", "conditions"]).and_then(|it| it.get(0)).unwrap();
        assert_eq!(condition.str_at(&["reason"]), Some("Failed"));
        assert!(condition.str_at(&["message"]).is_some_and(|it| it.ends_with("* no leader")));
        assert_eq!(database.at(&["metadata", "finalizers"]), Some(&json!(["sql.example.org/keep"])));
        let told: Vec<&str> = case.events.iter().map(|event| event.message.as_str()).collect();
        assert_eq!(told, ["mount failed Mounting command: mount", "tried again"]);
    }

    #[test]
    fn what_is_cut_off_or_strange_is_no_reason_to_fail() {
        for end in 0..OTHERS.len() {
            parse(OTHERS.get(..end).unwrap_or_default(), "clusterroles", &mut Case::default());
        }
        for end in 0..POD.len() {
            let mut case = Case::default();
            parse(POD.get(..end).unwrap_or_default(), "", &mut case);
        }
        for text in [
            "Name:",
            "Name: x",
            "Name: x\nContainers:\nNode: y\n",
            "Name: x\nEvents:\n  a\n",
            "Name: é\nKind: K\nAPI Version: v\nStatus:\n  Conditions:\n    Type: x\n    :\n",
        ] {
            parse(text, "", &mut Case::default());
        }
    }
}
