//! What `tiphys up` says of Applications that do not become green, and that it does not wait for what never
//! comes.

use crate::common::{Repo, URL, application, config_map};

#[test]
fn a_namespace_stands_in_though_a_project_has_its_name() {
    let chart = application("operator", "x")
        .replace(URL, "https://charts.example.invalid")
        .replace("path: x", "chart: operator")
        .replace("targetRevision: HEAD", "targetRevision: 1.0.0");
    let app = application("shop", "web")
        .replace("project: default", "project: team")
        .replace("namespace: shop", "namespace: team")
        .replace("syncOptions: [CreateNamespace=true]", "syncOptions: []");
    let repo = Repo::with(&[
        ("apps/operator.yaml", &chart),
        ("apps/shop.yaml", &app),
        (
            "apps/other.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: other, namespace: argocd}\nspec: {sourceRepos: ['*']}\n",
        ),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&["--offline"]);
    run.expect(
        1,
        &["taken to allow everything: team", "are there all the same: team", "1 of 2 Applications are not"],
    );
}

#[test]
fn why_a_hook_does_not_end_is_told_and_what_comes_after_it_in_one_line() {
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {argocd.argoproj.io/hook: PreSync}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - {name: c, image: migrate, envFrom: [{secretRef: {name: database}}]}\n";
    let repo = Repo::shop(&[
        ("manifests/job.yaml", job),
        ("manifests/a.yaml", &config_map("a", "1")),
        ("manifests/b.yaml", &config_map("b", "1")),
    ]);
    let run = repo.once(&[]);
    run.expect(
        1,
        &[
            "waiting for completion of hook batch/Job/migrate",
            "secret \"database\" not found",
            "after that come ConfigMap/a, ConfigMap/b",
        ],
    );
}

#[test]
fn objects_that_wait_for_one_thing_are_told_of_together() {
    let in_nowhere = |name: &str| config_map(name, "1").replace("  name: ", "  namespace: nowhere\n  name: ");
    let names = ["a", "b", "c", "d"];
    let files: Vec<(String, String)> =
        names.iter().map(|name| (format!("manifests/{name}.yaml"), in_nowhere(name))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let run = Repo::shop(&files).once(&[]);
    let together = "blocked: namespaces \"nowhere\" not found; waiting are ConfigMap/a, ConfigMap/b, ConfigMap/c and 1 more";
    run.expect(1, &[together]);
}

#[test]
fn a_sync_window_that_forbids_it_is_told_of() {
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team, namespace: argocd}\nspec:\n  sourceRepos: ['*']\n  destinations: [{server: '*', namespace: '*'}]\n  syncWindows: [{kind: deny, schedule: '* * * * *', duration: 1h, applications: ['*']}]\n";
    let repo = Repo::with(&[
        ("apps/shop.yaml", &application("shop", "web").replace("project: default", "project: team")),
        ("apps/project.yaml", project),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&[]);
    run.expect(1, &["it is left out of sync: a sync window of project 'team' forbids automated sync"]);
}

#[test]
fn what_fails_again_and_again_is_not_waited_for() {
    let app = application("shop", "manifests").replace(
        "    automated: {",
        "    retry: {limit: 100, backoff: {duration: 1s, factor: 1}}\n    automated: {",
    );
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n";
    let repo = Repo::with(&[("root.yaml", &app), ("manifests/a.yaml", bad)]);
    repo.run(&["up", "repo", "--once", "--timeout", "1h"]).expect(1, &["Not_A_Name"]);
}

#[test]
fn a_field_that_a_kind_does_not_have_fails_the_sync_at_once() {
    let odd = application("shop", "web").replace("    automated: {", "    sometimes: true\n    automated: {");
    let repo = Repo::with(&[
        ("root.yaml", &application("root", "apps")),
        ("apps/shop.yaml", &odd),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h"]);
    run.expect(1, &["failed to apply (dry run)", ".spec.syncPolicy.sometimes: field not declared in schema"]);
    assert!(!run.text().contains("waiting before the next attempt"), "{}", run.text());
}

#[test]
fn a_root_with_a_policy_of_comments_only_is_created_as_kubectl_creates_it() {
    let root = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/acme/shop.git', path: web}\n  destination: {server: 'https://kubernetes.default.svc', namespace: web}\n  syncPolicy:\n    # automated: {}\n";
    let repo = Repo::with(&[("shop.yaml", root), ("web/a.yaml", &config_map("a", "1"))]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h"]);
    run.expect(1, &["it has no automated sync policy"]);
    assert!(!run.text().contains("is invalid"), "{}", run.text());
}

#[test]
fn a_volume_that_a_claim_names_stands_in() {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  volumeName: made-by-hand\n  storageClassName: far\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, image: web}]\n  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n";
    let repo = Repo::shop(&[("manifests/claim.yaml", claim), ("manifests/pod.yaml", pod)]);
    repo.once(&[]).expect(0, &["volumes that claims name", "made-by-hand", "all 1 Applications are Synced"]);
}

#[test]
fn what_people_make_by_hand_stands_in_where_that_is_asked_for() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, image: web, env: [{name: P, valueFrom: {secretKeyRef: {name: database, key: password}}}]}]\n  volumes: [{name: v, configMap: {name: settings}}]\n";
    let repo = Repo::shop(&[("manifests/pod.yaml", pod)]);
    repo.once(&[])
        .expect(1, &["configmap \"settings\" not found", "--stand-ins always puts some in their place"]);
    let run = repo.once(&["--stand-ins", "always"]);
    run.expect(0, &["ConfigMap/settings in shop, Secret/database in shop", "all 1 Applications are Synced"]);
}

#[test]
fn what_the_project_does_not_permit_is_said() {
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team, namespace: argocd}\nspec:\n  sourceRepos: ['*']\n  destinations: [{server: '*', namespace: '*'}]\n  namespaceResourceWhitelist: [{group: apps, kind: Deployment}]\n";
    let repo = Repo::with(&[
        ("apps/shop.yaml", &application("shop", "web").replace("project: default", "project: team")),
        ("apps/project.yaml", project),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.once(&[]).expect(1, &["resource :ConfigMap is not permitted in project team"]);
}

#[test]
fn causes_are_found_in_the_cluster_that_an_application_has_of_its_own() {
    for method in ["annotation", "label"] {
        causes_are_found_with(method);
    }
}

fn causes_are_found_with(method: &str) {
    let settings = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-cm, namespace: argocd}}\ndata: {{application.resourceTrackingMethod: {method}}}\n"
    );
    let in_cluster = |name: &str, cluster: &str| {
        application(name, name)
            .replace("server: https://kubernetes.default.svc", &format!("name: {cluster}"))
            .replace(&format!("namespace: {name}\n  syncPolicy"), "namespace: shop\n  syncPolicy")
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, image: web, envFrom: [{secretRef: {name: KEYS}}]}]\n";
    let repo = Repo::with(&[
        ("apps/dev.yaml", &in_cluster("dev", "dev")),
        ("apps/prod.yaml", &in_cluster("prod", "prod")),
        ("settings.yaml", &settings),
        ("dev/pod.yaml", &pod.replace("KEYS", "keys-of-dev")),
        ("prod/pod.yaml", &pod.replace("KEYS", "keys-of-prod")),
    ]);
    let run = repo.once(&[]);
    run.expect(1, &["dev is a cluster of its own", "prod is a cluster of its own"]);
    for cluster in ["dev", "prod"] {
        let own = format!("secret \"keys-of-{cluster}\" not found");
        let text = run.text();
        let (_, told) = text.split_once(&format!("\n{cluster}: ")).unwrap();
        let told = told.split("\n\n").next().unwrap();
        assert!(told.contains(&own), "{cluster}: {text}");
    }
}
