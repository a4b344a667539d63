//! `tiphys app` against a running `tiphys up`, as a user runs both.

use std::process::Command;

use crate::common::{Repo, Run, Running, URL, application, config_map};

/// A repository with a manual Application `shop`, and a `tiphys up` that serves it.
struct Shop {
    repo: Repo,
    _up: Running,
}

fn manual(name: &str, path: &str) -> String {
    application(name, path).replace("    automated: {prune: true, selfHeal: true}\n", "")
}

impl Shop {
    fn start(flags: &[&str], prepare: impl FnOnce(&Repo)) -> Self {
        let repo = Repo::with(&[
            ("root.yaml", &manual("shop", "manifests")),
            ("manifests/a.yaml", &config_map("a", "1")),
        ]);
        prepare(&repo);
        let mut up = repo.start(flags);
        up.until(|event| {
            event["event"] == "application" && event["name"] == "shop" && event["sync"] == "OutOfSync"
        });
        Self { repo, _up: up }
    }

    fn app(&self, args: &[&str]) -> Run {
        let mut all = vec!["app"];
        all.extend(args);
        self.repo.run(&all)
    }

    fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.app(&["get", "shop", "-o", "json"]).stdout()).unwrap()
    }
}

#[test]
fn the_folder_is_found_by_a_copy_of_the_kubeconfig() {
    let shop = Shop::start(&[], |_| {});
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("config");
    std::fs::copy(shop.repo.kubeconfig(), &copy).unwrap();
    let run = |by_flag: bool| {
        let mut command = shop.repo.command(&["app", "diff", "shop"]);
        match by_flag {
            true => command.arg("--kubeconfig").arg(&copy),
            false => command.env("KUBECONFIG", &copy),
        };
        command.current_dir(elsewhere.path()).output().unwrap()
    };
    for by_flag in [true, false] {
        let output = run(by_flag);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("/ConfigMap shop/a (create)"),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_difference_is_not_told_while_a_rule_for_what_to_ignore_cannot_be_used() {
    let rules = "  ignoreDifferences:\n  - {kind: Secret, jqPathExpressions: ['.data |']}\n";
    let repo = Repo::with(&[
        ("root.yaml", &(manual("shop", "manifests") + rules)),
        ("manifests/a.yaml", &config_map("a", "1")),
    ]);
    let mut up = repo.start(&[]);
    up.until(|event| {
        event["event"] == "application" && event["name"] == "shop" && event["sync"] == "Unknown"
    });
    let diff = repo.run(&["app", "diff", "shop"]);
    diff.expect(2, &["jq path expression \".data |\": term expected at the end"]);
}

#[test]
fn from_out_of_sync_to_synced_and_pruned() {
    let shop = Shop::start(&[], |_| {});
    shop.app(&["list", "--output", "name"]).expect(0, &["argocd/shop\n"]);
    shop.app(&["list"]).expect(0, &["OutOfSync", "Manual", URL]);
    shop.app(&["diff", "shop"]).expect(1, &["/ConfigMap shop/a (create)", "+  key: \"1\""]);
    shop.app(&["diff", "shop", "--exit-code=false"]).expect(0, &["(create)"]);
    shop.app(&["sync", "shop", "--dry-run"]).expect(0, &["Succeeded"]);
    shop.app(&["diff", "shop"]).expect(1, &["(create)"]);
    shop.app(&["sync", "shop"]).expect(0, &["Phase:              Succeeded", "ConfigMap"]);
    shop.app(&["diff", "shop"]).expect(0, &[]);
    shop.app(&["wait", "shop", "--timeout", "60s"]).expect(0, &["is in the state that was waited for"]);
    shop.app(&["history", "shop"]).expect(0, &["ID", "0 "]);

    shop.repo.write("manifests/a.yaml", config_map("a", "two"));
    shop.repo.write("manifests/b.yaml", config_map("b", "1"));
    shop.app(&["diff", "shop", "--refresh"]).expect(1, &["-  key: \"1\"", "+  key: two", "(create)"]);
    shop.app(&["sync", "shop", "--resource", ":ConfigMap:a"]).expect(0, &["Succeeded"]);
    shop.app(&["diff", "shop"]).expect(1, &["/ConfigMap shop/b (create)"]);
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);

    std::fs::remove_file(shop.repo.path("manifests/b.yaml")).unwrap();
    shop.app(&["diff", "shop", "--refresh"]).expect(1, &["/ConfigMap shop/b (delete)"]);
    shop.app(&["sync", "shop"]).expect(0, &["(to be pruned)"]);
    shop.app(&["sync", "shop", "--prune"]).expect(0, &["Succeeded"]);
    shop.app(&["undo", "shop", "--list"]).expect(0, &["PRUNED", "ConfigMap", "shop", "b"]);
    shop.app(&["undo", "shop", "--dry-run"]).expect(0, &["ConfigMap/b would be brought back"]);
    shop.app(&["undo", "shop", "ConfigMap/b"]).expect(0, &["ConfigMap/b is back"]);
    shop.app(&["undo", "shop", "ConfigMap/c"]).expect(2, &["not among what is recorded"]);
    shop.app(&["sync", "shop", "--prune"]).expect(0, &["ignored (no prune)"]);
    shop.app(&["resources", "shop", "--orphaned"]).expect(2, &["spec.orphanedResources"]);
    shop.app(&["resources", "shop"]).expect(0, &["ConfigMap"]);
    shop.app(&["manifests", "shop"]).expect(0, &["key: two", "tracking-id"]);
    let json: serde_json::Value =
        serde_json::from_str(&shop.app(&["manifests", "shop", "-o", "json"]).stdout()).unwrap();
    assert_eq!(json[0]["data"]["key"], "two");
    shop.app(&["manifests", "shop", "--source", "live"]).expect(0, &["key: two", "uid:"]);
}

#[test]
fn applications_are_created_changed_and_deleted() {
    let shop = Shop::start(&[], |repo| repo.write("other/x.yaml", config_map("x", "1")));
    let create = [
        "create",
        "other",
        "--repo",
        URL,
        "--path",
        "other",
        "--dest-server",
        "https://kubernetes.default.svc",
        "--dest-namespace",
        "other",
        "--sync-policy",
        "automated",
        "--sync-option",
        "CreateNamespace=true",
        "--label",
        "team=red",
    ];
    shop.app(&create).expect(0, &["argocd/other was created"]);
    shop.app(&["wait", "--selector", "team=red", "--timeout", "60s"])
        .expect(0, &["is in the state that was waited for"]);
    let again: Vec<&str> = create.iter().map(|arg| if *arg == "other" { "other" } else { arg }).collect();
    let changed: Vec<&str> =
        again.iter().map(|arg| if *arg == "automated" { "none" } else { *arg }).collect();
    shop.app(&changed).expect(1, &["--upsert changes it"]);
    shop.app(&create).expect(0, &["argocd/other was so already"]);
    shop.app(&[&changed[..], &["--upsert"]].concat()).expect(0, &["argocd/other was changed"]);
    shop.app(&["set", "other", "--sync-policy", "automated"]).expect(0, &["was changed"]);
    shop.app(&["set", "other", "--sync-policy", "none", "--helm-set", "a=b"]).expect(0, &["was changed"]);
    shop.app(&["set", "other", "--sync-policy", "none"]).expect(0, &["was so already"]);
    shop.app(&["get", "other"]).expect(0, &["Sync Policy:        Manual"]);
    shop.app(&["delete", "other"]).expect(2, &["--yes deletes without asking"]);
    shop.app(&["delete", "other", "--yes", "--wait", "--timeout", "60s", "--output", "json"])
        .expect(0, &["is gone", "\"gone\": true"]);
    shop.app(&["get", "other"]).expect(2, &["there is no Application argocd/other; there is argocd/shop"]);
    shop.app(&["wait", "other", "--delete", "--timeout", "10s"]).expect(0, &["is deleted"]);
}

/// A null among Helm's values takes a default away. A change of anything else leaves it.
#[test]
fn nulls_of_values_survive_changes() {
    let shop = Shop::start(&[], |repo| {
        repo.write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n");
        repo.write("chart/values.yaml", "gone: default\n");
        let template =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {gone: 'is {{ .Values.gone }}'}\n";
        repo.write("chart/templates/x.yaml", template);
        let app = manual("nulls", "chart")
            .replace("path: chart", "path: chart\n    helm: {valuesObject: {gone: null}}");
        repo.write("../nulls.yaml", app);
    });
    let file = shop.repo.path("../nulls.yaml");
    let create = ["create", "--file", file.to_str().unwrap(), "--upsert"];
    shop.app(&create).expect(0, &["argocd/nulls was"]);
    shop.app(&["set", "nulls", "--sync-option", "PruneLast=true"]).expect(0, &["was changed"]);
    shop.app(&["get", "nulls", "--output", "json"]).expect(0, &["\"gone\": null", "PruneLast=true"]);
    shop.app(&create).expect(0, &["was changed"]);
    shop.app(&["get", "nulls", "--output", "json"]).expect(0, &["\"gone\": null"]);
    shop.app(&["sync", "nulls"]).expect(0, &["Succeeded"]);
    shop.app(&["manifests", "nulls", "--source", "live"]).expect(0, &["gone: 'is '"]);
}

#[test]
fn an_operation_that_waits_is_seen_and_ended() {
    let hook = "apiVersion: batch/v1
kind: Job
metadata: {name: gate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.example.com/a:1}]}}
";
    let shop = Shop::start(&[], |repo| repo.write("manifests/gate.yaml", hook));
    shop.app(&["sync", "shop", "--timeout", "2s"]).expect(1, &["did not end within 2s", "gate"]);
    shop.app(&["sync", "shop"]).expect(1, &["another operation of argocd/shop is already in progress"]);
    shop.app(&["wait", "shop", "--operation", "--timeout", "1s"]).expect(1, &["an operation is under way"]);
    let lacking = shop.app(&["wait", "shop", "--operation", "--timeout", "1s", "--output", "yaml"]);
    lacking.expect(1, &["met: false", "missing: ", "an operation is under way"]);
    shop.app(&["get", "shop"]).expect(0, &["Phase:              Running", "Waits:", "gate"]);
    shop.app(&["terminate", "shop", "--output", "json"])
        .expect(0, &["is being ended", "\"phase\": \"Terminating\""]);
    let waited = shop.app(&["wait", "shop", "--operation", "--timeout", "60s", "--output", "json"]);
    waited.expect(0, &["\"met\": true", "\"name\": \"shop\""]);
    assert_eq!(shop.status()["status"]["operationState"]["phase"], "Failed");
    shop.app(&["terminate", "shop"]).expect(1, &["no operation of argocd/shop is under way"]);
}

#[test]
fn going_back_needs_revisions_and_a_manual_policy() {
    let shop = Shop::start(&["--respect-revisions"], Repo::git_init);
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    shop.app(&["rollback", "shop"]).expect(1, &["nothing was deployed before"]);
    shop.repo.write("manifests/a.yaml", config_map("a", "two"));
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        let output = Command::new("git").args(identity).args(args).current_dir(shop.repo.path("")).output();
        assert!(output.unwrap().status.success());
    };
    git(&["commit", "-q", "-a", "-m", "two"]);
    shop.app(&["get", "shop", "--hard-refresh"]).expect(0, &["OutOfSync"]);
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    shop.app(&["manifests", "shop", "--source", "live"]).expect(0, &["key: two"]);
    shop.app(&["rollback", "shop", "7"]).expect(2, &["no entry 7; it has 0, 1"]);
    shop.app(&["rollback", "shop"]).expect(0, &["Succeeded", "OutOfSync"]);
    shop.app(&["manifests", "shop", "--source", "live"]).expect(0, &["key: \"1\""]);
    let log =
        Command::new("git").args(["log", "--format=%H"]).current_dir(shop.repo.path("")).output().unwrap();
    let commits = String::from_utf8(log.stdout).unwrap();
    let (newest, first) = commits.trim().split_once('\n').unwrap();
    for (revision, key) in [(newest, "key: two"), (first, "key: \"1\"")] {
        shop.app(&["sync", "shop", "--revision", revision]).expect(0, &["Succeeded", revision]);
        shop.app(&["manifests", "shop", "--source", "live"]).expect(0, &[key]);
    }
    shop.app(&["history", "shop"]).expect(0, &[newest, first]);
    shop.app(&["set", "shop", "--sync-policy", "automated"]).expect(0, &[]);
    shop.app(&["rollback", "shop", "0"]).expect(2, &["while the Application syncs itself"]);
    shop.app(&["sync", "shop", "--revision", "v1"]).expect(2, &["cannot sync to v1"]);
}

#[test]
fn wrong_use_is_told() {
    let shop = Shop::start(&[], |_| {});
    shop.app(&["get", "none"]).expect(2, &["there is no Application argocd/none; there is argocd/shop"]);
    shop.app(&["get", "shp"]).expect(2, &["there is no Application argocd/shp; did you mean argocd/shop?"]);
    for word in ["", "argocd/", "/shop", "a/b/c"] {
        shop.app(&["get", word]).expect(2, &["names no Application; write NAME or NAMESPACE/NAME"]);
    }
    shop.app(&["sync", "--selector", "team=blue"]).expect(2, &["no Application fits"]);
    shop.app(&["list", "--selector", "a in (b"]).expect(2, &["the selector cannot be read", "expected: ','"]);
    shop.app(&["sync", "shop", "--resource", "Deployment/a"]).expect(2, &["GROUP:KIND:NAME"]);
    shop.app(&["rollback", "shop"]).expect(2, &["--respect-revisions"]);
    shop.app(&["list", "--kubeconfig", "none"]).expect(2, &["cannot use the cluster's configuration"]);
    shop.app(&["create", "x", "--repo", URL]).expect(2, &["no path or chart"]);
    shop.app(&["set", "shop"]).expect(2, &["there is nothing to set"]);
    shop.app(&["set", "shop", "--source-position", "2", "--path", "x"]).expect(2, &["no source 2"]);
    let warned = shop.app(&["set", "shop", "--sync-option", "Prunelast=true"]);
    warned.expect(
        0,
        &["\"Prunelast\" is no sync option that is known", "did you mean PruneLast", "was changed"],
    );
}

#[test]
fn a_sync_of_single_objects_names_those_that_are_there() {
    let hook = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gate, annotations: {argocd.argoproj.io/hook: PreSync}}\n";
    let shop = Shop::start(&[], |repo| {
        repo.write("manifests/ab.yaml", config_map("ab", "1"));
        repo.write("manifests/hook.yaml", hook);
    });
    let sync = |object: &str| shop.app(&["sync", "shop", "--resource", object]);
    sync(":ConfigMap:x")
        .expect(2, &["no object of shop is", "`tiphys app resources shop` lists what it has"]);
    sync(":Secret:ab").expect(2, &["did you mean :ConfigMap:a or :ConfigMap:ab?"]);
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    sync(":ConfigMap:gate").expect(2, &["is a hook; a sync of single objects runs none"]);
    // The engine has not seen it yet.
    shop.repo.write("manifests/ac.yaml", config_map("ac", "1"));
    sync(":ConfigMap:ac").expect(0, &["Succeeded"]);
    sync("*:Config*:a*").expect(0, &["Succeeded"]);
    shop.app(&["diff", "shop"]).expect(0, &[]);
}

#[test]
fn a_wait_that_ends_tells_why() {
    let shop = Shop::start(&[], |_| {});
    shop.app(&["set", "shop", "--path", "nowhere"]).expect(0, &["was changed"]);
    shop.app(&["get", "shop", "--refresh"]).expect(0, &["there is no such folder"]);
    shop.app(&["wait", "shop", "--sync", "--timeout", "1"])
        .expect(1, &["timed out after 1.0s: it is Unknown (", "there is no such folder"]);
}

#[test]
fn settings_of_argocd_cm_count_at_once() {
    let settings = "apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data:
  resource.customizations.health.ConfigMap: |
    if obj.data.key == 'rest' then return {status = 'Suspended', message = 'at rest'} end
    return {status = 'Healthy'}
";
    let shop = Shop::start(&[], |repo| repo.write("manifests/argocd-cm.yaml", settings));
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    shop.app(&["wait", "shop", "--timeout", "60s"]).expect(0, &[]);
    shop.repo.write("manifests/a.yaml", config_map("a", "rest"));
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    shop.app(&["wait", "shop", "--suspended", "--timeout", "60s"])
        .expect(0, &["is in the state that was waited for"]);
    shop.app(&["get", "shop"]).expect(0, &["Health Status:      Suspended", "at rest"]);
    let ignore = "  resource.customizations.ignoreDifferences.ConfigMap: |\n    jsonPointers: [/data/key]\n";
    shop.repo.write("manifests/argocd-cm.yaml", format!("{settings}{ignore}"));
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    shop.repo.write("manifests/a.yaml", config_map("a", "ignored"));
    shop.app(&["diff", "shop", "--refresh"]).expect(0, &[]);
}

#[test]
fn pauses_and_ownership_are_written_on_the_application() {
    let shop = Shop::start(&[], |_| {});
    let annotation = |name: &str| shop.status()["metadata"]["annotations"][name].clone();
    shop.app(&["pause", "shop", "--for", "2h"]).expect(0, &["argocd/shop is paused until 20"]);
    shop.app(&["get", "shop"]).expect(0, &["Paused Until:"]);
    shop.app(&["pause", "shop", "--resource", ":ConfigMap:shop/a"]).expect(0, &["for /ConfigMap/shop/a"]);
    let paused = shop.app(&["pause", "shop", "--resource", ":ConfigMap:shop/b", "--output", "yaml"]);
    paused.expect(0, &["kind: Application", "tiphys.dev/paused-until"]);
    let resting = annotation("tiphys.dev/paused-resources").as_str().unwrap().to_owned();
    assert!(
        resting.starts_with("/ConfigMap/shop/a=20") && resting.contains(",/ConfigMap/shop/b=20"),
        "{resting}"
    );
    shop.app(&["resume", "shop", "--output", "json"]).expect(0, &["\"kind\": \"Application\""]);
    shop.app(&["resume", "shop"]).expect(0, &["was not paused"]);
    shop.app(&["adopt", "shop"]).expect(0, &["takes over"]);
    assert_eq!(annotation("tiphys.dev/ownership"), "adopt");
    shop.app(&["adopt", "shop", "--policy", "refuse"]).expect(0, &["refuses"]);
    shop.app(&["adopt", "shop", "--policy", "refuse", "--output", "json"])
        .expect(0, &["\"kind\": \"Application\""]);
    assert!(annotation("tiphys.dev/ownership").is_null());
}

#[test]
fn actions_are_listed_and_run() {
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: nginx}]}\n";
    let cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: backup}\nspec:\n  schedule: '0 3 * * *'\n  jobTemplate:\n    spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: busybox}]}}}\n";
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: shop, namespace: argocd}\nspec:\n  sourceRepos: ['*']\n  destinations: [{server: '*', namespace: '*'}]\n  clusterResourceWhitelist: [{group: '*', kind: '*'}]\n  namespaceResourceBlacklist: [{group: batch, kind: Job}]\n";
    let shop = Shop::start(&[], |repo| {
        repo.write("manifests/web.yaml", web);
        repo.write("manifests/cron.yaml", cron);
        repo.write("project.yaml", project);
        repo.write("root.yaml", manual("shop", "manifests").replace("project: default", "project: shop"));
    });
    shop.app(&["sync", "shop"]).expect(0, &["Succeeded"]);
    let listed = shop.app(&["actions", "list", "shop"]);
    listed.expect(0, &["create-job", "restart", "scale", "toggle-auto-sync"]);
    let run = |args: &[&str]| {
        let mut all = vec!["actions", "run", "shop"];
        all.extend(args);
        shop.app(&all)
    };
    run(&["scale", "--kind", "Deployment", "--param", "replicas=2"]).expect(0, &["Deployment/web: changed"]);
    shop.app(&["diff", "shop", "--refresh"]).expect(1, &["replicas: 2"]);
    run(&["resume", "--kind", "Deployment"]).expect(0, &["Deployment/web: nothing to change"]);
    run(&["scale", "--kind", "Deployment"]).expect(1, &["the parameter replicas is missing"]);
    run(&["restart", "--kind", "StatefulSet"]).expect(2, &["no object of shop of kind StatefulSet fits"]);
    run(&["create-job", "--kind", "CronJob"]).expect(1, &["project shop does not permit Job"]);
    run(&["toggle-auto-sync", "--kind", "Application"]).expect(0, &["Application/shop: changed"]);
    assert_eq!(shop.status()["spec"]["syncPolicy"]["automated"]["enabled"], true);
}
