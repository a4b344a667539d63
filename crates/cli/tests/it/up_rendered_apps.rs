//! `tiphys up` on a repository whose Applications stand in no file: a chart renders them.

use crate::common::{Repo, URL, application, config_map};

#[test]
fn applications_of_a_chart_that_nothing_installs_are_run() {
    let template = format!(
        "{{{{- range .Values.apps }}}}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {{{{ . }}}}\n\
         spec:\n  project: default\n  source: {{repoURL: {URL}, path: {{{{ . }}}}}}\n  destination: {{server: https://kubernetes.default.svc, namespace: {{{{ . }}}}}}\n  \
         syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}\n{{{{- end }}}}\n"
    );
    let repo = Repo::with(&[
        ("bootstrap/Chart.yaml", "apiVersion: v2\nname: bootstrap\nversion: 1.0.0\n"),
        ("bootstrap/values.yaml", "apps: [web, api]\n"),
        ("bootstrap/templates/apps.yaml", &template),
        ("web/a.yaml", &config_map("a", "1")),
        ("api/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&[]);
    run.expect(
        0,
        &["taken from what bootstrap renders to as it stands", "all 2 Applications are Synced and Healthy"],
    );
}

#[test]
fn a_chart_whose_name_is_none_for_a_release_is_rendered_all_the_same() {
    let template = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {{{{ .Values.app }}}}\n\
         spec:\n  project: default\n  source: {{repoURL: {URL}, path: web}}\n  destination: {{server: https://kubernetes.default.svc, namespace: web}}\n  \
         syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}\n"
    );
    let repo = Repo::with(&[
        ("apps/Chart.yaml", "apiVersion: v2\nname: app of apps\nversion: 1.0.0\n"),
        ("apps/values.yaml", "app: web\n"),
        ("apps/templates/apps.yaml", &template),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.once(&[]).expect(0, &["taken from what apps renders to as it stands"]);
}

#[test]
fn what_cannot_be_had_may_be_what_declares_applications() {
    let chart = "apiVersion: v2\nname: bootstrap\nversion: 1.0.0\ndependencies:\n- {name: apps, version: 1.0.0, repository: 'https://charts.example.org'}\n";
    let repo = Repo::with(&[("bootstrap/Chart.yaml", chart), ("bootstrap/values.yaml", "apps: {}\n")]);
    repo.once(&["--offline"])
        .expect(2, &["no Application found", "cannot be had", "dependencies of chart bootstrap"]);
}

#[test]
fn a_chart_that_declares_an_application_of_itself_is_found() {
    let template = format!(
        "{{{{- range list \"bootstrap\" \"web\" }}}}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {{{{ . }}}}\n  namespace: argocd\n\
         spec:\n  project: default\n  source: {{repoURL: {URL}, path: {{{{ . }}}}}}\n  destination: {{server: https://kubernetes.default.svc, namespace: argocd}}\n  \
         syncPolicy: {{automated: {{}}}}\n{{{{- end }}}}\n"
    );
    let repo = Repo::with(&[
        ("bootstrap/Chart.yaml", "apiVersion: v2\nname: bootstrap\nversion: 1.0.0\n"),
        ("bootstrap/templates/apps.yaml", &template),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.once(&[]).expect(0, &["all 2 Applications are Synced and Healthy"]);
}

#[test]
fn a_root_that_renders_itself_into_another_namespace_lives_there() {
    let template = format!(
        "{{{{- range list \"root\" \"web\" }}}}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {{{{ . }}}}}}\n\
         spec:\n  project: default\n  source: {{repoURL: {URL}, path: {{{{ . }}}}}}\n  destination: {{server: https://kubernetes.default.svc, namespace: default}}\n  \
         syncPolicy: {{automated: {{}}}}\n{{{{- end }}}}\n"
    );
    let repo = Repo::with(&[
        ("root/Chart.yaml", "apiVersion: v2\nname: root\nversion: 1.0.0\n"),
        ("root/templates/apps.yaml", &template),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.once(&[]).expect(0, &["all 2 Applications are Synced and Healthy"]);
}

#[test]
fn a_chart_that_nothing_installs_is_run_beside_applications_in_files() {
    // The root of the chart is one of its templates, and a file that only lies in its folder is none of it.
    let template = |name: &str, path: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\n  namespace: argocd\n\
             spec:\n  project: default\n  source: {{repoURL: {{{{ .Values.url }}}}, path: {path}}}\n  \
             destination: {{server: https://kubernetes.default.svc, namespace: argocd}}\n  syncPolicy: {{automated: {{}}}}\n"
        )
    };
    let repo = Repo::with(&[
        ("apps/Chart.yaml", "apiVersion: v2\nname: apps\nversion: 1.0.0\n"),
        ("apps/values.yaml", &format!("url: {URL}\n")),
        ("apps/templates/root.yaml", &template("root", "apps")),
        ("apps/templates/web.yaml", &template("web", "web")),
        ("apps/api/app.yaml", &application("api", "apps/api/objects")),
        ("apps/api/objects/a.yaml", &config_map("a", "1")),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let told = "no Application renders the chart apps";
    repo.once(&[]).expect(0, &[told, "all 3 Applications are Synced and Healthy"]);
}

#[test]
fn a_chart_that_declares_applications_only_for_values_that_it_lacks_is_named() {
    let template =
        format!("{{{{- range .Values.apps }}}}\n---\n{}{{{{- end }}}}\n", application("{{ . }}", "web"));
    let repo = Repo::with(&[
        ("apps/Chart.yaml", "apiVersion: v2\nname: apps\nversion: 1.0.0\n"),
        ("apps/web-values.yaml", "apps: [web]\n"),
        ("apps/templates/apps.yaml", &template),
    ]);
    let told = ["the chart apps declares Applications", "its own values alone", "web-values.yaml"];
    repo.once(&[]).expect(2, &told);
}

#[test]
fn what_a_chart_declares_tells_which_repository_this_is() {
    let template =
        format!("{{{{- range list \"web\" }}}}\n---\n{}{{{{- end }}}}\n", application("{{ . }}", "web"));
    let repo = Repo::with(&[
        ("apps/Chart.yaml", "apiVersion: v2\nname: apps\nversion: 1.0.0\n"),
        ("apps/templates/apps.yaml", &template),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.run(&["render", "app", "repo", "--offline"]).expect(0, &["kind: ConfigMap"]);
}

#[test]
fn a_set_that_yields_nothing_is_told_of_in_the_graph() {
    let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: lost}\nspec:\n  generators:\n  - git: {repoURL: '', revision: HEAD, directories: [{path: 'web/*'}]}\n  template:\n    metadata: {name: '{{path.basename}}'}\n    spec: {project: default, source: {repoURL: x, path: '{{path}}'}, destination: {namespace: shop}}\n";
    let repo = Repo::with(&[("set.yaml", set)]);
    repo.run(&["graph", "repo", "--offline"])
        .expect(0, &["lost  (ApplicationSet that yields nothing: ", "repoURL is empty"]);
}

#[test]
fn values_of_environments_beside_a_root_chart_are_environments() {
    let template =
        format!("{{{{- range .Values.apps }}}}\n---\n{}{{{{- end }}}}\n", application("{{ . }}", "{{ . }}"));
    let repo = Repo::with(&[
        ("apps/Chart.yaml", "apiVersion: v2\nname: apps\nversion: 1.0.0\n"),
        ("apps/values.yaml", "apps: []\n"),
        ("apps/values-dev.yaml", "apps: [web]\n"),
        ("apps/values-prod.yaml", "apps: [web, api]\n"),
        ("apps/templates/apps.yaml", &template),
        ("web/a.yaml", &config_map("a", "1")),
        ("api/a.yaml", &config_map("a", "1")),
    ]);
    repo.once(&[]).expect(2, &["--environment apps/dev   (web)", "--environment apps/prod   (api, web)"]);
    repo.once(&["--environment", "prod"]).expect(0, &["all 2 Applications are Synced and Healthy"]);
    let graph = repo.run(&["graph", "repo", "--offline"]);
    graph.expect(0, &["environment apps/dev", "environment apps/prod"]);
    // Where there is one, nothing has to be chosen.
    std::fs::remove_file(repo.path("apps/values-dev.yaml")).expect("it is there");
    repo.once(&[]).expect(0, &["all 2 Applications are Synced and Healthy"]);
}

#[test]
fn an_application_that_makes_its_namespace_needs_nobody_for_it() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let shop = application("shop", "web");
    let repo = Repo::with(&[
        ("apps/shop.yaml", &shop),
        ("apps/spaces.yaml", &application("spaces", "spaces")),
        ("web/a.yaml", &config_map("a", "1")),
        ("spaces/shop.yaml", namespace),
    ]);
    assert!(shop.contains("CreateNamespace=true") && shop.contains("namespace: shop"));
    let run = repo.run(&["graph", "repo", "--offline"]);
    assert!(!run.text().contains("needs:"), "{}", run.text());
    repo.write("apps/shop.yaml", shop.replace("CreateNamespace=true", "CreateNamespace=false"));
    repo.run(&["graph", "repo", "--offline"]).expect(0, &["shop needs spaces"]);
}
