//! Faults, and what they look like.

use std::time::Duration;

use tiphys_value::{Value, json};

use crate::support::{Cluster, MINUTE, deployments, pods, resource, template, workload};

fn pod(name: &str, image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn has(events: &[(String, String)], reason: &str, message: &str) -> bool {
    events.iter().any(|(r, m)| r == reason && m.contains(message))
}

fn waiting(cluster: &Cluster, name: &str) -> (String, String) {
    let pod = cluster.get(&pods(), "shop", name).unwrap();
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    let text = |field: &str| waiting[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

#[test]
fn a_registry_refuses_until_there_is_a_pull_secret() {
    let mut cluster = Cluster::new();
    cluster.behave(
        "images: [{image: 'registry.example/*', pull: needsSecret}, {image: 'gone/*', pull: notFound}]",
    );
    let mut private = pod("private", "registry.example/team/app:1");
    private["spec"]["imagePullSecrets"] = json!([{"name": "pull"}]);
    cluster.create(&pods(), private);
    cluster.create(&pods(), pod("gone", "gone/app:1"));
    cluster.run(MINUTE);
    let (reason, message) = waiting(&cluster, "private");
    assert_eq!(reason, "ImagePullBackOff");
    assert!(message.ends_with("401 Unauthorized"), "{message}");
    assert!(waiting(&cluster, "gone").1.ends_with("docker.io/gone/app:1: not found"));
    let events = cluster.events("shop", "private");
    assert!(has(&events, "Failed", "Error: ImagePullBackOff"), "{events:?}");

    let config = "eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlIjp7fX19";
    cluster.create(
        &resource("", "v1", "secrets"),
        json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "pull", "namespace": "shop"}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": config}}),
    );
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&pods(), "shop", "private").unwrap()["status"]["phase"], "Running");
}

#[test]
fn a_program_that_ends_is_started_again_with_back_off() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: broken, exits: {code: 1, after: 2s}}]");
    cluster.create(&pods(), pod("web", "broken"));
    cluster.run(10 * MINUTE);
    let web = cluster.get(&pods(), "shop", "web").unwrap();
    let status = &web["status"]["containerStatuses"][0];
    assert!((5..9).contains(&status["restartCount"].as_i64().unwrap()), "{status}");
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    let (reason, message) = waiting(&cluster, "web");
    assert_eq!(reason, "CrashLoopBackOff");
    assert!(message.starts_with("back-off 5m0s restarting failed container=c pod=web_shop("), "{message}");
    assert!(has(
        &cluster.events("shop", "web"),
        "BackOff",
        "Back-off restarting failed container c in pod web_shop("
    ));
}

#[test]
fn a_missing_reference_holds_a_pod_until_it_is_there() {
    let mut cluster = Cluster::new();
    let mut env = pod("env", "i");
    env["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "keys"}}]);
    let mut mount = pod("mount", "i");
    mount["spec"]["volumes"] = json!([{"name": "settings", "configMap": {"name": "settings"}}]);
    cluster.create(&pods(), env);
    cluster.create(&pods(), mount);
    cluster.run(MINUTE);
    assert_eq!(
        waiting(&cluster, "env"),
        ("CreateContainerConfigError".into(), "secret \"keys\" not found".into())
    );
    assert_eq!(waiting(&cluster, "mount").0, "ContainerCreating");
    let expected = "MountVolume.SetUp failed for volume \"settings\" : configmap \"settings\" not found";
    assert!(has(&cluster.events("shop", "mount"), "FailedMount", expected));
    for (plural, kind, name) in [("secrets", "Secret", "keys"), ("configmaps", "ConfigMap", "settings")] {
        let object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}});
        cluster.create(&resource("", "v1", plural), object);
    }
    cluster.run(MINUTE);
    for name in ["env", "mount"] {
        assert_eq!(cluster.get(&pods(), "shop", name).unwrap()["status"]["phase"], "Running");
    }
}

#[test]
fn a_program_waits_for_what_it_needs() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: api, needs: [{service: {name: db}}], exits: {code: 1, after: 1s}}]");
    cluster.create(&pods(), pod("api", "api"));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432}]}});
    cluster.create(&resource("", "v1", "services"), service);
    cluster.run(MINUTE);
    assert_eq!(waiting(&cluster, "api").0, "CrashLoopBackOff");
    cluster.create(&pods(), pod("db", "db"));
    cluster.run(5 * MINUTE);
    assert!(cluster.get(&pods(), "shop", "api").unwrap()["status"]["containerStatuses"][0]["ready"] == true);
}

#[test]
fn without_its_network_a_node_takes_only_pods_of_the_host() {
    let mut cluster = Cluster::new();
    cluster.behave("nodes: [{networkBy: {labels: {app: cni}}}]");
    cluster.create(&pods(), pod("web", "i"));
    cluster.run(MINUTE);
    let expected = "0/3 nodes are available: 3 node(s) had untolerated taint(s). no new claims to deallocate, \
                    preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert!(
        has(&cluster.events("shop", "web"), "FailedScheduling", expected),
        "{:?}",
        cluster.events("shop", "web")
    );
    let mut cni = workload("DaemonSet", "cni", 0);
    let spec = cni["spec"].as_object_mut().unwrap();
    spec.remove("replicas");
    spec["selector"] = json!({"matchLabels": {"app": "cni"}});
    spec["template"]["metadata"]["labels"] = json!({"app": "cni"});
    spec["template"]["spec"]["hostNetwork"] = true.into();
    cluster.create(&resource("apps", "v1", "daemonsets"), cni);
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&pods(), "shop", "web").unwrap()["status"]["phase"], "Running");
}

#[test]
fn pods_that_fit_nowhere_say_why() {
    let mut cluster = Cluster::new();
    let mut big = pod("big", "i");
    big["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "9"}});
    let mut picky = pod("picky", "i");
    picky["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    let mut lost = pod("lost", "i");
    lost["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]);
    for pod in [big, picky, lost] {
        cluster.create(&pods(), pod);
    }
    for number in 0..4 {
        let mut pod = pod(&format!("port-{number}"), "i");
        pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
        cluster.create(&pods(), pod);
    }
    cluster.run(MINUTE);
    for (name, reason) in [
        ("big", "3 Insufficient cpu."),
        ("picky", "3 node(s) didn't match Pod's node affinity/selector."),
        ("lost", "persistentvolumeclaim \"none\" not found."),
        ("port-3", "3 node(s) didn't have free ports for the requested pod ports."),
    ] {
        let events = cluster.events("shop", name);
        assert!(
            has(&events, "FailedScheduling", &format!("0/3 nodes are available: {reason}")),
            "{events:?}"
        );
    }
}

#[test]
fn pods_leave_a_node_that_cannot_be_reached() {
    let mut cluster = Cluster::new();
    cluster.create(&deployments(), workload("Deployment", "web", 3));
    cluster.run(MINUTE);
    cluster.behave("nodes: [{node: node-2, unreachable: {}}]");
    cluster.run(10 * MINUTE);
    let node = cluster.get(&resource("", "v1", "nodes"), "", "node-2").unwrap();
    assert_eq!(node["spec"]["taints"][0]["key"], "node.kubernetes.io/unreachable");
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["status"]["availableReplicas"], 3);
}

#[test]
fn a_roll_over_that_gets_nowhere_misses_its_deadline() {
    let mut cluster = Cluster::new();
    cluster.behave("images: [{image: 'web:2', pull: notFound}]");
    let mut web = workload("Deployment", "web", 3);
    web["spec"]["progressDeadlineSeconds"] = 60.into();
    cluster.create(&deployments(), web);
    cluster.run(MINUTE);
    let mut web = cluster.get(&deployments(), "shop", "web").unwrap();
    web["spec"]["template"] = template("web:2");
    cluster.update(&deployments(), web);
    cluster.run(2 * MINUTE);
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    let progressing =
        web["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Progressing").unwrap();
    assert_eq!(progressing["reason"], "ProgressDeadlineExceeded");
    assert_eq!(web["status"]["availableReplicas"], 3);
    // Going back makes the first set the newest revision.
    let mut back = web;
    back["spec"]["template"] = template("web:1");
    cluster.update(&deployments(), back);
    cluster.run(MINUTE);
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(web["status"]["updatedReplicas"], 3);
}

#[test]
fn a_webhook_is_reached_exactly_while_its_pods_are_ready() {
    let mut cluster = Cluster::new();
    let labels = json!({"app": "hook"});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "shop"},
        "spec": {"selector": labels, "ports": [{"port": 443}]}});
    cluster.create(&resource("", "v1", "services"), service);
    let hooks = resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations");
    cluster.create(&hooks, json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"}, "webhooks": [{"name": "hook.example.dev", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"service": {"name": "hook", "namespace": "shop", "path": "/check"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}]}));
    let create = |cluster: &Cluster| {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}});
        cluster
            .client
            .create(&resource("", "v1", "configmaps"), "shop", object)
            .map(drop)
            .map_err(|e| e.to_string())
    };
    let error = create(&cluster).unwrap_err();
    assert!(error.contains("failed calling webhook \"hook.example.dev\": failed to call webhook: Post \"https://hook.shop.svc:443/check?timeout=10s\": no endpoints available for service \"hook\""), "{error}");
    cluster.create(&pods(), pod("hook", "i"));
    cluster.run(MINUTE);
    create(&cluster).unwrap();
    let mut hook = cluster.get(&hooks, "", "hook").unwrap();
    hook["webhooks"][0]["clientConfig"]["service"]["port"] = 8443.into();
    cluster.update(&hooks, hook);
    let error = create(&cluster).unwrap_err();
    assert!(error.ends_with("no service port 8443 found for service \"hook\""), "{error}");
}

#[test]
fn a_container_that_must_not_run_as_root_is_not_started_if_its_image_is_known_to() {
    let mut cluster = Cluster::new();
    let secure = |name: &str, image: &str, context: Value| {
        let mut pod = pod(name, image);
        pod["spec"]["containers"][0]["securityContext"] = context;
        pod
    };
    cluster.create(&pods(), secure("root", "nginx:1.27", json!({"runAsNonRoot": true})));
    cluster.create(&pods(), secure("user", "nginx:1.27", json!({"runAsNonRoot": true, "runAsUser": 101})));
    cluster.create(&pods(), secure("other", "example/nginx:1.27", json!({"runAsNonRoot": true})));
    cluster.run(MINUTE);
    let (reason, message) = waiting(&cluster, "root");
    assert_eq!(reason, "CreateContainerConfigError");
    assert!(message.starts_with("container has runAsNonRoot and image will run as root (pod: \"root_shop("));
    for name in ["user", "other"] {
        assert_eq!(cluster.get(&pods(), "shop", name).unwrap()["status"]["phase"], "Running", "{name}");
    }
}

#[test]
fn a_probe_of_a_port_on_which_a_known_image_does_not_listen_fails() {
    let mut cluster = Cluster::new();
    let probed = |name: &str, kind: &str, port: Value| {
        let mut pod = pod(name, "redis:7");
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "redis", "containerPort": 6379}]);
        pod["spec"]["containers"][0][kind] = json!({"tcpSocket": {"port": port}});
        pod
    };
    cluster.create(&pods(), probed("unready", "readinessProbe", json!(6380)));
    cluster.create(&pods(), probed("killed", "livenessProbe", json!(6380)));
    cluster.create(&pods(), probed("starts-never", "startupProbe", json!(6380)));
    cluster.create(&pods(), probed("named", "readinessProbe", json!("redis")));
    cluster.run(2 * MINUTE);
    let status = |name: &str| {
        let pod = cluster.get(&pods(), "shop", name).unwrap();
        pod["status"]["containerStatuses"][0].clone()
    };
    assert_eq!(status("named")["ready"], true);
    assert_eq!((&status("unready")["ready"], &status("unready")["restartCount"]), (&json!(false), &json!(0)));
    assert!(has(&cluster.events("shop", "unready"), "Unhealthy", ":6380: connect: connection refused"));
    for (name, probe) in [("killed", "Liveness"), ("starts-never", "Startup")] {
        assert!(status(name)["restartCount"].as_i64() > Some(0), "{name}");
        assert!(has(&cluster.events("shop", name), "Unhealthy", &format!("{probe} probe failed: dial tcp")));
    }
}

#[test]
fn rules_that_cannot_be_read_are_told() {
    let mut cluster = Cluster::new();
    cluster.behave("images: [{image: a, pull: perhaps}]");
    let events = cluster.events("kube-system", "tiphys-world");
    assert!(has(&events, "InvalidBehaviours", "rules.yaml: unknown variant `perhaps`"), "{events:?}");
    cluster.run(Duration::from_secs(2 * 3600));
    assert_eq!(cluster.events("kube-system", "tiphys-world"), []);
}

#[test]
fn a_conversion_webhook_answers_exactly_while_its_pods_are_ready() {
    let mut cluster = Cluster::new();
    let definitions = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let service = json!({"namespace": "shop", "name": "convert", "path": "/convert"});
    cluster.create(&definitions, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hosts.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "hosts", "kind": "Host"}, "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}}}}));
    let (old, new) = (resource("example.com", "v1", "hosts"), resource("example.com", "v2", "hosts"));
    cluster.create(&old, json!({"apiVersion": "example.com/v1", "kind": "Host", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"x": 1}}));
    let why = |cluster: &Cluster| cluster.client.get(&new, "shop", "a").unwrap_err().message().to_owned();
    let start = "conversion webhook for example.com/v1, Kind=Host failed: Post \"https://convert.shop.svc:443/convert?timeout=30s\": ";
    assert_eq!(why(&cluster), format!("{start}service \"convert\" not found"));
    cluster.create(&resource("", "v1", "services"), json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "convert", "namespace": "shop"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 443}]}}));
    cluster.run(MINUTE);
    assert_eq!(why(&cluster), format!("{start}no endpoints available for service \"convert\""));
    cluster.create(&resource("apps", "v1", "deployments"), workload("Deployment", "web", 1));
    cluster.run(MINUTE);
    let converted = cluster.client.get(&new, "shop", "a").unwrap();
    assert_eq!(
        (converted["apiVersion"].as_str(), &converted["spec"]["x"]),
        (Some("example.com/v2"), &json!(1))
    );
}
