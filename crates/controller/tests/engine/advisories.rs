//! Weaknesses that were published for Argo CD, each as a test that it is not here: what a hostile repository
//! or Application can do. The list is in `docs/security.md`.

use std::fs;

use tempfile::TempDir;
use tiphys_value::{ObjectExt, Value, json};

use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, URL, application, condition, config_map, message, phase,
};

/// What must never be seen.
const TREASURE: &str = "treasure-that-is-nobodys-business";
const CHART: (&str, &str) = ("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n");
const TEMPLATE: (&str, &str) = (
    "app/templates/c.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  key: {{ .Values.key | quote }}\n  file: {{ .Files.Get (.Values.file | default \"none\") | quote }}\n",
);

/// A folder beside the repository with something worth stealing.
fn outside() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("values.yaml"), format!("key: {TREASURE}\n")).unwrap();
    fs::write(folder.path().join("stolen.yaml"), config_map("stolen", TREASURE)).unwrap();
    fs::write(folder.path().join("kustomization.yaml"), "resources: [stolen.yaml]\n").unwrap();
    folder
}

/// The ways to name a file of that folder from a folder of the repository.
fn names(outside: &TempDir, file: &str) -> Vec<String> {
    let (path, name) = (outside.path().join(file), outside.path().file_name().unwrap().to_str().unwrap());
    let path = path.to_str().unwrap();
    vec![
        path.to_owned(),
        format!("file://{path}"),
        format!("../../{name}/{file}"),
        format!("x/../../../{name}/{file}"),
        format!("../../../../../../../..{path}"),
    ]
}

/// Everything that the engine has written down.
async fn recorded(stage: &Stage) -> String {
    let mut text = String::new();
    for kind in [APPLICATION, ("v1", "Event"), CONFIG_MAP] {
        for object in stage.list(kind).await {
            text.push_str(&object.to_string());
        }
    }
    text
}

/// Syncs an Application of the folder `app` and expects that nothing from outside is seen anywhere.
async fn assert_sees_nothing(stage: &Stage, source: Value) {
    let mut app = application("app", "app");
    for (key, value) in source.as_object().unwrap() {
        app["spec"]["source"][key] = value.clone();
    }
    stage.apply(app).await;
    stage.until_app("app", |app| app.at(&["status", "reconciledAt"]).is_some()).await;
    stage.pass(std::time::Duration::from_secs(600)).await;
    let recorded = recorded(stage).await;
    assert!(!recorded.contains(TREASURE), "{source}: {recorded}");
}

#[tokio::test(start_paused = true)]
async fn cve_2022_24348_values_files_outside_of_the_repository() {
    let outside = outside();
    for name in names(&outside, "values.yaml") {
        let stage = Stage::new(&[CHART, TEMPLATE]).await;
        assert_sees_nothing(&stage, json!({"helm": {"valueFiles": [name]}})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cve_2022_24730_cve_2022_24731_paths_that_climb_out() {
    let outside = outside();
    for name in names(&outside, "values.yaml") {
        let stage = Stage::new(&[CHART, TEMPLATE]).await;
        let parameters = json!({"helm": {"fileParameters": [{"name": "key", "path": name}]}});
        assert_sees_nothing(&stage, parameters).await;
    }
    for name in names(&outside, "") {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
        assert_sees_nothing(&stage, json!({"path": name})).await;
        let resources = format!("resources: ['{name}']\n");
        let stage = Stage::new(&[("app/kustomization.yaml", &resources)]).await;
        assert_sees_nothing(&stage, json!({})).await;
    }
    for name in names(&outside, "stolen.yaml") {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
        assert_sees_nothing(&stage, json!({"directory": {"recurse": true, "include": name}})).await;
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn cve_2022_24904_links_to_what_is_outside() {
    let outside = outside();
    for (at, to) in
        [("app/values.yaml", "values.yaml"), ("app/templates/s.yaml", "stolen.yaml"), ("app/more", "")]
    {
        let stage = Stage::new(&[CHART, TEMPLATE]).await;
        stage.link(at, &outside.path().join(to));
        assert_sees_nothing(&stage, json!({"helm": {"valueFiles": ["values.yaml"]}})).await;
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn cve_2022_31036_manifests_that_are_links_to_what_is_outside() {
    let outside = outside();
    for recurse in [false, true] {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
        stage.link("app/b.yaml", &outside.path().join("stolen.yaml"));
        stage.link("app/sub", outside.path());
        assert_sees_nothing(&stage, json!({"directory": {"recurse": recurse}})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cve_2023_40026_a_chart_reads_files_outside_of_itself() {
    let outside = outside();
    for name in names(&outside, "values.yaml") {
        let stage = Stage::new(&[CHART, TEMPLATE]).await;
        let values = json!({"helm": {"valuesObject": {"key": "k", "file": name}}});
        assert_sees_nothing(&stage, values).await;
    }
    let dependency = format!(
        "{}dependencies: [{{name: sub, version: 1.0.0, repository: 'file://{}'}}]\n",
        CHART.1,
        outside.path().display()
    );
    let stage = Stage::new(&[(CHART.0, &dependency), TEMPLATE]).await;
    assert_sees_nothing(&stage, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn cve_2022_31016_manifests_that_grow_without_end() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    let endless = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  key: {{ range $i := untilStep 0 2000000000 1 }}x{{ end }}\n";
    let circular = "{{- define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}";
    let hostile: [&[(&str, &str)]; 4] = [
        &[("app/bomb.yaml", bomb)],
        &[CHART, ("app/templates/c.yaml", endless)],
        &[CHART, ("app/templates/c.yaml", circular)],
        &[("app/kustomization.yaml", "resources: [../app]\n")],
    ];
    for files in hostile {
        let mut all = vec![("good/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")];
        all.extend(files);
        let stage = Stage::new(&all).await;
        stage.apply(application("app", "app")).await;
        stage.apply(application("good", "good")).await;
        stage.until_app("app", |app| app.at(&["status", "reconciledAt"]).is_some()).await;
        stage.until_green("good").await;
    }
}

#[tokio::test(start_paused = true)]
async fn cve_2024_32476_a_jq_program_that_never_ends() {
    let programs = [
        "def f: f; f",
        "[range(1e12)]",
        "last(repeat(.))",
        "until(false; .)",
        "recurse(.)",
        "[limit(1e12; repeat(1))]",
        "reduce range(1e12) as $i (.; .)",
        "[.. | ..] | .. | ..",
    ];
    for program in programs {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
        let mut app = application("app", "app");
        app["spec"]["ignoreDifferences"] = json!([{"kind": "ConfigMap", "jqPathExpressions": [program]}]);
        stage.apply(app).await;
        stage.until_app("app", |app| app.at(&["status", "reconciledAt"]).is_some()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cve_2023_22736_applications_outside_of_the_namespaces_served() {
    let stage = Stage::with(&[("app/a.yaml", &config_map("a", "1"))], |settings| {
        settings.destinations = tiphys_controller::Destinations::InCluster;
    })
    .await;
    stage.namespace("elsewhere").await;
    let mut app = application("app", "app");
    app["metadata"]["namespace"] = "elsewhere".into();
    stage.apply(app).await;
    stage.apply(application("ours", "app")).await;
    stage.until_green("ours").await;
    stage.pass(std::time::Duration::from_secs(3600)).await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    assert!(stage.get(APPLICATION, "elsewhere", "app").await.unwrap().get("status").is_none());
}

#[tokio::test(start_paused = true)]
async fn cve_2023_22736_application_sets_outside_of_the_namespaces_served() {
    let stage = Stage::with(&[("app/a.yaml", &config_map("a", "1"))], |settings| {
        settings.destinations = tiphys_controller::Destinations::InCluster;
    })
    .await;
    stage.namespace("elsewhere").await;
    let mut spec = application("app", "app")["spec"].take();
    spec["project"] = "default".into();
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "all", "namespace": "elsewhere"},
        "spec": {"generators": [{"list": {"elements": [{}]}}], "template": {"metadata": {"name": "app"}, "spec": spec}}});
    stage.apply(set).await;
    stage.apply(application("ours", "app")).await;
    stage.until_green("ours").await;
    stage.pass(std::time::Duration::from_secs(3600)).await;
    assert!(stage.get(APPLICATION, "elsewhere", "app").await.is_none());
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cmd-params-cm", "namespace": ENGINE},
        "data": {"applicationsetcontroller.namespaces": "else*"}});
    stage.apply(params).await;
    stage.until_object(APPLICATION, "elsewhere", "app", |_| true).await;
}

#[tokio::test(start_paused = true)]
async fn cve_2024_31990_a_project_that_does_not_admit_the_namespace_of_an_application() {
    let stage = Stage::with(&[("app/a.yaml", &config_map("a", "1"))], |settings| {
        settings.destinations = tiphys_controller::Destinations::InCluster;
    })
    .await;
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cmd-params-cm", "namespace": ENGINE}, "data": {"application.namespaces": "elsewhere"}});
    stage.apply(params).await;
    stage.namespace("elsewhere").await;
    let mut app = application("app", "app");
    app["metadata"]["namespace"] = "elsewhere".into();
    stage.apply(app).await;
    let refused = stage
        .until_object(APPLICATION, "elsewhere", "app", |app| condition(app, "InvalidSpecError").is_some())
        .await;
    let told = condition(&refused, "InvalidSpecError").unwrap();
    assert!(told.contains("not permitted to use project 'default'"), "{told}");
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
}

/// A project that permits only the repository, the namespace `app` and no Secrets.
async fn narrow_project(stage: &Stage) {
    stage.apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "narrow", "namespace": ENGINE},
        "spec": {"sourceRepos": [URL], "destinations": [{"server": "*", "namespace": "app"}],
            "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
            "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}]}})).await;
}

#[tokio::test(start_paused = true)]
async fn cve_2022_1025_cve_2022_24768_a_sync_reaches_beyond_its_project() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: me}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: me, apiGroup: rbac.authorization.k8s.io}]\n";
    let elsewhere = config_map("e", "1").replace("name: e", "name: e\n  namespace: kube-system");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
    for text in [role, &*elsewhere, secret] {
        let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1")), ("app/x.yaml", text)]).await;
        narrow_project(&stage).await;
        let mut app = application("app", "app");
        app["spec"]["project"] = "narrow".into();
        stage.apply(app).await;
        stage.until_app("app", |app| app.at(&["status", "resources"]).is_some()).await;
        stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
        let failed = stage.until_app("app", |app| phase(app) == "Failed").await;
        assert!(message(&failed).contains("is not permitted in project"), "{}", message(&failed));
        assert!(stage.get(CONFIG_MAP, "kube-system", "e").await.is_none());
        assert!(stage.get(("v1", "Secret"), "app", "s").await.is_none());
        let bindings = ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding");
        assert!(stage.get(bindings, "", "me").await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn cve_2023_40029_cve_2025_23216_values_of_secrets_in_status_and_events() {
    let secret = |field: &str, value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{{\"data\":\"{TREASURE}\"}}'\n{field}:\n  password: \"{value}\"\n"
        )
    };
    let stage = Stage::new(&[("app/s.yaml", &secret("stringData", TREASURE))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    // A change by hand is taken back and told of.
    stage
        .patch(("v1", "Secret"), "app", "s", json!({"stringData": {"password": format!("other-{TREASURE}")}}))
        .await;
    stage.until_app("app", |app| app.at(&["status", "tiphys", "reverted"]).is_some()).await;
    // And what the API server refuses is told without the value.
    for (field, value) in [("data", format!("{TREASURE}!")), ("stringData", TREASURE.to_owned())] {
        let text =
            secret(field, &value).replace("  password: \"", "  password: [\"").replace("\"\n", "\"]\n");
        let text = if field == "data" { secret(field, &value) } else { text };
        stage.write("app/s.yaml", &text);
        stage.until_app("app", |app| phase(app) == "Failed").await;
        stage.write("app/s.yaml", &secret("stringData", TREASURE));
        stage.until_green("app").await;
    }
    let mut text = String::new();
    for kind in [APPLICATION, ("v1", "Event")] {
        for object in stage.list(kind).await {
            text.push_str(&object.to_string());
        }
    }
    let encoded = data_encoding::BASE64.encode(TREASURE.as_bytes());
    assert!(!text.contains(TREASURE) && !text.contains(&encoded), "{text}");
}

#[tokio::test(start_paused = true)]
async fn cve_2023_50726_manifests_of_an_operation_reach_beyond_the_project() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    narrow_project(&stage).await;
    let mut app = application("app", "app");
    app["spec"]["project"] = "narrow".into();
    app["spec"]["syncPolicy"].as_object_mut().unwrap().remove("automated");
    // As one who may create Applications would: the operation comes with it.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "namespace": "kube-system"}});
    app["operation"] = json!({"sync": {"manifests": [secret.to_string(), elsewhere.to_string()]}});
    stage.apply(app).await;
    let failed = stage.until_app("app", |app| matches!(phase(app), "Failed" | "Error")).await;
    assert!(message(&failed).contains("is not permitted in project"), "{}", message(&failed));
    assert!(stage.get(("v1", "Secret"), "app", "s").await.is_none());
    assert!(stage.get(CONFIG_MAP, "kube-system", "e").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn cve_2026_42880_cve_2026_45737_server_side_diffs_tell_no_values() {
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  annotations: {{token: \"{value}\"}}\nstringData:\n  password: \"{value}\"\n"
        )
    };
    let stage = Stage::new(&[("app/s.yaml", &secret(TREASURE))]).await;
    stage.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": ENGINE},
        "data": {"resource.sensitive.mask.annotations": "token"}})).await;
    let mut app = application("app", "app");
    app["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/compare-options": "ServerSideDiff=true,IncludeMutationWebhook=true"});
    app["spec"]["syncPolicy"].as_object_mut().unwrap().remove("automated");
    stage.apply(app).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
    stage.until_green("app").await;
    // Both sides of the difference are secret, and so is what the API server says of one that it refuses.
    stage.write("app/s.yaml", &secret(&format!("new-{TREASURE}")));
    let is_out = |app: &Value| app["status"]["sync"]["status"] == "OutOfSync";
    stage.until_app("app", is_out).await;
    let broken = secret(TREASURE).replace("stringData", "data").replace("password: \"", "password: \"!");
    stage.write("app/s.yaml", &broken);
    stage.pass(std::time::Duration::from_secs(600)).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
    stage.until_app("app", |app| matches!(phase(app), "Failed" | "Error")).await;
    let recorded = recorded(&stage).await;
    let encoded = data_encoding::BASE64.encode(TREASURE.as_bytes());
    assert!(!recorded.contains(TREASURE) && !recorded.contains(&encoded), "{recorded}");
}
