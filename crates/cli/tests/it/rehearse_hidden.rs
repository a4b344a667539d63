//! What a rehearsal tells though no Application shows it, and what it does not take for granted.

use std::{fs, path::Path};

use serde_json::Value;

use crate::common::{Repo, rehearse};

/// The pods of a workload, with more in their spec and in their container.
fn deployment(name: &str, replicas: u32, container: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: c, image: \"registry.example.com/{name}:1\"{container}}}\n"
    )
}

fn service(name: &str, app: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: {app}}}, ports: [{{port: 80}}]}}\n"
    )
}

#[test]
fn a_cron_job_that_fails_at_its_time_is_told_at_the_end() {
    let backup = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: backup}\nspec:\n  schedule: '0 3 * * *'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - {name: c, image: \"registry.example.com/backup:1\", envFrom: [{secretRef: {name: login}}]}\n";
    let repo = Repo::shop(&[("manifests/backup.yaml", backup)]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("CronJob shop/backup fails when it runs; ends green"), "{text}");
    assert!(text.contains("secret \"login\" not found   [config/missing]"), "{text}");
    // One that is suspended does not run.
    repo.write("manifests/backup.yaml", backup.replace("  jobTemplate:", "  suspend: true\n  jobTemplate:"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
    let login = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: b}\n";
    repo.write("manifests/backup.yaml", backup);
    repo.write("manifests/login.yaml", login);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn an_ingress_of_a_mistyped_class_gets_no_address() {
    let class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\nspec: {controller: k8s.io/ingress-nginx}\n";
    let ingress = |class: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec: {{ingressClassName: {class}, defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}\n"
        )
    };
    let repo = Repo::shop(&[("manifests/class.yaml", class), ("manifests/ingress.yaml", &ingress("ngnix"))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("it names the class \"ngnix\", which does not exist") && text.contains("[edge/class]"),
        "{text}"
    );
    // A class of the cloud is elsewhere, and so is a controller without pods.
    for class in ["alb", "nginx"] {
        repo.write("manifests/ingress.yaml", ingress(class));
        assert_eq!(rehearse(&repo, &[]).0, 0, "{class}");
    }
}

#[test]
fn a_budget_that_forbids_a_drain_is_told() {
    let budget = |least: u32| {
        format!(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: web}}\nspec: {{minAvailable: {least}, selector: {{matchLabels: {{app: web}}}}}}\n"
        )
    };
    let web = deployment("web", 3, "");
    let repo = Repo::shop(&[("manifests/web.yaml", &web), ("manifests/budget.yaml", &budget(3))]);
    let drain = ["--fault", "drain=node-1@1m+20m"];
    let (code, text) = rehearse(&repo, &drain);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[scale/budget]") && text.contains("cannot be drained: Node node-1"), "{text}");
    repo.write("manifests/budget.yaml", budget(2));
    let (code, text) = rehearse(&repo, &drain);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_selector_that_leads_nowhere_and_settings_that_nobody_takes_up_are_told() {
    let web = deployment("web", 2, ", envFrom: [{configMapRef: {name: settings}}]");
    let settings = |value: u32| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{a: \"{value}\"}}\n")
    };
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &web),
        ("manifests/service.yaml", &service("web", "web")),
        ("manifests/settings.yaml", &settings(1)),
    ]);
    repo.git_init();
    repo.write("manifests/settings.yaml", settings(2));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("Deployment shop/web is not restarted: it has read ConfigMap shop/settings"),
        "{text}"
    );
    // What is rolled out reads the new values.
    repo.write("manifests/web.yaml", web.replace("web:1", "web:2"));
    let (_, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert!(text.contains("is rolled out") && !text.contains("is not restarted"), "{text}");
    repo.write("manifests/service.yaml", service("web", "wbe"));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("its selector app=wbe matches no pod") && text.contains("[service/selector]"),
        "{text}"
    );
}

#[test]
fn what_a_dump_leaves_out_is_neither_new_nor_an_outage() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: b}\n";
    let web = deployment("web", 2, ", envFrom: [{secretRef: {name: login}}]");
    let repo = Repo::shop(&[("manifests/web.yaml", &web), ("manifests/login.yaml", secret)]);
    let dump = repo.run_dir().join("dump");
    assert_eq!(rehearse(&repo, &["--save", dump.to_str().unwrap()]).0, 0);
    remove_kinds(&dump, &["secrets.json", "pods.json", "replicasets.apps.json"]);
    repo.write("manifests/web.yaml", web.replace("web:1", "web:2"));
    let (code, text) = rehearse(&repo, &["--from", dump.to_str().unwrap(), "--output", "json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["story"]["outages"], serde_json::json!([]));
    let effects = &report["change"]["effects"]["applications"]["shop"]["objects"];
    let names: Vec<&str> =
        effects.as_array().unwrap().iter().filter_map(|it| it["object"]["name"].as_str()).collect();
    assert_eq!(names, ["web"]);
}

fn remove_kinds(dump: &Path, names: &[&str]) {
    for name in names {
        fs::remove_file(dump.join(name)).unwrap();
    }
}

#[test]
fn an_api_server_that_refuses_the_engine_is_the_cause() {
    let repo = Repo::shop(&[("manifests/web.yaml", &deployment("web", 2, ""))]);
    let (code, text) = rehearse(&repo, &["--fault", "api:503@1s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("1. the API server answers the engine with 503"), "{text}");
    assert!(!text.contains("  2. "), "{text}");
    let (code, text) = rehearse(&repo, &["--fault", "api:503@1s+30s"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn an_ingress_that_leads_nowhere_is_told() {
    let ingress = |service: &str, port: u16| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec: {{defaultBackend: {{service: {{name: {service}, port: {{number: {port}}}}}}}}}\n"
        )
    };
    let web = deployment("web", 1, "");
    let repo =
        Repo::shop(&[("manifests/web.yaml", &web), ("manifests/service.yaml", &service("web", "web"))]);
    repo.write("manifests/ingress.yaml", ingress("web", 8080));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("Ingress shop/web leads nowhere; ends green"), "{text}");
    assert!(text.contains("port 8080 of Service shop/web, which has 80   [edge/backend]"), "{text}");
    repo.write("manifests/ingress.yaml", ingress("web-svc", 80));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("write the Service \"web\" in place of \"web-svc\""), "{text}");
    // What is called otherwise may have been made by hand.
    for (service, port) in [("web", 80), ("dashboard", 80)] {
        repo.write("manifests/ingress.yaml", ingress(service, port));
        let (code, text) = rehearse(&repo, &[]);
        assert_eq!(code, 0, "{text}");
    }
}

#[test]
fn a_webhook_that_takes_its_authority_from_no_certificate_is_not_trusted() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: certificates.cert-manager.io}\nspec:\n  group: cert-manager.io\n  scope: Namespaced\n  names: {kind: Certificate, plural: certificates, singular: certificate, listKind: CertificateList}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n";
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: guard-serving}\nspec: {secretName: guard-tls, dnsNames: [shop.example.com]}\n";
    let hook = |from: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: guard, annotations: {{cert-manager.io/inject-ca-from: shop/{from}}}}}\nwebhooks:\n- name: guard.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: {{service: {{namespace: shop, name: guard}}}}\n  rules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]\n  objectSelector: {{matchLabels: {{guarded: 'yes'}}}}\n"
        )
    };
    let guarded = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guarded, labels: {guarded: 'yes'}, annotations: {argocd.argoproj.io/sync-wave: '1'}}\ndata: {a: b}\n";
    let repo = Repo::shop(&[
        ("manifests/a-definition.yaml", definition),
        ("manifests/certificate.yaml", certificate),
        (
            "manifests/issuer.yaml",
            &deployment("cert-manager", 1, "").replace(
                "registry.example.com/cert-manager:1",
                "quay.io/jetstack/cert-manager-controller:v1",
            ),
        ),
        ("manifests/guard.yaml", &deployment("guard", 1, "")),
        ("manifests/service.yaml", &service("guard", "guard").replace("port: 80", "port: 443")),
        ("manifests/guarded.yaml", guarded),
    ]);
    repo.write("manifests/hook.yaml", hook("guard-cert"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("unknown authority   [admit/webhook-tls]"), "{text}");
    assert!(text.contains("write \"shop/guard-serving\" in place of \"shop/guard-cert\""), "{text}");
    repo.write("manifests/hook.yaml", hook("guard-serving"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_claim_that_only_waits_for_its_pod_is_no_cause() {
    let claim = |name: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}\n"
        )
    };
    let mounts = ", volumeMounts: [{name: d, mountPath: /d}]";
    let web = deployment("web", 1, mounts)
        + "      volumes: [{name: d, persistentVolumeClaim: {claimName: media}}]\n";
    let repo = Repo::shop(&[("manifests/web.yaml", &web), ("manifests/claim.yaml", &claim("web-media"))]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("write the claim \"web-media\" in place of \"media\""), "{text}");
    assert!(!text.contains("2. "), "the other claim waits for nothing else: {text}");
    // A pod that fits nowhere tells why its claim is not bound.
    let pinned = web.replace(
        "      containers:",
        "      nodeSelector: {kubernetes.io/hostname: node-9}\n      containers:",
    );
    repo.write("manifests/web.yaml", pinned.replace("claimName: media", "claimName: web-media"));
    let (code, text) = rehearse(&repo, &["--stand-ins", "never"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[schedule/node-selector]") && !text.contains("volume/provisioner"), "{text}");
}

#[test]
fn a_job_that_takes_too_long_tells_what_its_pod_waited_for() {
    let job = |host: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: seed}}\nspec:\n  activeDeadlineSeconds: 120\n  template:\n    spec:\n      restartPolicy: Never\n      initContainers: [{{name: wait, image: \"busybox:1.36\", command: [sh, -c, \"until nc -z {host} 5432; do sleep 2; done\"]}}]\n      containers: [{{name: c, image: \"registry.example.com/seed:1\"}}]\n"
        )
    };
    let repo = Repo::shop(&[
        ("manifests/db.yaml", &deployment("db", 1, "")),
        ("manifests/service.yaml", &service("db", "db")),
    ]);
    repo.write("manifests/job.yaml", job("database"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("its pod: init container wait has not ended") && text.contains("[run/init-wait]"),
        "{text}"
    );
    repo.write("manifests/job.yaml", job("db"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn time_that_does_not_suffice_is_told() {
    let repo = Repo::shop(&[("manifests/web.yaml", &deployment("web", 1, ""))]);
    let (code, text) = rehearse(&repo, &["--until", "30s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("is not settled: "), "{text}");
    let (code, text) = rehearse(&repo, &["--fault", "node=node-1@3h"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("begins at 3h00m, and the rehearsal ends at 2h00m: give --until more"), "{text}");
    for (wrong, why) in [("0s", "nothing happens in no time"), ("-5m", "is no duration")] {
        let (code, text) = rehearse(&repo, &["--until", wrong]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn a_service_that_leads_to_a_port_on_which_nobody_listens_is_told() {
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: c, image: \"IMAGE\"}]\n";
    let to = |port: u16| service("web", "web").replace("port: 80", &format!("port: 80, targetPort: {port}"));
    let repo = Repo::shop(&[("manifests/web.yaml", &web.replace("IMAGE", "nginx:1.27"))]);
    repo.write("manifests/service.yaml", to(8080));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("none of its pods listens on 8080; they listen on 80   [service/port]"), "{text}");
    repo.write("manifests/service.yaml", to(80));
    assert_eq!(rehearse(&repo, &[]).0, 0);
    // Of other images it is not known.
    repo.write("manifests/service.yaml", to(8080));
    repo.write("manifests/web.yaml", web.replace("IMAGE", "registry.example.com/web:1"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn an_ingress_whose_certificate_has_another_name_is_told() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: certificates.cert-manager.io}\nspec:\n  group: cert-manager.io\n  scope: Namespaced\n  names: {kind: Certificate, plural: certificates, singular: certificate, listKind: CertificateList}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n";
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\nspec: {secretName: web-certificate, dnsNames: [shop.example.com]}\n";
    let issuer = deployment("cert-manager", 1, "")
        .replace("registry.example.com/cert-manager:1", "quay.io/jetstack/cert-manager-controller:v1");
    let ingress = |secret: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec:\n  tls: [{{hosts: [shop.example.com], secretName: {secret}}}]\n  defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}\n"
        )
    };
    let repo = Repo::shop(&[
        ("manifests/a-definition.yaml", definition),
        ("manifests/certificate.yaml", certificate),
        ("manifests/issuer.yaml", &issuer),
        ("manifests/web.yaml", &deployment("web", 1, "")),
        ("manifests/service.yaml", &service("web", "web")),
    ]);
    repo.write("manifests/ingress.yaml", ingress("web-tls"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("Certificate \"web\" makes \"web-certificate\" for its host   [edge/tls-secret]"),
        "{text}"
    );
    repo.write("manifests/ingress.yaml", ingress("web-certificate"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn what_waits_for_an_operator_out_of_reach_is_assumed_and_no_cause() {
    let chart = |name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: \"https://kubernetes.default.svc\", namespace: {name}}}\n  source: {{repoURL: \"https://{name}.example.com/charts\", chart: {name}, targetRevision: 1.0.0}}\n  syncPolicy: {{automated: {{}}}}\n"
        )
    };
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}\nspec:\n  parentRefs: [{name: public, namespace: gateway}]\n  rules: [{backendRefs: [{name: web, port: 80}]}]\n";
    let repo = Repo::shop(&[
        ("platform.yaml", &["gateway", "monitoring", "storage"].map(chart).join("---\n")),
        ("manifests/web.yaml", &deployment("web", 1, "")),
        ("manifests/service.yaml", &service("web", "web")),
        ("manifests/route.yaml", route),
    ]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    let verdict = "3 of 4 Applications are not Synced and Healthy (nothing is known of 3, whose sources cannot be fetched)";
    assert!(text.lines().next().is_some_and(|line| line.ends_with(verdict)), "{text}");
    assert!(text.contains("gateway, monitoring, storage (0 objects): Unknown Unknown"), "one line: {text}");
    assert!(text.contains("no operator is simulated for HTTPRoute"), "{text}");
    let why = text.split("\nwhy:").nth(1).and_then(|rest| rest.split("\nnot known:").next()).unwrap();
    assert!(why.contains("3 addresses cannot be fetched from"), "{text}");
    assert!(!why.contains("HTTPRoute"), "it counts as ready: {text}");
}
