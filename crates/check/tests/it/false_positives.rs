//! What works, and was once taken for a fault.

use std::sync::Arc;

use tiphys_check::{Context, check, rules};
use tiphys_vfs::MemTree;

use crate::common;

/// Rule, severity and message of what is found.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let survey = common::survey(Arc::new(MemTree::from_files(files.iter().copied())));
    let findings = check(&Context::new(&survey, None), rules::ALL).findings;
    findings
        .iter()
        .map(|it| format!("{} {:?} {}", it.diagnostic.rule, it.diagnostic.severity, it.diagnostic.message))
        .collect()
}

fn app(name: &str, path: &str, namespace: &str) -> String {
    format!(
        "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://git.example.com/x', path: {path}}}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: {namespace}}}\n"
    )
}

const INGRESS: &str = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: staging}\nspec:\n  rules:\n    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}\n";

fn service(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {namespace}}}\nspec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}\n"
    )
}

#[test]
fn environments_of_one_cluster_see_each_other() {
    let (staging, production) = (service("staging"), service("production"));
    let with = |production_into: &str| {
        let apps = [
            app("web-staging", "staging", "staging"),
            app("web-production", "production", production_into),
            app("edge", "edge", "staging"),
        ]
        .concat();
        found(&[
            ("apps/web.yaml", &apps),
            ("staging/web.yaml", &staging),
            ("production/web.yaml", &production),
            ("edge/web.yaml", INGRESS),
        ])
    };
    assert_eq!(with("production"), Vec::<String>::new());
    // Where both are for one namespace, they are two clusters.
    assert!(with("staging").iter().any(|it| it.starts_with("F4-no-backend")), "{:?}", with("staging"));
}

#[test]
fn an_image_stream_fills_in_an_image() {
    let workload = |annotations: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: web, annotations: {annotations}}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: web, image: ' '}}]}}\n"
        )
    };
    let apps = app("web", "web", "web");
    let of = |annotations: &str| found(&[("apps/web.yaml", &apps), ("web/web.yaml", &workload(annotations))]);
    assert_eq!(of("{image.openshift.io/triggers: '[{}]'}"), Vec::<String>::new());
    assert!(of("{a: b}").iter().any(|it| it.starts_with("E3-invalid-image")), "{:?}", of("{a: b}"));
}

#[test]
fn labels_that_flux_merges_in_are_no_claim() {
    const KUSTOMIZATION: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: data, namespace: flux-system}\nspec: {interval: 1h, path: ./data, prune: false, sourceRef: {kind: GitRepository, name: flux-system}}\n";
    let of = |spec: &str| {
        let claim = format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data, namespace: web, labels: {{backup: 'no'}}}}\n{spec}"
        );
        found(&[
            ("clusters/home/data.yaml", KUSTOMIZATION),
            ("data/kustomization.yaml", "resources: [claim.yaml]\n"),
            ("data/claim.yaml", &claim),
        ])
    };
    let is_refused = |found: &[String]| found.iter().any(|it| it.contains("accessModes: Required value"));
    assert!(!is_refused(&of("")), "{:?}", of(""));
    let whole = of("spec: {resources: {requests: {storage: 1Gi}}}\n");
    assert!(is_refused(&whole), "{whole:?}");
}

#[test]
fn a_mistyped_template_of_a_set_is_told_once() {
    const SET: &str = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: teams, namespace: argocd}\nspec:\n  goTemplate: true\n  generators: [{list: {elements: [{name: a, limit: '3'}]}}]\n  template:\n    metadata: {name: '{{.name}}'}\n    spec:\n      project: default\n      source: {repoURL: 'https://git.example.com/x', path: web}\n      destination: {name: in-cluster, namespace: web}\n      syncPolicy: {retry: {limit: '{{.limit}}'}}\n";
    let found = found(&[("apps/teams.yaml", SET), ("web/web.yaml", &service("web"))]);
    let about: Vec<&String> = found.iter().filter(|it| it.contains("teams")).collect();
    assert!(matches!(about.as_slice(), [only] if only.starts_with("C2-invalid Error")), "{found:?}");
}

#[test]
fn a_definition_that_keeps_nothing_is_told_once() {
    let definition = |spec: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: runs.example.com}}\nspec:\n  group: example.com\n  names: {{kind: Run, listKind: RunList, plural: runs, singular: run}}\n  scope: Namespaced\n  versions:\n    - name: v1\n      served: true\n      storage: true\n      schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {spec}}}}}}}\n"
        )
    };
    const RUNS: &str = "apiVersion: example.com/v1\nkind: Run\nmetadata: {name: one, namespace: web}\nspec: {first: 1, second: 2, third: 3}\n---\napiVersion: example.com/v1\nkind: Run\nmetadata: {name: two, namespace: web}\nspec: {first: 1, second: 2}\n";
    let of = |spec: &str| {
        let definition = definition(spec);
        let all = found(&[
            ("apps/web.yaml", &app("web", "web", "web")),
            ("web/crd.yaml", &definition),
            ("web/runs.yaml", RUNS),
        ]);
        all.into_iter().filter(|it| it.contains("unknown field")).collect::<Vec<_>>()
    };
    assert_eq!(of("{type: object}").len(), 1, "{:?}", of("{type: object}"));
    let of_one = of("{type: object, properties: {first: {type: integer}}}");
    assert_eq!(of_one.len(), 2, "{of_one:?}");
    assert!(of("{type: object, x-kubernetes-preserve-unknown-fields: true}").is_empty());
}

#[test]
fn a_registry_that_a_transformer_adds_is_none_of_the_entrys_business() {
    const WORKLOAD: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'shop/web:1.2'}]}\n";
    const PREFIX: &str = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: registry}\nprefix: mirror.example.com/\nfieldSpecs: [{path: spec/template/spec/containers/image}]\n";
    let of = |images: &str| {
        let kustomization = format!("resources: [web.yaml]\ntransformers: [prefix.yaml]\nimages: {images}\n");
        found(&[
            ("apps/web.yaml", &app("web", "web", "web")),
            ("web/kustomization.yaml", &kustomization),
            ("web/prefix.yaml", PREFIX),
            ("web/web.yaml", WORKLOAD),
        ])
    };
    let has = |found: &[String]| found.iter().any(|it| it.starts_with("D2-no-effect"));
    let named = of("[{name: shop/web, newName: docker.io/shop/web}]");
    assert!(!has(&named), "{named:?}");
    let other = of("[{name: shop/wed, newName: docker.io/shop/wed}]");
    assert!(has(&other), "{other:?}");
}

#[test]
fn tests_of_a_chart_send_nothing() {
    const POLICY: &str = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec:\n  podSelector: {matchLabels: {app: web}}\n  policyTypes: [Ingress]\n  ingress: [{from: [{podSelector: {matchLabels: {app: front}}}]}]\n";
    let pod = |hook: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: try, labels: {{app: try}}, annotations: {{{hook}}}}}\nspec: {{containers: [{{name: try, image: 'busybox:1.36', args: ['wget', 'http://web:80']}}]}}\n"
        )
    };
    let web = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec: {containers: [{name: web, image: 'nginx:1.27', ports: [{containerPort: 80}]}]}\n";
    let of = |hook: &str| {
        let pod = pod(hook);
        let files = [
            ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("web/templates/policy.yaml", POLICY),
            ("web/templates/try.yaml", pod.as_str()),
            ("web/templates/web.yaml", web),
        ];
        found(&files).into_iter().filter(|it| it.starts_with("F1-") && it.contains("Pod/try")).count()
    };
    assert_eq!(of("helm.sh/hook: test"), 0);
    assert!(of("helm.sh/hook: post-install") > 0);
}

#[test]
fn a_path_that_leads_nowhere_on_purpose_is_no_fault() {
    let of = |port: u16| {
        let ingress = INGRESS.replace("number: 80", &format!("number: {port}"));
        let web = service("staging");
        let all = found(&[
            ("apps/web.yaml", &app("web", "web", "staging")),
            ("web/web.yaml", &format!("{web}---\n{ingress}")),
        ]);
        all.into_iter().filter(|it| it.starts_with("F4-no-backend")).count()
    };
    assert_eq!(of(65535), 0);
    assert_eq!(of(81), 1);
}

#[test]
fn what_a_script_in_a_manifest_makes_is_made() {
    const WORKLOAD: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: web, image: 'shop/web:1.2'}]\n      volumes: [{name: keys, configMap: {name: peer-keys}}]\n";
    let of = |script: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: init, namespace: web}}\ndata:\n  init.sh: |\n    {script}\n"
        );
        let all = found(&[
            ("apps/web.yaml", &app("web", "web", "web")),
            ("web/web.yaml", WORKLOAD),
            ("web/init.yaml", &map),
        ]);
        all.into_iter().filter(|it| it.starts_with("E2-dangling-reference")).count()
    };
    assert_eq!(of("kubectl create configmap peer-keys --from-file=/tmp/keys"), 0);
    assert_eq!(of("kubectl get configmap peer-keys"), 1);
}

#[test]
fn an_issuer_may_stand_in_the_values_of_a_chart() {
    const CERTIFICATE: &str = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web, namespace: web}\nspec: {dnsNames: [web.example.com], secretName: web-tls, issuerRef: {kind: ClusterIssuer, name: public}}\n";
    const OTHER: &str = "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: internal}\nspec: {selfSigned: {}}\n";
    let of = |values: &str| {
        let all = found(&[
            ("apps/web.yaml", &app("web", "web", "web")),
            (
                "web/kustomization.yaml",
                "resources: [web.yaml, issuer.yaml]\nconfigMapGenerator: [{name: issuers, files: [values.yaml=more.yaml]}]\n",
            ),
            ("web/web.yaml", CERTIFICATE),
            ("web/issuer.yaml", OTHER),
            ("web/more.yaml", values),
        ]);
        all.into_iter().filter(|it| it.starts_with("E2-no-store")).count()
    };
    assert_eq!(of("resources:\n  - kind: ClusterIssuer\n    metadata:\n      name: public\n"), 0);
    assert_eq!(of("issuerRef:\n  kind: ClusterIssuer\n  name: public\n"), 1);
    assert_eq!(of("resources: []\n"), 1);
}

#[test]
fn a_playbook_may_apply_the_file_of_an_application_to_begin_with() {
    const PLAY: &str = "- hosts: all\n  tasks:\n    - name: login\n      kubernetes.core.k8s:\n        state: present\n        src: ../web/login.yaml\n";
    const SECRET: &str = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: login, namespace: web}\nspec: {secretStoreRef: {name: vault, kind: ClusterSecretStore}, target: {name: login}}\n";
    let of = |played: &str, at: &str| {
        let play = PLAY.replace("web/login.yaml", at);
        let all = found(&[
            ("apps/web.yaml", &app("web", "web", "web")),
            ("web/login.yaml", SECRET),
            ("ansible/login.yaml", &play),
            (played, SECRET),
        ]);
        all.into_iter().filter(|it| it.starts_with("B1-other-tool")).collect::<Vec<_>>()
    };
    let same = of("web/more/readme.yaml", "web/login.yaml");
    assert!(same.iter().all(|it| it.starts_with("B1-other-tool Info")), "{same:?}");
    let copy = of("seed/login.yaml", "seed/login.yaml");
    assert!(copy.iter().any(|it| it.starts_with("B1-other-tool Warning")), "{copy:?}");
}

#[test]
fn a_kustomization_that_something_moves_up_is_information() {
    let of = |patch: &str| {
        let text = format!("resources: [web.yaml]\npatches: [{{path: {patch}}}]\n");
        found(&[
            ("system/overlays/web/kustomization.yaml", &text),
            ("system/overlays/web/web.yaml", &service("web")),
            ("system/overlays/web/patch.yaml", &service("web")),
        ])
    };
    assert!(
        of("overlays/web/patch.yaml").iter().all(|it| it.contains("Info")),
        "{:?}",
        of("overlays/web/patch.yaml")
    );
    assert!(
        of("overlays/web/pach.yaml").iter().any(|it| it.contains("Warning")),
        "{:?}",
        of("overlays/web/pach.yaml")
    );
    assert_eq!(of("patch.yaml"), Vec::<String>::new());
}

#[test]
fn policies_that_kyverno_makes_may_let_pass_what_others_do_not() {
    const POLICY: &str = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web, namespace: web}\nspec: {podSelector: {}, policyTypes: [Ingress, Egress]}\n";
    const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'registry.example.com/web:1.0.0', ports: [{containerPort: 8080}], env: [{name: SMTP, value: 'relay.infra.svc.cluster.local:587'}]}]}\n";
    const DEFAULTS: &str = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: defaults}\nspec:\n  rules:\n    - name: dns\n      match: {any: [{resources: {kinds: [Namespace]}}]}\n      generate: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: dns, namespace: '{{request.object.metadata.name}}', data: {spec: {podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53, protocol: UDP}]}]}}}\n";
    let apps = [app("web", "web", "web"), app("policies", "policies", "kyverno")].concat();
    let of = |defaults: &str| {
        let files = [
            ("apps.yaml", apps.as_str()),
            ("web/web.yaml", WEB),
            ("web/policy.yaml", POLICY),
            ("policies/a.yaml", defaults),
        ];
        found(&files).into_iter().filter(|it| it.starts_with("F1")).count()
    };
    assert_eq!(of(DEFAULTS), 0);
    assert_eq!(of(&DEFAULTS.replace("kind: NetworkPolicy", "kind: LimitRange")), 1);
}

#[test]
fn a_kustomization_may_put_a_chart_into_another_namespace_than_its_application() {
    const ROUTE: &str = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: panel}\nspec:\n  rules:\n    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: panel, port: {number: 80}}}}]}\n";
    const CHART: &str = "helmCharts: [{name: panel, repo: 'https://charts.example.com', version: 1.0.0, releaseName: panel}]\n";
    let apps = app("panel", "panel", "panel");
    let of = |chart: &str| {
        let kustomization = format!("namespace: kube-system\nresources: [route.yaml]\n{chart}");
        let files = [
            ("apps.yaml", apps.as_str()),
            ("panel/route.yaml", ROUTE),
            ("panel/kustomization.yaml", &kustomization),
        ];
        found(&files).into_iter().filter(|it| it.starts_with("F4-no-backend")).count()
    };
    assert_eq!(of(CHART), 0);
    assert_eq!(of(""), 1);
}

#[test]
fn a_template_of_terraform_is_no_policy() {
    let of = |line: &str| {
        let values = format!(
            "configs:\n  rbac:\n    policy.csv: |\n      {line}\n      p, role:a, applications, get, a/*, allow\n"
        );
        found(&[("values_rbac.yaml", &values)])
            .into_iter()
            .filter(|it| it.starts_with("C2-argocd-policy"))
            .count()
    };
    assert_eq!(of("%{~ for i in range(n) ~}"), 0);
    assert_eq!(of("allow everything"), 1);
}

#[test]
fn the_operator_of_knative_makes_the_services_of_its_ingresses() {
    const SERVING: &str = "apiVersion: operator.knative.dev/v1beta1\nkind: KnativeServing\nmetadata: {name: knative-serving, namespace: knative-serving}\nspec: {ingress: {kourier: {enabled: true}}}\n";
    const BRIDGE: &str = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: bridge, namespace: knative-serving}\nspec:\n  rules:\n    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: kourier, port: {number: 80}}}}]}\n";
    let apps = app("knative", "knative", "knative-serving");
    let of = |serving: &str| {
        let files = [
            ("apps.yaml", apps.as_str()),
            ("knative/serving.yaml", serving),
            ("knative/bridge.yaml", BRIDGE),
        ];
        found(&files).into_iter().filter(|it| it.starts_with("F4-no-backend")).count()
    };
    assert_eq!(of(SERVING), 0);
    assert_eq!(of(&SERVING.replace("kourier", "istio")), 1);
}

#[test]
fn a_script_for_one_environment_is_no_second_owner_in_another() {
    let of = |script: &str, name: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://charts.jetstack.io', chart: cert-manager, targetRevision: v1.17.0}}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: cert-manager}}\n"
        );
        let found = found(&[
            ("apps/cert-manager.yaml", &app),
            (script, "helm upgrade --install cert-manager jetstack/cert-manager -n cert-manager\n"),
        ]);
        found.into_iter().filter(|it| it.starts_with("B1-")).count()
    };
    assert_eq!(of("scripts/install.sh", "cert-manager-prod"), 1);
    assert_eq!(of("scripts/install-prod.sh", "cert-manager-prod"), 1);
    assert_eq!(of("scripts/dev-cluster.sh", "cert-manager-prod"), 0);
    assert_eq!(of("scripts/dev-cluster.sh", "cert-manager"), 0);
    assert_eq!(of("scripts/dev-cluster.sh", "cert-manager-dev"), 1);
}

#[test]
fn what_is_synced_by_hand_is_not_too_early() {
    let of = |policy: &str| {
        let child = |name: &str, wave: &str, source: &str, policy: &str| {
            format!(
                "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd, annotations: {{argocd.argoproj.io/sync-wave: '{wave}'}}}}\nspec:\n  project: default\n  source: {source}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: {name}}}\n{policy}"
            )
        };
        let chart = "{repoURL: 'https://charts.jetstack.io', chart: cert-manager, targetRevision: v1.17.0, helm: {valuesObject: {crds: {enabled: true}}}}";
        let children = [
            child("shop", "0", "{repoURL: 'https://git.example.com/x', path: shop}", policy),
            child("cert-manager", "5", chart, "  syncPolicy: {automated: {}}\n"),
        ]
        .concat();
        let found = found(&[
            ("root.yaml", &app("root", "apps", "argocd")),
            ("apps/apps.yaml", &children),
            (
                "shop/issuer.yaml",
                "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: a}\nspec: {selfSigned: {}}\n",
            ),
        ]);
        found.into_iter().filter(|it| it.starts_with("C5-cr-before-chart")).count()
    };
    assert_eq!(of("  syncPolicy: {automated: {}}\n"), 1);
    assert_eq!(of(""), 0);
}

#[test]
fn images_of_a_part_that_is_switched_off_are_not_pulled() {
    let of = |values: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://charts.example.com', chart: web, targetRevision: 1.0.0, helm: {{valuesObject: {values}}}}}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: web}}\n"
        );
        let found = found(&[("apps/web.yaml", &app)]);
        found.into_iter().filter(|it| it.starts_with("E3-withdrawn-chart")).collect::<Vec<_>>()
    };
    let part = |name: &str, enabled: bool| {
        format!(
            "{name}: {{enabled: {enabled}, image: {{repository: bitnami/{name}, tag: 14.0.0-debian-11-r1}}}}"
        )
    };
    assert!(of(&format!("{{{}}}", part("postgresql", false))).is_empty());
    let both = of(&format!("{{{}, {}}}", part("postgresql", false), part("redis", true)));
    assert!(matches!(&both[..], [only] if only.contains("bitnami/redis")), "{both:?}");
}

#[test]
fn one_missing_line_of_a_project_is_told_once() {
    const PROJECT: &str = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team, namespace: argocd}\nspec: {sourceRepos: ['https://git.example.com/y'], destinations: [{server: '*', namespace: '*'}]}\n";
    let apps: String = ["a", "b", "c"]
        .map(|name| app(name, name, name).replace("project: default", "project: team"))
        .concat();
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let found = found(&[
        ("project.yaml", PROJECT),
        ("apps.yaml", &apps),
        ("a/a.yaml", &map("a")),
        ("b/b.yaml", &map("b")),
        ("c/c.yaml", &map("c")),
    ]);
    assert_eq!(found.iter().filter(|it| it.starts_with("D2-project-forbids")).count(), 1, "{found:?}");
}

#[test]
fn words_of_a_pipeline_that_finds_its_folders_are_no_list() {
    let of = |pipeline: &str| {
        let mut files = vec![(".github/workflows/build.yml".to_owned(), pipeline.to_owned())];
        for name in ["auth", "chat", "scan", "ops"] {
            files.push((format!("services/{name}/Dockerfile"), "FROM scratch\n".to_owned()));
            files.push((format!("deploy/{name}/kustomization.yaml"), "resources: []\n".to_owned()));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        found(&files).into_iter().filter(|it| it.starts_with("D3-")).count()
    };
    let with =
        |run: &str| format!("on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n{run}");
    let matrix = "on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        service: [auth, chat, scan]\n    steps:\n      - run: make\n";
    assert_eq!(of(matrix), 1);
    let sentences =
        "      - name: Check the auth of the chat bot\n        run: echo please scan the code first\n";
    assert_eq!(of(&with(sentences)), 0);
    let listed = format!("{matrix}      - run: for it in services/*; do make $it; done\n");
    assert_eq!(of(&listed), 0);
}

#[test]
fn what_stands_in_for_an_annotation_of_a_cluster_is_no_value_to_be_judged() {
    let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: edge, namespace: argocd}\nspec:\n  goTemplate: true\n  generators: [{clusters: {selector: {matchLabels: {edge: 'true'}}}}]\n  template:\n    metadata: {name: 'edge-{{.name}}'}\n    spec:\n      project: default\n      source:\n        repoURL: 'https://git.example.com/x'\n        path: PATH\n        helm: {valuesObject: {method: '{{index .metadata.annotations \"vault-method\"}}'}}\n      destination: {server: '{{.server}}', namespace: edge}\n";
    let schema = r#"{"properties": {"method": {"enum": ["token", "kubernetes"]}}}"#;
    let with = |path: &str| {
        let set = set.replace("PATH", path);
        // Most paths are here, so the repository is this one.
        let plain = app("plain", "edge", "edge") + &app("web", "apps", "web");
        let files = [
            ("apps/set.yaml", &*set),
            ("apps/plain.yaml", &*plain),
            ("edge/Chart.yaml", "apiVersion: v2\nname: edge\nversion: 1.0.0\n"),
            ("edge/values.schema.json", schema),
            ("edge/values.yaml", "method: token\n"),
            (
                "edge/templates/a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {method: '{{ .Values.method }}'}\n",
            ),
        ];
        found(&files)
    };
    assert_eq!(with("edge"), [""; 0]);
    // Which folder is meant does not depend on the cluster.
    assert_eq!(with("ege").len(), 1);
}

#[test]
fn a_chart_calls_a_volume_as_the_key_of_its_persistence() {
    let of = |key: &str| {
        let app = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: films, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: films}}\n  source:\n    repoURL: https://charts.example.com\n    chart: films\n    targetRevision: 1.0.0\n    helm:\n      valuesObject:\n        persistence: {{{key}: {{enabled: true}}}}\n        extraVolumes: [{{name: settings-old, emptyDir: {{}}}}]\n        extraInitContainers: [{{name: move, image: \"alpine:3.20\", volumeMounts: [{{name: settings, mountPath: /a}}]}}]\n"
        );
        crate::common::found("E2-values-volume", &[("app.yaml", app.as_str())]).len()
    };
    assert_eq!(of("settings"), 0);
}

#[test]
fn a_script_that_terraform_fills_in_is_no_script_yet() {
    let script = "#!/bin/bash\nset -e\n%{ if enabled }\necho on\n%{ endif }\n";
    assert!(crate::common::found("G1-script-syntax", &[("infra/start.sh", script)]).is_empty());
    assert_eq!(
        crate::common::found(
            "G1-script-syntax",
            &[("infra/start.sh", "#!/bin/bash\nif true; then\necho on\n")]
        )
        .len(),
        1
    );
}

#[test]
fn a_kustomization_of_flux_lies_beside_what_it_builds() {
    let root = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1m, url: \"https://git.example.com/shop\", ref: {branch: main}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1m, path: ./web, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n";
    let of = |path: &str| {
        let beside = format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web, namespace: flux-system}}\nspec: {{interval: 1m, path: {path}, prune: true, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
        );
        let maps: Vec<(String, String)> = ["a", "b", "c", "d", "e"]
            .iter()
            .map(|name| {
                (
                    format!("web/{name}.yaml"),
                    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: web}}\n"),
                )
            })
            .collect();
        let mut files: Vec<(&str, &str)> =
            maps.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.extend([
            ("cluster/flux.yaml", root),
            ("web/kustomization.yaml", "resources: [a.yaml, b.yaml, c.yaml, d.yaml, e.yaml]\n"),
            ("web/ks.yaml", &beside),
        ]);
        crate::common::found("D3-left-out", &files).len()
    };
    assert_eq!(of("./web"), 0);
    assert_eq!(of("./other"), 1);
}

#[test]
fn values_in_a_secret_are_decoded() {
    let release = |encoded: &str| {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: jetstack, namespace: certs}}\nspec: {{url: 'https://charts.jetstack.io'}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: certs, namespace: certs}}\nspec:\n  chart: {{spec: {{chart: cert-manager, version: 1.17.1, sourceRef: {{kind: HelmRepository, name: jetstack}}}}}}\n  valuesFrom: [{{kind: Secret, name: values}}]\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: values, namespace: certs}}\ndata: {{values.yaml: {encoded}}}\n"
        )
    };
    let told = |encoded: &str| {
        let all = found(&[("certs/release.yaml", &release(encoded))]);
        all.into_iter().filter(|it| it.contains("chart cert-manager")).collect::<Vec<String>>()
    };
    assert_eq!(told("cmVwbGljYUNvdW50OiAyCg=="), Vec::<String>::new(), "replicaCount: 2");
    let misspelt = told("cmVwbGljYUNvbnQ6IDIK");
    assert!(misspelt.iter().any(|it| it.contains("replicaCont")), "replicaCont: 2: {misspelt:?}");
}
