//! What is known of charts that nobody fetched: their addresses, their values, their Services.

use crate::common::found;

fn app(name: &str, namespace: &str, chart: &str, values: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}\n  source:\n    {chart}\n    helm:\n      valuesObject:\n{values}"
    )
}

fn folder_app(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}\n  source: {{repoURL: https://git.example.com/shop, path: {path}, targetRevision: HEAD}}\n"
    )
}

#[test]
fn charts_are_published_where_their_host_has_an_index() {
    let of = |url: &str| {
        let chart = format!("repoURL: {url}\n    chart: traefik\n    targetRevision: 38.0.1");
        found("D2-chart-address", &[("apps/edge.yaml", &app("edge", "edge", &chart, "        {}\n"))]).len()
    };
    assert_eq!(of("https://helm.traefik.io"), 1);
    assert_eq!(of("https://helm.traefik.io/traefik"), 0);
    assert_eq!(of("https://charts.example.com/any"), 0);
}

#[test]
fn a_value_is_read_in_some_versions_of_a_chart() {
    let of = |version: &str, values: &str| {
        let chart = format!(
            "repoURL: https://charts.goauthentik.io\n    chart: authentik\n    targetRevision: {version}"
        );
        found("D2-unread-values", &[("apps/login.yaml", &app("login", "login", &chart, values))]).len()
    };
    let old = "        env: {AUTHENTIK_LOG_LEVEL: info}\n";
    assert_eq!(of("2024.12.0", old), 1);
    assert_eq!(of("2023.10.7", old), 0);
    assert_eq!(of("2024.12.0", "        server: {env: [{name: AUTHENTIK_LOG_LEVEL, value: info}]}\n"), 0);
}

#[test]
fn a_security_context_has_the_fields_of_its_kind() {
    let of = |values: &str| {
        let chart = "repoURL: https://kubernetes-sigs.github.io/external-dns/\n    chart: external-dns\n    targetRevision: 1.15.0";
        found("C2-security-context", &[("apps/dns.yaml", &app("dns", "dns", chart, values))]).len()
    };
    assert_eq!(of("        securityContext: {runAsUser: 1000, fsGroup: 1000}\n"), 1);
    assert_eq!(of("        podSecurityContext: {privileged: false, capabilities: {drop: [ALL]}}\n"), 1);
    assert_eq!(
        of("        podSecurityContext: {fsGroup: 1000}\n        securityContext: {runAsUser: 1000}\n"),
        0
    );
    assert_eq!(of("        securityContext: {fsGroup: null}\n"), 0);
}

#[test]
fn an_item_without_its_dash_is_no_list() {
    let of = |values: &str| {
        let chart = "repoURL: https://charts.example.com\n    chart: shop\n    targetRevision: 1.0.0";
        found("D2-lost-list", &[("apps/shop.yaml", &app("shop", "shop", chart, values))]).len()
    };
    assert_eq!(of("        ingress: {hosts: {host: shop.example.com, paths: [/]}}\n"), 1);
    assert_eq!(of("        tolerations: {key: gpu, operator: Exists}\n"), 1);
    assert_eq!(of("        ingress: {hosts: [{host: shop.example.com, paths: [/]}]}\n"), 0);
    assert_eq!(of("        tls: {secretName: shop-tls}\n"), 0);
    // Hosts by their names.
    assert_eq!(of("        ingress: {hosts: {main: {host: shop.example.com}}}\n"), 0);
}

const RELEASE: &str = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: login, namespace: flux-system}\nspec: {url: https://charts.goauthentik.io, interval: 1h}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: login, namespace: login}\nspec:\n  interval: 1h\n  releaseName: authentik\n  chart: {spec: {chart: authentik, version: 2024.12.0, sourceRef: {kind: HelmRepository, name: login, namespace: flux-system}}}\n  values: {authentik: {postgresql: {name: authentik}}}\n";

fn ingress(service: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: login, namespace: login}}\nspec:\n  rules:\n  - host: login.example.com\n    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}]}}\n"
    )
}

#[test]
fn a_release_that_nothing_reaches_makes_its_services_under_their_names() {
    let of = |service: &str| {
        let files = [
            ("login/kustomization.yaml", "resources: [release.yaml, ingress.yaml]\n"),
            ("login/release.yaml", RELEASE),
            ("login/ingress.yaml", &ingress(service)),
        ];
        found("F4-no-backend", &files).len()
    };
    assert_eq!(of("authentik"), 1);
    assert_eq!(of("authentik-server"), 0);
    // Who makes this one is not known.
    assert_eq!(of("shop"), 0);
}

#[test]
fn the_port_of_a_container_is_none_of_its_service() {
    let of = |port: &str, more: &str| {
        let chart =
            "repoURL: https://helm.traefik.io/traefik\n    chart: traefik\n    targetRevision: 38.0.1";
        let values = format!("        ports: {{web: {{port: 8000, exposedPort: 80}}{more}}}\n");
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: tunnel, namespace: tunnel}}\ndata:\n  config.yaml: |\n    service: http://edge-traefik.edge.svc.cluster.local:{port}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: tunnel, namespace: tunnel}}\nspec:\n  containers: [{{name: tunnel, image: example/tunnel:1, envFrom: [{{configMapRef: {{name: tunnel}}}}]}}]\n"
        );
        let files = [
            ("apps/edge.yaml", app("edge", "edge", chart, &values)),
            ("apps/tunnel.yaml", folder_app("tunnel", "tunnel")),
            ("tunnel/map.yaml", map),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        found("F4-unknown-host", &files).len()
    };
    assert_eq!(of("8000", ""), 1);
    assert_eq!(of("80", ""), 0);
    // A port that is not known of may be any.
    assert_eq!(of("8000", ", extra: {port: 9000, exposedPort: 8000}"), 0);
}

#[test]
fn a_variable_names_its_host_alone() {
    let of = |host: &str| {
        let pods = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: database}}\nspec: {{selector: {{app: database}}, ports: [{{port: 5432}}]}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: database, labels: {{app: database}}}}\nspec: {{containers: [{{name: a, image: example/db:1}}]}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{containers: [{{name: a, image: example/web:1, env: [{{name: DB_HOST, value: {host}}}]}}]}}\n"
        );
        let app = folder_app("shop", "shop");
        found("F4-unknown-host", &[("apps/shop.yaml", &app), ("shop/pods.yaml", &pods)]).len()
    };
    assert_eq!(of("databse"), 1);
    assert_eq!(of("database"), 0);
    assert_eq!(of("sql.example.com"), 0);
}
