//! What settings and projects keep the engine from, and what they let it do: kinds that are left alone, and
//! the repositories and clusters that are for one project.

use std::time::Duration;

use tiphys_controller::Destinations;
use tiphys_value::{Value, json};

use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, URL, application, condition, config_map, message, phase,
};

const SECRET: (&str, &str) = ("v1", "Secret");
const TOKEN: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";

/// `argocd-cm` with one key.
fn settings(key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": ENGINE},
        "data": {key: value}})
}

/// A project of the engine's namespace.
fn project(spec: Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team", "namespace": ENGINE},
        "spec": spec})
}

fn of_team() -> Value {
    let mut app = application("app", "app");
    app["spec"]["project"] = "team".into();
    app
}

/// Settings that each leave Secrets alone.
const WITHOUT_SECRETS: [(&str, &str); 2] = [
    ("resource.exclusions", "[{apiGroups: [''], kinds: [Secret], clusters: ['*']}]"),
    ("resource.inclusions", "[{apiGroups: [''], kinds: [ConfigMap, Namespace]}]"),
];

#[tokio::test(start_paused = true)]
async fn a_reason_longer_than_an_object_may_be_is_told_in_part() {
    let chart = [
        ("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        ("app/templates/a.yaml", "{{ fail (printf \"too much %s of it\" (repeat 4000000 \"a\")) }}\n"),
    ];
    let stage = Stage::new(&chart).await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    let told = condition(&app, "ComparisonError").unwrap();
    assert!(told.contains("too much aaa") && told.contains("aaa of it") && told.len() < 10_000, "{told}");
    let since = app["status"]["conditions"][0]["lastTransitionTime"].clone();
    stage.pass(Duration::from_secs(3600)).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(app["status"]["conditions"][0]["lastTransitionTime"], since, "it is the same reason");
}

#[tokio::test(start_paused = true)]
async fn an_application_of_more_objects_than_its_status_holds_is_synced_and_followed() {
    const OBJECTS: usize = 1_500;
    let one = |n| format!("---\n{}", config_map(&format!("{n:04}-{}", "x".repeat(240)), "1"));
    let all: String = (0..OBJECTS).map(one).collect();
    let stage = Stage::new(&[("app/all.yaml", &all)]).await;
    stage.apply(application("app", "app")).await;
    let stored = stage.until_green("app").await;
    assert!(stored.to_string().len() < 1 << 20, "{} bytes", stored.to_string().len());
    assert_eq!(stored.pointer("/status/tiphys/packed/resources/count"), Some(&json!(OBJECTS)));
    let app = tiphys_model::Application::from_value(&stored).expect("an Application");
    assert_eq!(app.status.resources.len(), OBJECTS);
    let results = app.status.operation_state.and_then(|state| state.sync_result).expect("a result").resources;
    assert!(results.len() >= OBJECTS, "{}", results.len());
}

#[tokio::test(start_paused = true)]
async fn an_application_whose_status_fits_nowhere_says_so_and_others_go_on() {
    const OBJECTS: usize = 600;
    let one = |n| format!("---\n{}", config_map(&format!("{n:04}-{}", "x".repeat(240)), "1"));
    let all: String = (0..OBJECTS).map(one).collect();
    let stage = Stage::new(&[("app/all.yaml", &all), ("good/a.yaml", &config_map("good", "1"))]).await;
    // The Application alone is nearly as large as an object may be.
    let mut large = application("app", "app");
    large["spec"]["info"] = json!([{"name": "long", "value": "x".repeat(1_400_000)}]);
    stage.apply(large).await;
    stage.apply(application("good", "good")).await;
    stage.until_green("good").await;
    let app = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    let told = condition(&app, "ComparisonError").unwrap();
    assert!(told.contains("the status of 600 objects does not fit"), "{told}");
    assert!(told.contains("make several Applications of it"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn of_many_who_need_an_object_the_first_is_named() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: app}\n";
    let stage = Stage::new(&[("app/s.yaml", secret), ("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    for number in 10..30 {
        stage
            .apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "s"}],
                "metadata": {"name": format!("user-{number}"), "namespace": "app"}}))
            .await;
    }
    stage.remove("app/s.yaml");
    let app = stage.until_app("app", |app| condition(app, "PruneProtected").is_some()).await;
    let told = condition(&app, "PruneProtected").unwrap();
    assert!(told.contains("ServiceAccount app/user-10 needs it"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_excluded_are_not_synced_and_that_is_told() {
    for (key, value) in WITHOUT_SECRETS {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1")), ("app/s.yaml", TOKEN)]).await;
        stage.apply(settings(key, value)).await;
        stage.apply(application("app", "app")).await;
        let green = stage.until_green("app").await;
        assert_eq!(
            condition(&green, "ExcludedResourceWarning"),
            Some("Resource /Secret s is excluded in the settings"),
            "{key}"
        );
        assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some());
        assert!(stage.get(SECRET, "app", "s").await.is_none(), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_excluded_later_are_neither_pruned_nor_deleted() {
    for (key, value) in WITHOUT_SECRETS {
        let other = TOKEN.replace("name: s", "name: t");
        let files = [("app/a.yaml", &*config_map("a", "1")), ("app/s.yaml", TOKEN), ("app/t.yaml", &other)];
        let stage = Stage::new(&files).await;
        stage.apply(application("app", "app")).await;
        stage.until_green("app").await;
        stage.apply(settings(key, value)).await;
        stage.until_app("app", |app| condition(app, "ExcludedResourceWarning").is_some()).await;
        stage.remove("app/s.yaml");
        stage.write("app/a.yaml", &config_map("a", "2"));
        stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
        stage.until_green("app").await;
        assert!(stage.get(SECRET, "app", "s").await.is_some(), "{key}: it was pruned");
        stage.delete(APPLICATION, ENGINE, "app").await;
        stage.until_gone(APPLICATION, ENGINE, "app").await;
        assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
        for name in ["s", "t"] {
            assert!(stage.get(SECRET, "app", name).await.is_some(), "{key}: {name} was deleted");
        }
        let events = stage.list(("v1", "Event")).await;
        let told = events.iter().find(|event| event["reason"] == "ResourcesOrphaned").expect("it is told");
        assert!(told["message"].as_str().unwrap().contains("and 1 more left behind"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_leaves_what_the_project_no_longer_permits() {
    let wide = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]});
    let mut narrow = wide.clone();
    narrow["namespaceResourceBlacklist"] = json!([{"group": "", "kind": "Secret"}]);
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1")), ("app/s.yaml", TOKEN)]).await;
    stage.apply(project(wide)).await;
    stage.apply(of_team()).await;
    stage.until_green("app").await;
    stage.apply(project(narrow)).await;
    let is_unknown = |resource: &Value| resource["kind"] == "Secret" && resource["status"] == "Unknown";
    let seen =
        |app: &Value| app["status"]["resources"].as_array().is_some_and(|all| all.iter().any(is_unknown));
    let app = stage.until_app("app", seen).await;
    // As in Argo CD it is as if it were not there: no sync can bring the Application where its sources want
    // it.
    assert_eq!(app["status"]["sync"]["status"], "OutOfSync");
    stage.delete(APPLICATION, ENGINE, "app").await;
    stage.until_gone(APPLICATION, ENGINE, "app").await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    assert!(stage.get(SECRET, "app", "s").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_kinds_that_a_project_denies_fail_the_sync() {
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n";
    for (denied, ends) in [("PriorityClass", "Failed"), ("StorageClass", "Succeeded")] {
        let stage = Stage::new(&[("app/class.yaml", class)]).await;
        stage
            .apply(project(json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                "clusterResourceBlacklist": [{"group": "*", "kind": denied}]})))
            .await;
        let mut app = of_team();
        app["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
        app["operation"] = json!({"sync": {}});
        stage.apply(app).await;
        let ended = stage.until_app("app", |app| !matches!(phase(app), "" | "Running")).await;
        assert_eq!(phase(&ended), ends, "{}", message(&ended));
        let there = stage.get(("scheduling.k8s.io/v1", "PriorityClass"), "", "high").await.is_some();
        assert_eq!(there, ends == "Succeeded");
    }
}

/// A Secret of a kind that says for which project it is.
fn declared(name: &str, kind: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": ENGINE,
        "labels": {"argocd.argoproj.io/secret-type": kind}}, "stringData": data})
}

#[tokio::test(start_paused = true)]
async fn a_project_may_use_the_repositories_and_clusters_that_are_for_it() {
    let stage = Stage::with(&[("app/a.yaml", &config_map("a", "1"))], |settings| {
        settings.destinations = Destinations::InCluster;
    })
    .await;
    stage.apply(project(json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]}))).await;
    stage.apply(of_team()).await;
    let faults = |app: &Value| {
        let told = app["status"]["conditions"].to_string();
        (told.contains("application repo"), told.contains("application destination server"))
    };
    stage.until_app("app", |app| faults(app) == (true, true)).await;
    let repository = |project: &str| declared("repo", "repository", json!({"url": URL, "project": project}));
    let cluster = |project: &str, namespaces: &str| {
        let server = "https://kubernetes.default.svc";
        let data = json!({"name": "home", "server": server, "project": project, "namespaces": namespaces});
        declared("cluster", "cluster", data)
    };
    // Those of others are no permission, and neither are credentials that only happen to be the project's.
    stage.apply(repository("other")).await;
    stage.apply(cluster("other", "")).await;
    stage.apply(declared("template", "repo-creds", json!({"url": URL, "project": "team"}))).await;
    stage.pass(std::time::Duration::from_secs(600)).await;
    stage.until_app("app", |app| faults(app) == (true, true)).await;
    stage.apply(repository("team")).await;
    stage.until_app("app", |app| faults(app) == (false, true)).await;
    stage.apply(cluster("team", "elsewhere")).await;
    stage.pass(std::time::Duration::from_secs(600)).await;
    stage.until_app("app", |app| faults(app) == (false, true)).await;
    stage.apply(cluster("team", "")).await;
    stage.until_green("app").await;
    // What the project itself denies stays denied.
    stage
        .apply(project(json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}], "sourceRepos": [format!("!{URL}")]})))
        .await;
    stage.until_app("app", |app| faults(app) == (true, false)).await;
}
