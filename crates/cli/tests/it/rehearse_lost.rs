//! What a change takes away though no Application turns red, and what is told of it.

use std::{fs, process::Output};

use serde_json::Value;

use crate::common::Repo;

/// The exit code of rehearsing a change of the working tree, and its report.
fn rehearse(repo: &Repo, args: &[&str]) -> (i32, Value) {
    let mut all = vec!["rehearse", "repo", "--offline", "--output", "json"];
    all.extend(args);
    let Output { status, stdout, stderr } = repo.command(&all).output().unwrap();
    let report = serde_json::from_slice(&stdout);
    (status.code().unwrap(), report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&stderr))))
}

fn change(repo: &Repo) -> (i32, Value) {
    rehearse(repo, &["--diff", "HEAD"])
}

/// The ids of the causes with their texts and the first objects that they are wrong with.
fn causes(report: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = report["story"]["causes"].as_array().unwrap().iter();
    all.map(|it| (text(&it["mechanism"]["id"]), text(&it["text"]), text(&it["objects"][0]["name"]))).collect()
}

fn only_cause(report: &Value) -> (String, String, String) {
    let all = causes(report);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0].clone()
}

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1
        ports: [{name: http, containerPort: 8080}]
        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}]
";
const LOGIN: &str = "
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: a, user: b}
";
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web, tier: front}, ports: [{port: 80, targetPort: http}]}
";

/// A shop that is well, in its first commit.
fn shop(more: &[(&str, &str)]) -> Repo {
    let files =
        [("manifests/web.yaml", WEB), ("manifests/login.yaml", LOGIN), ("manifests/service.yaml", SERVICE)];
    let repo = Repo::shop(&[&files, more].concat());
    repo.git_init();
    repo
}

#[test]
fn a_key_that_running_pods_have_read_is_missed_by_the_next_one() {
    let repo = shop(&[]);
    repo.write("manifests/login.yaml", LOGIN.replace("password:", "PASSWORD:"));
    let (code, report) = change(&repo);
    let (id, text, object) = only_cause(&report);
    assert_eq!((code, id.as_str(), object.as_str()), (1, "config/key-missing", "web"), "{text}");
    assert!(text.contains("password"), "{text}");
    assert_eq!(report["story"]["outcome"], "green");
    // A key that nobody reads may go.
    repo.write("manifests/login.yaml", LOGIN.replace(", user: b", ""));
    assert_eq!(change(&repo).0, 0);
}

#[test]
fn a_service_whose_pods_are_labelled_anew_is_told() {
    let repo = shop(&[]);
    let moved = WEB.replace("tier: front", "tier: edge");
    repo.write("manifests/web.yaml", &moved);
    let (code, report) = change(&repo);
    let (id, text, object) = only_cause(&report);
    assert_eq!((code, id.as_str(), object.as_str()), (1, "service/selector", "web"));
    assert!(text.contains("those of Deployment web have tier=edge"), "{text}");
    // Both together are well, and so are pods that are to be none.
    repo.write("manifests/service.yaml", SERVICE.replace("tier: front", "tier: edge"));
    assert_eq!(change(&repo).0, 0);
    repo.write("manifests/service.yaml", SERVICE);
    repo.write("manifests/web.yaml", moved.replace("replicas: 2", "replicas: 0"));
    assert_eq!(change(&repo).0, 0);
}

#[test]
fn a_service_leads_to_a_name_that_no_port_has() {
    let repo = shop(&[]);
    repo.write("manifests/service.yaml", SERVICE.replace("targetPort: http", "targetPort: web"));
    for args in [&["--diff", "HEAD"][..], &[]] {
        let (code, report) = rehearse(&repo, args);
        let (id, text, object) = only_cause(&report);
        assert_eq!((code, id.as_str(), object.as_str()), (1, "service/port", "web"), "{text}");
    }
    let (_, report) = change(&repo);
    assert_eq!(report["story"]["outages"][0]["object"]["kind"], "Service");
    repo.write("manifests/service.yaml", SERVICE.replace("targetPort: http", "targetPort: 8080"));
    assert_eq!(change(&repo).0, 0);
}

const RIGHTS: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
";

#[test]
fn rights_that_stay_with_the_account_from_before_are_told() {
    let bound = WEB.replace("      containers:", "      serviceAccountName: web\n      containers:");
    let repo = shop(&[("manifests/rights.yaml", RIGHTS), ("manifests/web.yaml", &bound)]);
    repo.write("manifests/web.yaml", bound.replace("serviceAccountName: web", "serviceAccountName: store"));
    let renamed = RIGHTS.replacen("metadata: {name: web}", "metadata: {name: store}", 1);
    repo.write("manifests/rights.yaml", &renamed);
    let (code, report) = change(&repo);
    let (id, text, object) = only_cause(&report);
    assert_eq!((code, id.as_str(), object.as_str()), (1, "api/rbac", "web"), "{text}");
    assert!(
        text.contains("RoleBinding \"web\" still gives those of ClusterRole \"view\" to \"web\""),
        "{text}"
    );
    // With the binding all is well, and a workload that is to have no rights has none.
    repo.write("manifests/rights.yaml", renamed.replace("name: web, namespace", "name: store, namespace"));
    assert_eq!(change(&repo).0, 0);
    repo.write("manifests/rights.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: store}\n");
    assert_eq!(change(&repo).0, 0);
}

const CLOSED: &str = "
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: []}
";

#[test]
fn a_policy_that_closes_the_way_to_names_is_told() {
    let calling = WEB.replace("        env: [", "        env: [{name: API, value: \"http://api:8080\"}, ");
    let api = WEB.replace("name: web", "name: api").replace("app: web", "app: api").replace("front", "api");
    let api_service = SERVICE.replace("name: web", "name: api").replace("app: web, tier: front", "app: api");
    let api_service = api_service.replace("port: 80,", "port: 8080,");
    let repo = shop(&[
        ("manifests/web.yaml", &calling),
        ("manifests/api.yaml", &api),
        ("manifests/api-service.yaml", &api_service),
    ]);
    repo.write("manifests/closed.yaml", CLOSED);
    let (code, report) = change(&repo);
    let (id, text, object) = only_cause(&report);
    assert_eq!((code, id.as_str(), object.as_str()), (1, "net/policy-dns", "web"), "{text}");
    assert!(report["story"]["causes"][0]["repair"]["patch"].as_str().is_some_and(|it| it.contains("53")));
    // What was closed before is no news, and what lets all out closes nothing.
    repo.commit();
    repo.write("manifests/web.yaml", calling.replace("web:1", "web:2"));
    assert_eq!(change(&repo).0, 0);
    repo.write("manifests/closed.yaml", CLOSED.replace("egress: []", "egress: [{}]"));
    assert_eq!(change(&repo).0, 0);
}

#[test]
fn a_network_that_leaves_its_nodes_is_told() {
    let agent = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: flannel, image: \"docker.io/flannel/flannel:v0.25.5\"}]
";
    let repo = shop(&[("manifests/network.yaml", agent)]);
    repo.write("manifests/network.yaml", agent.replace("kubernetes.io/os: linux", "network: flannel"));
    let (code, report) = change(&repo);
    let (id, text, _) = only_cause(&report);
    assert_eq!((code, id.as_str()), (1, "net/cni-down"), "{text}");
    repo.write("manifests/network.yaml", agent.replace("v0.25.5", "v0.26.0"));
    assert_eq!(change(&repo).0, 0);
}

#[test]
fn nobody_brings_a_node_for_a_label_that_is_mistyped() {
    let on = |name: &str, pool: &str| {
        WEB.replace("name: web}", &format!("name: {name}}}"))
            .replace("app: web", &format!("app: {name}"))
            .replace(
                "      containers:",
                &format!("      nodeSelector: {{example.com/pool: {pool}}}\n      containers:"),
            )
    };
    let repo = shop(&[
        ("manifests/one.yaml", &on("one", "compute")),
        ("manifests/two.yaml", &on("two", "compute")),
        ("manifests/three.yaml", &on("three", "compute")),
    ]);
    repo.write("manifests/three.yaml", on("three", "compuet"));
    let (code, report) = change(&repo);
    assert_eq!((code, only_cause(&report).0.as_str()), (1, "schedule/node-selector"));
    repo.write("manifests/three.yaml", on("three", "storage"));
    assert_eq!(change(&repo).0, 0);
}

#[test]
fn an_application_that_a_set_no_longer_makes_is_told() {
    let set = |regions: &str| {
        format!(
            "
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: regions, namespace: argocd}}
spec:
  goTemplate: true
  generators: [{{list: {{elements: [{regions}]}}}}]
  syncPolicy: {{preserveResourcesOnDeletion: true}}
  template:
    metadata: {{name: 'shop-{{{{.region}}}}'}}
    spec:
      project: default
      source: {{repoURL: 'https://git.example.com/acme/shop.git', path: region}}
      destination: {{server: 'https://kubernetes.default.svc', namespace: 'shop-{{{{.region}}}}'}}
      syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"
        )
    };
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let repo = Repo::with(&[("set.yaml", &set("{region: eu}, {region: us}")), ("region/a.yaml", settings)]);
    repo.git_init();
    repo.write("set.yaml", set("{region: eu}"));
    let (code, report) = change(&repo);
    assert_eq!(code, 0, "{report:#}");
    let objects = &report["change"]["effects"]["applications"]["shop-us"]["objects"];
    assert_eq!(
        (&objects[0]["object"]["kind"], &objects[0]["what"]),
        (&"Application".into(), &"deleted".into())
    );
    assert_eq!((&objects[1]["object"]["kind"], &objects[1]["what"]), (&"ConfigMap".into(), &"left".into()));
    assert_eq!(objects.as_array().map(Vec::len), Some(2), "what it made stays: {objects:#}");
}

#[test]
fn an_autoscaler_that_a_rename_leaves_behind_names_its_target() {
    let scaler = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
";
    let sized = format!("{WEB}        resources: {{requests: {{cpu: 100m}}}}\n");
    let repo = shop(&[("manifests/scaler.yaml", scaler), ("manifests/web.yaml", &sized)]);
    repo.write("manifests/web.yaml", sized.replace("metadata: {name: web}", "metadata: {name: front}"));
    let (code, report) = change(&repo);
    let (id, _, object) = only_cause(&report);
    assert_eq!((code, id.as_str(), object.as_str()), (1, "scale/target", "web"));
    repo.write(
        "manifests/scaler.yaml",
        scaler.replace("kind: Deployment, name: web", "kind: Deployment, name: front"),
    );
    assert_eq!(change(&repo).0, 0);
}

#[test]
fn what_a_deleted_namespace_takes_along_is_missed() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let application = crate::common::application("spaces", "spaces");
    let other = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n";
    let repo =
        shop(&[("spaces.yaml", &application), ("spaces/shop.yaml", namespace), ("spaces/other.yaml", other)]);
    let without = crate::common::application("shop", "manifests").replace("CreateNamespace", "Validate");
    repo.write("root.yaml", without);
    repo.commit();
    fs::remove_file(repo.path("spaces/shop.yaml")).unwrap();
    let (code, report) = rehearse(&repo, &["--diff", "HEAD", "--argo-cd"]);
    let missed: Vec<&str> = report["story"]["outages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["object"]["kind"].as_str())
        .collect();
    assert_eq!(code, 1, "{report:#}");
    assert!(missed.contains(&"Deployment"), "{missed:?}");
}

#[test]
fn load_balancers_that_nobody_in_the_cluster_makes_are_assumed() {
    let balanced = SERVICE.replace("spec: {", "spec: {type: LoadBalancer, ");
    let repo = shop(&[("manifests/service.yaml", &balanced)]);
    let (code, report) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["story"]["assumed"]["loadBalancers"], serde_json::json!(["shop/web"]));
}

#[test]
fn a_hook_that_fails_after_the_sync_is_told_though_all_is_synced() {
    let smoke = |code: u32| {
        format!(
            "
apiVersion: batch/v1
kind: Job
metadata: {{name: smoke, annotations: {{argocd.argoproj.io/hook: PostSync}}}}
spec:
  backoffLimit: 0
  template:
    spec: {{restartPolicy: Never, containers: [{{name: c, image: busybox, command: [sh, -c, exit {code}]}}]}}
"
        )
    };
    let repo = shop(&[("manifests/smoke.yaml", &smoke(0))]);
    repo.write("manifests/web.yaml", WEB.replace("web:1", "web:2"));
    assert_eq!(change(&repo).0, 0);
    repo.write("manifests/smoke.yaml", smoke(1));
    let (code, report) = change(&repo);
    let (id, text, object) = only_cause(&report);
    assert_eq!((code, id.as_str(), object.as_str()), (1, "gitops/hook-failed", "shop"), "{text}");
}
