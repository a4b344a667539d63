//! How a change is told: values, lines, what stays behind, what calls what is gone.

use crate::common::{Repo, application, rehearse};

fn change(repo: &Repo) -> (i32, String) {
    rehearse(repo, &["--diff", "HEAD"])
}

/// A Deployment and its Service.
fn program(name: &str, image: &str, more: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
{more}      containers:
      - name: c
        image: {image}
        ports: [{{name: http, containerPort: 8080}}]
"
    )
}

fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: http}}]}}\n"
    )
}

const WEB: &str = "registry.example.com/web:1";

#[test]
fn a_value_of_a_chart_is_told_with_what_it_was_and_its_line() {
    let template = program("web", "\"{{ .Values.image.name }}:{{ .Values.image.tag }}\"", "")
        .replace("replicas: 2", "replicas: {{ .Values.replicas }}");
    let repo = Repo::with(&[
        ("root.yaml", &application("shop", "chart")),
        ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("chart/values.yaml", "image:\n  name: registry.example.com/web\n  tag: v1\nreplicas: 2\n"),
        ("chart/templates/web.yaml", &template),
    ]);
    repo.git_init();
    repo.write("chart/values.yaml", "image:\n  name: registry.example.com/web\n  tag: v2\nreplicas: 2\n");
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
    let line = "~ Deployment shop/web: .spec.template.spec.containers[0].image registry.example.com/web:v1 → \
                registry.example.com/web:v2   chart/values.yaml:3";
    assert!(text.contains(line), "{text}");
    repo.write("chart/values.yaml", "image:\n  name: registry.example.com/web\n  tag: v2\nreplicas: 3\n");
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("~ Deployment shop/web: 2 fields   chart/templates/web.yaml:1"), "{text}");
    assert!(text.contains("        .spec.replicas 2 → 3   chart/values.yaml:4"), "{text}");
}

#[test]
fn values_of_secrets_are_not_told() {
    let login = |password: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {password}}}\n"
        )
    };
    let repo = Repo::shop(&[("manifests/login.yaml", &login("first"))]);
    repo.git_init();
    repo.write("manifests/login.yaml", login("second"));
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("~ Secret shop/login: .data.password   manifests/login.yaml:"), "{text}");
    assert!(!text.contains(" → {") && !text.contains("first") && !text.contains("second"), "{text}");
}

#[test]
fn a_wave_that_changes_is_a_change() {
    let apps = |wave: &str| {
        application("settings", "settings").replace(
            "namespace: argocd",
            &format!("namespace: argocd\n  annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}"),
        )
    };
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let repo = Repo::with(&[
        ("root.yaml", &application("root", "apps")),
        ("apps/settings.yaml", &apps("1")),
        ("settings/a.yaml", config),
    ]);
    repo.git_init();
    repo.write("apps/settings.yaml", apps("2"));
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(".metadata.annotations[\"argocd.argoproj.io/sync-wave\"] 1 → 2"), "{text}");
}

#[test]
fn a_definition_that_leaves_git_stays_and_is_told() {
    let definition = |plural: &str, kind: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  \
             names: {{plural: {plural}, kind: {kind}}}\n  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]\n"
        )
    };
    let repo = Repo::shop(&[
        ("manifests/budgets.yaml", &definition("budgets", "Budget")),
        ("manifests/teams.yaml", &definition("teams", "Team")),
    ]);
    repo.git_init();
    std::fs::remove_file(repo.path("manifests/teams.yaml")).unwrap();
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("CustomResourceDefinition teams.example.com: left Git and stays in the cluster"),
        "{text}"
    );
    assert!(!text.contains("budgets"), "{text}");
}

#[test]
fn a_service_that_goes_is_missed_by_those_who_name_it() {
    let caller = program("worker", "registry.example.com/worker:1", "").replace(
        "        ports:",
        "        env: [{name: QUEUE, value: \"amqp://queue.shop.svc:5672\"}]\n        ports:",
    );
    let repo = Repo::shop(&[
        ("manifests/queue.yaml", &program("queue", "registry.example.com/queue:1", "")),
        ("manifests/service.yaml", &service("queue")),
        ("manifests/other.yaml", &service("spare")),
        ("manifests/worker.yaml", &caller),
    ]);
    repo.git_init();
    std::fs::remove_file(repo.path("manifests/other.yaml")).unwrap();
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "nobody calls it: {text}");
    std::fs::remove_file(repo.path("manifests/service.yaml")).unwrap();
    let (code, text) = change(&repo);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(
            "it calls Service shop/queue (QUEUE), which the change takes away   [service/missing]\n     calls what is gone: Deployment shop/worker"
        ),
        "{text}"
    );
    repo.write("manifests/service.yaml", service("queue"));
    let none = program("queue", "registry.example.com/queue:1", "").replace("replicas: 2", "replicas: 0");
    repo.write("manifests/queue.yaml", none);
    let (code, text) = change(&repo);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("and the change scales Deployment queue to none   [run/scaled-zero]"), "{text}");
}

#[test]
fn a_service_misses_the_pods_of_a_workload_that_has_another_name() {
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &program("web", WEB, "")),
        ("manifests/service.yaml", &service("web")),
    ]);
    repo.git_init();
    repo.write("manifests/web.yaml", program("web-front", WEB, ""));
    let (code, text) = change(&repo);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(
            "its selector app=web matches no pod; those of Deployment web-front have app=web-front"
        ),
        "{text}"
    );
    repo.write("manifests/service.yaml", service("web").replace("{app: web}", "{app: web-front}"));
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn the_next_pod_is_refused_where_a_namespace_becomes_strict() {
    let namespace = |level: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{pod-security.kubernetes.io/{level}: baseline}}}}\n"
        )
    };
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &program("web", WEB, "      hostNetwork: true\n")),
        ("manifests/namespace.yaml", &namespace("warn")),
    ]);
    repo.git_init();
    repo.write("manifests/namespace.yaml", namespace("audit"));
    assert_eq!(change(&repo).0, 0);
    repo.write("manifests/namespace.yaml", namespace("enforce"));
    let (code, text) = change(&repo);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("would get no further pod: Deployment shop/web"), "{text}");
    assert!(text.contains("[admit/pod-security]"), "{text}");
}

#[test]
fn a_workload_whose_binding_goes_has_lost_its_rights() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: web}\n\
                   rules: [{apiGroups: [\"\"], resources: [pods], verbs: [list]}]\n";
    let binding = |name: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {name}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}}\n\
             subjects: [{{kind: ServiceAccount, name: web, namespace: shop}}]\n"
        )
    };
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &program("web", WEB, "      serviceAccountName: web\n")),
        ("manifests/account.yaml", account),
        ("manifests/binding.yaml", &binding("web")),
    ]);
    repo.git_init();
    repo.write("manifests/binding.yaml", binding("web-pods"));
    assert_eq!(change(&repo).0, 0);
    std::fs::remove_file(repo.path("manifests/binding.yaml")).unwrap();
    let (code, text) = change(&repo);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("its account \"web\" has no rights: RoleBinding \"web\" is gone   [api/rbac]"),
        "{text}"
    );
}

#[test]
fn pods_that_nobody_replaces_and_data_that_goes_are_told() {
    let set = |image: &str| {
        program("db", image, "")
            .replace("kind: Deployment", "kind: StatefulSet")
            .replace("  replicas: 2", "  replicas: 1\n  serviceName: db\n  updateStrategy: {type: OnDelete}")
    };
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: files}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let mount = "      volumes: [{name: files, persistentVolumeClaim: {claimName: files}}]\n";
    let repo = Repo::shop(&[
        ("manifests/db.yaml", &set("registry.example.com/db:1")),
        ("manifests/files.yaml", &(program("files", WEB, mount) + "---\n" + claim)),
    ]);
    repo.git_init();
    repo.write("manifests/db.yaml", set("registry.example.com/db:2"));
    std::fs::remove_file(repo.path("manifests/files.yaml")).unwrap();
    let (code, text) = change(&repo);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("StatefulSet shop/db is not rolled out: its strategy is OnDelete"), "{text}");
    assert!(
        text.contains("- PersistentVolumeClaim shop/files: its volume is deleted with all data"),
        "{text}"
    );
}

#[test]
fn what_is_still_needed_is_where_it_was() {
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n";
    let web = program("web", WEB, "")
        .replace("        ports:", "        envFrom: [{configMapRef: {name: web}}]\n        ports:");
    let repo = Repo::shop(&[("manifests/web.yaml", &web), ("manifests/settings.yaml", settings)]);
    repo.git_init();
    std::fs::remove_file(repo.path("manifests/settings.yaml")).unwrap();
    let (code, text) = change(&repo);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("OutOfSync Healthy: Application shop   manifests/settings.yaml:1"), "{text}");
    assert!(
        text.contains("repair: keep ConfigMap shop/web in Git until nothing needs it any more"),
        "{text}"
    );
}
