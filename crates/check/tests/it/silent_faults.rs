//! What repositories hold that nothing tells of until it is too late, each beside a good one.

use crate::common::found;

#[test]
fn a_template_that_nothing_defines_is_told_behind_a_condition() {
    let of = |name: &str, dependency: &str| {
        let chart = format!("apiVersion: v2\nname: web\nversion: 1.0.0\n{dependency}");
        let template = format!(
            "{{{{- if .Values.ingress }}}}\n{{{{- $name := include \"{name}\" . }}}}\nkind: ConfigMap\n{{{{- end }}}}\n{{{{/* include \"gone\" */}}}}\n"
        );
        found(
            "D2-missing-template",
            &[
                ("web/Chart.yaml", &chart),
                ("web/templates/_helpers.tpl", "{{- define \"web.fullname\" -}}web{{- end }}\n"),
                ("web/templates/map.yaml", &template),
            ],
        )
    };
    const LIBRARY: &str =
        "dependencies: [{name: common, version: 1.0.0, repository: 'https://charts.example.com'}]\n";
    assert_eq!(of("web", "").len(), 1);
    assert_eq!(of("web.fulname", LIBRARY).len(), 1);
    assert!(of("web.fullname", "").is_empty());
    let helpers = "{{- define \"web.used\" }}{{ include \"web.gone\" . }}{{ end }}\n{{- define \"web.idle\" }}{{ include \"web.lost\" . }}{{ end }}\n";
    let files = [
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/_helpers.tpl", helpers),
        ("web/templates/map.yaml", "{{- if .Values.more }}\na: {{ include \"web.used\" . }}\n{{- end }}\n"),
    ];
    let reached = found("D2-missing-template", &files);
    assert!(matches!(reached.as_slice(), [only] if only.contains("web.gone")), "{reached:?}");
    // A library that is not there may define it.
    assert!(of("common.names.fullname", LIBRARY).is_empty());
    assert_eq!(of("common.names.fullname", "").len(), 1);
}

#[test]
fn a_template_that_an_application_already_misses_is_told_once() {
    const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: web}\n  destination: {name: in-cluster, namespace: web}\n";
    let files = [
        ("apps/web.yaml", APP),
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/map.yaml", "kind: {{ include \"web.kind\" . }}\n"),
    ];
    assert!(found("D2-missing-template", &files).is_empty());
    assert_eq!(found("D2-cannot-render", &files).len(), 1);
    assert_eq!(found("D2-missing-template", &files[1..]).len(), 1);
}

#[test]
fn a_key_that_comes_behind_the_line_above_is_told() {
    let of = |open: &str, above: &str| {
        let template = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n{above}  {open}\n  annotations:\n    a: b\n  {{{{- end }}}}\n"
        );
        found(
            "D2-template-indent",
            &[
                ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
                ("web/templates/map.yaml", &template),
            ],
        )
    };
    assert_eq!(of("{{- if .Values.more -}}", "").len(), 1);
    assert!(of("{{- if .Values.more }}", "").is_empty());
    assert!(of("{{ if .Values.more -}}", "").is_empty());
    assert_eq!(of("{{- if .Values.more -}}", "  {{- with .Values.x }}\n").len(), 1);
    assert!(of("{{- end -}}", "  {{- define \"x\" }}\n  a: b\n").is_empty());
    assert_eq!(of("{{- if .Values.more -}}", "  {{- toYaml .Values.x | nindent 2 }}\n").len(), 1);
    assert!(of("{{- if .Values.more -}}", "  {{- include \"x\" . }}\n").is_empty());
    // Of two branches only one is written.
    assert!(of("{{- else -}}", "  {{ if .Values.x }}\n  labels: {}\n").is_empty());
    assert_eq!(of("{{- else -}}", "  {{- if .Values.x }}\n  labels: {}\n").len(), 1);
    // The blanks before an action that takes none stay.
    assert!(of("{{- if .Values.more -}}", "  {{ with .Values.x }}\n").is_empty());
}

const GIT: &str = "sourceRef: {kind: GitRepository, name: flux-system}";

#[test]
fn an_encrypted_secret_without_decryption_is_told() {
    const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: shop}\ndata: {password: 'ENC[AES256_GCM,data:x,type:str]'}\nsops: {mac: 'ENC[AES256_GCM,data:y,type:str]', version: 3.9.0}\n";
    let of = |decryption: &str, more: &str| {
        let kustomization = format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: shop, namespace: flux-system}}\nspec: {{path: ./apps/shop, prune: true, interval: 1h, {GIT}{decryption}}}\n{more}"
        );
        found(
            "D2-flux-encrypted",
            &[
                ("clusters/home/shop.yaml", &kustomization),
                ("apps/shop/kustomization.yaml", "resources: [login.yaml]\n"),
                ("apps/shop/login.yaml", SECRET),
            ],
        )
    };
    assert_eq!(of("", "").len(), 1);
    assert!(of(", decryption: {provider: sops}", "").is_empty());
    let above = format!(
        "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: all, namespace: flux-system}}\nspec:\n  path: ./clusters/home\n  prune: true\n  interval: 1h\n  {GIT}\n  patches: [{{target: {{kind: Kustomization}}, patch: '[{{\"op\": \"add\", \"path\": \"/spec/decryption\", \"value\": {{\"provider\": \"sops\"}}}}]'}}]\n"
    );
    assert!(of("", &above).is_empty());
}

#[test]
fn a_patch_of_flux_that_finds_nothing_is_told() {
    let of = |target: &str| {
        let kustomization = format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: shop, namespace: flux-system}}\nspec:\n  path: ./apps/shop\n  prune: true\n  interval: 1h\n  {GIT}\n  patches: [{{target: {target}, patch: '[{{\"op\": \"add\", \"path\": \"/data/a\", \"value\": \"b\"}}]'}}]\n"
        );
        found(
            "D2-no-effect",
            &[
                ("clusters/home/shop.yaml", &kustomization),
                ("apps/shop/kustomization.yaml", "resources: [web.yaml]\n"),
                (
                    "apps/shop/web.yaml",
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {x: y}\n",
                ),
            ],
        )
    };
    assert!(of("{kind: ConfigMap, name: web}").is_empty());
    assert!(of("{kind: ConfigMap}").is_empty());
    assert!(of("{kind: ConfigMap, name: 'w.*'}").is_empty());
    assert_eq!(of("{kind: ConfigMap, name: wed}").len(), 1);
    assert_eq!(of("{kind: Deployment}").len(), 1);
}

#[test]
fn slips_in_values_are_told_wherever_they_stand() {
    let app = |values: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  project: default\n  source:\n    repoURL: https://charts.example.com\n    chart: web\n    targetRevision: 1.0.0\n    helm:\n{values}  destination: {{name: in-cluster, namespace: web}}\n"
        )
    };
    let of = |file: &str, text: &str| found("D2-misspelt-values", &[(file, text)]);
    let text = app(
        "      values: |\n        ingress:\n          annotations:\n          cert-manager.io/cluster-issuer: public\n",
    );
    assert_eq!(of("apps/web.yaml", &text).len(), 1);
    let object = app("      valuesObject:\n        resources: {limit: {memory: 1Gi}}\n");
    assert_eq!(of("apps/web.yaml", &object).len(), 1);
    assert_eq!(of("web/values-prod.yaml", "ingress:\n  labels:\n  example.com/team: web\n").len(), 1);
    assert!(of("web/values-prod.yaml", "ingress:\n  labels:\n    example.com/team: web\n").is_empty());
    assert!(of("web/values-prod.yaml", "labels:\nhosts:\n  example.com/team: web\n").is_empty());
    assert_eq!(of("web/values.yaml", "service:\n  annotations:\n    example.com/team:web\n").len(), 1);
    assert!(of("web/values.yaml", "service:\n  annotations:\n    example.com/team: web\n").is_empty());
    assert!(of("web/values.yaml", "service:\n  annotations: https://example.com/team\n").is_empty());
    assert!(of("web/settings.yaml", "ingress:\n  labels:\n  example.com/team: web\n").is_empty());
}

#[test]
fn a_build_without_its_dockerfile_is_told() {
    let of = |run: &str| {
        let workflow = format!(
            "name: image\non: push\njobs:\n  image:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - run: |\n          {run}\n"
        );
        found(
            "G1-missing-path",
            &[(".github/workflows/image.yaml", &workflow), ("web/Dockerfile", "FROM alpine:3.21\n")],
        )
    };
    assert_eq!(
        of("docker build -t registry.example.com/web:1 ."),
        ["failed to read dockerfile: open Dockerfile: no such file or directory"]
    );
    assert_eq!(of("docker build -t web ./wed").len(), 1);
    assert_eq!(of("docker buildx build --push --tag=web -f web/Dockerfil .").len(), 1);
    for right in [
        "docker build -t web ./web",
        "docker build -t web -f web/Dockerfile .",
        "docker build -t web $FOLDER",
        "cd web\n          docker build -t web .",
        "echo 'FROM alpine' > Dockerfile\n          docker build -t web .",
        "docker build --unknown web .",
    ] {
        assert!(of(right).is_empty(), "{right}");
    }
}

#[test]
fn a_service_that_selects_two_workloads_is_told() {
    let workload = |name: &str, port: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: web}}\nspec:\n  selector: {{matchLabels: {{app: web, part: {name}}}}}\n  template:\n    metadata: {{labels: {{app: web, part: {name}}}}}\n    spec: {{containers: [{{name: {name}, image: 'shop/{name}:1.2', ports: [{port}]}}]}}\n"
        )
    };
    const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: web}\n  destination: {name: in-cluster, namespace: web}\n";
    let of = |port: &str, other: &str| {
        let objects = [
            format!("apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: web}}\nspec: {{selector: {{app: web}}, ports: [{port}]}}\n"),
            workload("front", "{name: http, containerPort: 8080}"),
            workload("store", other),
        ]
        .concat();
        found("F4-no-backend", &[("apps/web.yaml", APP), ("web/web.yaml", &objects)])
    };
    const DATABASE: &str = "{name: sql, containerPort: 5432}";
    assert_eq!(
        of("{port: 80, targetPort: 8080}", DATABASE),
        [
            "Service/web in web sends a part of what it gets to Deployment/store in web, which has no port 8080"
        ]
    );
    assert!(of("{port: 80, targetPort: http}", DATABASE).is_empty());
    assert!(of("{port: 80, targetPort: 8080}", "{containerPort: 8080}").is_empty());
    assert!(of("{port: 80, targetPort: 8080}", "").is_empty());
}

#[test]
fn a_parameter_that_no_generator_gives_is_told() {
    let of = |revision: &str, go: bool| {
        let set = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: teams, namespace: argocd}}\nspec:\n  goTemplate: {go}\n  generators: [{{list: {{elements: [{{name: a, branch: main}}]}}}}]\n  template:\n    metadata: {{name: a}}\n    spec:\n      project: default\n      source: {{repoURL: 'https://git.example.com/other', path: web, targetRevision: '{revision}'}}\n      destination: {{name: in-cluster, namespace: web}}\n"
        );
        found("D2-appset-fault", &[("apps/teams.yaml", &set)])
    };
    assert_eq!(of("{{revision}}", false).len(), 1);
    assert!(of("{{branch}}", false).is_empty());
    assert!(of("{{.branch}}", true).is_empty());
}

#[test]
fn a_block_that_stands_by_itself_is_told() {
    let of = |block: &str| found("G4-terraform-refused", &[("terraform/main.tf", block)]);
    assert_eq!(
        of("lifecycle {\n  prevent_destroy = true\n}\n"),
        ["Unsupported block type: Blocks of type \"lifecycle\" are not expected here."]
    );
    assert!(of("resource \"null_resource\" \"a\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\nterraform {}\nmoved {\n  from = a\n  to = b\n}\n").is_empty());
}

/// A repository of Flux with one entry, and what lies beside it.
fn of_flux(files: &[(&str, &str)]) -> Vec<(String, String)> {
    const ENTRY: &str = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: 'https://git.example.com/fleet', ref: {branch: main}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {path: ./clusters/one, sourceRef: {kind: GitRepository, name: flux-system}}\n";
    let entry = [("clusters/one/flux-system/sync.yaml", ENTRY)];
    let all = entry.iter().chain(files);
    all.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn found_of_flux(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let all = of_flux(files);
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    found(rule, &all)
}

/// A Kustomization of a folder, with more of its specification.
fn part(name: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: ./apps/{name}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
    )
}

const POD: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: example.com/web:1\n        envFrom: [{configMapRef: {name: '${APP}-settings'}}]\n";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-settings}\ndata: {A: b}\n";

#[test]
fn a_cluster_of_flux_is_looked_at_as_a_whole() {
    const RULE: &str = "E2-dangling-reference";
    let shop = "  targetNamespace: shop\n  postBuild: {substitute: {APP: web}}\n";
    let (web, other) = (part("web", shop), part("other", "  targetNamespace: shop\n"));
    let of = |map: &str, more: &[(&str, &str)]| {
        let mut files = vec![
            ("clusters/one/web.yaml", web.as_str()),
            ("clusters/one/other.yaml", other.as_str()),
            ("apps/web/deployment.yaml", POD),
            ("apps/other/map.yaml", map),
        ];
        files.extend(more);
        found_of_flux(RULE, &files)
    };
    let slip = MAP.replace("web-settings", "web-setings");
    assert_eq!(
        of(&slip, &[]),
        ["Deployment/web in shop needs ConfigMap/web-settings in shop, and nothing makes it"]
    );
    // Another Kustomization makes it, in a folder that has no kustomization of its own.
    assert!(of(MAP, &[]).is_empty());
    // A chart out of reach may make it.
    let release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: db, namespace: shop}\nspec: {chart: {spec: {chart: db, sourceRef: {kind: HelmRepository, name: charts}}}}\n";
    assert!(of(&slip, &[("clusters/one/db.yaml", release)]).is_empty());
    // So may a source that nobody can read.
    let far = part("far", "").replace("name: flux-system}\n", "name: elsewhere}\n");
    let far = far.replace("kind: GitRepository", "kind: OCIRepository");
    assert!(of(&slip, &[("clusters/one/far.yaml", &far)]).is_empty());
}

#[test]
fn a_variable_that_nobody_can_read_may_be_anything() {
    const RULE: &str = "E2-dangling-reference";
    let slip = MAP.replace("web-settings", "web-setings");
    let of = |vars: &str| {
        let from = "  targetNamespace: shop\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n";
        let web = part("web", from);
        found_of_flux(
            RULE,
            &[
                ("clusters/one/web.yaml", &web),
                ("clusters/one/vars.yaml", vars),
                ("apps/web/deployment.yaml", POD),
                ("apps/web/map.yaml", &slip),
            ],
        )
    };
    let head = "apiVersion: v1\nkind: Secret\nmetadata: {name: vars, namespace: flux-system}\n";
    assert_eq!(of(&format!("{head}stringData: {{APP: web}}\n")).len(), 1);
    assert!(
        of(&format!("{head}stringData: {{APP: 'ENC[AES256_GCM,data:eA==]'}}\nsops: {{mac: 'ENC[x]'}}\n"))
            .is_empty()
    );
    assert!(
        of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unrelated, namespace: flux-system}\n")
            .is_empty()
    );
}

#[test]
fn two_clusters_of_flux_have_nothing_in_common() {
    let entry = |name: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: flux-system, namespace: flux-system}}\nspec: {{path: ./clusters/{name}, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
        )
    };
    let web = |namespace: &str, app: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  selector: {{app: web, tier: front}}\n  ports: [{{port: 80}}]\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  selector: {{matchLabels: {{app: web, tier: {app}}}}}\n  template:\n    metadata: {{labels: {{app: web, tier: {app}}}}}\n    spec: {{containers: [{{name: web, image: 'example.com/web:1'}}]}}\n"
        )
    };
    let (two, good, bad) = (entry("two"), web("shop", "front"), web("shop", "font"));
    let of = |one: &str, two_web: &str| {
        found_of_flux(
            "F4-no-backend",
            &[
                ("clusters/two/flux-system/sync.yaml", two.as_str()),
                ("clusters/one/web.yaml", one),
                ("clusters/two/web.yaml", two_web),
            ],
        )
    };
    assert_eq!(of(&good, &bad).len(), 1);
    assert!(of(&good, &good).is_empty());
}

#[test]
fn one_object_in_two_kustomizations_of_flux_is_told() {
    let of = |mark: &str, value: &str| {
        let named = format!("{{{mark}name: web-settings, namespace: shop}}");
        let map = MAP.replace("{name: web-settings}", &named);
        let (web, other) = (part("web", ""), part("other", ""));
        found_of_flux(
            "B3-two-owners",
            &[
                ("clusters/one/web.yaml", &web),
                ("clusters/one/other.yaml", &other),
                ("apps/web/map.yaml", &map),
                ("apps/other/map.yaml", &map.replace("A: b", value)),
                ("apps/other/kustomization.yaml", "resources: [map.yaml]\n"),
            ],
        )
    };
    let told = "ConfigMap/web-settings in shop is rendered by Kustomization web and by Kustomization other";
    let other = "ConfigMap/web-settings in shop is rendered by Kustomization other and by Kustomization web";
    let found = of("", "A: c");
    assert!(found == [told] || found == [other], "{found:?}");
    // The same twice is a component that both bring.
    assert!(of("", "A: b").is_empty());
    assert!(of("labels: {kustomize.toolkit.fluxcd.io/ssa: Merge}, ", "A: c").is_empty());
}

#[test]
fn one_duration_in_two_spellings_is_the_same_object() {
    let of = |interval: &str| {
        let source = |interval: &str| {
            format!(
                "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: web, namespace: flux-system}}\nspec: {{interval: {interval}, url: 'https://charts.example.com'}}\n"
            )
        };
        let (web, other) = (part("web", ""), part("other", ""));
        found_of_flux(
            "B3-two-owners",
            &[
                ("clusters/one/web.yaml", &web),
                ("clusters/one/other.yaml", &other),
                ("apps/web/source.yaml", &source("1h")),
                ("apps/other/source.yaml", &source(interval)),
            ],
        )
    };
    assert!(of("60m0s").is_empty() && of("1h0m0s").is_empty());
    assert_eq!(of("1m0s").len(), 1);
}

#[test]
fn where_an_entry_is_declared_says_which_cluster_it_is_of() {
    // Nothing in the repository applies what lies in clusters/prod, so that each Kustomization there is an
    // entry.
    let part = |name: &str, folder: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: ./platform/{folder}/overlays/prod\n  targetNamespace: {name}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n"
        )
    };
    let gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: public}\nspec: {gatewayClassName: envoy, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}\n";
    let other = gateway.replace("name: public", "name: private");
    let route = |namespace: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: web}}\nspec: {{parentRefs: [{{name: public, namespace: {namespace}}}], rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}\n"
        )
    };
    let (edge, web) = (part("edge", "edge"), part("web", "web"));
    let found_beside = |script: &str, namespace: &str| {
        found(
            "F4-route-refused",
            &[
                ("clusters/prod/edge.yaml", &edge),
                ("clusters/prod/web.yaml", &web),
                ("platform/edge/overlays/prod/gateway.yaml", gateway),
                ("platform/web/overlays/prod/route.yaml", &route(namespace)),
                ("platform/web/overlays/prod/gateway.yaml", &other),
                ("install.sh", script),
            ],
        )
    };
    assert!(found_beside("", "edge").is_empty(), "{:?}", found_beside("", "edge"));
    assert_eq!(found_beside("", "web").len(), 1);
    let piped = |verb: &str| format!("#!/bin/sh\nkubectl {verb} -n web -f - <<EOF\n{gateway}EOF\n");
    assert!(found_beside(&piped("apply"), "web").is_empty(), "a script makes it");
    assert_eq!(found_beside(&piped("delete"), "web").len(), 1);
}

#[test]
fn an_artifact_of_one_folder_is_this_repository_from_that_folder_on() {
    let part = |name: &str, path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: OCIRepository, name: flux-system}}\n"
        )
    };
    let found = found(
        "D2-flux-path",
        &[
            ("deploy/clusters/one/web.yaml", &part("web", "apps/web")),
            ("deploy/clusters/one/shop.yaml", &part("shop", "apps/shop")),
            ("deploy/clusters/one/blog.yaml", &part("blog", "apps/blgo")),
            ("deploy/apps/web/map.yaml", MAP),
            ("deploy/apps/shop/map.yaml", MAP),
            ("deploy/apps/blog/map.yaml", MAP),
        ],
    );
    assert_eq!(
        found,
        ["Kustomization/blog in flux-system builds deploy/apps/blgo, which is not in the repository"]
    );
}

#[test]
fn a_release_that_is_seen_makes_no_secret_by_naming_it() {
    const RELEASE: &str = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n  values: {pull: registry}\n";
    const TEMPLATE: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      imagePullSecrets: [{name: '{{ .Values.pull }}'}]\n      containers: [{name: web, image: 'registry.example.com/web:1'}]\n";
    let of = |namespace: &str| {
        let secret = format!(
            "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {{name: registry, namespace: {namespace}}}\nspec: {{encryptedData: {{.dockerconfigjson: AgBy}}}}\n"
        );
        found_of_flux(
            "E2-no-pull-secret",
            &[
                ("clusters/one/web.yaml", &part("web", "")),
                ("apps/web/release.yaml", RELEASE),
                ("apps/web/secret.yaml", &secret),
                ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
                ("chart/values.yaml", "pull: ''\n"),
                ("chart/templates/web.yaml", TEMPLATE),
            ],
        )
    };
    assert_eq!(
        of("default"),
        ["Deployment/web in shop pulls with Secret/registry, which is not made in shop"]
    );
    assert!(of("shop").is_empty());
}

/// What of a chart out of reach is told of an Ingress that is beside it.
fn beside_chart(rule: &str, version: &str, values: &str, beside: &str) -> Vec<String> {
    let chart = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: watch, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://grafana.github.io/helm-charts', chart: grafana, targetRevision: {version}, helm: {{valuesObject: {values}}}}}\n  destination: {{name: in-cluster, namespace: watch}}\n"
    );
    const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: routes, namespace: argocd}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: routes}\n  destination: {name: in-cluster, namespace: watch}\n";
    found(rule, &[("apps/watch.yaml", &chart), ("apps/routes.yaml", APP), ("routes/routes.yaml", beside)])
}

#[test]
fn a_service_that_a_known_chart_calls_otherwise_is_told() {
    let of = |version: &str, values: &str, service: &str, port: u16| {
        let ingress = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web, namespace: watch}}\nspec:\n  rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: {service}, port: {{number: {port}}}}}}}}}]}}}}]\n"
        );
        beside_chart("F4-no-backend", version, values, &ingress)
    };
    assert_eq!(
        of("9.2.1", "{}", "grafana", 80),
        ["Ingress/web in watch sends to Service/grafana in watch, which chart grafana calls watch-grafana"]
    );
    assert!(of("9.2.1", "{}", "watch-grafana", 80).is_empty());
    assert!(of("9.2.1", "{fullnameOverride: grafana}", "grafana", 80).is_empty());
    assert!(of("9.2.1", "{service: {enabled: false}}", "grafana", 80).is_empty());
    assert!(
        of("9.2.1", "{extraObjects: [{kind: Service, metadata: {name: grafana}}]}", "grafana", 80).is_empty()
    );
    // Of versions that nobody looked at nothing is known.
    assert!(of("199.0.0", "{}", "grafana", 80).is_empty() && of("9.x", "{}", "grafana", 80).is_empty());
    assert_eq!(
        of("9.2.1", "{}", "watch-grafana", 3000),
        ["Ingress/web in watch sends to port 3000 of Service/watch-grafana, which has no such port"]
    );
    assert!(of("9.2.1", "{service: {port: 3000}}", "watch-grafana", 3000).is_empty());
    assert!(of("9.2.1", "{extraExposePorts: [{port: 3000}]}", "watch-grafana", 3000).is_empty());
}

#[test]
fn an_address_that_a_known_chart_does_not_serve_is_told() {
    let of = |address: &str| {
        let pod = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: watch}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: web, image: 'shop/web:1.2', env: [{{name: BOARD, value: '{address}'}}]}}]}}\n"
        );
        beside_chart("F4-unknown-host", "9.2.1", "{}", &pod)
    };
    assert_eq!(
        of("http://grafana.watch.svc.cluster.local/d"),
        [
            "Deployment/web in watch: Service/grafana in watch is not there, chart grafana calls it watch-grafana"
        ]
    );
    assert_eq!(
        of("http://watch-grafana:3000"),
        ["Deployment/web in watch: Service/watch-grafana in watch has no port 3000"]
    );
    assert!(of("http://watch-grafana.watch.svc:80").is_empty());
    assert!(of("http://watch-grafana.watch.svc").is_empty());
}

#[test]
fn a_value_that_a_known_chart_does_not_read_is_told_at_every_level() {
    let of = |values: &str| -> Vec<String> {
        let told = beside_chart("D2-unread-values", "9.2.1", values, "");
        told.into_iter()
            .map(|text| text.split_once("the value ").map_or(text.clone(), |it| it.1.to_owned()))
            .collect()
    };
    assert_eq!(of("{persistance: {enabled: true}}"), ["persistance, which no template reads"]);
    assert_eq!(of("{service: {prot: 80}}"), ["service.prot, which no template reads"]);
    assert_eq!(of("{mine: 1}"), ["mine, which no template reads"]);
    // What templates hand on as it is takes every key, and what says nothing is not told.
    assert!(
        of("{persistence: {enabled: true}, nodeSelector: {disk: fast}, grafana.ini: {a: {b: c}}}").is_empty()
    );
    assert!(of("{persistance: {}, persistence: {enabled: true}, x-shared: {a: 1}}").is_empty());
    // A value that another one refers to in a template is read.
    assert!(of("{mine: 1, podAnnotations: {a: '{{ .Values.mine }}'}}").is_empty());
}

#[test]
fn nginx_passes_on_to_addresses_with_a_scheme() {
    let of = |conf: &str| {
        let lines: String = conf.lines().map(|line| format!("    {line}\n")).collect();
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: shop}}\ndata:\n  nginx.conf: |\n{lines}"
        );
        found("D2-broken-text", &[("web.yaml", map.as_str())]).len()
    };
    assert_eq!(of("server {\n  location / {\n    proxy_pass web:80;\n  }\n}\n"), 1);
    assert_eq!(of("server {\n  location / {\n    proxy_pass http://web:80;\n  }\n}\n"), 0);
    assert_eq!(of("server {\n  location / {\n    proxy_pass $web;\n  }\n}\n"), 0);
    // Streams have no scheme.
    assert_eq!(
        of("http {\n  location / {\n  }\n}\nstream {\n  server {\n    proxy_pass web:5432;\n  }\n}\n"),
        0
    );
}

#[test]
fn no_object_has_a_slash_in_its_name() {
    let of = |name: &str| {
        let update = format!(
            "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageUpdateAutomation\nmetadata: {{name: web, namespace: shop}}\nspec:\n  interval: 1m\n  sourceRef: {{kind: GitRepository, name: {name}}}\n"
        );
        found("E2-misspelt-name", &[("web.yaml", update.as_str())]).len()
    };
    assert_eq!(of("shop/config"), 1);
    assert_eq!(of("config"), 0);
    assert_eq!(of("${REPOSITORY}"), 0);
}

#[test]
fn an_output_of_a_workflow_has_a_global_name() {
    let of = |name: &str| {
        let template = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {{name: web, namespace: shop}}\nspec:\n  entrypoint: main\n  onExit: last\n  templates:\n  - name: main\n    container: {{image: a, command: [a]}}\n    outputs: {{parameters: [{{name: sum{name}, valueFrom: {{path: /sum}}}}]}}\n  - name: last\n    container: {{image: a, command: [a], args: ['{{{{workflow.outputs.parameters.sum}}}}']}}\n"
        );
        found("C2-undefined-name", &[("web.yaml", template.as_str())])
    };
    assert_eq!(of("").len(), 1, "{:?}", of(""));
    assert_eq!(of(", globalName: sum").len(), 0);
}

#[test]
fn an_issuer_that_others_name_by_another_word_is_meant() {
    let of = |name: &str, made: &str| {
        let certificate = |at: &str, issuer: &str| {
            format!(
                "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {{name: {at}, namespace: shop}}\nspec:\n  secretName: {at}\n  dnsNames: [{at}.example.com]\n  issuerRef:\n    kind: ClusterIssuer\n    name: {issuer}\n"
            )
        };
        let issuer = format!(
            "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {{name: {made}}}\nspec: {{selfSigned: {{}}}}\n"
        );
        let usual = ["a", "b", "c"].map(|at| certificate(at, "letsencrypt-production"));
        let odd = certificate("web", name);
        found(
            "E2-misspelt-name",
            &[
                ("issuers/issuer.yaml", issuer.as_str()),
                ("a/a.yaml", usual[0].as_str()),
                ("b/b.yaml", usual[1].as_str()),
                ("c/c.yaml", usual[2].as_str()),
                ("web/web.yaml", odd.as_str()),
            ],
        )
        .len()
    };
    assert_eq!(of("letsencrypt-prod", "letsencrypt-production"), 1);
    assert_eq!(of("letsencrypt-production", "letsencrypt-production"), 0);
    // Nothing says that the one is the other.
    assert_eq!(of("selfsigned", "letsencrypt-production"), 0);
    assert_eq!(of("letsencrypt-prod", "letsencrypt-staging"), 0);
}
