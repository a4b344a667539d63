//! ApplicationSets.

use std::time::Duration;

use tiphys_value::{ObjectExt, Value, json};

use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, SET, Stage, URL, condition, config_map, is_green};

fn set(generators: Value, template: Value) -> Value {
    let mut spec = json!({"goTemplate": true, "goTemplateOptions": ["missingkey=error"], "generators": generators,
        "template": {"metadata": {"name": "{{.name}}"}, "spec": {"project": "default",
            "source": {"repoURL": URL, "targetRevision": "HEAD", "path": "apps/{{.name}}"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "{{.name}}"},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]}}}});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), template.as_object()) {
        spec.extend(more.clone());
    }
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "all", "namespace": ENGINE}, "spec": spec})
}

fn folders() -> Value {
    json!([{"git": {"repoURL": URL, "revision": "HEAD", "directories": [{"path": "apps/*"}],
        "values": {"name": "{{.path.basename}}"}}}])
}

fn by_folder() -> Value {
    let mut set = set(folders(), json!({}));
    let text = set["spec"]["template"].to_string().replace("{{.name}}", "{{.path.basename}}");
    set["spec"]["template"] = serde_json::from_str(&text).unwrap();
    set
}

fn is_up_to_date(set: &Value) -> bool {
    let conditions = set.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["type"] == "ResourcesUpToDate" && c["status"] == "True")
}

#[tokio::test(start_paused = true)]
async fn folders_of_the_working_tree_become_applications_and_go_again() {
    let stage =
        Stage::new(&[("apps/one/a.yaml", &config_map("a", "1")), ("apps/two/a.yaml", &config_map("a", "2"))])
            .await;
    stage.apply(by_folder()).await;
    stage.until_green("one").await;
    let app = stage.until_green("two").await;
    assert_eq!(app["metadata"]["ownerReferences"][0]["kind"], "ApplicationSet");
    assert_eq!(app["metadata"]["finalizers"], json!(["resources-finalizer.argocd.argoproj.io"]));
    stage.write("apps/three/a.yaml", &config_map("a", "3"));
    stage.until_green("three").await;
    let metrics = stage.engine.as_ref().unwrap().metrics();
    let owned = format!("argocd_appset_owned_applications{{namespace=\"{ENGINE}\",name=\"all\"}} 3");
    assert!(
        metrics.contains(&owned) && metrics.contains("workqueue_depth{name=\"app_reconciliation_queue\"}"),
        "{metrics}"
    );
    let seen = stage
        .until_object(SET, ENGINE, "all", |set| {
            is_up_to_date(set)
                && set["status"]["resources"].as_array().is_some_and(|all| {
                    all.len() == 3
                        && all
                            .iter()
                            .all(|one| one["status"] == "Synced" && one["health"]["status"] == "Healthy")
                })
        })
        .await;
    assert_eq!(condition(&seen, "ErrorOccurred"), Some("All applications have been generated successfully"));
    assert_eq!(seen["status"]["resourcesCount"], 3);
    stage.remove("apps/two/a.yaml");
    stage.until_gone(APPLICATION, ENGINE, "two").await;
    stage.until_gone(CONFIG_MAP, "two", "a").await;
}

#[tokio::test(start_paused = true)]
async fn v21_an_empty_generator_deletes_nothing_without_approval() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(by_folder()).await;
    stage.until_green("one").await;
    stage.remove("apps/one/a.yaml");
    let held = stage
        .until_object(SET, ENGINE, "all", |set| {
            condition(set, "ErrorOccurred").is_some_and(|m| m.contains("would be deleted"))
        })
        .await;
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(APPLICATION, ENGINE, "one").await.is_some(), "{held}");
    let now = stage.now().to_string();
    stage
        .patch(
            SET,
            ENGINE,
            "all",
            json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}}),
        )
        .await;
    stage.until_gone(APPLICATION, ENGINE, "one").await;
    stage.until_object(SET, ENGINE, "all", is_up_to_date).await;
}

#[tokio::test(start_paused = true)]
async fn as_argo_cd_has_it_an_empty_generator_deletes_all() {
    let files = [("apps/one/a.yaml", &*config_map("a", "1"))];
    let stage = Stage::with(&files, |settings| settings.auto.compat = true).await;
    stage.apply(by_folder()).await;
    stage.until_green("one").await;
    stage.remove("apps/one/a.yaml");
    stage.until_gone(APPLICATION, ENGINE, "one").await;
}

#[tokio::test(start_paused = true)]
async fn a_generator_that_fails_leaves_everything_as_it_is() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(by_folder()).await;
    stage.until_green("one").await;
    let broken = json!({"spec": {"generators": [{"git": {"repoURL": "https://git.example.com/gone.git", "revision": "HEAD",
        "directories": [{"path": "apps/*"}]}}]}});
    stage.patch(SET, ENGINE, "all", broken).await;
    let failed = stage.until_object(SET, ENGINE, "all", |set| !is_up_to_date(set)).await;
    assert!(condition(&failed, "ErrorOccurred").unwrap().contains("spec.generators[0]"), "{failed}");
    assert_eq!(failed["status"]["health"]["status"], "Degraded");
    stage.pass(Duration::from_secs(3600)).await;
    assert!(stage.get(APPLICATION, ENGINE, "one").await.is_some());
    assert_eq!(stage.get(SET, ENGINE, "all").await.unwrap()["status"]["resourcesCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn policies_bind_and_the_template_wins_over_edits() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(by_folder()).await;
    stage.until_green("one").await;
    let edit = json!({"spec": {"source": {"path": "elsewhere"}}, "metadata": {"labels": {"mine": "x"}}});
    stage.patch(APPLICATION, ENGINE, "one", edit.clone()).await;
    stage
        .until_app("one", |app| {
            app["spec"]["source"]["path"] == "apps/one" && app["metadata"].get("labels").is_none()
        })
        .await;
    stage
        .patch(SET, ENGINE, "all", json!({"spec": {"syncPolicy": {"applicationsSync": "create-only"}}}))
        .await;
    stage.until_green("one").await;
    stage.patch(APPLICATION, ENGINE, "one", edit).await;
    stage.pass(Duration::from_secs(600)).await;
    let kept = stage.get(APPLICATION, ENGINE, "one").await.unwrap();
    assert_eq!(kept["spec"]["source"]["path"], "elsewhere");
    stage.remove("apps/one/a.yaml");
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(APPLICATION, ENGINE, "one").await.is_some(), "create-only does not delete");
}

/// Whoever runs the engine may bind all sets to a policy, and keep what all Applications bear.
#[tokio::test(start_paused = true)]
async fn what_the_controller_is_set_to_binds_all_sets() {
    let stage =
        Stage::new(&[("apps/one/a.yaml", &config_map("a", "1")), ("apps/two/a.yaml", &config_map("a", "1"))])
            .await;
    let params = |data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "argocd-cmd-params-cm", "namespace": ENGINE}, "data": data})
    };
    let preserved = "applicationsetcontroller.global.preserved.labels";
    let policy = "applicationsetcontroller.policy";
    stage.apply(params(json!({policy: "create-update", preserved: "cost"}))).await;
    let mut sync = by_folder();
    sync["spec"]["syncPolicy"] = json!({"applicationsSync": "sync"});
    stage.apply(sync).await;
    stage.until_green("one").await;
    stage.until_green("two").await;
    let edit = json!({"spec": {"source": {"path": "elsewhere"}}, "metadata": {"labels": {"cost": "a", "mine": "x"}}});
    stage.patch(APPLICATION, ENGINE, "one", edit).await;
    let back = stage.until_app("one", |app| app["spec"]["source"]["path"] == "apps/one").await;
    assert_eq!(back["metadata"]["labels"], json!({"cost": "a"}));
    stage.remove("apps/one/a.yaml");
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(APPLICATION, ENGINE, "one").await.is_some(), "create-update deletes nothing");
    stage.apply(params(json!({policy: "create-updates"}))).await;
    let told = |set: &Value| condition(set, "ErrorOccurred").is_some_and(|m| m.contains("create-updates"));
    stage.until_object(SET, ENGINE, "all", told).await;
    assert!(stage.get(APPLICATION, ENGINE, "one").await.is_some(), "an unknown policy changes nothing");
    let free = "applicationsetcontroller.enable.policy.override";
    stage.apply(params(json!({policy: "create-update", free: "true"}))).await;
    stage.until_gone(APPLICATION, ENGINE, "one").await;
    stage.until_green("two").await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_set_takes_its_applications_along_unless_its_policy_forbids() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    let mut held = by_folder();
    held["spec"]["syncPolicy"] = json!({"applicationsSync": "create-update"});
    held["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    stage.apply(held).await;
    stage.until_green("one").await;
    stage.delete(SET, ENGINE, "all").await;
    stage.until_gone(SET, ENGINE, "all").await;
    stage.pass(Duration::from_secs(600)).await;
    let app = stage.get(APPLICATION, ENGINE, "one").await.unwrap();
    assert!(
        app["metadata"].get("ownerReferences").is_none_or(|list| list.as_array().is_some_and(Vec::is_empty))
    );
    stage.apply(by_folder()).await;
    stage.until_app("one", |app| app["metadata"]["ownerReferences"][0]["name"] == "all").await;
    stage.delete(SET, ENGINE, "all").await;
    stage.until_gone(APPLICATION, ENGINE, "one").await;
    stage.until_gone(CONFIG_MAP, "one", "a").await;
}

#[tokio::test(start_paused = true)]
async fn what_a_deleted_set_deployed_stays_if_it_is_to_be_preserved() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(by_folder()).await;
    stage.until_app("one", |app| app["metadata"]["finalizers"][0].is_string()).await;
    let mut preserving = by_folder();
    preserving["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    stage.apply(preserving).await;
    stage
        .until_app("one", |app| {
            let held = app.at(&["metadata", "finalizers"]).and_then(Value::as_array);
            held.is_none_or(Vec::is_empty)
        })
        .await;
    stage.until_green("one").await;
    stage.delete(SET, ENGINE, "all").await;
    stage.until_gone(APPLICATION, ENGINE, "one").await;
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(CONFIG_MAP, "one", "a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn faults_of_one_application_hold_that_one_only() {
    let stage =
        Stage::new(&[("apps/one/a.yaml", &config_map("a", "1")), ("apps/two/a.yaml", &config_map("a", "1"))])
            .await;
    let list = json!([{"list": {"elements": [{"name": "one", "project": "default"}, {"name": "two", "project": "none"}]}}]);
    let mut set = set(list, json!({}));
    set["spec"]["template"]["spec"]["project"] = "{{.project}}".into();
    stage.apply(set).await;
    stage.until_green("one").await;
    let seen = stage.until_object(SET, ENGINE, "all", |set| condition(set, "ErrorOccurred").is_some()).await;
    assert_eq!(
        condition(&seen, "ErrorOccurred"),
        Some("application references project none which does not exist")
    );
    assert!(stage.get(APPLICATION, ENGINE, "two").await.is_none());
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "none", "namespace": ENGINE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
    stage.apply(project).await;
    stage.until_green("two").await;
}

/// An Application without a project is in the default one; a set that makes one has to say so.
#[tokio::test(start_paused = true)]
async fn a_set_has_to_name_the_project() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    let list = json!([{"list": {"elements": [{"name": "one", "project": "default"}, {"name": "two", "project": ""}]}}]);
    let mut set = set(list, json!({}));
    set["spec"]["template"]["spec"]["project"] = "{{.project}}".into();
    stage.apply(set).await;
    stage.until_green("one").await;
    let seen = stage.until_object(SET, ENGINE, "all", |set| condition(set, "ErrorOccurred").is_some()).await;
    assert_eq!(
        condition(&seen, "ErrorOccurred"),
        Some("application references project  which does not exist")
    );
    assert!(stage.get(APPLICATION, ENGINE, "two").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn clusters_and_matrix_and_merge_and_files() {
    let files = [
        ("apps/one/a.yaml", &*config_map("a", "1")),
        ("env/prod/config.json", r#"{"tier": "gold", "names": ["one"]}"#),
    ];
    let stage = Stage::new(&files).await;
    stage
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prod", "namespace": ENGINE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": "prod"}},
            "stringData": {"name": "prod-eu", "server": "https://prod.example.com", "config": "{}"}}))
        .await;
    let generators = json!([{"matrix": {"generators": [
        {"clusters": {"selector": {"matchLabels": {"env": "prod"}}, "values": {"n": "one"}}},
        {"git": {"repoURL": URL, "revision": "HEAD", "files": [{"path": "env/{{.metadata.labels.env}}/*.json"}]}}]}}]);
    let mut matrix = set(generators, json!({}));
    matrix["spec"]["template"]["metadata"] =
        json!({"name": "{{.name}}-{{.values.n}}", "labels": {"tier": "{{.tier}}"}});
    matrix["spec"]["template"]["spec"]["source"]["path"] = "apps/{{index .names 0}}".into();
    matrix["spec"]["template"]["spec"]["destination"] = json!({"name": "{{.name}}", "namespace": "one"});
    stage.apply(matrix).await;
    let app = stage.until_green("prod-eu-one").await;
    assert_eq!(app["metadata"]["labels"]["tier"], "gold");
    stage.write("env/prod/config.json", r#"{"tier": "silver", "names": ["one"]}"#);
    stage.until_app("prod-eu-one", |app| app["metadata"]["labels"]["tier"] == "silver").await;
}

#[tokio::test(start_paused = true)]
async fn patterns_of_files_stop_at_folders_where_that_is_switched_on() {
    let files = [
        ("apps/one/a.yaml", &*config_map("a", "1")),
        ("apps/two/a.yaml", &*config_map("b", "1")),
        ("env/one.json", r#"{"name": "one"}"#),
        ("env/deep/two.json", r#"{"name": "two"}"#),
    ];
    let stage = Stage::new(&files).await;
    let generators =
        json!([{"git": {"repoURL": URL, "revision": "HEAD", "files": [{"path": "env/*.json"}]}}]);
    let mut by_file = set(generators, json!({}));
    by_file["spec"]["template"]["metadata"] = json!({"name": "{{.name}}"});
    by_file["spec"]["template"]["spec"]["source"]["path"] = "apps/{{.name}}".into();
    stage.apply(by_file).await;
    stage.until_green("two").await;
    stage
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "argocd-cmd-params-cm", "namespace": ENGINE},
            "data": {"applicationsetcontroller.enable.new.git.file.globbing": "true"}}))
        .await;
    stage.until_gone(APPLICATION, ENGINE, "two").await;
    stage.until_green("one").await;
}

#[tokio::test(start_paused = true)]
async fn a_placement_decision_yields_its_clusters() {
    let stage = Stage::new(&[("apps/eu/a.yaml", &config_map("a", "1"))]).await;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    stage.apply(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "placementdecisions.cluster.example.com"},
        "spec": {"group": "cluster.example.com", "scope": "Namespaced",
            "names": {"kind": "PlacementDecision", "plural": "placementdecisions"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}]}})).await;
    stage.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "decide", "namespace": ENGINE},
        "data": {"apiVersion": "cluster.example.com/v1", "kind": "placementdecisions", "statusListKey": "decisions", "matchKey": "clusterName"}})).await;
    stage.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "eu", "namespace": ENGINE,
        "labels": {"argocd.argoproj.io/secret-type": "cluster"}}, "stringData": {"name": "eu", "server": "https://eu"}})).await;
    stage.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "nameless", "namespace": ENGINE,
        "labels": {"argocd.argoproj.io/secret-type": "cluster"}}, "stringData": {"server": "https://nameless"}})).await;
    stage
        .until("the kind is served", async || {
            let applied = stage.cluster.discover().await.unwrap();
            applied.kinds().any(|kind| kind.gvk.kind == "PlacementDecision").then_some(())
        })
        .await;
    stage
        .apply(json!({"apiVersion": "cluster.example.com/v1", "kind": "PlacementDecision",
        "metadata": {"name": "p", "namespace": ENGINE, "labels": {"placement": "all"}}}))
        .await;
    let generators = json!([{"clusterDecisionResource": {"configMapRef": "decide",
        "labelSelector": {"matchLabels": {"placement": "all"}}}}]);
    let mut by_decision = set(generators, json!({}));
    by_decision["spec"]["template"]["spec"]["destination"] = json!({"name": "{{.name}}", "namespace": "eu"});
    by_decision["spec"]["template"]["metadata"]["annotations"] =
        json!({"score": "{{.score}} {{.zones}} {{.from}}"});
    stage.apply(by_decision).await;
    stage.until_object(SET, ENGINE, "all", is_up_to_date).await;
    assert!(stage.names(APPLICATION, ENGINE).await.is_empty());
    stage.patch(("cluster.example.com/v1", "PlacementDecision"), ENGINE, "p",
        json!({"status": {"decisions": [{"clusterName": "eu", "reason": "", "score": 1_000_000, "zones": ["a", "b"], "from": {"b": 2, "a": null}},
            {"clusterName": "unknown"}, {"reason": "names none"}]}})).await;
    let app = stage.until_green("eu").await;
    // As Go prints them.
    assert_eq!(app.annotation("score"), Some("1000000 [a b] map[a:<nil> b:2]"));
    assert_eq!(stage.names(APPLICATION, ENGINE).await, ["eu"]);

    // A decision that cannot be read is none that nothing is to be anywhere.
    stage
        .patch(
            ("cluster.example.com/v1", "PlacementDecision"),
            ENGINE,
            "p",
            json!({"status": {"decisions": null, "reason": "renamed"}}),
        )
        .await;
    let failed = |set: &Value| condition(set, "ErrorOccurred").is_some_and(|why| why.contains("is no list"));
    stage.until_object(SET, ENGINE, "all", failed).await;
    assert_eq!(stage.names(APPLICATION, ENGINE).await, ["eu"]);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_fetched_no_plugin_is_asked() {
    let stage = Stage::new(&[("apps/eu/a.yaml", &config_map("a", "1"))]).await;
    stage
        .apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ask", "namespace": ENGINE},
        "data": {"baseUrl": "http://127.0.0.1:1", "token": "$ask:token"}}),
        )
        .await;
    stage
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ask", "namespace": ENGINE},
        "stringData": {"token": "t"}}))
        .await;
    stage.apply(set(json!([{"plugin": {"configMapRef": {"name": "ask"}}}]), json!({}))).await;
    let refused = |set: &Value| condition(set, "ErrorOccurred").is_some_and(|why| why.contains("offline"));
    stage.until_object(SET, ENGINE, "all", refused).await;
}

#[tokio::test(start_paused = true)]
async fn a_rolling_sync_goes_step_by_step() {
    let files: Vec<(String, String)> =
        ["dev", "prod-a", "prod-b"].map(|name| (format!("apps/{name}/a.yaml"), config_map("a", "1"))).into();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let stage = Stage::new(&files).await;
    let list = json!([{"list": {"elements": [{"name": "dev", "env": "dev"}, {"name": "prod-a", "env": "prod"}, {"name": "prod-b", "env": "prod"}]}}]);
    let steps = json!([
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]},
        {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}], "maxUpdate": 1}]);
    let mut rolling =
        set(list, json!({"strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}}}));
    rolling["spec"]["template"]["metadata"]["labels"] = json!({"env": "{{.env}}"});
    stage.apply(rolling).await;
    for name in ["dev", "prod-a", "prod-b"] {
        stage.until_green(name).await;
    }
    let done = stage
        .until_object(SET, ENGINE, "all", |set| {
            condition(set, "RolloutProgressing") == Some("ApplicationSet Rollout has completed")
        })
        .await;
    let started = |app: &Value| app["status"]["operationState"]["startedAt"].as_str().unwrap().to_owned();
    let dev = stage.get(APPLICATION, ENGINE, "dev").await.unwrap();
    let prod = stage.get(APPLICATION, ENGINE, "prod-b").await.unwrap();
    assert!(started(&dev) <= started(&prod));
    assert_eq!(dev["spec"]["syncPolicy"]["automated"]["enabled"], false);
    assert_eq!(
        dev["status"]["operationState"]["operation"]["initiatedBy"]["username"],
        "applicationset-controller"
    );
    let states: Vec<_> = done["status"]["applicationStatus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["status"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["Healthy", "Healthy", "Healthy"]);

    // A broken first step keeps the second from beginning.
    let unbound = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec:\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    stage.write("apps/dev/claim.yaml", unbound);
    stage.until_app("dev", |app| !is_green(app)).await;
    stage.write("apps/prod-a/a.yaml", &config_map("a", "2"));
    stage.until_app("prod-a", |app| app.str_at(&["status", "sync", "status"]) == Some("OutOfSync")).await;
    stage.pass(Duration::from_secs(1800)).await;
    let waiting = stage.get(APPLICATION, ENGINE, "prod-a").await.unwrap();
    assert_eq!(waiting["status"]["sync"]["status"], "OutOfSync", "{waiting:#}");
    stage.remove("apps/dev/claim.yaml");
    stage.until_green("prod-a").await;
}

#[tokio::test(start_paused = true)]
async fn without_steps_nothing_is_rolled_out() {
    let stage = Stage::new(&[("apps/dev/a.yaml", &config_map("a", "1"))]).await;
    let list = json!([{"list": {"elements": [{"name": "dev"}]}}]);
    let rules = json!({"strategy": {"type": "RollingSync", "rollingSync": {"steps": []}}});
    stage.apply(set(list, rules)).await;
    stage
        .until_object(SET, ENGINE, "all", |set| {
            condition(set, "ErrorOccurred") == Some("No steps defined for rollout")
        })
        .await;
    assert!(stage.get(APPLICATION, ENGINE, "dev").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_a_held_set_has_to_let_go_is_free_before_it_goes() {
    let stage = Stage::new(&[("apps/one/a.yaml", &config_map("a", "1"))]).await;
    let mut held = by_folder();
    held["spec"]["syncPolicy"] = json!({"applicationsSync": "create-update"});
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    stage.apply(held).await;
    stage.until_green("one").await;
    stage.delete(SET, ENGINE, "all").await;
    stage
        .until_app("one", |app| {
            let owners = app.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
            owners.is_none_or(Vec::is_empty)
        })
        .await;
    assert!(stage.get(SET, ENGINE, "all").await.is_some(), "another controller holds it");
}
