//! Sync options, of an Application and of single objects, through the whole engine.

use std::time::Duration;

use tiphys_value::{ObjectExt, Value, json};

use crate::{
    incidents::yaml,
    stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, config_map, message, phase},
};

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");

/// An Application that syncs only when asked, with options.
fn with_options(options: &[&str]) -> Value {
    let mut app = application("app", "app");
    let all: Vec<&str> = options.iter().copied().chain(["CreateNamespace=true"]).collect();
    app["spec"]["syncPolicy"] = json!({"syncOptions": all});
    app
}

/// Asks for a sync, and returns the Application when it is over.
async fn sync(stage: &Stage, sync: Value) -> Value {
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": sync}})).await;
    let done =
        |app: &Value| app.get("operation").is_none() && !matches!(phase(app), "" | "Running" | "Terminating");
    stage.until_app("app", done).await
}

/// A text with an annotation for its object.
fn annotated(text: &str, options: &str) -> String {
    text.replace(
        "metadata:\n",
        &format!("metadata:\n  annotations: {{argocd.argoproj.io/sync-options: {options}}}\n"),
    )
}

/// Without validation they are dropped, as an API server drops them wherever it reads an object.
#[tokio::test(start_paused = true)]
async fn fields_that_nobody_knows_fail_a_sync_unless_validation_is_off() {
    let odd = format!("{}dat: {{}}\nmore: 1\n", config_map("a", "1"));
    let own = annotated(&odd, "Validate=false");
    for (text, options, ends) in [
        (&odd, &[][..], "Failed"),
        (&odd, &["Validate=false"][..], "Succeeded"),
        (&own, &[][..], "Succeeded"),
    ] {
        let stage = Stage::new(&[("app/a.yaml", text)]).await;
        stage.apply(with_options(options)).await;
        let done = sync(&stage, json!({})).await;
        assert_eq!(phase(&done), ends, "{options:?}: {}", message(&done));
        assert_eq!(
            message(&done).contains(".dat: field not declared"),
            ends == "Failed",
            "{}",
            message(&done)
        );
        let live = stage.get(CONFIG_MAP, "app", "a").await;
        assert_eq!(
            live.is_some_and(|live| live.get("dat").is_none() && live["data"]["key"] == "1"),
            ends == "Succeeded"
        );
    }
}

/// Whatever the retry policy says: the manifest is at fault, and repeating helps nobody.
#[tokio::test(start_paused = true)]
async fn what_a_schema_does_not_take_fails_at_once() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {key: '***'}\n";
    let app = yaml(&application("child", "child")).replace("project:", "sometimes: true\n  project:");
    for (text, why) in
        [(secret, "illegal base64 data"), (&app, ".spec.sometimes: field not declared in schema")]
    {
        let stage = Stage::new(&[("app/a.yaml", text)]).await;
        let mut app = with_options(&[]);
        app["spec"]["syncPolicy"]["retry"] = json!({"limit": 5});
        stage.apply(app).await;
        let start = tokio::time::Instant::now();
        let done = sync(&stage, json!({})).await;
        assert_eq!(phase(&done), "Failed");
        assert!(message(&done).contains("(dry run)") && message(&done).contains(why), "{}", message(&done));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

/// The definition is applied first, but the dry run comes before it, and the API server takes a moment.
#[tokio::test(start_paused = true)]
async fn a_field_that_comes_with_its_definition_is_waited_for() {
    let definition = |fields: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {{kind: Widget, plural: widgets}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties: {{spec: {{type: object, properties: {fields}}}}}\n"
        )
    };
    let widget = |spec: &str| {
        format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {spec}\n")
    };
    let stage = Stage::new(&[
        ("app/crd.yaml", &definition("{color: {type: string}}")),
        ("app/a.yaml", &widget("{color: red}")),
    ])
    .await;
    stage.apply(with_options(&[])).await;
    assert_eq!(phase(&sync(&stage, json!({})).await), "Succeeded");
    stage.write("app/a.yaml", &widget("{color: red, size: 3}"));
    stage.write("app/crd.yaml", &definition("{color: {type: string}, size: {type: integer}}"));
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    let done = sync(&stage, json!({})).await;
    assert_eq!(phase(&done), "Succeeded", "{}", message(&done));
    let live = stage.get(("example.com/v1", "Widget"), "app", "a").await.unwrap();
    assert_eq!(live["spec"]["size"], 3);
}

/// Charts render them for values that nobody set, and an API server drops them wherever it reads an object.
#[tokio::test(start_paused = true)]
async fn nulls_that_a_definition_does_not_allow_fail_no_sync() {
    let definition = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {color: {type: string}, size: {type: integer}, note: {type: string, nullable: true}}
";
    let widget = "apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
spec: {color: null, size: 3, note: null}
";
    for options in [&[][..], &["ServerSideApply=true"][..]] {
        let stage = Stage::new(&[("app/crd.yaml", definition), ("app/a.yaml", widget)]).await;
        stage.apply(with_options(options)).await;
        let done = sync(&stage, json!({})).await;
        assert_eq!(phase(&done), "Succeeded", "{}", message(&done));
        let live = stage.get(("example.com/v1", "Widget"), "app", "a").await.unwrap();
        assert_eq!(live["spec"], json!({"size": 3, "note": null}));
        stage.until_green("app").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_made_anew_by_force() {
    let frozen = |value: &str| format!("{}immutable: true\n", config_map("a", value));
    let own = |value: &str| annotated(&frozen(value), "'Replace=true,Force=true'");
    let plain = json!({});
    let forced = json!({"syncStrategy": {"hook": {"force": true}}});
    let options = &["Replace=true", "Force=true"][..];
    for (text, options, asked, ends) in [
        (frozen("2"), &[][..], &plain, "Failed"),
        (frozen("2"), options, &plain, "Succeeded"),
        (own("2"), &[][..], &plain, "Succeeded"),
        (frozen("2"), &[][..], &forced, "Succeeded"),
    ] {
        let stage = Stage::new(&[("app/a.yaml", &frozen("1"))]).await;
        stage.apply(with_options(options)).await;
        assert_eq!(phase(&sync(&stage, plain.clone()).await), "Succeeded");
        let before = stage.get(CONFIG_MAP, "app", "a").await.unwrap();
        stage.write("app/a.yaml", &text);
        stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
        let done = sync(&stage, asked.clone()).await;
        assert_eq!(phase(&done), ends, "{options:?} {asked}: {}", message(&done));
        let after = stage.get(CONFIG_MAP, "app", "a").await.unwrap();
        assert_eq!(after.uid() != before.uid(), ends == "Succeeded");
        assert_eq!(after["data"]["key"], if ends == "Succeeded" { "2" } else { "1" });
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_out_of_sync_is_applied() {
    for (options, again) in [(&["ApplyOutOfSyncOnly=true"][..], 0), (&[][..], 1)] {
        let files = [("app/a.yaml", &*config_map("a", "1")), ("app/b.yaml", &*config_map("b", "1"))];
        let stage = Stage::new(&files).await;
        stage.apply(with_options(options)).await;
        sync(&stage, json!({})).await;
        stage.write("app/a.yaml", &config_map("a", "2"));
        stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
        let writes = || stage.faults.writes().iter().filter(|write| write.ends_with("/configmaps/b")).count();
        let before = writes();
        let done = sync(&stage, json!({})).await;
        assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "2");
        assert_eq!(writes() - before, again, "{options:?}");
        assert_eq!(done["status"]["history"].as_array().unwrap().len(), 2, "it is in the history");
    }
}

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web:1}]}
";

#[tokio::test(start_paused = true)]
async fn pruning_leaves_behind_what_it_is_told_to() {
    for (policy, stays) in [("foreground", false), ("background", false), ("orphan", true)] {
        let stage = Stage::new(&[("app/web.yaml", WEB), ("app/a.yaml", &config_map("a", "1"))]).await;
        stage.apply(with_options(&[&format!("PrunePropagationPolicy={policy}")])).await;
        sync(&stage, json!({})).await;
        stage.until_green("app").await;
        stage.remove("app/web.yaml");
        stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
        sync(&stage, json!({"prune": true})).await;
        stage.until_gone(DEPLOYMENT, "app", "web").await;
        stage.pass(Duration::from_secs(600)).await;
        let left = stage.list(("apps/v1", "ReplicaSet")).await;
        assert_eq!(!left.is_empty(), stays, "{policy}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_an_object_waits_for_its_approval() {
    let stage = Stage::new(&[
        ("app/a.yaml", &annotated(&config_map("a", "1"), "Delete=confirm")),
        ("app/b.yaml", &annotated(&config_map("b", "1"), "Delete=false")),
    ])
    .await;
    let mut app = with_options(&[]);
    app["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    stage.apply(app).await;
    sync(&stage, json!({})).await;
    stage.delete(APPLICATION, ENGINE, "app").await;
    stage.pass(Duration::from_secs(3600)).await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some());
    let app = stage.get(APPLICATION, ENGINE, "app").await.expect("it waits");
    let deleted: jiff::Timestamp = app["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap();
    let approval = (deleted + Duration::from_secs(1)).to_string();
    let note = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": approval}}});
    stage.patch(APPLICATION, ENGINE, "app", note).await;
    stage.until_gone(CONFIG_MAP, "app", "a").await;
    stage.until_gone(APPLICATION, ENGINE, "app").await;
    assert!(stage.get(CONFIG_MAP, "app", "b").await.is_some(), "it is never deleted");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_to_be_skipped_is_left_as_it_is() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let skip =
        |value: Value| json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": value}}});
    stage.patch(APPLICATION, ENGINE, "app", skip("true".into())).await;
    stage.write("app/a.yaml", &config_map("a", "2"));
    stage.pass(Duration::from_secs(3600)).await;
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "1");
    stage.patch(APPLICATION, ENGINE, "app", skip(Value::Null)).await;
    stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
}

/// What becomes of a field that a manager of client-side apply set and Git never had.
async fn is_taken_over(manager: &str, options: &[&str], named: Option<&str>) -> bool {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    let mut app = with_options(options);
    if let Some(named) = named {
        app["metadata"]["annotations"] =
            json!({"argocd.argoproj.io/client-side-apply-migration-manager": named});
    }
    stage.apply(app).await;
    assert_eq!(phase(&sync(&stage, json!({})).await), "Succeeded");
    stage.patch_as(CONFIG_MAP, "app", "a", json!({"data": {"old": "x"}}), manager).await;
    stage.pass(Duration::from_secs(60)).await;
    assert_eq!(phase(&sync(&stage, json!({})).await), "Succeeded");
    stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"].get("old").is_none()
}

#[tokio::test(start_paused = true)]
async fn fields_of_client_side_apply_are_taken_over_unless_migration_is_off() {
    assert!(is_taken_over("kubectl-client-side-apply", &[], None).await);
    assert!(!is_taken_over("kubectl-client-side-apply", &["ClientSideApplyMigration=false"], None).await);
    assert!(!is_taken_over("deployer", &[], None).await);
    assert!(is_taken_over("deployer", &[], Some("deployer")).await);
    assert!(!is_taken_over("deployer", &["ClientSideApplyMigration=false"], Some("deployer")).await);
}

/// The label is what objects are known by, so pruning follows it, and what has only the usual one is a
/// stranger's.
#[tokio::test(start_paused = true)]
async fn objects_are_marked_with_the_label_that_is_set() {
    let mut stage =
        Stage::idle(&[("app/a.yaml", &config_map("a", "1")), ("app/b.yaml", &config_map("b", "1"))], |_| {})
            .await;
    let data = json!({"application.resourceTrackingMethod": "label", "application.instanceLabelKey": "example.com/app"});
    stage
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "argocd-cm", "namespace": ENGINE, "labels": {"app.kubernetes.io/part-of": "argocd"}}}))
        .await;
    stage.namespace("app").await;
    let stranger = config_map("c", "1")
        .replace("metadata:\n", "metadata:\n  namespace: app\n  labels: {app.kubernetes.io/instance: app}\n");
    stage.apply_yaml(&stranger).await;
    stage.start().await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let a = stage.get(CONFIG_MAP, "app", "a").await.unwrap();
    assert_eq!(a.label("example.com/app"), Some("app"));
    assert_eq!(a.label("app.kubernetes.io/instance"), None);
    assert_eq!(a.annotation("argocd.argoproj.io/tracking-id"), None);
    stage.remove("app/b.yaml");
    stage.until_gone(CONFIG_MAP, "app", "b").await;
    assert!(stage.get(CONFIG_MAP, "app", "c").await.is_some(), "it has the usual label only");
}

/// Argo CD's client-side apply takes it, so that repositories hold it; all of them are stored.
#[tokio::test(start_paused = true)]
async fn a_variable_that_stands_twice_is_stored_as_kubectl_stores_it() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: web\n        env: [{name: LEVEL, value: info}, {name: OTHER, value: a}, {name: LEVEL, value: debug}]\n";
    let stage = Stage::new(&[("app/web.yaml", deployment)]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let web = stage.get(("apps/v1", "Deployment"), "app", "web").await.unwrap();
    let env = web.pointer("/spec/template/spec/containers/0/env").unwrap();
    let level = |value: &str| json!({"name": "LEVEL", "value": value});
    assert_eq!(*env, json!([level("info"), {"name": "OTHER", "value": "a"}, level("debug")]));
    let two = deployment.replace("{name: LEVEL, value: info}", "{name: LEVEL, value: $(OTHER)}");
    stage.write("app/web.yaml", &two);
    stage
        .until_object(("apps/v1", "Deployment"), "app", "web", |web| {
            let env = web.pointer("/spec/template/spec/containers/0/env").unwrap();
            *env == json!([level("$(OTHER)"), {"name": "OTHER", "value": "a"}, level("debug")])
        })
        .await;
    // One that leaves goes, and with it the need for client-side apply.
    stage.write("app/web.yaml", &deployment.replace("{name: LEVEL, value: info}, ", ""));
    stage
        .until_object(("apps/v1", "Deployment"), "app", "web", |web| {
            let env = web.pointer("/spec/template/spec/containers/0/env").unwrap();
            *env == json!([{"name": "OTHER", "value": "a"}, level("debug")])
        })
        .await;
    stage.until_green("app").await;
}

/// What Argo CD left, by either way of apply, by Flux and by Helm: what leaves the sources goes with the
/// first sync.
#[tokio::test(start_paused = true)]
async fn what_others_applied_before_is_ours_with_the_first_sync() {
    let before = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "app", "labels": {"keep": "x", "drop": "x"}},
        "data": {"key": "1", "drop": "x"}});
    let ours =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {keep: x}\ndata: {key: \"1\"}\n";
    for (manager, policy) in [
        ("argocd-controller", None),
        ("kubectl-client-side-apply", None),
        ("kustomize-controller", Some("adopt")),
        ("helm", Some("adopt")),
    ] {
        for server_side_diff in ["ServerSideDiff=false", "ServerSideDiff=true"] {
            let stage = Stage::new(&[("app/a.yaml", ours)]).await;
            stage.namespace("app").await;
            stage.apply_as(before.clone(), manager).await;
            // Somebody else's fields stay somebody else's.
            stage.patch_as(CONFIG_MAP, "app", "a", json!({"data": {"theirs": "x"}}), "operator").await;
            let mut app = application("app", "app");
            app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": server_side_diff});
            if let Some(policy) = policy {
                app["metadata"]["annotations"]["tiphys.dev/ownership"] = policy.into();
            }
            stage.apply(app).await;
            stage.until_green("app").await;
            let now = stage.get(CONFIG_MAP, "app", "a").await.unwrap();
            assert_eq!(now["data"], json!({"key": "1", "theirs": "x"}), "{manager}");
            assert_eq!(now["metadata"]["labels"], json!({"keep": "x"}), "{manager}");
            let managers = now["metadata"]["managedFields"].as_array().unwrap().iter();
            assert!(managers.filter(|entry| entry["manager"] == manager).count() == 0, "{manager}");
        }
    }
}

/// An object that bears Argo CD's mark and is as the sources say is in no need of a sync; what leaves them
/// later goes.
#[tokio::test(start_paused = true)]
async fn what_argo_cd_applied_on_the_servers_side_leaves_with_the_sources() {
    for server_side_diff in ["ServerSideDiff=false", "ServerSideDiff=true"] {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
        stage.namespace("app").await;
        let marked = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "app",
            "annotations": {"argocd.argoproj.io/tracking-id": "app:/ConfigMap:app/a"}}, "data": {"key": "1", "old": "x"}});
        stage.apply_as(marked, "argocd-controller").await;
        let mut app = application("app", "app");
        app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": server_side_diff});
        stage.apply(app).await;
        stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"] == json!({"key": "1"})).await;
        stage.until_green("app").await;
    }
}

/// Objects as `kubectl get -o yaml` writes them, applied, created and replaced.
#[tokio::test(start_paused = true)]
async fn exported_objects_are_applied_without_what_the_api_server_sets() {
    let exported = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  uid: 0b9b2f0e-3c5f-4d1c-9a6f-0d5d3c1b2a3f\n  resourceVersion: \"12345\"\n  creationTimestamp: \"2024-01-01T00:00:00Z\"\n  generation: 3\n  selfLink: /api/v1/x\n  managedFields:\n  - {manager: kubectl, operation: Update, apiVersion: v1, time: \"2024-01-01T00:00:00Z\", fieldsType: FieldsV1, fieldsV1: {\"f:data\": {}}}\ndata: {key: VALUE}\n";
    for options in [&[][..], &["Replace=true"], &["ServerSideApply=true"]] {
        let stage = Stage::new(&[("app/a.yaml", &exported.replace("VALUE", "one"))]).await;
        let mut app = application("app", "app");
        for option in options {
            app["spec"]["syncPolicy"]["syncOptions"].as_array_mut().unwrap().push(json!(option));
        }
        stage.apply(app).await;
        stage.until_green("app").await;
        let made = stage.get(CONFIG_MAP, "app", "a").await.unwrap();
        assert_ne!(made.uid(), "0b9b2f0e-3c5f-4d1c-9a6f-0d5d3c1b2a3f");
        stage.write("app/a.yaml", &exported.replace("VALUE", "two"));
        stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "two").await;
        stage.until_green("app").await;
    }
}

/// Each sync of the whole makes a new object; neither time, nor self-heal, nor a look makes one.
#[tokio::test(start_paused = true)]
async fn an_object_with_a_generated_name_is_made_with_each_sync() {
    let made = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: run-, labels: {made: \"yes\"}}\ndata: {key: one}\n";
    let by_label = |settings: &mut tiphys_controller::Settings| {
        let method = tiphys_model::TrackingMethod::Label;
        settings.tracking = tiphys_model::Tracking { method, ..tiphys_model::Tracking::default() };
    };
    for change in [None, Some(by_label)] {
        let files = [("app/a.yaml", &*config_map("a", "1")), ("app/run.yaml", made), ("app/too.yaml", made)];
        let stage =
            Stage::with(&files, |settings| change.into_iter().for_each(|change| change(settings))).await;
        stage.apply(application("app", "app")).await;
        let first = stage.until_green("app").await;
        let runs = async || -> Vec<String> {
            let all = stage.names(CONFIG_MAP, "app").await;
            all.into_iter().filter(|name| name.starts_with("run-")).collect()
        };
        assert_eq!(runs().await.len(), 2, "one of each file");
        assert_eq!(first["status"]["operationState"]["message"], "successfully synced (all tasks run)");
        stage.pass(Duration::from_secs(7200)).await;
        stage.delete(CONFIG_MAP, "app", "a").await;
        stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
        let gone = runs().await.remove(0);
        stage.delete(CONFIG_MAP, "app", &gone).await;
        stage.pass(Duration::from_secs(7200)).await;
        assert_eq!(runs().await.len(), 1, "self-heal makes none");
        stage.write("app/run.yaml", &made.replace("one", "two"));
        stage.until("two more", async || (runs().await.len() == 3).then_some(())).await;
        stage.until_green("app").await;
        stage.pass(Duration::from_secs(60)).await;
        assert_eq!(phase(&sync(&stage, json!({"prune": true})).await), "Succeeded");
        stage.until_green("app").await;
        assert_eq!(runs().await.len(), 5, "nothing of before is pruned");
    }
}

/// What `kubectl apply` stores: each of two host aliases of one address and of two host ports of one port, a
/// variable that adds to its earlier self; a finalizer that stands twice is one.
#[tokio::test(start_paused = true)]
async fn items_of_one_key_that_each_have_an_effect_are_all_stored() {
    let web = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, finalizers: [example.com/a, example.com/a]}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}], containers: [{name: web, image: web, env: [{name: OPTS, value: -a}, {name: OPTS, value: $(OPTS) -b}], ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 80, hostPort: 8081}]}]}}}}";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: map, finalizers: [example.com/a, example.com/b, example.com/a]}, data: {k: v}}";
    let stage = Stage::new(&[("app/web.yaml", web), ("app/map.yaml", map)]).await;
    stage.apply(application("app", "app")).await;
    let first = stage.until_app("app", |app| phase(app) == "Succeeded").await;
    stage.pass(Duration::from_secs(3600)).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(app["status"]["sync"]["status"], "Synced", "{:#}", app["status"]["resources"]);
    let started = |app: &Value| app.pointer("/status/operationState/startedAt").cloned();
    assert_eq!(started(&app), started(&first));
    let web = stage.get(DEPLOYMENT, "app", "web").await.unwrap();
    let pod = &web["spec"]["template"]["spec"];
    assert_eq!(pod["hostAliases"].as_array().map(Vec::len), Some(2));
    assert_eq!(pod["containers"][0]["env"][1]["value"], "$(OPTS) -b");
    let ports: Vec<_> =
        pod["containers"][0]["ports"].as_array().unwrap().iter().map(|port| &port["hostPort"]).collect();
    assert_eq!(ports, [8080, 8081]);
    assert_eq!(web["metadata"]["finalizers"], json!(["example.com/a"]));
    let map = stage.get(CONFIG_MAP, "app", "map").await.unwrap();
    assert_eq!(map["metadata"]["finalizers"], json!(["example.com/a", "example.com/b"]));
}
