//! `tiphys up` on repositories whose Applications stand in bases of kustomizations.

use crate::common::{Repo, URL, application, config_map};

const BASE: &str = "resources: [app.yaml]\n";

/// An overlay over the base that has its Application render another folder.
const OVERLAY: &str = "resources: [../../base]\nnamespace: argocd\npatches:\n- path: change.yaml\n";

/// A patch that looks like an Application.
fn change(path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: shop}}\nspec:\n  source: {{path: {path}}}\n"
    )
}

fn repository(overlays: &[&str]) -> Repo {
    let repo = Repo::with(&[
        ("base/kustomization.yaml", BASE),
        ("base/app.yaml", &application("shop", "nowhere").replace("  namespace: argocd\n", "")),
    ]);
    for name in overlays {
        repo.write(&format!("{name}/a.yaml"), config_map(name, "1"));
        repo.write(&format!("overlays/{name}/kustomization.yaml"), OVERLAY);
        repo.write(&format!("overlays/{name}/change.yaml"), change(name));
    }
    repo
}

#[test]
fn overlays_are_environments_and_their_base_is_none() {
    let repo = repository(&["dev", "prod"]);
    let run = repo.once(&[]);
    let choices = ["--environment overlays/dev   (shop)", "--environment overlays/prod   (shop)"];
    run.expect(2, &["several environments", choices[0], choices[1]]);
    assert!(!run.text().contains("base"), "{}", run.text());
    repo.once(&["--path", "overlays/prod"]).expect(0, &["Synced and Healthy"]);
    repo.once(&["--environment", "prod"]).expect(0, &["Synced and Healthy"]);
    repo.once(&["--environment", "test"]).expect(2, &["there is no environment \"test\"", "overlays/dev"]);
}

#[test]
fn the_only_overlay_is_what_runs_and_is_followed() {
    let repo = repository(&["prod"]);
    repo.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
    let mut up = repo.start(&[]);
    up.until_green();
    repo.write("other/b.yaml", config_map("b", "1"));
    repo.write("other/c.yaml", config_map("c", "1"));
    repo.write("overlays/prod/change.yaml", change("other"));
    // What it went through in between may have been too short to be told.
    up.until(|event| {
        event["event"] == "result" && event["green"] == true && event["applications"][0]["resources"] == 2
    });
}

#[test]
fn an_overlay_that_an_application_renders_is_no_root() {
    let repo = repository(&["prod"]);
    repo.write("root.yaml", application("root", "overlays/prod"));
    let run = repo.once(&[]);
    run.expect(0, &["all 2 Applications are Synced and Healthy"]);
}

#[test]
fn what_tests_work_on_does_not_run_unless_it_is_asked_for() {
    let repo = Repo::with(&[
        ("apps/shop.yaml", &application("shop", "shop")),
        ("shop/a.yaml", &config_map("a", "1")),
        ("e2e/fixtures/broken.yaml", &application("broken", "nowhere")),
        (
            "e2e/fixtures/cluster.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: c\n  labels: {argocd.argoproj.io/secret-type: cluster}\nstringData: {name: shop, server: https://c}\n",
        ),
    ]);
    let run = repo.once(&[]);
    run.expect(0, &["all 1 Applications are Synced and Healthy"]);
    run.expect(0, &["e2e/fixtures is left out (broken)", "--path e2e/fixtures"]);
    let run = repo.once(&["--path", "e2e/fixtures"]);
    run.expect(1, &["broken"]);
    assert!(!run.text().contains("left out"), "{}", run.text());
}

#[test]
fn what_is_put_away_runs_where_an_application_renders_it_or_nothing_else_is_there() {
    let repo = Repo::with(&[
        ("root.yaml", &application("root", "disabled/apps")),
        ("disabled/apps/shop.yaml", &application("shop", "shop")),
        ("shop/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&[]);
    run.expect(0, &["all 2 Applications are Synced and Healthy"]);
    assert!(!run.text().contains("left out"), "{}", run.text());
    let only = Repo::with(&[
        ("tests/shop.yaml", &application("shop", "shop")),
        ("shop/a.yaml", &config_map("a", "1")),
    ]);
    only.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn an_application_that_lends_values_renders_nothing_that_is_put_away() {
    // Its second source has no path, which is not the root of the repository.
    let lends = application("web", "chart").replace(
        &format!("  source:\n    repoURL: {URL}\n    targetRevision: HEAD\n    path: chart\n"),
        &format!(
            "  sources:\n  - {{repoURL: {URL}, path: chart, helm: {{valueFiles: [$here/web.yaml]}}}}\n  - {{repoURL: {URL}, targetRevision: HEAD, ref: here}}\n"
        ),
    );
    let repo = Repo::with(&[
        ("apps/web.yaml", &lends),
        ("apps/shop.yaml", &application("shop", "shop")),
        ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("chart/templates/map.yaml", &config_map("map", "{{ .Values.key }}")),
        ("web.yaml", "key: v\n"),
        ("shop/a.yaml", &config_map("a", "1")),
        ("deprecated/a/old.yaml", &application("old", "nowhere")),
        ("deprecated/b/old.yaml", &application("old", "nowhere")),
    ]);
    repo.once(&[]).expect(0, &["all 2 Applications are Synced and Healthy", "deprecated is left out"]);
}

#[test]
fn a_template_of_another_tool_is_left_out() {
    let template = application("root", "${path}").replace("namespace: argocd", "namespace: ${namespace}");
    let repo = Repo::with(&[
        ("apps/shop.yaml", &application("shop", "shop")),
        ("shop/a.yaml", &config_map("a", "1")),
        ("terraform/root.yaml", &template),
    ]);
    let run = repo.once(&[]);
    run.expect(
        0,
        &["all 1 Applications are Synced and Healthy", "terraform/root.yaml:1", "template for another tool"],
    );
    let only = Repo::with(&[("terraform/root.yaml", &template)]);
    only.once(&[]).expect(1, &["cannot create Application root"]);
}

#[test]
fn applications_of_a_kustomization_that_lacks_something_else_are_taken_from_their_files() {
    let chart = "resources: [shop.yaml, inner]\nhelmCharts:\n- {name: far, repo: 'https://charts.example.invalid', version: 1.0.0, releaseName: far}\n";
    let repo = Repo::with(&[
        ("root.yaml", &application("other", "web")),
        ("all/kustomization.yaml", chart),
        ("all/shop.yaml", &application("shop", "web")),
        ("all/inner/kustomization.yaml", "namespace: argocd\nresources: [cart.yaml]\n"),
        ("all/inner/cart.yaml", &application("cart", "web2")),
        ("web/a.yaml", &config_map("a", "1")),
        ("web2/a.yaml", &config_map("b", "1")),
    ]);
    let run = repo.once(&["--offline"]);
    run.expect(
        0,
        &[
            "all 3 Applications are Synced and Healthy",
            "all cannot be rendered",
            "taken from what of it is here",
        ],
    );
    // What changes their names does so without the rest, too.
    repo.write("all/kustomization.yaml", format!("namePrefix: x-\n{chart}"));
    let run = repo.once(&["--offline"]);
    run.expect(0, &["all 3 Applications are Synced and Healthy", "x-cart", "x-shop"]);
}
