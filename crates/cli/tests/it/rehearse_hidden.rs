//! What a rehearsal tells though no Application shows it, and what it does not take for granted.

use std::{fs, path::Path, process::Output};

use serde_json::Value;

use crate::common::Repo;

fn rehearse(repo: &Repo, args: &[&str]) -> (i32, String) {
    let mut all = vec!["rehearse", "repo", "--offline"];
    all.extend(args);
    let Output { status, stdout, stderr } = repo.command(&all).output().unwrap();
    (
        status.code().unwrap(),
        String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr),
    )
}

/// The pods of a workload, with more in their spec and in their container.
fn deployment(name: &str, replicas: u32, container: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: c, image: \"registry.example.com/{name}:1\"{container}}}\n"
    )
}

fn service(name: &str, app: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: {app}}}, ports: [{{port: 80}}]}}\n"
    )
}

#[test]
fn a_cron_job_that_fails_at_its_time_is_told_at_the_end() {
    let backup = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: backup}\nspec:\n  schedule: '0 3 * * *'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - {name: c, image: \"registry.example.com/backup:1\", envFrom: [{secretRef: {name: login}}]}\n";
    let repo = Repo::shop(&[("manifests/backup.yaml", backup)]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("CronJob shop/backup fails when it runs; ends green"), "{text}");
    assert!(text.contains("secret \"login\" not found   [config/missing]"), "{text}");
    // One that is suspended does not run.
    repo.write("manifests/backup.yaml", backup.replace("  jobTemplate:", "  suspend: true\n  jobTemplate:"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
    let login = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: b}\n";
    repo.write("manifests/backup.yaml", backup);
    repo.write("manifests/login.yaml", login);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn an_ingress_of_a_mistyped_class_gets_no_address() {
    let class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\nspec: {controller: k8s.io/ingress-nginx}\n";
    let ingress = |class: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec: {{ingressClassName: {class}, defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}\n"
        )
    };
    let repo = Repo::shop(&[("manifests/class.yaml", class), ("manifests/ingress.yaml", &ingress("ngnix"))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("it names the class \"ngnix\", which does not exist") && text.contains("[edge/class]"),
        "{text}"
    );
    // A class of the cloud is elsewhere, and so is a controller without pods.
    for class in ["alb", "nginx"] {
        repo.write("manifests/ingress.yaml", ingress(class));
        assert_eq!(rehearse(&repo, &[]).0, 0, "{class}");
    }
}

#[test]
fn a_budget_that_forbids_a_drain_is_told() {
    let budget = |least: u32| {
        format!(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: web}}\nspec: {{minAvailable: {least}, selector: {{matchLabels: {{app: web}}}}}}\n"
        )
    };
    let web = deployment("web", 3, "");
    let repo = Repo::shop(&[("manifests/web.yaml", &web), ("manifests/budget.yaml", &budget(3))]);
    let drain = ["--fault", "drain=node-1@1m+20m"];
    let (code, text) = rehearse(&repo, &drain);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[scale/budget]") && text.contains("cannot be drained: Node node-1"), "{text}");
    repo.write("manifests/budget.yaml", budget(2));
    let (code, text) = rehearse(&repo, &drain);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_selector_that_leads_nowhere_and_settings_that_nobody_takes_up_are_told() {
    let web = deployment("web", 2, ", envFrom: [{configMapRef: {name: settings}}]");
    let settings = |value: u32| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{a: \"{value}\"}}\n")
    };
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &web),
        ("manifests/service.yaml", &service("web", "web")),
        ("manifests/settings.yaml", &settings(1)),
    ]);
    repo.git_init();
    repo.write("manifests/settings.yaml", settings(2));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("Deployment shop/web is not restarted: it has read ConfigMap shop/settings"),
        "{text}"
    );
    // What is rolled out reads the new values.
    repo.write("manifests/web.yaml", web.replace("web:1", "web:2"));
    let (_, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert!(text.contains("is rolled out") && !text.contains("is not restarted"), "{text}");
    repo.write("manifests/service.yaml", service("web", "wbe"));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("its selector app=wbe matches no pod") && text.contains("[service/selector]"),
        "{text}"
    );
}

#[test]
fn what_a_dump_leaves_out_is_neither_new_nor_an_outage() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: b}\n";
    let web = deployment("web", 2, ", envFrom: [{secretRef: {name: login}}]");
    let repo = Repo::shop(&[("manifests/web.yaml", &web), ("manifests/login.yaml", secret)]);
    let dump = repo.run_dir().join("dump");
    assert_eq!(rehearse(&repo, &["--save", dump.to_str().unwrap()]).0, 0);
    remove_kinds(&dump, &["secrets.json", "pods.json", "replicasets.apps.json"]);
    repo.write("manifests/web.yaml", web.replace("web:1", "web:2"));
    let (code, text) = rehearse(&repo, &["--from", dump.to_str().unwrap(), "--output", "json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["story"]["outages"], serde_json::json!([]));
    let effects = &report["change"]["effects"]["applications"]["shop"]["objects"];
    let names: Vec<&str> =
        effects.as_array().unwrap().iter().filter_map(|it| it["object"]["name"].as_str()).collect();
    assert_eq!(names, ["web"]);
}

fn remove_kinds(dump: &Path, names: &[&str]) {
    for name in names {
        fs::remove_file(dump.join(name)).unwrap();
    }
}

#[test]
fn an_api_server_that_refuses_the_engine_is_the_cause() {
    let repo = Repo::shop(&[("manifests/web.yaml", &deployment("web", 2, ""))]);
    let (code, text) = rehearse(&repo, &["--fault", "api:503@1s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("1. the API server answers the engine with 503"), "{text}");
    assert!(!text.contains("  2. "), "{text}");
    let (code, text) = rehearse(&repo, &["--fault", "api:503@1s+30s"]);
    assert_eq!(code, 0, "{text}");
}
