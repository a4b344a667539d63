//! What the world of a rehearsal knows: rights of operators, networks, policies, sync windows.

use crate::common::{Repo, application, rehearse};

/// The definition of a kind that takes anything.
fn definition(group: &str, plural: &str, kind: &str, scope: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\nspec:\n  group: {group}\n  scope: {scope}\n  names: {{plural: {plural}, kind: {kind}}}\n  \
         versions: [{{name: v1, served: true, storage: true, subresources: {{status: {{}}}}, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]\n---\n"
    )
}

/// cert-manager with the rights that it is given for Secrets, and how often it runs.
fn cert_manager(verbs: &str, replicas: u32) -> String {
    definition("cert-manager.io", "certificates", "Certificate", "Namespaced")
        + &definition("cert-manager.io", "clusterissuers", "ClusterIssuer", "Cluster")
        + &format!(
            "apiVersion: v1
kind: ServiceAccount
metadata: {{name: cert-manager}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: cert-manager}}
rules:
- {{apiGroups: [cert-manager.io], resources: ['*'], verbs: ['*']}}
- {{apiGroups: [''], resources: [secrets], verbs: [{verbs}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: cert-manager}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cert-manager}}
subjects: [{{kind: ServiceAccount, name: cert-manager, namespace: shop}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: cert-manager}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: cert-manager}}}}
  template:
    metadata: {{labels: {{app: cert-manager}}}}
    spec:
      serviceAccountName: cert-manager
      containers: [{{name: c, image: \"quay.io/jetstack/cert-manager-controller:v1.16.2\"}}]
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {{name: internal}}
spec: {{selfSigned: {{}}}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {{name: web}}
spec: {{secretName: web-tls, dnsNames: [web.example.com], issuerRef: {{kind: ClusterIssuer, name: internal}}}}
"
        )
}

#[test]
fn an_operator_makes_only_what_its_role_lets_it() {
    let repo = Repo::shop(&[("manifests/all.yaml", &cert_manager("get, list, watch, create, update", 1))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
    repo.write("manifests/all.yaml", cert_manager("get, list, watch", 1));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    let why = "User \"system:serviceaccount:shop:cert-manager\" cannot create resource \"secrets\" in API group \"\" in the namespace \"shop\"   [api/rbac]";
    assert!(text.contains(why), "{text}");
    assert!(
        text.contains("smallest repair: let ClusterRole cert-manager create secrets   manifests/all.yaml:"),
        "{text}"
    );
}

#[test]
fn an_operator_without_replicas_is_named() {
    let repo = Repo::shop(&[("manifests/all.yaml", &cert_manager("'*'", 0))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(
            "no operator has looked at it: Deployment shop/cert-manager has no replicas   [operator/down]"
        ),
        "{text}"
    );
    assert!(text.contains("repair: give Deployment shop/cert-manager a replica"), "{text}");
}

fn agent(name: &str, image: &str, more: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      hostNetwork: true
      containers: [{{name: c, image: \"{image}\"{more}}}]
"
    )
}

#[test]
fn two_networks_on_one_node_are_told() {
    let flannel = agent("flannel", "docker.io/flannel/flannel:v0.25.5", "");
    let calico = |more: &str| agent("calico-node", "docker.io/calico/node:v3.28.0", more);
    let repo = Repo::shop(&[("manifests/a.yaml", &flannel), ("manifests/b.yaml", &calico(""))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("both set up the network of pods on node node-1   [operator/two-owners]"),
        "{text}"
    );
    let policies = ", env: [{name: CALICO_NETWORKING_BACKEND, value: none}]";
    repo.write("manifests/b.yaml", calico(policies));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "policies alone are no network: {text}");
}

/// Kyverno with its Service, and a policy for ConfigMaps in the wave after it.
fn kyverno(failure: &str) -> String {
    let pods = "replicas: 1\n  selector: {matchLabels: {app: kyverno}}\n  template:\n    metadata: {labels: {app: kyverno}}\n    \
                spec: {containers: [{name: c, image: \"ghcr.io/kyverno/kyverno:v1.13.2\"}]}";
    definition("kyverno.io", "clusterpolicies", "ClusterPolicy", "Cluster")
        + &format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: kyverno}}\n---\napiVersion: apps/v1\nkind: Deployment\n\
             metadata: {{name: kyverno, namespace: kyverno}}\nspec:\n  {pods}\n---\n\
             apiVersion: v1\nkind: Service\nmetadata: {{name: kyverno-svc, namespace: kyverno}}\n\
             spec: {{selector: {{app: kyverno}}, ports: [{{port: 443}}]}}\n---\n\
             apiVersion: kyverno.io/v1\nkind: ClusterPolicy\n\
             metadata: {{name: require-team, annotations: {{argocd.argoproj.io/sync-wave: \"1\"}}}}\nspec:\n  \
             validationFailureAction: {failure}\n  rules:\n  - name: team\n    match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}\n    \
             validate: {{message: a team is required, pattern: {{metadata: {{labels: {{team: \"?*\"}}}}}}}}\n"
        )
}

#[test]
fn kyverno_refuses_what_comes_after_it_once_it_runs() {
    let late = |labels: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, labels: {{{labels}}}, annotations: {{argocd.argoproj.io/sync-wave: \"2\"}}}}\n"
        )
    };
    let repo = Repo::shop(&[("manifests/engine.yaml", &kyverno("Enforce")), ("manifests/a.yaml", &late(""))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("rule team failed at path /metadata/labels/") && text.contains("[admit/policy]"),
        "{text}"
    );
    repo.write("manifests/a.yaml", late("team: web"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
    // Of an engine that is down the API server takes nothing that it has to be asked about.
    let (code, text) = rehearse(&repo, &["--fault", "webhook=validate.kyverno.svc-fail:down"]);
    assert!(code == 1 && text.contains("validate.kyverno.svc-fail"), "{text}");
    repo.write("manifests/engine.yaml", kyverno("Audit"));
    repo.write("manifests/a.yaml", late(""));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn labels_that_an_enforced_policy_asks_for_are_missed() {
    let policy = |action: &str| {
        definition("kyverno.io", "clusterpolicies", "ClusterPolicy", "Cluster")
            + &format!(
                "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: require-team}}\nspec:\n  validationFailureAction: {action}\n  rules:\n  - name: team\n    \
                 match: {{any: [{{resources: {{kinds: [ConfigMap], namespaces: [shop]}}}}]}}\n    validate: {{message: team, pattern: {{metadata: {{labels: {{team: \"?*\"}}}}}}}}\n"
            )
    };
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let engine = agent("kyverno", "ghcr.io/kyverno/kyverno:v1.13.2", "");
    let repo = Repo::shop(&[
        ("manifests/engine.yaml", &engine),
        ("manifests/policy.yaml", &policy("Audit")),
        ("manifests/a.yaml", settings),
    ]);
    assert_eq!(rehearse(&repo, &[]).0, 0);
    repo.write("manifests/policy.yaml", policy("Enforce"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("ClusterPolicy require-team, rule team, refuses: team   [admit/policy]"), "{text}");
    assert!(text.contains("is refused by a policy: ConfigMap shop/a   manifests/a.yaml:1"), "{text}");
    repo.write("manifests/a.yaml", settings.replace("name: a", "name: a, labels: {team: shop}"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn a_sync_window_is_waited_for() {
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: default, namespace: argocd}\nspec:\n  sourceRepos: ['*']\n  \
                   destinations: [{server: '*', namespace: '*'}]\n  clusterResourceWhitelist: [{group: '*', kind: '*'}]\n  syncWindows: [{kind: deny, schedule: '30 7 * * *', duration: 90m, applications: ['*']}]\n";
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let repo = Repo::shop(&[("manifests/a.yaml", settings), ("projects/default.yaml", project)]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("ends green after 1h00m"), "{text}");
    let (code, text) = rehearse(&repo, &["--until", "30m"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a sync window of project 'default' forbids automated sync"), "{text}");
}

#[test]
fn who_is_synced_by_hand_is_told_how_that_is_rehearsed() {
    let manual = application("shop", "manifests").replace("automated", "unused");
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let repo = Repo::with(&[("root.yaml", &manual), ("manifests/a.yaml", settings)]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("smallest repair: sync it by hand after merging; --sync-all rehearses that"),
        "{text}"
    );
    assert_eq!(rehearse(&repo, &["--sync-all"]).0, 0);
}

#[test]
fn a_template_that_does_not_parse_is_told_with_its_line() {
    let repo = Repo::with(&[
        ("root.yaml", &application("shop", "charts/web")),
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        (
            "charts/web/templates/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name\n",
        ),
    ]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[gitops/render]"), "{text}");
    assert!(text.contains("Application shop   charts/web/templates/a.yaml:"), "{text}");
}

#[test]
fn a_host_that_nothing_is_fetched_from_is_refused_at_once() {
    let repo = Repo::shop(&[("manifests/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")]);
    let (code, text) = rehearse(&repo, &["--fault", "git=git.example.org"]);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("there is no host of sources \"git.example.org\"; there are git.example.com"),
        "{text}"
    );
}
