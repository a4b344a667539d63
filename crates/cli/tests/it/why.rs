//! `tiphys why` as a user runs it.

use crate::common::{Repo, application, config_map};

fn chart() -> Repo {
    let app = application("shop", "chart")
        .replace("    path: chart\n", "    path: chart\n    helm: {valueFiles: [prod.yaml]}\n");
    Repo::with(&[
        ("root.yaml", &app),
        ("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n"),
        ("chart/values.yaml", "replicas: 1\n"),
        ("chart/prod.yaml", "# more in production\nreplicas: 3\n"),
        (
            "chart/templates/deployment.yaml",
            "apiVersion: apps/v1
kind: Deployment
metadata: {name: cart}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: registry.example.com/cart:1}]}
",
        ),
    ])
}

#[test]
fn a_field_is_traced_to_template_and_values() {
    let repo = chart();
    let run = repo.run(&["why", "shop/Deployment/cart", ".spec.replicas", "--repo", "repo"]);
    run.expect(0, &[".spec.replicas = 3", "deployment.yaml:5", "prod.yaml:2"]);
    let run =
        repo.run(&["why", "shop/Deployment/cart", ".spec.replicas", "--repo", "repo", "--output", "json"]);
    run.expect(0, &["\"path\": \".spec.replicas\"", "\"value\": 3", "\"origins\": ["]);
    let run = repo.run(&["why", "shop/deployment/cart", "--repo", "repo"]);
    run.expect(0, &[".metadata.name = \"cart\"", ".spec.template.spec.containers[0].image"]);
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let repo = chart();
    repo.write("other.yaml", application("other", "plain"));
    repo.write("plain/a.yaml", config_map("a", "1"));
    let why = |args: &[&str]| repo.run(&[&["why", "--repo", "repo"], args].concat());
    why(&["none/ConfigMap/a"]).expect(1, &["no Application \"none\"", "other, shop"]);
    why(&["other/ConfigMap/b"]).expect(1, &["renders no ConfigMap/b; it renders ConfigMap/a"]);
    why(&["other/ConfigMap/a", ".data.none"]).expect(1, &["has no field .data.none; .data has key"]);
    why(&["other/ConfigMap/a", ".data.key.none"]).expect(1, &["; .data.key is \"1\""]);
    let mark = r#".metadata.annotations["argocd.argoproj.io/tracking-id"]"#;
    why(&["other/ConfigMap/a", mark]).expect(0, &["by tiphys: the mark of whose it is"]);
    why(&["other"]).expect(1, &["not of the form APP/KIND/NAME"]);
    why(&["other/ConfigMap/a", ".data.key"]).expect(0, &["plain/a.yaml:6"]);
}

#[test]
fn an_application_that_is_left_out_is_said_to_be_and_what_may_lead_to_one_is_named() {
    let repo = chart();
    repo.write("apps/deprecated/old.yaml", application("old", "plain"));
    repo.write("broken.yaml", application("broken", "nowhere"));
    let why = |args: &[&str]| repo.run(&[&["why", "--repo", "repo"], args].concat());
    why(&["old/ConfigMap/a"]).expect(
        1,
        &["Application \"old\" lies in apps/deprecated, which is left out", "--path apps/deprecated"],
    );
    why(&["none/ConfigMap/a"]).expect(1, &["no Application \"none\"", "Application broken does not render"]);
}

#[test]
fn of_environments_side_by_side_one_is_chosen() {
    let app = |of: &str| application("shop", &format!("manifests/{of}"));
    let repo = Repo::with(&[
        ("envs/dev/root.yaml", &app("dev")),
        ("envs/prod/root.yaml", &app("prod")),
        ("manifests/dev/a.yaml", &config_map("a", "dev")),
        ("manifests/prod/a.yaml", &config_map("a", "prod")),
    ]);
    let why = ["why", "shop/ConfigMap/a", ".data.key", "--repo", "repo"];
    repo.run(&why).expect(0, &["= \"dev\"", "--environment chooses one of envs/dev, envs/prod"]);
    let run = repo.run(&[&why[..], &["--path", "envs/prod"]].concat());
    run.expect(0, &["= \"prod\"", "manifests/prod/a.yaml"]);
    assert!(!run.text().contains("--environment"), "{}", run.text());
    let run = repo.run(&[&why[..], &["--environment", "prod"]].concat());
    run.expect(0, &["= \"prod\"", "manifests/prod/a.yaml"]);
}
