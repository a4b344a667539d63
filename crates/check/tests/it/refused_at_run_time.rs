//! What the API server takes and a program refuses or leaves out when it runs: rules of routes, names of
//! releases, shells, texts that Flux substitutes, each beside a good one.

use crate::common::found;

#[test]
fn a_rule_of_a_route_is_read_as_the_installed_traefik_does() {
    let of = |image: &str, rule: &str| {
        let proxy = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: proxy, namespace: edge}}\nspec:\n  selector: {{matchLabels: {{app: proxy}}}}\n  template:\n    metadata: {{labels: {{app: proxy}}}}\n    spec: {{containers: [{{name: proxy, image: \"{image}\"}}]}}\n"
        );
        let route = format!(
            "apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: {{name: web, namespace: shop}}\nspec:\n  routes: [{{kind: Rule, match: '{rule}', services: [{{name: web, port: 80}}]}}]\n"
        );
        found("C2-route-rule", &[("edge/proxy.yaml", &proxy), ("shop/route.yaml", &route)])
    };
    let headers = "Host(`shop.example.com`) && HeadersRegexp(`Authorization`, `^Bearer`)";
    assert_eq!(of("traefik:v3.1", headers).len(), 1);
    assert!(of("traefik:v2.11", headers).is_empty());
    let two = "Host(`a.example.com`, `b.example.com`)";
    assert_eq!(of("traefik:v3.1", two).len(), 1);
    assert!(of("traefik:v2.11", two).is_empty());
    assert_eq!(of("traefik:v2.11", "Host(`shop.example.com`) && PathPrefix(`/x`").len(), 1);
    assert!(of("traefik:v3.1", "Host(`shop.${DOMAIN}`) && !PathPrefix(`/x`)").is_empty());
}

#[test]
fn a_release_has_a_name_that_helm_takes() {
    let of = |name: &str| {
        let set = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: shop, namespace: argocd}}\nspec:\n  generators: [{{list: {{elements: [{{name: eu}}]}}}}]\n  template:\n    metadata: {{name: 'shop-{{{{name}}}}'}}\n    spec:\n      project: default\n      destination: {{server: https://kubernetes.default.svc, namespace: shop}}\n      source: {{repoURL: https://charts.example.com, chart: shop, targetRevision: 1.0.0, helm: {{releaseName: '{name}'}}}}\n"
        );
        !found("C2-release-name", &[("set.yaml", &set)]).is_empty()
    };
    assert!(of("shop_web"));
    assert!(!of("shop-web") && !of("shop-{{name}}"));
}

#[test]
fn a_shell_is_in_the_image_that_runs_it() {
    let of = |image: &str, program: &str| {
        let job = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: clean, namespace: shop}}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{{name: clean, image: \"{image}\", command: [{program}, -c, kubectl get pods]}}]\n"
        );
        found("E6-no-shell", &[("job.yaml", &job)]).len()
    };
    assert_eq!(of("registry.k8s.io/kubectl:v1.33.0", "/bin/bash"), 1);
    assert_eq!(of("docker.io/alpine/k8s:1.33.0", "/bin/bash"), 0);
}

/// What Flux builds with variables, of which one is known.
fn flux(config: &str) -> Vec<(&'static str, String)> {
    let cluster = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1m, url: \"https://git.example.com/shop\", ref: {branch: main}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1m, path: ./cluster, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\nspec: {interval: 1m, path: ./web, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, postBuild: {substitute: {APP: web}}}\n";
    vec![("cluster/flux.yaml", cluster.to_owned()), ("web/config.yaml", config.to_owned())]
}

#[test]
fn flux_reads_every_expression_of_what_it_builds() {
    let of = |text: &str, label: &str| {
        let config = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: scripts\n  namespace: web\n  labels: {{{label}}}\ndata:\n  run.js: |\n    {text}\n"
        );
        let files = flux(&config);
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        found("D2-flux-build", &files).len()
    };
    assert_eq!(of("const file = `${dir.join(name)}`", ""), 1);
    assert_eq!(of("const file = `${dir.join(name)}`", "kustomize.toolkit.fluxcd.io/substitute: disabled"), 0);
    assert_eq!(of("const file = `$${dir.join(name)}`", ""), 0);
    assert_eq!(of("const file = `${APP}`", ""), 0);
}

#[test]
fn a_release_of_flux_has_one_chart_from_a_source_of_a_right_kind() {
    let of = |spec: &str| {
        let release = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web, namespace: shop}}\nspec:\n  interval: 1h\n{spec}"
        );
        found("C2-admission-refused", &[("release.yaml", &release)]).len()
    };
    let source = |kind: &str| {
        format!(
            "  chart: {{spec: {{chart: web, version: 1.0.0, sourceRef: {{kind: {kind}, name: shop}}}}}}\n"
        )
    };
    assert_eq!(of(&source("OCIRepository")), 1);
    assert_eq!(of(&source("HelmRepository")), 0);
    assert_eq!(
        of("  chart: {spec: {chart: \"oci://registry.example.com/charts/web\", version: 1.0.0}}\n"),
        1
    );
}

#[test]
fn a_name_that_a_plugin_is_not_asked_for_has_no_value() {
    let of = |read: &str| {
        let set = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: shop, namespace: argocd}}\nspec:\n  goTemplate: true\n  generators: [{{plugin: {{configMapRef: {{name: secrets}}, input: {{parameters: {{names: [shop_host, shop_issuer]}}}}}}}}]\n  template:\n    metadata: {{name: shop}}\n    spec:\n      project: default\n      destination: {{server: https://kubernetes.default.svc, namespace: shop}}\n      source:\n        repoURL: https://charts.example.com\n        chart: shop\n        targetRevision: 1.0.0\n        helm: {{valuesObject: {{host: '{{{{ .shop_host }}}}', issuer: '{{{{ .{read} }}}}'}}}}\n"
        );
        found("D2-set-template", &[("set.yaml", &set)]).len()
    };
    assert_eq!(of("store_issuer"), 1);
    assert_eq!(of("shop_issuer"), 0);
}

#[test]
fn a_handler_has_no_item_and_a_role_no_file_of_tasks() {
    let handler = |more: &str| {
        let text = format!(
            "- name: Restart\n  ansible.builtin.service: {{name: \"{{{{ item }}}}\", state: restarted}}\n{more}"
        );
        found("G2-lost-item", &[("roles/web/handlers/main.yml", &text)]).len()
    };
    assert_eq!(handler(""), 1);
    assert_eq!(handler("  loop: \"{{ services }}\"\n"), 0);
    let play = "- hosts: all\n  roles:\n    - role: web\n      tasks_from: install\n";
    let files = [("site.yml", play), ("roles/web/tasks/main.yml", "- name: Ask\n  ansible.builtin.ping:\n")];
    assert_eq!(found("G2-ansible-refused", &files).len(), 1);
}

#[test]
fn a_matcher_asks_for_what_is_written() {
    let of = |value: &str| {
        let rule = format!(
            "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {{name: nodes, namespace: shop}}\nspec:\n  groups:\n    - name: nodes\n      rules:\n        - alert: NotReady\n          expr: kube_node_status_condition{{condition=\"Ready\",status=\"{value}\"}} == 0\n"
        );
        found("C2-empty-series", &[("rules.yaml", &rule)]).len()
    };
    assert_eq!(of("True"), 1);
    assert_eq!(of("true"), 0);
}

#[test]
fn a_job_says_when_it_restarts_though_nothing_renders_it() {
    let of = |policy: &str| {
        let job = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: load, namespace: shop}}\nspec:\n  template:\n    spec:\n{policy}      containers: [{{name: load, image: \"registry.example.com/load:1\"}}]\n"
        );
        found("C2-invalid", &[("job.yaml", &job)]).len()
    };
    assert_eq!(of(""), 1);
    assert_eq!(of("      restartPolicy: Never\n"), 0);
}
