//! `tiphys up` on repositories as people have them: written for an installation that nobody sees, with one
//! thing or another that is not as it should be. What can run runs, and what does not is told in words that
//! help.

use std::time::{Duration, Instant};

use crate::common::{Repo, URL, application, config_map};

const CHART: &str = "apiVersion: v2\nname: NAME\nversion: 1.0.0\n";

/// An Application that nobody syncs by itself.
fn manual(name: &str, path: &str) -> String {
    application(name, path).replace("    automated: {prune: true, selfHeal: true}\n", "")
}

/// A template of an Application that needs to be told its environment.
fn template(name: &str) -> String {
    application(name, "web")
        .replace("path: web", "path: \"{{ required `environment is needed` .Values.env }}\"")
}

#[test]
fn an_application_without_automated_sync_waits_for_a_person() {
    let repo = Repo::with(&[("root.yaml", &manual("shop", "web")), ("web/a.yaml", &config_map("a", "1"))]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h"]);
    run.expect(1, &["shop: OutOfSync", "it has no automated sync policy", "tiphys app sync", "--sync-all"]);
    assert!(!run.text().contains("ConfigMap/a is"), "{}", run.text());
    repo.once(&["--sync-all"]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn with_sync_all_what_cannot_be_synced_ends_too() {
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n";
    let repo = Repo::with(&[("root.yaml", &manual("shop", "web")), ("web/a.yaml", bad)]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h", "--sync-all"]);
    run.expect(1, &["sync Failed", "Not_A_Name", "nobody syncs it again; `tiphys app sync` does"]);
    let end = run.text();
    let (_, end) = end.split_once("not Synced and Healthy:").unwrap();
    assert!(!end.contains("--sync-all"), "{end}");
}

#[test]
fn a_field_that_an_application_does_not_have_is_dropped() {
    let odd = application("shop", "web").replace("automated: {", "automated: {automated: true, ");
    let repo = Repo::with(&[("root.yaml", &odd), ("web/a.yaml", &config_map("a", "1"))]);
    repo.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn an_application_that_the_api_refuses_keeps_no_other_from_running() {
    let bad = application("bad", "web").replace("selfHeal: true", "selfHeal: always");
    let repo = Repo::with(&[
        ("apps/bad.yaml", &bad),
        ("apps/good.yaml", &application("good", "web")),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h"]);
    run.expect(
        1,
        &["1 of 2 Applications are not", "apps/bad.yaml:1: cannot create Application bad", "selfHeal"],
    );
}

#[test]
fn one_wrong_path_does_not_make_a_copy_of_a_repository_a_foreign_one() {
    // No `git remote` says what the repository is called.
    let repo = Repo::with(&[
        ("apps/a.yaml", &application("a", "web")),
        ("apps/b.yaml", &application("b", "api")),
        ("apps/c.yaml", &application("c", "gone")),
        ("web/a.yaml", &config_map("a", "1")),
        ("api/a.yaml", &config_map("a", "1")),
    ]);
    let texts = ["is this repository, which has 2 of 3 paths", "1 of 3 Applications are not", "\"gone\""];
    repo.run(&["up", "repo", "--once", "--timeout", "1h"]).expect(1, &texts);
}

#[test]
fn a_project_that_nobody_declares_is_open_and_one_that_is_forgotten_is_not() {
    let app = application("shop", "web").replace("project: default", "project: team");
    let repo = Repo::with(&[("root.yaml", &app), ("web/a.yaml", &config_map("a", "1"))]);
    repo.once(&[]).expect(0, &["declares no AppProject", "allow everything: team", "Synced and Healthy"]);
    let other = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: teams, namespace: argocd}\nspec: {sourceRepos: ['*']}\n";
    repo.write("projects/teams.yaml", other);
    repo.run(&["up", "repo", "--once", "--timeout", "1h"])
        .expect(1, &["Application referencing project team which does not exist"]);
}

#[test]
fn a_chart_of_applications_that_needs_values_is_named_with_what_it_needs() {
    let repo = Repo::with(&[
        ("bootstrap/Chart.yaml", &CHART.replace("NAME", "bootstrap")),
        ("bootstrap/templates/root.yaml", &template("root")),
    ]);
    repo.once(&[]).expect(
        2,
        &["no Application found", "the chart bootstrap declares Applications", "environment is needed"],
    );
}

#[test]
fn a_chart_of_applications_whose_names_want_values_is_named() {
    let nameless = template("root").replace("name: root", "name: root-{{ .Values.team }}");
    let repo = Repo::with(&[
        ("bootstrap/Chart.yaml", &CHART.replace("NAME", "bootstrap")),
        ("bootstrap/values.yaml", "env: web\nteam: ''\n"),
        ("bootstrap/templates/root.yaml", &nameless),
    ]);
    repo.once(&[]).expect(
        2,
        &["no Application found", "the chart bootstrap renders Application \"root-\" as it stands"],
    );
}

#[test]
fn charts_that_declare_the_same_application_are_told_apart_by_their_folders() {
    let app = application("apps", "web");
    let repo = Repo::with(&[
        ("one/Chart.yaml", &CHART.replace("NAME", "one")),
        ("one/templates/root/app.yaml", &app),
        ("other/Chart.yaml", &CHART.replace("NAME", "other")),
        ("other/templates/app.yaml", &app),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.once(&[])
        .expect(0, &["\"apps\"", "one/templates/root/app.yaml:1 runs", "--path one or --path other"]);
    repo.once(&["--path", "other"]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn an_application_may_have_the_name_of_the_set_that_it_brings() {
    let set = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  \
         generators:\n  - git: {{repoURL: {URL}, revision: HEAD, directories: [{{path: 'parts/*'}}]}}\n  template:\n    \
         metadata: {{name: 'part-{{{{path.basename}}}}'}}\n    spec:\n      project: default\n      \
         source: {{repoURL: {URL}, path: '{{{{path}}}}'}}\n      destination: {{name: in-cluster, namespace: parts}}\n      \
         syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}\n"
    );
    let repo = Repo::with(&[
        ("root.yaml", &application("web", "sets")),
        ("sets/set.yaml", &set),
        ("parts/one/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&[]);
    run.expect(0, &["all 2 Applications are Synced and Healthy"]);
    assert!(!run.text().contains("is deleted"), "{}", run.text());
}

/// An Application of a chart here, with values from wherever `reference` is.
fn with_values(reference: &str, helm: &str) -> String {
    application("shop", "chart").replace(
        &format!("  source:\n    repoURL: {URL}\n    targetRevision: HEAD\n    path: chart\n"),
        &format!(
            "  sources:\n  - repoURL: {URL}\n    path: chart\n    helm: {helm}\n  - repoURL: {reference}\n    targetRevision: HEAD\n    ref: values\n"
        ),
    )
}

fn chart_with(root: &str) -> Repo {
    Repo::with(&[
        ("apps/root.yaml", root),
        ("apps/good.yaml", &application("good", "web")),
        ("web/a.yaml", &config_map("a", "1")),
        ("chart/Chart.yaml", &CHART.replace("NAME", "shop")),
        ("chart/values.yaml", "key: default\n"),
        ("chart/templates/map.yaml", &config_map("map", "{{ .Values.key }}")),
        ("env/prod.yaml", "key: prod\n"),
    ])
}

#[test]
fn a_missing_repository_of_values_is_named_and_others_go_on() {
    let root = with_values("file:///nowhere/values", "{valueFiles: [$values/prod.yaml]}");
    chart_with(&root)
        .run(&["up", "repo", "--once", "--timeout", "1h"])
        .expect(1, &["1 of 2 Applications are not", "shop: Unknown", "/nowhere/values"]);
}

#[test]
fn a_missing_values_file_is_named_unless_it_may_be_missing() {
    let root = with_values(URL, "{valueFiles: [$values/env/prod.yaml, $values/env/eu.yaml]}");
    chart_with(&root)
        .run(&["up", "repo", "--once", "--timeout", "1h"])
        .expect(1, &["1 of 2 Applications are not", "shop: Unknown", "env/eu.yaml"]);
    let lenient = root.replace("helm: {", "helm: {ignoreMissingValueFiles: true, ");
    let repo = chart_with(&lenient);
    repo.once(&[]).expect(0, &["all 2 Applications are Synced and Healthy"]);
    let gone = lenient.replace(
        &format!("- repoURL: {URL}\n    targetRevision"),
        "- repoURL: file:///nowhere/values\n    targetRevision",
    );
    // That a file may be missing does not say that a repository may.
    chart_with(&gone).run(&["up", "repo", "--once", "--timeout", "1h"]).expect(1, &["/nowhere/values"]);
}

/// An Application of a folder for a cluster.
fn for_cluster(name: &str, path: &str, cluster: &str) -> String {
    application(name, path)
        .replace("server: https://kubernetes.default.svc", cluster)
        .replace(&format!("namespace: {name}\n  syncPolicy"), "namespace: shop\n  syncPolicy")
}

#[test]
fn applications_of_several_clusters_do_not_fight_over_one() {
    let repo = Repo::with(&[
        ("apps/dev.yaml", &for_cluster("shop-dev", "dev", "name: dev")),
        ("apps/prod.yaml", &for_cluster("shop-prod", "prod", "server: https://prod.example.com:6443")),
        ("apps/hub.yaml", &for_cluster("shop-hub", "hub", "name: in-cluster")),
        ("dev/a.yaml", &config_map("a", "dev")),
        ("prod/a.yaml", &config_map("a", "prod")),
        ("hub/a.yaml", &config_map("a", "hub")),
    ]);
    let run = repo.once(&[]);
    run.expect(
        0,
        &[
            "dev is a cluster of its own",
            "prod.example.com is a cluster of its own",
            "kubeconfig.dev",
            "all 3 Applications are Synced and Healthy",
        ],
    );
    // Nothing in common: one cluster does for all.
    repo.write("dev/a.yaml", config_map("b", "dev"));
    repo.write("prod/a.yaml", config_map("c", "prod"));
    let run = repo.once(&[]);
    run.expect(0, &["all 3 Applications are Synced and Healthy"]);
    assert!(!run.text().contains("of its own"), "{}", run.text());
}

#[test]
fn commands_look_into_the_cluster_that_an_application_has_of_its_own() {
    let repo = Repo::with(&[
        ("apps/dev.yaml", &for_cluster("shop-dev", "dev", "name: dev")),
        ("apps/prod.yaml", &for_cluster("shop-prod", "prod", "server: https://prod.example.com:6443")),
        ("dev/a.yaml", &config_map("a", "dev")),
        ("prod/a.yaml", &config_map("a", "prod")),
    ]);
    let mut up = repo.start(&[]);
    up.until(|event| event["event"] == "application");
    for (app, key) in [("shop-dev", "key: dev"), ("shop-prod", "key: prod")] {
        repo.run(&["app", "wait", app, "--sync", "--health", "--timeout", "120s"]).expect(0, &[]);
        repo.run(&["app", "manifests", app, "--source", "live"]).expect(0, &[key]);
        repo.run(&["app", "diff", app]).expect(0, &[]);
    }
}

#[test]
fn of_two_applications_of_one_name_the_first_runs_and_both_are_named() {
    let repo = Repo::with(&[
        ("apps/a.yaml", &application("shop", "web")),
        ("apps/old/b.yaml", &application("shop", "web")),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let texts =
        ["two Applications are named \"shop\"", "apps/a.yaml:1 runs, apps/old/b.yaml:1 does not", "all 1"];
    repo.once(&[]).expect(0, &texts);
}

#[test]
fn a_project_that_only_its_own_application_brings_was_made_by_somebody() {
    let app = application("shop", "web").replace("project: default", "project: team");
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team, namespace: argocd}\nspec:\n  sourceRepos: ['*']\n  destinations: [{server: '*', namespace: '*'}]\n  clusterResourceWhitelist: [{group: '*', kind: '*'}]\n";
    let repo = Repo::with(&[("root.yaml", &app), ("web/project.yaml", project)]);
    repo.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn a_project_that_the_way_to_what_renders_it_needs_was_made_by_somebody() {
    // The root belongs to a project that only an Application further down renders, which belongs to another
    // one.
    let root = application("root", "apps").replace("project: default", "project: first");
    let projects = application("projects", "projects").replace("project: default", "project: second");
    let project = |name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  sourceRepos: ['*']\n  destinations: [{{server: '*', namespace: '*'}}]\n  clusterResourceWhitelist: [{{group: '*', kind: '*'}}]\n"
        )
    };
    let repo = Repo::with(&[
        ("root.yaml", &root.replace("namespace: root", "namespace: argocd")),
        ("apps/projects.yaml", &projects.replace("namespace: projects", "namespace: argocd")),
        ("projects/first.yaml", &project("first")),
        ("projects/second.yaml", &project("second")),
    ]);
    repo.once(&[]).expect(0, &["all 2 Applications are Synced and Healthy"]);
}

/// A route of a platform, and what needs it.
const ROUTE: &str = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: web}\nspec:\n  to: {kind: Service, name: web}\n";

#[test]
fn what_a_platform_serves_by_itself_has_definitions_that_stand_in() {
    let repo = Repo::with(&[("root.yaml", &application("shop", "web")), ("web/route.yaml", ROUTE)]);
    repo.once(&[]).expect(0, &["stand in", "Route.route.openshift.io", "all 1 Applications are Synced"]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h", "--stand-ins", "never"]);
    run.expect(1, &["no kind Route of route.openshift.io", "waiting are web"]);
}

#[test]
fn kinds_that_kubernetes_no_longer_serves_get_no_definition() {
    let job =
        "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: night}\nspec: {schedule: '0 0 * * *'}\n";
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1")), ("manifests/job.yaml", job)]);
    let run = repo.once(&["--offline", "--stand-ins", "always"]);
    run.expect(1, &["Kubernetes no longer serves CronJob of batch"]);
    assert!(!run.text().contains("stand in"), "{}", run.text());
}

#[test]
fn what_a_chart_out_of_reach_would_define_has_definitions_that_stand_in() {
    let chart = application("operator", "x")
        .replace(URL, "https://charts.example.invalid")
        .replace("path: x", "chart: operator")
        .replace("targetRevision: HEAD", "targetRevision: 1.0.0");
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let repo = Repo::with(&[
        ("apps/operator.yaml", &chart),
        ("apps/shop.yaml", &application("shop", "web")),
        ("web/w.yaml", widget),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(
        1,
        &["stand in", "Widget.example.com", "1 of 2 Applications are not", "charts.example.invalid"],
    );
}

#[test]
fn the_operator_of_a_chart_out_of_reach_is_played_where_its_definitions_are_in_reach() {
    let chart = application("operator", "x")
        .replace(URL, "https://charts.example.invalid")
        .replace("path: x", "chart: external-secrets")
        .replace("targetRevision: HEAD", "targetRevision: 1.0.0");
    let any = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: externalsecrets.external-secrets.io}}\nspec:\n  group: external-secrets.io\n  scope: Namespaced\n  names: {{kind: ExternalSecret, plural: externalsecrets}}\n  versions: [{{name: v1, served: true, storage: true, subresources: {{status: {{}}}}, schema: {{openAPIV3Schema: {any}}}}}]\n"
    );
    let secret = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: database}\nspec:\n  target: {name: database}\n  data: [{secretKey: password, remoteRef: {key: shop}}]\n";
    let repo = Repo::with(&[
        ("apps/operator.yaml", &chart),
        ("apps/shop.yaml", &application("shop", "web")),
        ("web/crd.yaml", &definition),
        ("web/secret.yaml", secret),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["are played", "ExternalSecret.external-secrets.io", "1 of 2 Applications are not"]);
}

/// A chart that brings nothing, because nobody fetches it.
fn out_of_reach(name: &str) -> String {
    application(name, "x")
        .replace(URL, "https://charts.example.invalid")
        .replace("path: x", &format!("chart: {name}"))
        .replace("targetRevision: HEAD", "targetRevision: 1.0.0")
}

#[test]
fn a_host_that_does_not_answer_is_not_waited_for() {
    let chart =
        out_of_reach("operator").replace("https://charts.example.invalid", "https://127.0.0.1:1/charts");
    let repo = Repo::with(&[
        ("apps/operator.yaml", &chart),
        ("apps/shop.yaml", &application("shop", "web")),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let start = Instant::now();
    let run = repo.run(&["up", "repo", "--once", "--timeout", "1h"]);
    run.expect(1, &["1 of 2 Applications are not", "127.0.0.1 refuses the connection"]);
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
}

#[test]
fn issuers_that_something_out_of_reach_would_have_made_stand_in() {
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\nspec: {secretName: web, dnsNames: [web.example.com], issuerRef: {kind: ClusterIssuer, name: authority}}\n";
    let repo = Repo::with(&[
        ("apps/issuers.yaml", &out_of_reach("issuers")),
        ("apps/shop.yaml", &application("shop", "web")),
        ("web/certificate.yaml", certificate),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(
        1,
        &["issuers that certificates name", "ClusterIssuer/authority", "1 of 2 Applications are not"],
    );
}

#[test]
fn a_status_that_a_definition_has_as_its_default_waits_for_nobody() {
    let definition = r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gatewayclasses.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: gateway.networking.k8s.io
  scope: Cluster
  names: {kind: GatewayClass, listKind: GatewayClassList, plural: gatewayclasses, singular: gatewayclass}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            default:
              conditions:
              - {lastTransitionTime: '1970-01-01T00:00:00Z', message: Waiting for controller, reason: Pending, status: Unknown, type: Accepted}
";
    let class = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: web}\nspec: {controllerName: example.com/none}\n";
    let repo = Repo::with(&[
        ("apps/gateway.yaml", &application("gateway", "gateway")),
        ("gateway/definition.yaml", definition),
        ("gateway/class.yaml", class),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "60s"]);
    run.expect(
        0,
        &["their health does not count: GatewayClass.gateway.networking.k8s.io (1)", "all 1 Applications"],
    );
}

#[test]
fn a_project_of_another_installation_is_none_of_ones_own() {
    let elsewhere = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team, namespace: other}\nspec: {sourceRepos: ['*']}\n";
    let repo = Repo::with(&[
        ("apps/chart.yaml", &out_of_reach("chart")),
        ("apps/shop.yaml", &application("shop", "web").replace("project: default", "project: team")),
        (
            "apps/projects.yaml",
            &application("projects", "projects").replace("namespace: projects", "namespace: other"),
        ),
        ("projects/team.yaml", elsewhere),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["taken to allow everything: team", "1 of 3 Applications are not"]);
}

#[test]
fn clusters_apart_have_the_kinds_of_argo_cd_where_applications_bring_objects_of_them() {
    let in_cluster = |name: &str| {
        application(name, name)
            .replace("server: https://kubernetes.default.svc", &format!("name: {name}"))
            .replace(&format!("namespace: {name}\n  syncPolicy"), "namespace: shop\n  syncPolicy")
    };
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team}\nspec: {sourceRepos: ['*']}\n";
    let repo = Repo::with(&[
        ("apps/dev.yaml", &in_cluster("dev")),
        ("apps/prod.yaml", &in_cluster("prod")),
        ("dev/project.yaml", project),
        ("prod/project.yaml", project),
    ]);
    let run = repo.once(&[]);
    run.expect(0, &["Argo CD's kinds are there in the other clusters too", "all 2 Applications are Synced"]);
    // So is its namespace.
    let project = project.replace("name: team", "name: team, namespace: argocd");
    repo.write("dev/project.yaml", &project);
    repo.write("prod/project.yaml", &project);
    repo.once(&[]).expect(0, &["all 2 Applications are Synced"]);
}

#[test]
fn a_definition_that_one_cluster_lacks_is_left_alone_in_the_other() {
    let in_cluster = |name: &str| {
        application(name, name)
            .replace("server: https://kubernetes.default.svc", &format!("name: {name}"))
            .replace(&format!("namespace: {name}\n  syncPolicy"), "namespace: shop\n  syncPolicy")
    };
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]\n";
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let repo = Repo::with(&[
        ("apps/dev.yaml", &in_cluster("dev").replace("selfHeal: true", "selfHeal: false")),
        ("apps/prod.yaml", &in_cluster("prod")),
        ("apps/chart.yaml", &out_of_reach("chart")),
        ("dev/crd.yaml", definition),
        ("dev/widget.yaml", widget),
        ("prod/widget.yaml", widget),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["stand in", "Widget.example.com", "1 of 3 Applications are not"]);
}

#[test]
fn roots_side_by_side_that_lead_to_the_same_applications_are_asked_for() {
    let root = |environment: &str| {
        application(&format!("root-{environment}"), &format!("envs/{environment}"))
            .replace(&format!("namespace: root-{environment}"), "namespace: argocd")
    };
    let repo = Repo::with(&[
        ("bootstrap/root-dev.yaml", &root("dev")),
        ("bootstrap/root-local.yaml", &root("local")),
        ("envs/dev/shop.yaml", &application("shop", "web")),
        ("envs/local/shop.yaml", &application("shop", "web")),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    let asked = ["--environment bootstrap/dev", "--environment bootstrap/local"];
    repo.once(&[]).expect(2, &asked);
    for chosen in [["--path", "bootstrap/root-dev.yaml"], ["--environment", "dev"]] {
        repo.once(&chosen).expect(0, &["all 2 Applications are Synced and Healthy"]);
    }
}

#[test]
fn nodes_that_pods_ask_for_join_each_with_a_name_of_its_own() {
    let pod = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  nodeSelector: {{rack: {name}}}\n  containers: [{{name: c, image: web}}]\n"
        )
    };
    let names = ["one", "two", "three"];
    let files: Vec<(String, String)> =
        names.iter().map(|name| (format!("manifests/{name}.yaml"), pod(name))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Repo::shop(&files)
        .once(&[])
        .expect(0, &["rack=one, rack=three, rack=two", "all 1 Applications are Synced"]);
}

#[test]
fn kustomizations_that_inflate_charts_are_built_as_somebody_allowed() {
    let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    let repo = Repo::with(&[
        ("root.yaml", &application("shop", "web")),
        ("web/kustomization.yaml", "helmCharts:\n- name: web\n  releaseName: web\n"),
        ("web/charts/web/Chart.yaml", chart),
        ("web/charts/web/values.yaml", "{}\n"),
        ("web/charts/web/templates/c.yaml", template),
    ]);
    repo.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn no_wave_waits_for_a_chart_whose_dependencies_nobody_fetches() {
    let early = application("early", "charts/early").replace(
        "  namespace: argocd\n",
        "  namespace: argocd\n  annotations: {argocd.argoproj.io/sync-wave: \"-1\"}\n",
    );
    let chart = format!(
        "{}dependencies: [{{name: far, version: 1.0.0, repository: \"https://charts.example.invalid\"}}]\n",
        CHART.replace("NAME", "early")
    );
    let repo = Repo::with(&[
        ("root.yaml", &application("root", "apps")),
        ("apps/early.yaml", &early),
        ("apps/late.yaml", &application("late", "late")),
        ("charts/early/Chart.yaml", &chart),
        ("late/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&["--offline"]);
    run.expect(
        1,
        &["the sources of early cannot be had, so no wave waits for it", "1 of 3 Applications are not"],
    );
}

#[test]
fn a_secret_store_adds_to_the_secret_that_every_argo_cd_has() {
    let chart = application("operator", "x")
        .replace(URL, "https://charts.example.invalid")
        .replace("path: x", "chart: external-secrets")
        .replace("targetRevision: HEAD", "targetRevision: 1.0.0");
    let secret = |name: &str, target: &str| {
        format!(
            "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  target: {{name: {target}, creationPolicy: Merge}}\n  data: [{{secretKey: admin.password, remoteRef: {{key: admin}}}}]\n"
        )
    };
    let repo = Repo::with(&[
        ("apps/operator.yaml", &chart),
        ("apps/login.yaml", &application("login", "login")),
        ("login/secret.yaml", &secret("admin", "argocd-secret")),
        ("apps/other.yaml", &application("other", "other")),
        ("other/secret.yaml", &secret("other", "nowhere")),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["2 of 3 Applications are not", "other: Synced Degraded", "secret \"nowhere\" not found"]);
    assert!(!run.text().contains("login: "), "{}", run.text());
}

#[test]
fn hooks_may_run_as_argo_cds_own_service_accounts() {
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: look\n  annotations: {argocd.argoproj.io/hook: PreSync}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      serviceAccountName: NAME\n      containers: [{name: c, image: 'busybox:1', command: ['true']}]\n";
    let own = job.replace("NAME", "team-argocd-application-controller");
    let files = [("root.yaml", &*application("shop", "web")), ("web/a.yaml", &config_map("a", "1"))];
    let repo = Repo::with(&files);
    repo.write("web/job.yaml", own);
    repo.once(&[])
        .expect(0, &["all 1 Applications are Synced and Healthy", "ServiceAccounts of Argo CD itself"]);
    repo.write("web/job.yaml", job.replace("NAME", "forgotten"));
    repo.run(&["up", "repo", "--once", "--timeout", "1h"])
        .expect(1, &["error looking up service account", "forgotten"]);
}

#[test]
fn namespaces_that_somebody_makes_by_hand_are_made_if_one_asks_for_it() {
    let without =
        application("shop", "web").replace("syncOptions: [CreateNamespace=true]", "syncOptions: []");
    assert!(!without.contains("CreateNamespace"));
    let repo = Repo::with(&[("root.yaml", &without), ("web/a.yaml", &config_map("a", "1"))]);
    let run = repo.run(&["up", "repo", "--once", "--timeout", "5s"]);
    run.expect(1, &["namespaces \"shop\" not found", "--stand-ins always makes them"]);
    repo.once(&["--stand-ins", "always"])
        .expect(0, &["all 1 Applications are Synced and Healthy", "are there all the same: shop"]);
}

#[test]
fn namespaces_of_files_that_no_application_reads_are_applied_by_hand() {
    let no_namespace =
        application("shop", "web").replace("syncOptions: [CreateNamespace=true]", "syncOptions: []");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: shop}}\n";
    let repo = Repo::with(&[
        ("apps/shop.yaml", &no_namespace),
        ("web/a.yaml", &config_map("a", "1")),
        ("by-hand/namespaces.yaml", namespace),
    ]);
    repo.once(&[])
        .expect(0, &["namespaces of files that no Application reads are there", "(--stand-ins never"]);
    repo.once(&["--stand-ins", "never"]).expect(1, &["namespaces \"shop\" not found"]);
}

/// A root that leads to a database of a storage class in wave 1 and to a second Application in wave 2.
fn waves_over_a_class(second: &str) -> Repo {
    let in_wave = |name: &str, path: &str, wave: u8| {
        let annotations =
            format!("  namespace: argocd\n  annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}\n");
        application(name, path).replacen("  namespace: argocd\n", &annotations, 1)
    };
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 1Gi}}}\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec:\n  \
        containers: [{name: db, image: 'postgres:16', volumeMounts: [{name: d, mountPath: /d}]}]\n  \
        volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n";
    Repo::with(&[
        ("root.yaml", &application("root", "apps").replace("namespace: root", "namespace: argocd")),
        ("apps/db.yaml", &in_wave("db", "db", 1)),
        ("apps/second.yaml", &in_wave("second", "second", 2)),
        ("db/claim.yaml", claim),
        ("db/pod.yaml", pod),
        ("second/a.yaml", second),
    ])
}

#[test]
fn a_class_that_nobody_brings_does_not_wait_for_later_waves() {
    let repo = waves_over_a_class(&config_map("a", "1"));
    let run = repo.once(&[]);
    run.expect(0, &["all 3 Applications are Synced and Healthy"]);
    let text = run.text();
    assert_eq!(text.lines().filter(|line| line.contains("gp3")).count(), 1, "it is said once:\n{text}");
}

#[test]
fn a_class_that_comes_too_late_is_the_cause_and_a_person_hears_it_without_waiting() {
    let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: x\n";
    let repo = waves_over_a_class(class);
    let mut running = repo.start(&[]);
    let result = running.until(|event| event["event"] == "result");
    assert_eq!(result["green"], false);
    let db = result["applications"].as_array().unwrap().iter().find(|app| app["name"] == "db").unwrap();
    assert!(db.to_string().contains("gp3"), "{db}");
}

#[test]
fn a_class_of_an_application_whose_chart_is_out_of_reach_stands_in() {
    let kustomization = "resources: [class.yaml]\nhelmCharts:\n  - {name: driver, repo: 'https://charts.example.invalid', version: 1.0.0, releaseName: driver}\n";
    let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: x\n";
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
        spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}\n";
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata: {kustomize.buildOptions: --enable-helm}\n";
    let repo = Repo::with(&[
        ("argocd-cm.yaml", settings),
        ("apps/driver.yaml", &application("driver", "driver")),
        ("apps/shop.yaml", &application("shop", "web")),
        ("driver/kustomization.yaml", kustomization),
        ("driver/class.yaml", class),
        ("web/claim.yaml", claim),
    ]);
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["storage classes that nothing in reach brings", "fast", "1 of 2 Applications are not"]);
}

#[test]
fn what_a_script_of_the_repository_installs_and_makes_stands_in() {
    let script = "#!/bin/sh\nhelm upgrade --install external-secrets external-secrets/external-secrets -n external-secrets\n\
        kubectl create configmap brokers -n shop --from-literal=hosts=kafka:9092\n";
    let secret = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: database}\nspec:\n  target: {name: database}\n  data: [{secretKey: password, remoteRef: {key: shop}}]\n";
    let pod = |map: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  containers: [{{name: web, image: 'nginx:1.27', envFrom: [{{configMapRef: {{name: {map}}}}}]}}]\n"
        )
    };
    let files = [("root.yaml", &*application("shop", "web")), ("web/secret.yaml", secret)];
    let repo = Repo::with(&[&files[..], &[("web/pod.yaml", &pod("brokers"))]].concat());
    repo.write("scripts/bring-up.sh", script);
    let played = "definitions that take any field stand in";
    repo.once(&["--offline"]).expect(0, &[played, "scripts or playbooks make", "ConfigMap/brokers in shop"]);

    // What no script makes is still missed, and without the script so is the kind.
    repo.write("web/pod.yaml", pod("topics"));
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["configmap \"topics\" not found"]);
    repo.write("scripts/bring-up.sh", "#!/bin/sh\nhelm upgrade --install argocd argo/argo-cd -n argocd\n");
    let run = repo.run(&["up", "repo", "--once", "--offline", "--timeout", "1h"]);
    run.expect(1, &["no kind ExternalSecret of external-secrets.io"]);
}
