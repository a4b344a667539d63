//! Slips that nothing refuses: entries, texts and rules that fit nothing or say another thing than is meant.

use crate::common::found;

fn secret_of(template: &str, keys: &str) -> String {
    format!(
        "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: db, namespace: shop}}\nspec:\n  secretStoreRef: {{name: vault, kind: ClusterSecretStore}}\n  target:\n    template:\n      data:\n{template}\n  data: [{keys}]\n"
    )
}

const PASSWORD: &str = "{secretKey: password, remoteRef: {key: db}}";

#[test]
fn a_template_within_a_template_stays_a_text() {
    let of =
        |template: &str| found("C2-escaped-template", &[("shop/db.yaml", &secret_of(template, PASSWORD))]);
    assert_eq!(of("        url: 'pg://app:{{ `{{ .password }}` }}@db'").len(), 1);
    assert!(of("        url: 'pg://app:{{ .password }}@db'").is_empty());
    // A program fills in the alert later; the password is fetched.
    let alert = "        text: '{{ .password }} {{ `{{ .Labels.alertname }}` }}'";
    assert!(of(alert).is_empty(), "{:?}", of(alert));
}

#[test]
fn an_alias_between_quotes_is_a_text() {
    let of = |value: &str| {
        let template =
            format!("        DB_PASSWORD: &password '{{{{ .password }}}}'\n        PGPASSWORD: {value}");
        found("D2-quoted-alias", &[("shop/db.yaml", &secret_of(&template, PASSWORD))])
    };
    assert_eq!(of("\"*password\"").len(), 1);
    assert!(of("*password").is_empty());
    // Nothing in the file is called so.
    assert!(of("\"*secret\"").is_empty());
}

#[test]
fn texts_of_external_secrets_and_networks_are_read() {
    let of = |template: &str| found("D2-broken-text", &[("shop/db.yaml", &secret_of(template, PASSWORD))]);
    let text = |port: &str| {
        format!("        app.json: |\n          {{\"password\": \"{{{{ .password }}}}\"{port} \"port\": 1}}")
    };
    assert_eq!(of(&text("")).len(), 1);
    assert!(of(&text(",")).is_empty());
    // What a condition leaves out is not told.
    let chosen = "        app.json: |\n          {{{ if .password }} \"a\": {{ else }} {{ end }} 1}";
    assert!(of(chosen).is_empty());
    let network = |comma: &str| {
        format!(
            "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {{name: lan, namespace: shop}}\nspec:\n  config: |-\n    {{\"routes\": [{{\"dst\": \"10.0.0.0/8\"}}{comma} {{\"dst\": \"10.1.0.0/16\"}}]}}\n"
        )
    };
    let of = |comma: &str| found("D2-broken-text", &[("shop/lan.yaml", &network(comma))]);
    assert_eq!(of("").len(), 1);
    assert!(of(",").is_empty());
}

#[test]
fn a_rule_of_a_route_needs_a_backend_of_its_own() {
    let of = |rules: &str| {
        let route = format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: web, namespace: shop}}\nspec:\n  rules:\n{rules}"
        );
        found("F4-rule-without-backend", &[("shop/route.yaml", &route)])
    };
    let hooks = "  - matches: [{path: {value: /hooks}}]\n";
    assert_eq!(of(&format!("{hooks}  - backendRefs: [{{name: web, port: 80}}]\n")).len(), 1);
    assert!(of(&format!("{hooks}    backendRefs: [{{name: web, port: 80}}]\n")).is_empty());
    let answers = "    filters: [{type: ExtensionRef, extensionRef: {group: a.b, kind: C, name: d}}]\n  - backendRefs: [{name: web, port: 80}]\n";
    assert!(of(&format!("{hooks}{answers}")).is_empty());
}

#[test]
fn an_entry_of_a_project_has_to_fit_something() {
    let of = |entry: &str| {
        let project = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {{name: shop, namespace: argocd}}\nspec:\n  clusterResourceWhitelist: [{entry}]\n"
        );
        found("D2-project-entry", &[("project.yaml", &project)])
    };
    for wrong in [
        "{group: 'rbac.authorization.k8s.io:', kind: ClusterRole}",
        "{group: '', kind: ClusterRole}",
        "{group: rbac.authorization.k8s.io/v1, kind: ClusterRole}",
        "{group: '', kind: namespaces}",
    ] {
        assert_eq!(of(wrong).len(), 1, "{wrong}");
    }
    for right in [
        "{group: rbac.authorization.k8s.io, kind: ClusterRole}",
        "{group: '', kind: Namespace}",
        "{group: '*', kind: '*'}",
        "{group: '*.k8s.io', kind: ClusterRole}",
        "{group: shop.example.com, kind: Basket}",
    ] {
        assert!(of(right).is_empty(), "{right}");
    }
}

#[test]
fn a_pointer_begins_at_the_object() {
    let of = |pointer: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: apps, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://git.example.com/x', path: apps}}\n  destination: {{name: in-cluster, namespace: argocd}}\n  ignoreDifferences: [{{group: argoproj.io, kind: Application, jsonPointers: [{pointer}]}}]\n"
        );
        found("B5-ignores-nothing", &[("root.yaml", &app)])
    };
    assert_eq!(of("/syncPolicy").len(), 0);
    assert_eq!(of("/ignoreDifferences").len(), 1);
    assert!(of("/spec/ignoreDifferences").is_empty());
    assert!(of("/status").is_empty());
}

#[test]
fn a_folder_that_values_name_is_looked_for() {
    let of = |last: &str, more: &str| {
        let values = format!(
            "applications:\n  a: {{namespace: a, source: {{path: parts/a}}}}\n  b: {{namespace: b, source: {{path: parts/b}}}}\n  c: {{namespace: c, source: {{path: parts/c}}}}\n  d: {{namespace: d, source: {{path: {last}{more}}}}}\n"
        );
        const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";
        let files = [
            ("bootstrap/values.yaml", values.as_str()),
            ("parts/a/map.yaml", MAP),
            ("parts/b/map.yaml", MAP),
            ("parts/c/map.yaml", MAP),
            ("parts/dashboard/map.yaml", MAP),
        ];
        found("D2-values-path", &files)
    };
    assert_eq!(of("parts/dashbaord", "").len(), 1);
    assert!(of("parts/dashboard", "").is_empty());
    assert!(of("parts/other", ", repoURL: 'https://git.example.com/other'").is_empty());
}

#[test]
fn a_pool_of_addresses_begins_before_it_ends() {
    let of = |range: &str| {
        let pool = format!(
            "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {{name: lan, namespace: metallb-system}}\nspec: {{addresses: [{range}]}}\n"
        );
        found("C2-admission-refused", &[("metallb/pool.yaml", &pool)])
    };
    assert_eq!(of("10.12.185.32-10.12.175.63").len(), 1);
    assert!(of("10.12.185.32-10.12.185.63").is_empty());
    assert!(of("10.12.185.0/24").is_empty());
}

#[test]
fn an_event_is_compared_with_a_name_that_there_is() {
    let of = |name: &str| {
        let workflow = format!(
            "on: [push, pull_request]\njobs:\n  web:\n    runs-on: ubuntu-latest\n    if: github.event_name == '{name}'\n    steps: [{{run: make}}]\n"
        );
        found("G1-workflow-refused", &[(".github/workflows/web.yaml", &workflow)])
    };
    assert_eq!(of("pull").len(), 1);
    assert_eq!(of("pull_requst").len(), 1);
    for right in ["push", "schedule", "workflow_dispatch", "some_new_event"] {
        assert!(of(right).is_empty(), "{right}");
    }
}

#[test]
fn a_patch_that_no_application_builds_is_held_against_its_base() {
    const BASE: &str = "apiVersion: example.com/v1\nkind: Basket\nmetadata: {name: shop}\nspec: {size: 1}\n";
    let of = |name: &str| {
        let overlay = format!(
            "resources: [../base]\npatchesJson6902:\n- target: {{group: example.com, version: v1, kind: Basket, name: {name}}}\n  patch: '[{{\"op\": \"replace\", \"path\": \"/spec/size\", \"value\": 2}}]'\n"
        );
        let files = [
            ("base/kustomization.yaml", "resources: [basket.yaml]\n"),
            ("base/basket.yaml", BASE),
            ("overlay/kustomization.yaml", overlay.as_str()),
        ];
        found("D2-no-effect", &files)
    };
    assert_eq!(of("web").len(), 1);
    assert!(of("shop").is_empty());
}

#[test]
fn a_release_that_leaves_the_definitions_out_in_any_way_tells_nothing() {
    let of = |values: &str| {
        let release = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: eso, namespace: flux-system}}\nspec: {{url: 'https://charts.external-secrets.io'}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: external-secrets, namespace: eso}}\nspec:\n  chart: {{spec: {{chart: external-secrets, version: 0.18.2, sourceRef: {{kind: HelmRepository, name: eso, namespace: flux-system}}}}}}\n  values: {values}\n"
        );
        let secret = secret_of("        a: b", PASSWORD)
            .replace("external-secrets.io/v1", "external-secrets.io/v1beta1");
        found("C2-unserved-version", &[("eso/release.yaml", &release), ("shop/db.yaml", &secret)])
    };
    assert_eq!(of("{}").len(), 1);
    assert!(of("{installCRDs: false}").is_empty());
    assert!(of("{crds: {install: false}}").is_empty());
}
