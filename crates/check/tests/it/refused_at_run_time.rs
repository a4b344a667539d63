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

#[test]
fn receivers_in_values_are_those_that_the_routes_of_the_chart_name() {
    let of = |receivers: &str, route: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: watch, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: watch}}\n  source:\n    repoURL: https://prometheus-community.github.io/helm-charts\n    chart: kube-prometheus-stack\n    targetRevision: 70.0.0\n    helm:\n      valuesObject:\n        alertmanager:\n          config:\n            route: {route}\n            receivers: {receivers}\n"
        );
        found("C2-undefined-name", &[("app.yaml", &app)]).len()
    };
    assert_eq!(of("[{name: pager}]", "{receiver: pager}"), 1);
    assert_eq!(of("[{name: pager}, {name: 'null'}]", "{receiver: pager}"), 0);
    assert_eq!(of("[{name: pager}]", "{receiver: pager, routes: []}"), 0);
    assert_eq!(of("[{name: pager}]", "{receiver: pager, routes: [{receiver: pagr}]}"), 1);
    assert_eq!(of("[]", "{receiver: pager}"), 0);
}

#[test]
fn a_namespace_is_made_for_the_destination_alone() {
    let of = |destination: &str, more: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: gate, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc{destination}}}\n  source: {{repoURL: https://git.example.com/shop, path: gate, targetRevision: HEAD}}\n  syncPolicy: {{syncOptions: [CreateNamespace=true]}}\n"
        );
        let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gate}\ndata: {a: b}\n";
        let build = format!("namespace: gateway\nresources: [config.yaml{more}]\n");
        let made = "apiVersion: v1\nkind: Namespace\nmetadata: {name: gateway}\n";
        let mut files = vec![
            ("root/app.yaml", app.as_str()),
            ("gate/config.yaml", config),
            ("gate/kustomization.yaml", &build),
        ];
        if !more.is_empty() {
            files.push(("gate/namespace.yaml", made));
        }
        found("C5-no-namespace", &files).len()
    };
    assert_eq!(of("", ""), 1);
    assert_eq!(of(", namespace: gateway", ""), 0);
    assert_eq!(of("", ", namespace.yaml"), 0);
}

#[test]
fn a_chart_without_a_release_serves_what_the_newest_serves() {
    let of = |version: &str, api: &str| {
        let script = format!(
            "#!/bin/sh\nhelm upgrade --install eso external-secrets/external-secrets \\\n  -n eso{version}\n"
        );
        let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: argocd}\nspec:\n  project: default\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n  source: {repoURL: https://git.example.com/shop, path: shop, targetRevision: HEAD}\n";
        let secret = format!(
            "apiVersion: external-secrets.io/{api}\nkind: ExternalSecret\nmetadata: {{name: db}}\nspec:\n  secretStoreRef: {{name: vault, kind: ClusterSecretStore}}\n  data: [{{secretKey: a, remoteRef: {{key: a}}}}]\n"
        );
        let files = [("root/app.yaml", app), ("shop/secret.yaml", &secret), ("install.sh", &script)];
        found("C2-unserved-version", &files).len()
    };
    assert_eq!(of("", "v1beta1"), 1);
    assert_eq!(of(" --version 0.10.0", "v1beta1"), 0);
    assert_eq!(of("", "v1"), 0);
}

#[test]
fn an_image_has_an_owner_who_pushes_it() {
    let of = |own: &str, other: &str| {
        let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: argocd}\nspec:\n  project: default\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n  source: {repoURL: https://git.example.com/acme/shop, path: shop, targetRevision: HEAD}\n";
        let pods: String = [own, other]
            .iter()
            .map(|image| {
                format!(
                    "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{}}}\nspec: {{containers: [{{name: a, image: {image}}}]}}\n",
                    image.len()
                )
            })
            .collect();
        found("D2-left-placeholder", &[("root/app.yaml", app), ("shop/pods.yaml", &pods)]).len()
    };
    assert_eq!(of("ghcr.io/owner/api:1.0.0", "ghcr.io/acme/tools:1.0.0"), 1);
    assert_eq!(of("ghcr.io/acme/api:1.0.0", "ghcr.io/acme/tools:1.0.0"), 0);
    // A sample: nothing tells who the owner is.
    assert_eq!(of("ghcr.io/owner/api:1.0.0", "ghcr.io/others/tools:1.0.0"), 0);
}

#[test]
fn a_field_that_a_release_took_away_is_told() {
    let of = |version: &str, field: &str| {
        let files = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: workflows, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: argo}}\n  source: {{repoURL: https://argoproj.github.io/argo-helm, chart: argo-workflows, targetRevision: {version}}}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: jobs, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: jobs}}\n  source: {{repoURL: https://git.example.com/shop, path: jobs, targetRevision: HEAD}}\n"
        );
        let job = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {{name: clean}}\nspec:\n  {field}\n  workflowSpec: {{workflowTemplateRef: {{name: clean}}}}\n"
        );
        found("C2-unserved-version", &[("root/apps.yaml", &files), ("jobs/clean.yaml", &job)]).len()
    };
    assert_eq!(of("1.0.20", "schedule: \"0 * * * *\""), 1);
    assert_eq!(of("1.0.20", "schedules: [\"0 * * * *\"]"), 0);
    assert_eq!(of("0.45.0", "schedule: \"0 * * * *\""), 0);
}

#[test]
fn who_manages_fields_cannot_be_kept() {
    let of = |options: &str, path: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: shop, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: shop}}\n  source: {{repoURL: https://git.example.com/shop, path: shop, targetRevision: HEAD}}\n  syncPolicy: {{syncOptions: [{options}]}}\n  ignoreDifferences: [{{group: apps, kind: Deployment, jqPathExpressions: [{path}]}}]\n"
        );
        found("C2-ignore-expression", &[("app.yaml", &app)]).len()
    };
    let both = "RespectIgnoreDifferences=true, ServerSideApply=true";
    assert_eq!(of(both, ".metadata.managedFields"), 1);
    assert_eq!(of(both, ".spec.replicas"), 0);
    assert_eq!(of("ServerSideApply=true", ".metadata.managedFields"), 0);
}

#[test]
fn an_id_of_grafana_is_short_and_plain() {
    let of = |uid: &str| {
        let rules = format!(
            "apiVersion: 1\ngroups:\n- name: shop\n  rules:\n  - uid: {uid}\n    title: down\n    condition: C\n    data:\n    - refId: A\n      datasourceUid: prometheus\n"
        );
        found("C2-grafana-refused", &[("grafana/alerts.yaml", &rules)]).len()
    };
    assert_eq!(of("shop-kubernetes-deployment-without-any-replica"), 1);
    assert_eq!(of("\"shop down\""), 1);
    assert_eq!(of("shop-deployment-without-replica"), 0);
    assert_eq!(of("${CLUSTER}-kubernetes-deployment-without-any-replica"), 0);
}

#[test]
fn a_command_in_a_pod_does_what_its_account_may() {
    let of = |command: &str, verbs: &str, resource: &str| {
        let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: argocd}\nspec:\n  project: default\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n  source: {repoURL: https://git.example.com/shop, path: shop, targetRevision: HEAD}\n";
        let objects = format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: restart}}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: restart}}\nrules: [{{apiGroups: [apps], resources: [{resource}], verbs: [{verbs}]}}]\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: restart}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: restart}}\nsubjects: [{{kind: ServiceAccount, name: restart, namespace: shop}}]\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: restart}}\nspec:\n  template:\n    spec:\n      serviceAccountName: restart\n      restartPolicy: Never\n      containers:\n      - name: a\n        image: alpine/k8s:1.33.0\n        command: [sh, -c, \"{command}\"]\n"
        );
        found("E6-forbidden-command", &[("root/app.yaml", app), ("shop/objects.yaml", &objects)]).len()
    };
    let restart = "kubectl -n shop rollout restart deployment/web && echo done";
    assert_eq!(of(restart, "get, list", "deployments"), 1);
    assert_eq!(of(restart, "get, patch", "deployments"), 0);
    assert_eq!(of(restart, "'*'", "'*'"), 0);
    assert_eq!(of("kubectl scale deploy/web --replicas=0", "get, patch", "deployments"), 1);
    assert_eq!(
        of("kubectl scale deploy/web --replicas=0", "get, patch", "deployments, deployments/scale"),
        0
    );
    // A Role is of its own namespace.
    let elsewhere = "kubectl -n stock rollout restart deployment/web";
    assert_eq!(of(elsewhere, "get, patch", "deployments"), 1);
    assert_eq!(of("kubectl rollout restart -n $NS deployment/web", "get, patch", "deployments"), 0);
    assert_eq!(of("echo 'see: kubectl get secret a'", "get", "deployments"), 0);
    assert_eq!(of("kubectl --kubeconfig=/k rollout restart deployment/web", "get", "deployments"), 0);
}

#[test]
fn a_set_that_is_applied_later_brings_its_charts_later() {
    let of = |wave: &str| {
        let app = |name: &str, wave: &str, path: &str| {
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd, annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}\n  source: {{repoURL: https://git.example.com/shop, path: {path}, targetRevision: HEAD}}\n  syncPolicy: {{automated: {{}}, retry: {{limit: 5}}}}\n"
            )
        };
        let set = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: watch, namespace: argocd, annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}}}\nspec:\n  generators: [{{list: {{elements: [{{name: stack}}]}}}}]\n  template:\n    metadata: {{name: 'watch-{{{{name}}}}'}}\n    spec:\n      project: default\n      destination: {{server: https://kubernetes.default.svc, namespace: watch}}\n      source: {{repoURL: https://prometheus-community.github.io/helm-charts, chart: kube-prometheus-stack, targetRevision: 70.0.0}}\n"
        );
        let monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: store}\nspec: {selector: {matchLabels: {app: store}}, endpoints: [{port: http}]}\n";
        let (root, store) = (app("root", "0", "apps"), app("store", "2", "store"));
        let files = [
            ("root.yaml", root.as_str()),
            ("apps/store.yaml", store.as_str()),
            ("apps/watch.yaml", set.as_str()),
            ("store/monitor.yaml", monitor),
        ];
        found("C5-cr-before-chart", &files).len()
    };
    assert_eq!(of("5"), 1);
    assert_eq!(of("1"), 0);
}
