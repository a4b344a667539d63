use tiphys_doctor::{Cause, Log, diagnose};
use tiphys_value::{ObjectExt as _, Value, json};

use super::*;

const AT: &str = "2026-03-10T08:00:00Z";

fn meta(name: &str, owner: Option<(&str, &str)>) -> Value {
    let mut meta = json!({"namespace": "shop", "name": name, "uid": format!("u-{name}"), "creationTimestamp": "2026-03-10T07:00:00Z", "labels": {"app": name.split('-').next()}});
    if let Some((kind, owner)) = owner {
        meta["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": format!("u-{owner}"), "controller": true}]);
    }
    meta
}

/// A Deployment with its ReplicaSet and its one pod, whose container has a state.
fn program(name: &str, env: Value, status: Value) -> Vec<Value> {
    let is_ready = status["ready"] == true;
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": format!("registry.example/{name}:1"),
        "env": env, "ports": [{"containerPort": 80}], "readinessProbe": {"httpGet": {"path": "/", "port": 80}}}]}});
    let ready = i64::from(is_ready);
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    let status_of_set = json!({"replicas": 1, "readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": 1, "unavailableReplicas": 1 - ready, "observedGeneration": 1});
    let mut pod_spec = template["spec"].clone();
    pod_spec["nodeName"] = "n1".into();
    let condition = json!({"type": "Ready", "status": if is_ready { "True" } else { "False" }, "lastTransitionTime": "2026-03-10T07:10:00Z"});
    let mut of_service = meta(name, None);
    of_service["uid"] = format!("s-{name}").into();
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, None), "spec": spec, "status": status_of_set}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta(&format!("{name}-5d"), Some(("Deployment", name))), "spec": spec, "status": status_of_set}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta(&format!("{name}-5d-x"), Some(("ReplicaSet", &format!("{name}-5d")))), "spec": pod_spec,
            "status": {"phase": "Running", "podIP": "10.244.0.9", "conditions": [condition], "containerStatuses": [status]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": of_service, "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.20", "selector": labels, "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}}),
    ]
}

fn container(ready: bool, state: Value) -> Value {
    json!({"name": "app", "ready": ready, "restartCount": 0, "image": "", "imageID": "", "lastState": {}, "state": state})
}

/// A program that cannot run, and one that calls it.
fn case(broken: Value, env: Value) -> Case {
    let caller = container(false, json!({"running": {"startedAt": "2026-03-10T07:01:00Z"}}));
    let mut objects = program("db", env, broken);
    objects.extend(program("web", json!([{"name": "DB_URL", "value": "http://db.shop.svc:80/"}]), caller));
    objects.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-n1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}}));
    let mut case = Case { objects, at: Some(AT.parse().unwrap()), ..Case::default() };
    case.listed.extend(["Secret", "ConfigMap"].map(str::to_owned));
    case
}

/// A DNS that cannot read its configuration, and a program that looks a name up.
fn case_of_dns() -> Case {
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-03-10T07:59:00Z", "finishedAt": "2026-03-10T07:59:01Z"}});
    let mut server = container(false, json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    server["lastState"] = ended;
    server["restartCount"] = 9.into();
    let mut case = case(server, json!([]));
    for object in &mut case.objects {
        if object.name().starts_with("db") {
            let text = object.to_string().replace("\"shop\"", "\"kube-system\"");
            let text = text.replace("\"db", "\"coredns").replace("-db", "-coredns");
            *object = serde_json::from_str(&text).unwrap();
        }
    }
    let log = |namespace: &str, pod: &str, text: &str| Log {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        container: "app".to_owned(),
        previous: false,
        text: text.to_owned(),
    };
    case.logs.push(log(
        "kube-system",
        "coredns-5d-x",
        "/etc/coredns/Corefile:4 - Error during parsing: Unknown directive 'proxy'\n",
    ));
    case.logs.push(log("shop", "web-5d-x", "dial tcp: lookup db.example.net on 10.96.0.20:53: read udp 10.244.0.9:4->10.96.0.20:53: i/o timeout\n"));
    case.objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "coredns", "uid": "u-corefile"},
        "data": {"Corefile": ".:53 {\n  errors\n  proxy . /etc/resolv.conf\n}\n"}}));
    case
}

#[test]
fn who_looks_names_up_runs_once_the_dns_reads_its_configuration() {
    let (cause, proof) = proof(&case_of_dns());
    assert_eq!(cause, Cause::DnsConfig);
    assert!(proof.is_proved, "{}", proof.text);
}

fn proof(case: &Case) -> (Cause, Proof) {
    let mut diagnosis = diagnose(case);
    prove(&mut diagnosis, case);
    let root = diagnosis.causes.first().unwrap_or_else(|| panic!("{diagnosis:#?}"));
    (root.cause, root.proof.clone().unwrap())
}

#[test]
fn a_secret_that_is_made_clears_what_waits_for_it_and_its_callers() {
    let env = json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]);
    let waits =
        json!({"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"db\" not found"}});
    let (cause, proof) = proof(&case(container(false, waits), env));
    assert_eq!(cause, Cause::ConfigMissing);
    assert!(proof.is_proved && proof.text.contains("(2)"), "{proof:?}");
}

#[test]
fn an_image_that_can_be_pulled_clears_its_pods_and_their_callers() {
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"registry.example/db:1\": ErrImagePull: failed to resolve reference \"registry.example/db:1\": registry.example/db:1: not found"}});
    let (cause, proof) = proof(&case(container(false, waits), json!([])));
    assert_eq!(cause, Cause::ImageNotFound);
    assert!(proof.is_proved && proof.text.contains("(1)"), "{proof:?}");
}

#[test]
fn what_is_only_assumed_to_run_is_not_proved() {
    let waits =
        json!({"waiting": {"reason": "ImagePullBackOff", "message": "registry.example/db:1: not found"}});
    let mut alone = case(container(false, waits), json!([]));
    alone.objects.retain(|object| !object.name().starts_with("web"));
    let (cause, proof) = proof(&alone);
    assert_eq!(cause, Cause::ImageNotFound);
    assert!(!proof.is_proved && proof.text.contains("only assume"), "{proof:?}");
}

#[test]
fn a_caller_that_waits_for_something_else_too_stays_broken_and_that_is_said() {
    let waits =
        json!({"waiting": {"reason": "ImagePullBackOff", "message": "registry.example/db:1: not found"}});
    let mut case = case(container(false, waits), json!([]));
    // The caller of the caller's address is another one, that nothing serves.
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("cache", None), "spec": {"selector": {"app": "cache"}, "ports": [{"port": 80}]}});
    case.objects.push(service);
    for object in &mut case.objects {
        let path = if object["kind"] == "Pod" { "/spec" } else { "/spec/template/spec" };
        if object["metadata"]["labels"]["app"] == "web"
            && let Some(spec) = object.pointer_mut(path).filter(|spec| spec.get("containers").is_some())
        {
            spec["containers"][0]["env"] = json!([{"name": "DB_URL", "value": "http://db.shop.svc:80/"}, {"name": "CACHE_URL", "value": "http://cache.shop.svc:80/"}]);
        }
    }
    let mut diagnosis = diagnose(&case);
    prove(&mut diagnosis, &case);
    let root = diagnosis.causes.iter().find(|root| root.cause == Cause::ImageNotFound).unwrap();
    let proof = root.proof.clone().unwrap();
    let hits_the_caller = root.consequences.iter().any(|it| it.object.name == "web");
    assert!(!hits_the_caller || !proof.is_proved && proof.text.contains("Deployment shop/web"), "{proof:?}");
}

#[test]
fn what_a_copy_does_not_play_is_said() {
    let root = Root {
        cause: Cause::ExternalDown,
        ..diagnose(&case(
            container(false, json!({"waiting": {"reason": "InvalidImageName", "message": "x"}})),
            json!([]),
        ))
        .causes
        .remove(0)
    };
    assert!(repair(&root, &Case::default()).unwrap_err().contains("does not play"));
}

/// A program that a role keeps from its work, and one that calls it.
fn forbidden_case() -> Case {
    let crashed = json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-03-10T07:50:00Z", "finishedAt": "2026-03-10T07:50:05Z"}});
    let mut status =
        container(false, json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}));
    status["lastState"] = crashed;
    status["restartCount"] = 5.into();
    let mut case = case(status, json!([]));
    let subjects = json!([{"kind": "ServiceAccount", "name": "db", "namespace": "shop"}]);
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "db", "uid": "u-role"}, "rules": [rule]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "db", "uid": "u-binding"},
        "roleRef": {"kind": "ClusterRole", "name": "db"}, "subjects": subjects});
    case.objects.extend([role, binding]);
    case.logs.push(Log {
        namespace: "shop".to_owned(),
        pod: "db-5d-x".to_owned(),
        container: "app".to_owned(),
        text: "fatal: pods is forbidden: User \"system:serviceaccount:shop:db\" cannot list resource \"pods\" in API group \"\" at the cluster scope\n".to_owned(),
        ..Log::default()
    });
    case
}

#[test]
fn a_right_that_is_added_is_evaluated_and_clears_the_program_and_its_callers() {
    let (cause, proof) = proof(&forbidden_case());
    assert_eq!(cause, Cause::ApiRbac);
    assert!(proof.is_proved && proof.text.contains("(2)"), "{proof:?}");
}

#[test]
fn a_right_that_does_not_suffice_proves_nothing() {
    let case = forbidden_case();
    let mut diagnosis = diagnose(&case);
    // A right on something else.
    diagnosis.causes[0].remedy.patch =
        Some(json!({"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]}));
    prove(&mut diagnosis, &case);
    let proof = diagnosis.causes[0].proof.clone().unwrap();
    assert!(!proof.is_proved && proof.text.contains("still blocks it"), "{proof:?}");
}

#[test]
fn a_rule_that_is_added_to_a_policy_lets_the_caller_through() {
    let ready = container(true, json!({"running": {"startedAt": "2026-03-10T07:01:00Z"}}));
    let mut case = case(ready, json!([]));
    case.objects.push(json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "db", "namespace": "shop", "uid": "u-policy"},
        "spec": {"podSelector": {"matchLabels": {"app": "db"}}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "other"}}}]}]}}));
    case.logs.push(Log {
        namespace: "shop".to_owned(),
        pod: "web-5d-x".to_owned(),
        container: "app".to_owned(),
        text: "error: GET http://db.shop.svc:80/: dial tcp 10.96.0.20:80: i/o timeout\n".to_owned(),
        ..Log::default()
    });
    let (cause, proof) = proof(&case);
    assert_eq!(cause, Cause::NetPolicyIngress);
    assert!(proof.is_proved, "{proof:?}");
}
