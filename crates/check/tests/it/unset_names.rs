//! Names and addresses that lead nowhere: variables, charts, branches, roles, Services of operators.

use std::sync::Arc;

use tiphys_check::{Context, check, rules};
use tiphys_vfs::MemTree;

use crate::common::{self, found};

fn kustomization(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
    )
}

fn cluster(app: &str, objects: &str) -> Vec<(&'static str, String)> {
    vec![
        ("clusters/home/flux-system/sync.yaml", kustomization("flux-system", "./clusters/home", "")),
        ("clusters/home/web.yaml", app.to_owned()),
        ("apps/web/map.yaml", objects.to_owned()),
    ]
}

fn found_in(rule: &str, files: &[(&'static str, String)]) -> Vec<String> {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    found(rule, &files)
}

#[test]
fn a_variable_needs_a_value() {
    const CLAIM: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${APP}', namespace: '${NS}'}\n";
    let of = |post_build: &str, objects: &str| {
        found_in("D2-unset-variable", &cluster(&kustomization("web", "./apps/web", post_build), objects))
    };
    let given = |vars: &str| format!("  postBuild: {{substitute: {vars}}}\n");
    assert_eq!(of(&given("{APP: web}"), CLAIM).len(), 1);
    assert!(of(&given("{APP: web, NS: shop}"), CLAIM).is_empty());
    // Without any, Flux replaces nothing.
    assert!(of("", CLAIM).is_empty());
    assert!(of(&given("{APP: web}"), &CLAIM.replace("${NS}", "${NS:=shop}")).is_empty());
    let hidden = "  postBuild: {substitute: {APP: web}, substituteFrom: [{kind: Secret, name: vars}]}\n";
    assert!(of(hidden, CLAIM).is_empty());
}

#[test]
fn a_kustomization_does_not_build_itself() {
    let of = |path: &str| {
        let files = [
            ("clusters/home/flux-system/sync.yaml", kustomization("flux-system", "./clusters/home", "")),
            ("clusters/home/apps.yaml", kustomization("apps", "./apps", "")),
            ("apps/kustomization.yaml", "resources: [web/ks.yaml]\n".to_owned()),
            ("apps/web/ks.yaml", kustomization("web", path, "")),
            (
                "apps/web/app/map.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n".to_owned(),
            ),
        ];
        found_in("D2-flux-self", &files)
    };
    assert_eq!(of("./apps/web").len(), 1);
    assert!(of("./apps/web/app").is_empty());
}

#[test]
fn an_artifact_is_no_folder_of_charts() {
    let of = |url: &str| {
        let release = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: web, namespace: shop}}\nspec: {{url: '{url}'}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: shop}}\nspec: {{chartRef: {{kind: OCIRepository, name: web}}}}\n"
        );
        found("D2-oci-address", &[("shop/release.yaml", &release)])
    };
    assert_eq!(of("oci://registry.example.com/shop/charts").len(), 1);
    assert!(of("oci://registry.example.com/shop/charts/web").is_empty());
}

#[test]
fn operators_call_services_by_their_resource() {
    let of = |host: &str, more: &str| {
        let files = format!(
            "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {{name: shop, namespace: data}}\nspec: {{instances: 1}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: shop}}\ndata: {{HOST: '{host}'}}\n{more}"
        );
        found("F4-operated-host", &[("data/all.yaml", &files)])
    };
    assert_eq!(of("shop-db-rw.data.svc.cluster.local", "").len(), 1);
    assert!(of("shop-rw.data.svc.cluster.local", "").is_empty());
    // No operator's word is in the name, and another namespace is not seen.
    assert!(of("shop-web.data.svc.cluster.local", "").is_empty());
    assert!(of("web-rw.other.svc.cluster.local", "").is_empty());
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: shop-db-rw, namespace: data}\nspec: {ports: [{port: 1}]}\n";
    assert!(of("shop-db-rw.data.svc.cluster.local", service).is_empty());
}

#[test]
fn a_role_is_one_that_there_is() {
    let of = |line: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-rbac-cm, namespace: argocd}}\ndata:\n  policy.csv: |\n    p, role:deployer, applications, sync, */*, allow\n    {line}\n"
        );
        found("C2-argocd-policy", &[("argocd/rbac.yaml", &map)])
    };
    assert_eq!(of("g, ann, role:adming").len(), 1);
    assert_eq!(of("g, ann, role:deploier").len(), 1);
    for right in ["g, ann, role:admin", "g, ann, role:deployer", "g, ann, role:auditors"] {
        assert!(of(right).is_empty(), "{right}");
    }
}

#[test]
fn toml_has_inline_tables_of_one_line() {
    let of = |text: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: shop}}\ndata:\n  web.toml: |\n    {text}\n"
        );
        found("D2-broken-text", &[("shop/web.yaml", &map)])
    };
    assert_eq!(of("a = {\n      b = 1 }").len(), 1);
    assert_eq!(of("a = [1, 2\n    b = 3").len(), 1);
    assert!(of("a = [\n      {b = \"{\\n\"}, # {\n    ]").is_empty());
    assert!(of("a = {b = 1, c = [\n      1]}").is_empty());
}

#[test]
fn a_patch_names_the_namespace_of_what_it_patches() {
    let of = |namespace: &str| {
        let overlay = format!(
            "resources: [../base]\npatches:\n- target: {{kind: Basket, name: shop, namespace: {namespace}}}\n  patch: '[{{\"op\": \"replace\", \"path\": \"/spec/size\", \"value\": 2}}]'\n"
        );
        let files = [
            ("base/kustomization.yaml", "resources: [basket.yaml]\n"),
            (
                "base/basket.yaml",
                "apiVersion: example.com/v1\nkind: Basket\nmetadata: {name: shop, namespace: web}\nspec: {size: 1}\n",
            ),
            ("overlay/kustomization.yaml", overlay.as_str()),
        ];
        found("D2-no-effect", &files)
    };
    assert_eq!(of("wbe").len(), 1);
    assert!(of("web").is_empty());
}

fn workflow(on: &str, step: &str) -> String {
    format!(
        "on: {on}\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - id: tags\n        run: make\n{step}  deploy:\n    needs: [build]\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{{{ needs.build.result }}}}\n"
    )
}

#[test]
fn contexts_have_what_they_are_asked_for() {
    let of = |asked: &str| {
        let text = workflow("push", &format!("      - run: echo ${{{{ {asked} }}}}\n"));
        found("G1-workflow-refused", &[(".github/workflows/web.yaml", &text)])
    };
    for wrong in ["github.even_name", "github.branch", "runner.ose", "github.pull_request.number"] {
        assert_eq!(of(wrong).len(), 1, "{wrong}");
    }
    for right in ["github.event_name", "github.some_new_field", "runner.os"] {
        assert!(of(right).is_empty(), "{right}");
    }
}

#[test]
fn a_step_closes_what_it_opens() {
    let of = |script: &str| {
        let text = workflow("push", &format!("      - run: |\n          {script}\n"));
        found("G1-script-syntax", &[(".github/workflows/web.yaml", &text)])
    };
    assert_eq!(of("TAG=$(git describe").len(), 1);
    assert_eq!(of("echo \"tag=$TAG").len(), 1);
    assert!(of("echo \"${{ github.event.head_commit.message == 'it''s' }}\"").is_empty());
    assert!(of("TAG=$(git describe)").is_empty());
}

#[test]
fn a_step_asks_for_the_branch_that_there_is() {
    let of = |branch: &str, script: &str| {
        let on = format!("{{push: {{branches: [{branch}]}}}}");
        let text = workflow(&on, &format!("      - run: {script}\n"));
        found("G1-other-branch", &[(".github/workflows/web.yaml", &text)])
    };
    assert_eq!(of("master", "git diff origin/main").len(), 1);
    assert_eq!(of("main", "git diff origin/master...HEAD").len(), 1);
    assert!(of("main", "git diff origin/main").is_empty());
    assert!(of("main, master", "git diff origin/main").is_empty());
    assert!(of("master", "git diff origin/main || git diff origin/master").is_empty());
}

#[test]
fn terraform_makes_a_secret_where_it_is_read() {
    let of = |namespace: &str| {
        let text = format!(
            "resource \"kubernetes_secret\" \"db\" {{\n  metadata {{\n    name = \"db\"\n{namespace}  }}\n}}\nresource \"helm_release\" \"shop\" {{\n  name = \"shop\"\n  chart = \"shop\"\n  namespace = \"shop\"\n  set {{\n    name = \"existingSecret\"\n    value = kubernetes_secret.db.metadata[0].name\n  }}\n}}\n"
        );
        found("G4-secret-namespace", &[("infra/main.tf", &text)])
    };
    assert_eq!(of("").len(), 1);
    assert!(of("    namespace = \"shop\"\n").is_empty());
}

#[test]
fn values_name_what_the_repository_makes() {
    let of = |name: &str| {
        let releases = (0..6).map(|at| {
            let secret = if at == 0 { name.to_owned() } else { format!("s{at}") };
            format!(
                "---\napiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: s{at}, namespace: shop}}\nspec: {{}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web{at}, namespace: shop}}\nspec:\n  chart: {{spec: {{chart: web, sourceRef: {{kind: HelmRepository, name: web}}}}}}\n  values: {{envFrom: [{{secretRef: {{name: {secret}}}}}]}}\n"
            )
        });
        let objects: String = releases.collect();
        found_in("E2-values-reference", &cluster(&kustomization("web", "./apps/web", ""), &objects))
    };
    assert_eq!(of("other").len(), 1);
    assert!(of("s0").is_empty());
    // The release may make it itself.
    assert!(of("web0-db").is_empty());
}

#[test]
fn parts_of_app_template_name_each_other() {
    let of = |values: &str| {
        let release = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: bjw-s, namespace: flux-system}}\nspec: {{url: 'https://charts.example.com'}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: shop}}\nspec:\n  chart: {{spec: {{chart: app-template, version: 3.5.1, sourceRef: {{kind: HelmRepository, name: bjw-s, namespace: flux-system}}}}}}\n  values:\n    controllers: {{web: {{containers: {{app: {{image: {{repository: web, tag: v1}}}}}}}}}}\n{values}"
        );
        found("D2-app-template", &[("shop/release.yaml", &release)])
    };
    const SERVICE: &str = "    service: {app: {controller: web, ports: {http: {port: 80}}}}\n";
    for wrong in [
        "    service: {app: {controller: main, ports: {http: {port: 80}}}}\n".to_owned(),
        format!(
            "{SERVICE}    ingress: {{app: {{hosts: [{{host: a, paths: [{{path: /, service: {{identifier: web, port: http}}}}]}}]}}}}\n"
        ),
        format!(
            "{SERVICE}    ingress: {{app: {{hosts: [{{host: a, paths: [{{path: /, service: {{identifier: app, port: web}}}}]}}]}}}}\n"
        ),
        format!(
            "{SERVICE}    route: {{app: {{rules: [{{backendRefs: [{{identifier: main, port: 80}}]}}]}}}}\n"
        ),
        format!("{SERVICE}    serviceMonitor: {{app: {{endpoints: [{{port: metrics}}]}}}}\n"),
        "    persistence: {data: {existingClaim: web, advancedMounts: {web: {main: [{path: /data}]}}}}\n"
            .to_owned(),
        "    persistence: {data: {type: emptydir}}\n".to_owned(),
    ] {
        assert_eq!(of(&wrong).len(), 1, "{wrong}");
    }
    for right in [
        SERVICE.to_owned(),
        format!(
            "{SERVICE}    ingress: {{app: {{hosts: [{{host: a, paths: [{{path: /, service: {{identifier: app, port: http}}}}]}}]}}}}\n"
        ),
        format!("{SERVICE}    route: {{app: {{rules: [{{backendRefs: [{{name: main, port: 80}}]}}]}}}}\n"),
        "    persistence: {data: {existingClaim: web, advancedMounts: {web: {app: [{path: /data}]}}}}\n"
            .to_owned(),
    ] {
        assert!(of(&right).is_empty(), "{right} {:?}", of(&right));
    }
}

#[test]
fn accounts_of_app_template_have_identifiers() {
    let of = |version: &str, account: &str| {
        let release = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: bjw-s, namespace: shop}}\nspec: {{url: 'https://charts.example.com'}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: shop}}\nspec:\n  chart: {{spec: {{chart: app-template, version: {version}, sourceRef: {{kind: HelmRepository, name: bjw-s}}}}}}\n  values:\n    controllers: {{web: {{containers: {{app: {{image: {{repository: web, tag: v1}}}}}}}}}}\n    serviceAccount: {account}\n"
        );
        found("D2-app-template", &[("shop/release.yaml", &release)]).len()
    };
    assert_eq!(of("4.1.2", "{create: false, name: web}"), 1);
    assert_eq!(of("3.7.1", "{create: false, name: web}"), 0);
    assert_eq!(of("4.1.2", "{web: {}}"), 0);
}

#[test]
fn a_kustomization_that_replaces_nothing_leaves_variables() {
    const CLAIM: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${APP}', namespace: shop}\n";
    let files = |other: &str| {
        let mut files = cluster(&kustomization("web", "./apps/web", ""), CLAIM);
        files.push(("clusters/home/api.yaml", kustomization("api", "./apps/api", other)));
        files.push(("apps/api/map.yaml", CLAIM.to_owned()));
        files
    };
    let of = |other: &str| found_in("D2-unset-variable", &files(other)).len();
    assert_eq!(of("  postBuild: {substitute: {APP: api}}\n"), 1);
    assert_eq!(of(""), 0);
}

#[test]
fn a_template_asks_for_what_is_fetched() {
    let of = |template: &str| {
        let secret = format!(
            "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: db, namespace: shop}}\nspec:\n  target: {{template: {{data: {{url: '{template}'}}}}}}\n  data: [{{secretKey: password, remoteRef: {{key: db}}}}]\n"
        );
        found("C2-template-key", &[("shop/db.yaml", &secret)])
    };
    assert_eq!(of("{{ .user }}:{{ .password }}").len(), 1);
    assert!(of("app:{{ .password }}").is_empty());
}

#[test]
fn a_condition_asks_for_what_is_registered() {
    let of = |name: &str| {
        let tasks = format!(
            "- name: look\n  stat: {{path: /etc/rc.local}}\n  register: rcfile\n- name: remove\n  file: {{path: /etc/rc.local, state: absent}}\n  when: {name}.stat.exists\n"
        );
        found("G2-unknown-result", &[("roles/reset/tasks/main.yml", &tasks)])
    };
    assert_eq!(of("rclocal").len(), 1);
    assert!(of("rcfile").is_empty());
}

#[test]
fn scripts_of_the_repository_are_read() {
    let of = |script: &str| found("G1-script-syntax", &[("bin/up.sh", script)]);
    assert_eq!(of("#!/bin/bash\nfor a in b; do\n  c\n").len(), 1);
    assert!(of("#!/bin/bash\nfor a in b; do\n  c\ndone\n").is_empty());
    assert!(of("#!/bin/fish\nfor a in b\n  echo \"\nend\n").is_empty());
}

#[test]
fn releases_of_app_template_call_their_services() {
    let of = |host: &str| {
        let objects = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: shop}}\nspec:\n  chart: {{spec: {{chart: app-template, version: 3.5.1, sourceRef: {{kind: HelmRepository, name: bjw-s}}}}}}\n  values: {{service: {{app: {{controller: web}}}}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: api, namespace: shop}}\ndata: {{HOST: '{host}'}}\n"
        );
        found("F4-operated-host", &[("shop/all.yaml", &objects)])
    };
    assert_eq!(of("web-app.shop.svc.cluster.local").len(), 1);
    assert!(of("web.shop.svc.cluster.local").is_empty());
    assert!(of("other.shop.svc.cluster.local").is_empty());
}

#[test]
fn values_stand_below_values() {
    let of = |field: &str| {
        let releases = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: shop}}\nspec:\n  interval: 5m\n  {field}: {{enabled: true}}\n  values: {{image: {{tag: v1}}}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: api, namespace: shop}}\nspec: {{values: {{ingress: {{enabled: true}}}}}}\n"
        );
        let survey =
            common::survey(Arc::new(MemTree::from_files([("shop/releases.yaml", releases.as_str())])));
        let findings = check(&Context::new(&survey, None), rules::ALL).findings;
        let unknown = findings.iter().filter(|it| it.diagnostic.rule == "C2-invalid");
        unknown.flat_map(|it| it.diagnostic.help.clone()).collect::<Vec<String>>()
    };
    let is_told = |field: &str, help: &str| of(field).iter().any(|it| it == help);
    assert!(is_told("ingress", "it is meant to be one of the values"));
    assert!(is_told("remediation", "it stands below install or upgrade"));
    assert!(!is_told("install", "it is meant to be one of the values"));
}

#[test]
fn a_folder_beside_a_chart_hides_its_services_only_if_it_may_bring_some() {
    let of = |kind: &str, host: &str| {
        let app = |name: &str, namespace: &str, sources: &str| {
            format!(
                "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}\n  sources:\n{sources}"
            )
        };
        let store = "  - {repoURL: https://charts.bitnami.com/bitnami, chart: postgresql, targetRevision: 16.2.1}\n  - {repoURL: https://git.example.com/shop, path: store, targetRevision: HEAD}\n";
        let web = "  - {repoURL: https://git.example.com/shop, path: web, targetRevision: HEAD}\n";
        let apps = app("postgresql", "store", store) + &app("web", "web", web);
        let beside = format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: extra, namespace: store}}\n");
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, namespace: web}}\nspec: {{containers: [{{name: web, image: \"web:1.0.0\", env: [{{name: DB, value: \"{host}.store.svc.cluster.local:5432\"}}]}}]}}\n"
        );
        let files =
            [("root/apps.yaml", apps.as_str()), ("store/extra.yaml", &beside), ("web/pod.yaml", &pod)];
        found("F4-unknown-host", &files).len()
    };
    assert_eq!(of("ConfigMap", "postgresql-postgresql"), 1);
    assert_eq!(of("ConfigMap", "postgresql"), 0);
    assert_eq!(of("Service", "postgresql-postgresql"), 0);
}

#[test]
fn a_comment_silences_the_value_that_it_stands_at_alone() {
    let of = |comment: &str| {
        let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: watch, namespace: argocd}\nspec:\n  project: default\n  destination: {server: https://kubernetes.default.svc, namespace: watch}\n  sources:\n  - {repoURL: https://grafana.github.io/helm-charts, chart: grafana, targetRevision: 8.5.0, helm: {valueFiles: [$values/watch/values.yaml]}}\n  - {repoURL: https://git.example.com/shop, targetRevision: HEAD, ref: values}\n";
        let values = format!("defaultDashboardsOn: true{comment}\nsidecarsOn: true\nreplicas: 1\n");
        let files = [("root/app.yaml", app), ("watch/values.yaml", &values)];
        found("D2-unread-values", &files)
    };
    let both = of("");
    assert_eq!(both.len(), 1);
    assert!(both[0].contains("defaultDashboardsOn") && both[0].contains("sidecarsOn"));
    let one = of("   # tiphys:ignore D2-unread-values another program reads it");
    // What the comment silences is told by itself, and the comment holds for nothing else.
    assert_eq!(one.len(), 2, "{one:?}");
    assert!(one.iter().all(|it| it.contains("defaultDashboardsOn") != it.contains("sidecarsOn")), "{one:?}");
}
