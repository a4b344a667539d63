//! What the others do says what one lacks: variables, sources, paths, hosts, states.

use crate::common::found;

fn kustomization(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
    )
}

fn found_in(rule: &str, files: &[(String, String)]) -> Vec<String> {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    found(rule, &files)
}

#[test]
fn a_component_asks_each_for_what_the_others_give() {
    let of = |last: &str, claim: &str| {
        let vars = |given: &str| {
            format!("  components: [../../components/backup]\n  postBuild: {{substitute: {{{given}}}}}\n")
        };
        // What the root takes from elsewhere is not seen.
        let root = kustomization(
            "flux-system",
            "./clusters/home",
            "  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n",
        );
        let mut files = vec![
            ("clusters/home/sync.yaml".to_owned(), root),
            (
                "components/backup/kustomization.yaml".to_owned(),
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [claim.yaml]\n"
                    .to_owned(),
            ),
            (
                "components/backup/claim.yaml".to_owned(),
                format!(
                    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: '${{APP}}'}}\nspec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: '{claim}'}}}}}}\n"
                ),
            ),
        ];
        for (name, given) in [
            ("one", "APP: one, SIZE: 1Gi"),
            ("two", "APP: two, SIZE: 1Gi"),
            ("three", "APP: three, SIZE: 1Gi"),
            ("four", "APP: four, SIZE: 1Gi"),
            ("last", last),
        ] {
            let app = kustomization(name, &format!("./apps/{name}"), &vars(given));
            files.push((format!("clusters/home/{name}.yaml"), app));
            files.push((format!("apps/{name}/kustomization.yaml"), "resources: []\n".to_owned()));
        }
        found_in("D2-unset-variable", &files).len()
    };
    assert_eq!(of("APP: last", "${SIZE}"), 1);
    assert_eq!(of("APP: last, SIZE: 2Gi", "${SIZE}"), 0);
    assert_eq!(of("APP: last", "${SIZE:=1Gi}"), 0);
}

#[test]
fn flux_replaces_a_scripts_own_variables_too() {
    let of = |script: &str| {
        let app = kustomization(
            "web",
            "./apps/web",
            "  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n",
        );
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, namespace: web}}\nspec:\n  containers:\n  - name: a\n    image: example/web:1\n    env: [{{name: API_KEY, value: a}}]\n    command: [sh, -c, '{script}']\n"
        );
        found_in(
            "D2-unset-variable",
            &[
                ("clusters/home/sync.yaml".to_owned(), kustomization("flux-system", "./clusters/home", "")),
                ("clusters/home/web.yaml".to_owned(), app),
                ("apps/web/pod.yaml".to_owned(), pod),
            ],
        )
        .len()
    };
    assert_eq!(of("echo ${API_KEY}"), 1);
    assert_eq!(of("echo $${API_KEY}"), 0);
    assert_eq!(of("echo $API_KEY"), 0);
    assert_eq!(of("echo ${CLUSTER}"), 0);
}

#[test]
fn a_release_that_is_moved_looks_for_its_source_where_it_goes() {
    let of = |namespace: &str| {
        let release = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: web}}\nspec: {{interval: 1h, chartRef: {{kind: OCIRepository, name: web{namespace}}}}}\n"
        );
        let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: web, namespace: flux-system}\nspec: {interval: 1h, url: 'oci://registry.example.com/web', ref: {tag: 1.0.0}}\n";
        found_in(
            "E2-flux-namespace",
            &[
                ("clusters/home/sync.yaml".to_owned(), kustomization("flux-system", "./clusters/home", "")),
                (
                    "clusters/home/web.yaml".to_owned(),
                    kustomization("web", "./apps/web", "  targetNamespace: web\n"),
                ),
                ("clusters/home/source.yaml".to_owned(), source.to_owned()),
                ("apps/web/release.yaml".to_owned(), release),
            ],
        )
        .len()
    };
    assert_eq!(of(""), 1);
    assert_eq!(of(", namespace: flux-system"), 0);
}

#[test]
fn what_was_put_away_is_waited_for_in_vain() {
    let of = |folder: &str| {
        let waits = kustomization("web", "./apps/web", "  dependsOn: [{name: store}]\n");
        found_in(
            "A1-flux-dependency",
            &[
                ("clusters/home/sync.yaml".to_owned(), kustomization("flux-system", "./clusters/home", "")),
                ("clusters/home/web.yaml".to_owned(), waits),
                (format!("{folder}/store.yaml"), kustomization("store", "./apps/store", "")),
                (
                    "apps/web/map.yaml".to_owned(),
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\n".to_owned(),
                ),
            ],
        )
        .len()
    };
    assert_eq!(of(".archive/home"), 1);
    assert_eq!(of("clusters/home"), 0);
}

#[test]
fn a_folder_that_was_moved_as_a_whole_takes_its_paths_along() {
    let of = |path: &str| {
        found_in(
            "D2-flux-path",
            &[
                ("platform/kubernetes/flux/apps.yaml".to_owned(), kustomization("apps", path, "")),
                (
                    "platform/kubernetes/apps/map.yaml".to_owned(),
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned(),
                ),
            ],
        )
        .len()
    };
    assert_eq!(of("./kubernetes/apps"), 1);
    assert_eq!(of("./platform/kubernetes/apps"), 0);
    assert_eq!(of("./elsewhere/apps"), 0);
}

#[test]
fn a_state_has_the_outputs_of_its_module() {
    let of = |output: &str, suffix: &str| {
        let reader = format!(
            "data \"terraform_remote_state\" \"base\" {{\n  backend = \"kubernetes\"\n  config = {{\n    secret_suffix = \"{suffix}\"\n    namespace = \"state\"\n  }}\n}}\nresource \"null_resource\" \"a\" {{\n  triggers = {{ url = data.terraform_remote_state.base.outputs.{output} }}\n}}\n"
        );
        let owner = "terraform {\n  backend \"kubernetes\" {\n    secret_suffix = \"base\"\n    namespace = \"state\"\n  }\n}\nresource \"null_resource\" \"a\" {}\noutput \"url\" {\n  value = \"a\"\n}\n";
        found_in(
            "G4-terraform-names",
            &[("web/main.tf".to_owned(), reader), ("base/main.tf".to_owned(), owner.to_owned())],
        )
        .len()
    };
    assert_eq!(of("address", "base"), 1);
    assert_eq!(of("url", "base"), 0);
    // Another repository's state.
    assert_eq!(of("address", "other"), 0);
}

#[test]
fn a_name_between_quotes_is_a_text() {
    let of = |value: &str| {
        let module = format!(
            "variable \"name\" {{}}\nresource \"null_resource\" \"a\" {{\n  triggers = {{ b = 1 }}\n  provider = {value}\n}}\n"
        );
        found_in("G4-terraform-names", &[("web/main.tf".to_owned(), module)]).len()
    };
    assert_eq!(of("\"var.name-${var.name}\""), 1);
    assert_eq!(of("\"${var.name}-a\""), 0);
    assert_eq!(of("\"var.other\""), 0);
}

#[test]
fn a_bare_word_is_no_index_and_a_resource_no_text() {
    let of = |value: &str| {
        let module = format!(
            "resource \"random_password\" \"a\" {{\n  length = 8\n}}\nlocals {{\n  roles = {{ web = 1 }}\n  b = {value}\n}}\n"
        );
        found_in("G4-terraform-names", &[("web/main.tf".to_owned(), module)])
    };
    assert_eq!(of("local.roles[web]").len(), 1, "{:?}", of("local.roles[web]"));
    assert_eq!(of("local.roles[\"web\"]").len(), 0);
    assert_eq!(of("[for web in [\"web\"] : local.roles[web]]").len(), 0);
    assert_eq!(of("\"cn=${random_password.a},dc=shop\"").len(), 1);
    assert_eq!(of("\"cn=${random_password.a.result},dc=shop\"").len(), 0);
    assert_eq!(of("\"$${random_password.a} is told\"").len(), 0);
}

#[test]
fn a_map_is_no_block() {
    let of = |map: &str| {
        let module = format!("resource \"null_resource\" \"a\" {{\n  triggers {map}\n}}\n");
        found_in("G4-terraform-refused", &[("web/main.tf".to_owned(), module)]).len()
    };
    assert_eq!(of("{\n    id = \"a\"\n  }"), 1);
    assert_eq!(of("= {\n    id = \"a\"\n  }"), 0);
}

#[test]
fn a_called_workflow_is_given_what_it_asks_for() {
    let of = |job: &str| {
        let caller = format!("on: push\njobs:\n  plan:\n    uses: ./.github/workflows/plan.yaml\n{job}");
        let called = "on:\n  workflow_call:\n    inputs:\n      folder: {type: string, required: true}\n      color: {type: string, required: true, default: red}\n    secrets:\n      token: {required: true}\njobs:\n  a: {runs-on: ubuntu-latest, steps: [{run: 'true'}]}\n";
        found_in(
            "G1-workflow-syntax",
            &[
                (".github/workflows/main.yaml".to_owned(), caller),
                (".github/workflows/plan.yaml".to_owned(), called.to_owned()),
            ],
        )
    };
    let whole = "    with: {folder: a}\n    secrets: inherit\n";
    assert!(of(whole).is_empty(), "{:?}", of(whole));
    assert_eq!(of("    secrets: inherit\n").len(), 1);
    assert_eq!(of("    with: {folder: a}\n").len(), 1);
    assert_eq!(of("    with: {folder: a, size: 1}\n    secrets: inherit\n").len(), 1);
    assert_eq!(of("    with: {folder: a}\n    secrets: inherit\n    environment: live\n").len(), 1);
}

fn app(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}\n  source: {{repoURL: https://git.example.com/shop, path: {path}, targetRevision: HEAD}}\n"
    )
}

#[test]
fn neither_an_application_nor_an_ingress_makes_what_is_called_after_it() {
    let of = |claim: &str| {
        let objects = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: shop, annotations: {{cert-manager.io/cluster-issuer: main}}}}\nspec: {{tls: [{{hosts: [shop.example.com], secretName: shop-tls}}]}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: shop-ddatabase}}\nspec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: shop}}\nspec:\n  containers: [{{name: a, image: example/shop:1}}]\n  volumes:\n  - name: a\n    persistentVolumeClaim: {{claimName: {claim}}}\n  - name: b\n    secret: {{secretName: shop-tls}}\n"
        );
        found(
            "E2-dangling-reference",
            &[("apps/shop.yaml", &app("shop", "shop")), ("shop/all.yaml", &objects)],
        )
        .len()
    };
    assert_eq!(of("shop-database"), 1);
    assert_eq!(of("shop-ddatabase"), 0);
}

#[test]
fn a_service_beside_a_pod_gives_it_variables() {
    let of = |pod: &str, service: &str| {
        let objects = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {service}}}\nspec: {{selector: {{app: bus}}, ports: [{{port: 9092}}]}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: bus, labels: {{app: bus}}}}\nspec:\n  {pod}\n"
        );
        found("E6-service-variable", &[("apps/bus.yaml", &app("bus", "bus")), ("bus/all.yaml", &objects)])
            .len()
    };
    let image = "containers: [{name: a, image: 'confluentinc/cp-kafka:7.7.0'}]";
    assert_eq!(of(image, "kafka"), 1);
    assert_eq!(of(image, "bus"), 0);
    assert_eq!(of(&format!("enableServiceLinks: false\n  {image}"), "kafka"), 0);
    let tool = "containers: [{name: a, image: 'confluentinc/cp-kafka:7.7.0', command: [kafka-topics]}]";
    assert_eq!(of(tool, "kafka"), 0);
}

#[test]
fn an_annotation_lists_ranges_of_addresses() {
    let of = |range: &str| {
        let ingress = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: shop\n  annotations: {{nginx.ingress.kubernetes.io/whitelist-source-range: '{range}'}}\nspec: {{ingressClassName: nginx, rules: []}}\n"
        );
        found("C2-refused-annotation", &[("apps/a.yaml", &app("shop", "shop")), ("shop/a.yaml", &ingress)])
            .len()
    };
    assert_eq!(of("OFFICE/32"), 1);
    assert_eq!(of("203.0.113.0/33"), 1);
    assert_eq!(of("203.0.113.0/24, 2001:db8::/32,198.51.100.7"), 0);
    assert_eq!(of("${OFFICE}"), 0);
    // A form that nothing applies.
    let form = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: shop\n  annotations: {nginx.ingress.kubernetes.io/whitelist-source-range: FILL_IN}\nspec: {ingressClassName: nginx, rules: []}\n";
    assert!(found("C2-refused-annotation", &[("shop/a.yaml", form)]).is_empty());
}

#[test]
fn access_rules_have_their_own_keys() {
    let of = |key: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-rbac-cm, namespace: argocd}}\ndata:\n  {key}: 'g, shop, role:admin'\n"
        );
        found("C2-misplaced-setting", &[("argocd/rbac.yaml", &map)]).len()
    };
    assert_eq!(of("policy"), 1);
    assert_eq!(of("policy.csv"), 0);
    assert_eq!(of("policy.shop.csv"), 0);
}

#[test]
fn a_users_secret_names_the_user() {
    let of = |user: &str| {
        let objects = format!(
            "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {{name: db, namespace: shop}}\nspec:\n  instances: 1\n  storage: {{size: 1Gi}}\n  managed: {{roles: [{{name: shop, passwordSecret: {{name: shop-login}}}}]}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: shop-login, namespace: shop}}\nstringData: {{username: {user}, password: a}}\n"
        );
        found("E2-database-user", &[("apps/a.yaml", &app("shop", "shop")), ("shop/a.yaml", &objects)]).len()
    };
    assert_eq!(of("shop-user"), 1);
    assert_eq!(of("shop"), 0);
}

#[test]
fn the_container_network_reads_nothing_but_json() {
    let of = |end: &str| {
        let network = format!(
            "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {{name: lan, namespace: shop}}\nspec:\n  config: '{{\"type\": \"macvlan\", \"ipam\": {{\"type\": \"dhcp\"{end}}}}}'\n"
        );
        found("D2-broken-text", &[("shop/lan.yaml", &network)]).len()
    };
    assert_eq!(of(","), 1);
    assert_eq!(of(""), 0);
}

#[test]
fn a_custom_resource_names_services_that_are_there() {
    let of = |name: &str| {
        let objects = format!(
            "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata: {{name: login}}\nspec: {{forwardAuth: {{address: 'http://{name}.login.svc.cluster.local/verify'}}}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: gatekeeper}}\nspec: {{selector: {{app: gatekeeper}}, ports: [{{port: 80}}]}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: gatekeeper, labels: {{app: gatekeeper}}}}\nspec: {{containers: [{{name: a, image: example/gate:1}}]}}\n"
        );
        found("F4-unknown-host", &[("apps/a.yaml", &app("login", "login")), ("login/a.yaml", &objects)]).len()
    };
    assert_eq!(of("gatekeper"), 1);
    assert_eq!(of("gatekeeper"), 0);
}
