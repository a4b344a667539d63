//! Functions of kustomizations, run by the real binary for those who allow them.

use crate::common::Repo;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: red}\n";

/// A configuration of a function that is an executable.
fn function(path: &str) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Paint\nmetadata:\n  name: paint\n  annotations:\n    config.kubernetes.io/function: |\n      exec:\n        path: {path}\n        args: [red, blue]\n"
    )
}

/// A repository with a transformer in the overlay `over`.
fn repo(function: &str) -> Repo {
    let paint = "#!/bin/sh\nexec sed \"s/colour: $1/colour: $2/\"\n";
    Repo::with(&[
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", MAP),
        ("over/kustomization.yaml", "namePrefix: eu-\nresources: [../base]\ntransformers: [paint.yaml]\n"),
        ("over/paint.yaml", function),
        ("over/paint.sh", paint),
    ])
}

#[test]
fn nothing_runs_that_is_not_allowed() {
    let repo = repo(&function("./paint.sh"));
    let refusal = "Error: external plugins disabled; unable to load external plugin 'Paint'";
    let run = repo.run(&["render", "kustomize", "repo/over"]);
    run.expect(1, &[refusal, "paint.yaml", "`--allow-function ./paint.sh`"]);
    let run = repo.run(&["render", "kustomize", "repo/over", "--allow-function", "paint.sh"]);
    run.expect(1, &[refusal]);
    repo.run(&["render", "kustomize", "repo/over", "--allow-function", "=x"])
        .expect(2, &["EXECUTABLE or as NAME=COMMAND"]);
}

#[test]
fn an_allowed_function_transforms_without_touching_the_checkout() {
    let repo = repo(&function("./paint.sh"));
    repo.write("over/paint.sh", "#!/bin/sh\ntouch made; exec sed \"s/colour: $1/colour: $2/\"\n");
    let run = repo.run(&["render", "kustomize", "repo/over", "--allow-function", "./paint.sh"]);
    run.expect(0, &["colour: blue", "name: eu-settings"]);
    assert!(!repo.path("over/made").exists());
}

#[test]
fn an_image_is_stood_in_for_by_a_local_program() {
    let config = "apiVersion: example.com/v1\nkind: Paint\nmetadata:\n  name: paint\n  annotations:\n    config.kubernetes.io/function: |\n      container:\n        image: example.com/paint:v1\n";
    let repo = repo(config);
    repo.run(&[
        "render",
        "kustomize",
        "repo/over",
        "--allow-function",
        "example.com/paint:v1=sed s/red/green/",
    ])
    .expect(0, &["colour: green"]);
    repo.run(&["render", "kustomize", "repo/over", "--allow-function", "example.com/paint:v2=cat"])
        .expect(1, &["external plugins disabled", "--allow-function example.com/paint:v1=EXECUTABLE"]);
    repo.run(&["render", "kustomize", "repo/over", "--allow-function", "example.com/paint:v1=false"])
        .expect(1, &["couldn't execute function: exit status 1"]);
}

#[test]
fn applications_use_allowed_functions_and_why_names_them() {
    let repo = repo(&function("./paint.sh"));
    repo.write("app.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: argocd}\nspec:\n  project: default\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n  source: {repoURL: https://git.example.com/acme/shop.git, path: over}\n");
    repo.git_init();
    let run = repo.run(&["render", "app", "repo/app.yaml", "--allow-function", "./paint.sh"]);
    run.expect(0, &["colour: blue"]);
    repo.run(&["render", "app", "repo/app.yaml"]).expect(1, &["external plugins disabled"]);
    let run = repo.run(&[
        "why",
        "--repo",
        "repo",
        "shop/ConfigMap/eu-settings",
        ".data.colour",
        "--allow-function",
        "./paint.sh",
    ]);
    run.expect(0, &["function Paint", "over/paint.yaml", "base/map.yaml:4"]);
}
