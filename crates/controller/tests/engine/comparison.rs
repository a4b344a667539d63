//! How desired and live state are compared, and what a sync makes of it: ignored differences, server-side
//! diff, orphans, and what pruning leaves behind.

use std::time::Duration;

use tiphys_value::{ObjectExt, Value, json};

use crate::{
    incidents::yaml,
    stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase},
};

const SECRET: (&str, &str) = ("v1", "Secret");

fn manual(name: &str, options: &[&str]) -> Value {
    let mut app = application(name, "app");
    app["spec"]["syncPolicy"] = json!({"syncOptions": options});
    app
}

async fn sync(stage: &Stage, operation: Value) -> Value {
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": operation})).await;
    let done =
        |app: &Value| app.get("operation").is_none() && !matches!(phase(app), "" | "Running" | "Terminating");
    let app = stage.until_app("app", done).await;
    assert_eq!(phase(&app), "Succeeded", "{}", message(&app));
    app
}

/// A ConfigMap with four keys of which three are ignored, each in another form.
fn four(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: four\ndata:\n  pointer: \"{value}\"\n  query: \"{value}\"\n  manager: \"{value}\"\n  plain: \"{value}\"\n"
    )
}

async fn drifted(options: &[&str]) -> Value {
    let stage = Stage::new(&[("app/four.yaml", &four("git"))]).await;
    let mut app = manual("app", options);
    app["spec"]["ignoreDifferences"] = json!([
        {"kind": "ConfigMap", "jsonPointers": ["/data/pointer"]},
        {"kind": "ConfigMap", "name": "four", "jqPathExpressions": [".data.query"]},
        {"kind": "*", "managedFieldsManagers": ["autopilot"]},
    ]);
    stage.apply(app).await;
    sync(&stage, json!({"sync": {}})).await;
    stage.patch(CONFIG_MAP, "app", "four", json!({"data": {"pointer": "live", "query": "live"}})).await;
    let owned = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "four", "namespace": "app"}, "data": {"manager": "live"}});
    stage.apply_as(owned, "autopilot").await;
    stage.pass(Duration::from_secs(60)).await;
    let seen = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(seen["status"]["sync"]["status"], "Synced", "{:#}", seen["status"]);
    stage.patch(CONFIG_MAP, "app", "four", json!({"data": {"plain": "live"}})).await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    sync(&stage, json!({"sync": {"syncOptions": options}})).await;
    stage.get(CONFIG_MAP, "app", "four").await.unwrap()["data"].clone()
}

#[tokio::test(start_paused = true)]
async fn ignored_differences_of_all_forms_are_kept_by_a_sync_that_respects_them() {
    let kept = drifted(&["CreateNamespace=true", "RespectIgnoreDifferences=true"]).await;
    assert_eq!(kept, json!({"pointer": "live", "query": "live", "manager": "live", "plain": "git"}));
    let undone = drifted(&["CreateNamespace=true"]).await;
    assert_eq!(undone, json!({"pointer": "git", "query": "git", "manager": "git", "plain": "git"}));
}

/// A reference is replaced as a whole everywhere but there: who binds a volume adds to what the manifest
/// says.
#[tokio::test(start_paused = true)]
async fn a_volume_that_a_claim_is_bound_to_is_synced() {
    let volume = "apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /data}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: app, name: data}
";
    let stage = Stage::new(&[("app/volume.yaml", volume)]).await;
    let mut app = application("app", "app");
    app["spec"]["syncPolicy"]["automated"]["selfHeal"] = json!(true);
    stage.apply(app).await;
    stage.until_green("app").await;
    let bound = json!({"spec": {"claimRef": {"uid": "1234", "resourceVersion": "5"}}});
    stage.patch(("v1", "PersistentVolume"), "", "data", bound).await;
    stage.pass(Duration::from_secs(60)).await;
    stage.until_green("app").await;
    let live = stage.get(("v1", "PersistentVolume"), "", "data").await.unwrap();
    assert_eq!(live["spec"]["claimRef"]["uid"], "1234");
}

#[tokio::test(start_paused = true)]
async fn the_api_server_is_asked_what_it_would_make_of_a_target() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"color": {"type": "string", "maxLength": 4}}}}}}}]}});
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {color: red}\n";
    let stage = Stage::new(&[("app/thing.yaml", thing)]).await;
    stage.apply(definition).await;
    let mut app = application("app", "app");
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": "ServerSideDiff=true"});
    app["spec"]["syncPolicy"]["automated"]["selfHeal"] = json!(false);
    stage.apply(app).await;
    stage.until_green("app").await;
    stage.patch(("example.com/v1", "Thing"), "app", "t", json!({"spec": {"color": "blue"}})).await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    stage.patch(("example.com/v1", "Thing"), "app", "t", json!({"spec": {"color": "red"}})).await;
    stage.until_green("app").await;
    // What it refuses is not taken for synced: it is compared by its fields, and that is said.
    stage.write("app/thing.yaml", &thing.replace("red", "much-too-long"));
    let refused = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    assert!(condition(&refused, "ComparisonError").unwrap().contains("server-side diff of"));
    assert_eq!(refused["status"]["sync"]["status"], "OutOfSync");
}

#[tokio::test(start_paused = true)]
async fn objects_that_nobody_has_are_told_of() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team", "namespace": ENGINE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            "orphanedResources": {"ignore": [{"group": "", "kind": "ConfigMap", "name": "known-*"}]}}})).await;
    let mut app = application("app", "app");
    app["spec"]["project"] = "team".into();
    stage.apply(app).await;
    let green = stage.until_green("app").await;
    assert_eq!(green["status"]["tiphys"]["orphaned"]["count"], 0);
    assert!(condition(&green, "OrphanedResourceWarning").is_none());
    for name in ["known-one", "stray"] {
        stage.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "app"}})).await;
    }
    let seen = stage.until_app("app", |app| condition(app, "OrphanedResourceWarning").is_some()).await;
    assert_eq!(condition(&seen, "OrphanedResourceWarning"), Some("Application has 1 orphaned resources"));
    assert_eq!(seen["status"]["tiphys"]["orphaned"]["objects"][0]["name"], "stray");
    assert!(stage.engine.as_ref().unwrap().metrics().contains(
        "argocd_app_orphaned_resources_count{namespace=\"argocd\",name=\"app\",project=\"team\"} 1"
    ));
    stage.delete(CONFIG_MAP, "app", "stray").await;
    stage.until_app("app", |app| condition(app, "OrphanedResourceWarning").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_pruned_is_recorded_for_a_while() {
    let stage = Stage::with(
        &[
            ("app/a.yaml", &config_map("a", "1")),
            ("app/b.yaml", &config_map("b", "1")),
            ("app/c.yaml", &config_map("c", "1")),
        ],
        |settings| settings.tombstones = Duration::from_secs(3600),
    )
    .await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let records = async || {
        let mut all = stage.list(SECRET).await;
        all.retain(|secret| secret.label("tiphys.dev/tombstone").is_some());
        all
    };
    stage.remove("app/a.yaml");
    stage.until_gone(CONFIG_MAP, "app", "a").await;
    let kept = records().await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].annotation("tiphys.dev/tombstone-app"), Some("argocd/app"));
    stage.pass(Duration::from_secs(2 * 3600)).await;
    stage.remove("app/b.yaml");
    stage.until_gone(CONFIG_MAP, "app", "b").await;
    stage.until_green("app").await;
    stage.pass(Duration::from_secs(10)).await;
    assert_eq!(records().await.len(), 1, "the older one's time is over");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_refreshes_takes_the_newest_revision() {
    for refresh in [true, false] {
        let hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {argocd.argoproj.io/hook: PreSync}}\nspec:\n  backoffLimit: 0\n  activeDeadlineSeconds: 30\n  template:\n    spec:\n      restartPolicy: Never\nSELECT      containers: [{name: main, image: busybox}]\n";
        let broken = hook.replace("SELECT", "      nodeSelector: {there: is-none}\n");
        let stage = Stage::new(&[("app/hook.yaml", &broken), ("app/a.yaml", &config_map("a", "1"))]).await;
        stage.apply(manual("app", &["CreateNamespace=true"])).await;
        let retry = json!({"limit": 1, "refresh": refresh, "backoff": {"duration": "60s"}});
        stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}, "retry": retry}})).await;
        stage
            .until_app("app", |app| app.pointer("/status/operationState/retryCount") == Some(&json!(1)))
            .await;
        stage.write("app/hook.yaml", &hook.replace("SELECT", ""));
        let ended = stage.until_app("app", |app| !matches!(phase(app), "" | "Running")).await;
        let expected = if refresh { "Succeeded" } else { "Failed" };
        assert_eq!(phase(&ended), expected, "{}", message(&ended));
    }
}

#[tokio::test(start_paused = true)]
async fn a_chart_that_asks_for_a_kind_is_rendered_again_when_the_kind_comes_and_others_are_not() {
    let template = "{{ if .Capabilities.APIVersions.Has \"example.com/v1/Widget\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: monitored}\n{{ end }}\n";
    let fussy = "{{ if not (.Capabilities.APIVersions.Has \"example.com/v1\") }}{{ fail \"install the operator first\" }}{{ end }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fussy}\n";
    let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
    let files = [
        ("app/Chart.yaml", chart),
        ("app/templates/a.yaml", &*config_map("a", "1")),
        ("app/templates/b.yaml", template),
        ("fussy/Chart.yaml", chart),
        ("fussy/templates/a.yaml", fussy),
        ("plain/Chart.yaml", chart),
        ("plain/templates/a.yaml", &*config_map("a", "{{ .Capabilities.APIVersions.Has \"apps/v1\" }}")),
    ];
    let stage = Stage::new(&files).await;
    for name in ["app", "plain", "fussy"] {
        stage.apply(application(name, name)).await;
    }
    stage.until_green("app").await;
    stage.until_green("plain").await;
    let failed = stage.until_app("fussy", |app| condition(app, "ComparisonError").is_some()).await;
    assert!(condition(&failed, "ComparisonError").unwrap().contains("install the operator first"));
    // It was looked at, so that a parent does not say that it still has to be.
    assert_eq!(failed["status"]["sync"]["comparedTo"]["source"]["path"], "fussy");
    assert!(stage.get(CONFIG_MAP, "app", "monitored").await.is_none());
    let renders = || {
        let metrics = stage.engine.as_ref().unwrap().metrics();
        let rows = metrics.lines().filter(|line| line.starts_with("tiphys_app_renders_total"));
        rows.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let before = renders();
    let widgets = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    stage.apply(widgets).await;
    stage.until_object(CONFIG_MAP, "app", "monitored", |_| true).await;
    stage.until_green("fussy").await;
    stage.until_green("plain").await;
    assert_eq!((before.contains(" 3"), renders().contains(" 5")), (true, true), "{before}\n{}", renders());
}

#[tokio::test(start_paused = true)]
async fn jsonnet_is_rendered_and_follows_its_imports() {
    let main = "local lib = import 'map.libsonnet'; function(suffix) [lib.map(std.extVar('name') + suffix), lib.map('$ARGOCD')]";
    let library = |value: &str| {
        format!(
            "{{map(name):: {{apiVersion: 'v1', kind: 'ConfigMap', metadata: {{name: std.asciiLower(std.strReplace(name, '$', ''))}}, data: {{k: '{value}'}}}}}}"
        )
    };
    let files = [("app/main.jsonnet", main), ("lib/map.libsonnet", &*library("1"))];
    let stage = Stage::new(&files).await;
    let mut app = application("app", "app");
    app["spec"]["source"]["directory"] = json!({"jsonnet": {"libs": ["lib"],
        "extVars": [{"name": "name", "value": "$ARGOCD_APP_NAME"}], "tlas": [{"name": "suffix", "value": "'-' + 2", "code": true}]}});
    stage.apply(app).await;
    stage.until_green("app").await;
    assert_eq!(stage.names(CONFIG_MAP, "app").await, ["app-2", "argocd", "kube-root-ca.crt"]);
    stage.write("lib/map.libsonnet", &library("2"));
    stage.until_object(CONFIG_MAP, "app", "app-2", |object| object["data"]["k"] == "2").await;
    stage.write("lib/map.libsonnet", "error 'not today'");
    let failed = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    let told = condition(&failed, "ComparisonError").unwrap();
    assert!(told.contains("lib/map.libsonnet:1:1: not today"), "{told}");
}

/// A Role, an alert, a Secret and a Deployment: as they were first, or with less in lists that are applied as
/// a whole.
fn narrowed(is_less: bool) -> String {
    let (names, wait, key, first) = match is_less {
        false => (
            "\n  resourceNames: [\"one\"]",
            ", for: 5m",
            "\n  gone: x",
            "[{name: a, image: i}, {name: b, image: i}]",
        ),
        true => ("", "", "", "[{name: b, image: i}, {name: a, image: i}]"),
    };
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: r}}\nrules:\n- apiGroups: [\"\"]\n  resources: [\"secrets\"]\n  verbs: [\"get\"]{names}\n---\n\
         apiVersion: example.com/v1\nkind: Alert\nmetadata: {{name: a}}\nspec:\n  rules: [{{expr: up == 0{wait}}}]\n---\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  kept: x{key}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec:\n  selector: {{matchLabels: {{app: d}}}}\n  template:\n    metadata: {{labels: {{app: d}}}}\n    spec:\n      initContainers: {first}\n      containers: [{{name: c, image: i}}]\n"
    )
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_list_that_is_applied_as_a_whole_leaves_the_cluster() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "alerts.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "alerts", "singular": "alert", "kind": "Alert", "listKind": "AlertList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"rules": {"type": "array", "items": {"type": "object", "properties": {
                    "expr": {"type": "string"}, "for": {"type": "string"}, "level": {"type": "string", "default": "page"}}}}}}}}}}]}});
    let stage = Stage::new(&[("app/all.yaml", &narrowed(false))]).await;
    stage.apply(definition).await;
    stage.until_served("Alert").await;
    stage.apply(application("app", "app")).await;
    let green = stage.until_green("app").await;
    let first = green["status"]["sync"]["revision"].clone();
    stage.write("app/all.yaml", &narrowed(true));
    let is_newer = |app: &Value| {
        app["status"]["sync"]["revision"] != first && app["status"]["sync"]["status"] == "Synced"
    };
    stage.until_app("app", is_newer).await;
    let object = async |kind, name| stage.get(kind, "app", name).await.unwrap();
    let role = object(("rbac.authorization.k8s.io/v1", "Role"), "r").await;
    assert_eq!(role.pointer("/rules/0/resourceNames"), None);
    let alert = object(("example.com/v1", "Alert"), "a").await;
    assert_eq!(alert["spec"]["rules"], json!([{"expr": "up == 0", "level": "page"}]));
    assert_eq!(object(SECRET, "s").await["data"], json!({"kept": "eA=="}));
    let deployment = object(("apps/v1", "Deployment"), "d").await;
    assert_eq!(deployment.pointer("/spec/template/spec/initContainers/0/name"), Some(&json!("b")));
}

/// A rule whose expression names a function that does not exist.
fn unusable() -> Value {
    json!([{"group": "*", "kind": "ConfigMap", "jqPathExpressions": [".data | nosuch(.a)"]}])
}

const FAULT: &str = "Failed to compare desired state to live state: ignoreDifferences: jq path expression \
    \".data | nosuch(.a)\": function not defined: nosuch/1";

#[tokio::test(start_paused = true)]
async fn an_expression_that_cannot_be_used_holds_its_application_until_it_is_mended() {
    let stage = Stage::new(&[("app/four.yaml", &four("git"))]).await;
    let mut app = application("app", "app");
    app["spec"]["ignoreDifferences"] = unusable();
    stage.apply(app).await;
    let told = |app: &Value| condition(app, "ComparisonError") == Some(FAULT);
    let held = stage.until_app("app", told).await;
    assert_eq!(held["status"]["sync"]["status"], "Unknown");
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
    let failed = stage.until_app("app", |app| phase(app) == "Error").await;
    assert!(message(&failed).contains(FAULT), "{}", message(&failed));
    assert!(stage.get(CONFIG_MAP, "app", "four").await.is_none(), "nothing was synced");

    let mended = json!([{"group": "*", "kind": "ConfigMap", "jqPathExpressions": [".data.query"]}]);
    stage.patch(APPLICATION, ENGINE, "app", json!({"spec": {"ignoreDifferences": mended}})).await;
    let green = stage.until_green("app").await;
    assert!(condition(&green, "ComparisonError").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_expression_of_the_settings_that_cannot_be_used_holds_only_those_whom_it_concerns() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
    let stage = Stage::new(&[("app/four.yaml", &four("git")), ("other/secret.yaml", secret)]).await;
    let settings = |expression: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": ENGINE},
            "data": {"resource.customizations.ignoreDifferences._ConfigMap": format!("jqPathExpressions: ['{expression}']")}})
    };
    stage.apply(settings(".data | nosuch(.a)")).await;
    stage.apply(application("app", "app")).await;
    stage.apply(application("other", "other")).await;
    stage.until_green("other").await;
    stage.until_app("app", |app| condition(app, "ComparisonError") == Some(FAULT)).await;
    stage.apply(settings(".data.query")).await;
    stage.until_green("app").await;
}

/// A null among Helm's values takes a default away. A merge patch, by which a status is written, takes it for
/// a removal: the spec would look like another than the one that was synced, for ever.
#[tokio::test(start_paused = true)]
async fn nulls_of_values_are_recorded_as_they_are() {
    let mut child = application("child", "chart");
    child["spec"]["source"]["helm"] = json!({"valuesObject": {"gone": null, "there": "yes"}});
    child["spec"]["syncPolicy"]["automated"] = json!({"prune": true});
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {gone: '{{ .Values.gone }}', there: '{{ .Values.there }}'}\n";
    let late = config_map("late", "1")
        .replace("name: late", "name: late\n  annotations: {argocd.argoproj.io/sync-wave: '1'}");
    let stage = Stage::new(&[
        ("root/child.yaml", &yaml(&child)),
        ("root/late.yaml", &late),
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
        ("chart/values.yaml", "gone: default\nthere: default\n"),
        ("chart/templates/a.yaml", template),
    ])
    .await;
    stage.apply(application("root", "root")).await;
    stage.until_green("root").await;
    let child = stage.until_green("child").await;
    let a = stage.get(CONFIG_MAP, "child", "a").await.unwrap();
    assert_eq!(a["data"], json!({"gone": "", "there": "yes"}));
    for place in [
        "/status/sync/comparedTo/source",
        "/status/history/0/source",
        "/status/operationState/syncResult/source",
    ] {
        let recorded = child.pointer(place).unwrap();
        assert_eq!(recorded["helm"]["valuesObject"], json!({"gone": null, "there": "yes"}), "{place}");
    }
    assert!(stage.get(CONFIG_MAP, "root", "late").await.is_some(), "the next wave was not held");
    stage.patch(CONFIG_MAP, "child", "a", json!({"data": {"there": "edited"}})).await;
    stage.pass(Duration::from_secs(3600)).await;
    let a = stage.get(CONFIG_MAP, "child", "a").await.unwrap();
    assert_eq!(a["data"]["there"], "edited", "nobody asked for self-heal");
}

/// What charts render where a value is absent, in kinds of the API server's and in a custom one: what is
/// stored of it is no difference, and nothing is healed for ever.
const NOTHING: [&str; 11] = [
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: map, labels: {a: null}}, data: {a: null, b: x, c: ''}}",
    "{apiVersion: v1, kind: Secret, metadata: {name: secret}, data: {a: null}, stringData: {b: null}}",
    "{apiVersion: v1, kind: Service, metadata: {name: empty, annotations: {a: null}}, spec: {type: '', clusterIP: '', sessionAffinity: '', selector: {app: a, b: null}, ports: [{port: 80, protocol: '', targetPort: '', name: ''}]}}",
    "{apiVersion: v1, kind: Service, metadata: {name: nulls}, spec: {type: null, clusterIP: null, ipFamilies: null, ipFamilyPolicy: null, internalTrafficPolicy: null, sessionAffinity: null, ports: [{port: 80, protocol: null, targetPort: null, name: null, appProtocol: null}]}}",
    "{apiVersion: v1, kind: Service, metadata: {name: node-null}, spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: null}, {name: b, port: 81, nodePort: 0}]}}",
    "{apiVersion: v1, kind: Service, metadata: {name: balanced}, spec: {type: LoadBalancer, externalTrafficPolicy: '', healthCheckNodePort: 0, loadBalancerClass: null, ports: [{port: 80, nodePort: 0}]}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: null, revisionHistoryLimit: null, strategy: {type: '', rollingUpdate: null}, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a, v: null}, annotations: null}, spec: {restartPolicy: '', nodeSelector: {}, tolerations: [], affinity: null, containers: [{name: c, image: 'example.org/a:1', imagePullPolicy: '', command: null, args: [], ports: [{containerPort: 80, protocol: null, name: null, hostPort: 0}], env: [{name: A, value: null}, {name: B, value: ''}], resources: {limits: null, requests: null}, livenessProbe: {httpGet: {port: 80, path: '', scheme: ''}, periodSeconds: 0}, volumeMounts: null}], volumes: [{name: s, secret: {secretName: x, defaultMode: null, optional: true}}]}}}}",
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding}, roleRef: {apiGroup: '', kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: default, namespace: app, apiGroup: ''}, {kind: User, name: u}]}",
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: role}, rules: null}",
    "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ingress}, spec: {ingressClassName: null, tls: null, rules: [{host: '', http: {paths: [{path: '', pathType: ImplementationSpecific, backend: {service: {name: s, port: {number: 80, name: ''}}, resource: null}}]}}]}}",
    "{apiVersion: example.com/v1, kind: Widget, metadata: {name: widget}, spec: {size: null, color: null, note: null, list: [], empty: ''}}",
];

const WIDGET: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 3}, color: {type: string}, note: {type: string, nullable: true}, empty: {type: string}, list: {type: array, items: {type: string}}}}}}}}]}}";

#[tokio::test(start_paused = true)]
async fn what_says_nothing_is_synced_once_and_no_difference() {
    for compare in ["ServerSideDiff=false", "ServerSideDiff=true"] {
        let stage = Stage::new(&[("app/widget.yaml", WIDGET)]).await;
        for (number, text) in NOTHING.iter().enumerate() {
            stage.write(&format!("app/{number}.yaml"), text);
        }
        let mut app = application("app", "app");
        app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": compare});
        stage.apply(app).await;
        let first = stage.until_app("app", |app| phase(app) == "Succeeded").await;
        stage.pass(Duration::from_secs(3600)).await;
        let later = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
        let out: Vec<_> = later["status"]["resources"].as_array().unwrap().iter().collect();
        let out: Vec<_> = out.iter().filter(|one| one["status"] != "Synced").collect();
        assert!(out.is_empty(), "{compare}: {out:#?}");
        let started = |app: &Value| app.pointer("/status/operationState/startedAt").cloned();
        assert_eq!(started(&later), started(&first), "{compare}: nothing was healed");
        // What is changed by hand where the target says nothing of it goes back to what it was, or stays
        // somebody's.
        stage.patch(CONFIG_MAP, "app", "map", json!({"data": {"a": "by hand"}})).await;
        stage.until_object(CONFIG_MAP, "app", "map", |map| map["data"]["a"] == "").await;
    }
}
