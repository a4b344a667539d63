//! What befalls a Git host under Applications at work. How each failure of a host is told is tested where it
//! is fetched from (`crates/source/tests/it/git_http`).

#[path = "../../../source/tests/it/git_http/server.rs"]
#[allow(dead_code, reason = "the tests of fetching have it do more")]
mod server;

use std::{fs, path::Path, process::Command, time::Duration};

use tempfile::TempDir;
use tiphys_controller::{RepositoryRequest, WebhookError};
use tiphys_value::{Value, json};

use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A repository that can be taken away.
struct Host {
    folder: TempDir,
    stage: Stage,
}

impl Host {
    /// With an Application of branch `main` and one of branch `release`, both green.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::fetching(&folder.path().join("cache")).await;
        let host = Self { folder, stage };
        fs::create_dir(host.path()).unwrap();
        host.git(&["init", "-q", "-b", "main"]);
        host.commit("app/a.yaml", &config_map("a", "1"), &[]);
        host.git(&["branch", "release"]);
        for (name, branch) in [("app", "main"), ("released", "release")] {
            let mut app = application(name, "app");
            app["spec"]["source"]["repoURL"] = host.path().to_str().unwrap().into();
            app["spec"]["source"]["targetRevision"] = branch.into();
            host.stage.apply(app).await;
            host.stage.until_green(name).await;
        }
        host
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("host")
    }

    fn git(&self, args: &[&str]) {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        // What Git LFS may have been told to do on this machine.
        let lfs = ["-c", "filter.lfs.clean=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"];
        let output = Command::new("git")
            .args(identity)
            .args(lfs)
            .args(args)
            .current_dir(self.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self, path: &str, text: &str, more: &[&str]) {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().unwrap_or(Path::new(""))).unwrap();
        fs::write(file, text).unwrap();
        self.git(&["add", path]);
        self.git(&[&["commit", "-q", "-m", "change"], more].concat());
    }

    /// Waits until an Application says that it cannot be compared, for a reason; what it has is looked after
    /// all the same.
    async fn is_looked_after(&self, name: &str, why: &str) {
        let told = |app: &Value| condition(app, "ComparisonError").is_some_and(|told| told.contains(why));
        self.stage.until_app(name, told).await;
        self.stage.delete(CONFIG_MAP, name, "a").await;
        self.stage.until_object(CONFIG_MAP, name, "a", |_| true).await;
        self.stage.pass(HOUR).await;
        let app = self.stage.get(APPLICATION, ENGINE, name).await.unwrap();
        assert!(told(&app), "it still says so: {}", app["status"]["conditions"]);
        assert!(self.stage.get(CONFIG_MAP, name, "a").await.is_some());
    }

    async fn is_well(&self, name: &str) {
        let app = self
            .stage
            .until_app(name, |app| crate::stage::is_green(app) && condition(app, "ComparisonError").is_none())
            .await;
        assert!(app["status"]["sync"]["revision"].is_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_away_keeps_what_is_there_and_is_asked_again() {
    let host = Host::new().await;
    let away = host.folder.path().join("away");
    fs::rename(host.path(), &away).unwrap();
    host.is_looked_after("app", "host").await;
    fs::rename(&away, host.path()).unwrap();
    host.commit("app/a.yaml", &config_map("a", "2"), &[]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
    host.is_well("app").await;
}

#[tokio::test(start_paused = true)]
async fn an_application_at_rest_is_compared_once_an_hour_and_when_something_changes() {
    let host = Host::new().await;
    let looks = |how: &str| {
        let metrics = host.stage.engine.as_ref().unwrap().metrics();
        let line = format!("tiphys_app_renders_total{{how=\"{how}\"}} ");
        let count = metrics.lines().find_map(|known| known.strip_prefix(&line)).unwrap();
        count.parse::<f64>().unwrap()
    };
    host.stage.pass(HOUR / 6).await;
    let (kept, unmoved) = (looks("kept"), looks("unmoved"));
    host.stage.pass(HOUR / 2).await;
    assert!(looks("unmoved") >= unmoved + 20.0, "both are asked every two to two and a half minutes");
    assert_eq!(looks("kept"), kept);
    host.stage.pass(HOUR).await;
    assert_eq!(looks("kept"), kept + 2.0, "each once");
    host.stage.patch(APPLICATION, ENGINE, "app", json!({"status": {"health": {"status": "Missing"}}})).await;
    host.is_well("app").await;
    host.stage.delete(CONFIG_MAP, "app", "a").await;
    host.stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    host.commit("app/a.yaml", &config_map("a", "2"), &[]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
    host.is_well("app").await;
}

#[tokio::test(start_paused = true)]
async fn of_tags_with_a_prefix_the_highest_that_fits_is_synced() {
    let host = Host::new().await;
    for (value, tag) in [("11", "app/v1.1.0"), ("12", "other/v1.2.0"), ("13", "v1.3.0"), ("20", "app/v2.0.0")]
    {
        host.commit("app/a.yaml", &config_map("a", value), &[]);
        host.git(&["tag", tag]);
    }
    let mut app = application("tagged", "app");
    app["spec"]["source"]["repoURL"] = host.path().to_str().unwrap().into();
    app["spec"]["source"]["targetRevision"] = "v1.*".into();
    app["spec"]["source"]["tagPrefix"] = "app/".into();
    host.stage.apply(app).await;
    host.stage.until_green("tagged").await;
    let data = async |value: &str| {
        host.stage.until_object(CONFIG_MAP, "tagged", "a", |a| a["data"]["key"] == value).await;
    };
    data("11").await;
    host.commit("app/a.yaml", &config_map("a", "14"), &[]);
    host.git(&["tag", "app/v1.4.0"]);
    data("14").await;
}

#[tokio::test(start_paused = true)]
async fn a_forced_push_is_synced() {
    let host = Host::new().await;
    host.commit("app/a.yaml", &config_map("a", "2"), &[]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
    host.is_well("app").await;
    host.commit("app/a.yaml", &config_map("a", "3"), &["--amend"]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "3").await;
    host.git(&["reset", "-q", "--hard", "release"]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "1").await;
    host.is_well("app").await;
}

#[tokio::test(start_paused = true)]
async fn of_a_deleted_branch_nothing_is_pruned() {
    let host = Host::new().await;
    host.git(&["branch", "-q", "-D", "release"]);
    host.is_looked_after("released", "release").await;
    host.git(&["branch", "release"]);
    host.is_well("released").await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_submodule_is_told_of_and_nothing_is_pruned() {
    let host = Host::new().await;
    let modules = "[submodule \"lost\"]\n\tpath = app/lost\n\turl = ../lost\n";
    let commit = "160000,1111111111111111111111111111111111111111,app/lost";
    host.git(&["update-index", "--add", "--cacheinfo", commit]);
    host.commit(".gitmodules", modules, &[]);
    host.is_looked_after("app", "lost").await;
    host.git(&["rm", "-q", "--cached", "app/lost"]);
    host.commit(".gitmodules", "", &[]);
    host.is_well("app").await;
}

impl Host {
    /// An Application `web` of the same repository, by HTTP from a host that answers as it is told.
    async fn by_http(&self, mode: server::Mode) -> server::Host {
        let http = server::Host::for_repository(&self.path());
        http.set(mode);
        let mut app = application("web", "app");
        app["spec"]["source"]["repoURL"] = http.url.as_str().into();
        app["spec"]["source"]["targetRevision"] = "main".into();
        self.stage.apply(app).await;
        http
    }

    /// Waits until `web` says why it cannot be compared.
    async fn web_says(&self, why: &str) {
        let told = |app: &Value| condition(app, "ComparisonError").is_some_and(|told| told.contains(why));
        self.stage.until_app("web", told).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_silent_holds_up_nobody_else() {
    let host = Host::new().await;
    let http = host.by_http(server::Mode::Silent).await;
    host.web_says("no answer within").await;
    host.commit("app/a.yaml", &config_map("a", "2"), &[]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
    host.is_well("app").await;
    http.set(server::Mode::StopsMidway);
    host.web_says("no answer within").await;
    http.set(server::Mode::Serve);
    host.is_well("web").await;
    // It falls silent again: what was deployed is looked after.
    http.set(server::Mode::Silent);
    host.web_says("no answer within").await;
    host.stage.delete(CONFIG_MAP, "web", "a").await;
    host.stage.until_object(CONFIG_MAP, "web", "a", |_| true).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_failed_for_a_moment_is_asked_again_soon() {
    let host = Host::new().await;
    let http = host.by_http(server::Mode::Down).await;
    host.web_says("503").await;
    http.set(server::Mode::Serve);
    let since = tokio::time::Instant::now();
    host.is_well("web").await;
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    // One that stays away is asked ever more seldom.
    http.set(server::Mode::Down);
    host.web_says("503").await;
    host.stage.pass(HOUR).await;
    let asked = http.requests();
    host.stage.pass(HOUR).await;
    let asked = http.requests() - asked;
    assert!((20..=70).contains(&asked), "{asked} requests in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_push_that_a_host_tells_of_is_fetched_at_once() {
    let host = Host::new().await;
    let http = host.by_http(server::Mode::Serve).await;
    host.is_well("web").await;
    // Another set and another Application read other repositories.
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "folders", "namespace": ENGINE},
        "spec": {"goTemplate": true,
            "generators": [{"git": {"repoURL": http.url, "revision": "main", "directories": [{"path": "sets/*"}]}}],
            "template": {"metadata": {"name": "{{.path.basename}}"},
                "spec": {"project": "default", "destination": {"name": "in-cluster", "namespace": "made"},
                    "source": {"repoURL": http.url, "targetRevision": "main", "path": "app"}}}}});
    host.stage.apply(set.clone()).await;
    // Where an address is put in, the spec does not name it.
    let mut matrix = set;
    matrix["metadata"]["name"] = "matrix".into();
    matrix["spec"]["generators"] = json!([{"matrix": {"generators": [{"list": {"elements": [{"url": http.url}]}},
        {"git": {"repoURL": "{{.url}}", "revision": "main", "directories": [{"path": "sets/*"}]}}]}}]);
    matrix["spec"]["template"]["metadata"]["name"] = "of-{{.path.basename}}".into();
    matrix["spec"]["template"]["spec"]["source"]["repoURL"] = "{{.url}}".into();
    host.stage.apply(matrix).await;
    host.stage.pass(Duration::from_secs(10)).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret", "namespace": ENGINE},
        "stringData": {"webhook.gitlab.secret": "$hooks:token"}});
    host.stage.apply(secret).await;
    host.stage.pass(Duration::from_secs(1)).await;
    let tell = |url: &str, token: &str| {
        let headers = [("x-gitlab-event", "Push Hook"), ("x-gitlab-token", token)];
        let found =
            |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, text)| (*text).to_owned());
        let body = json!({"project": {"web_url": url}}).to_string();
        host.stage.engine.as_ref().unwrap().heard(&found, body.as_bytes())
    };
    // Where the secret is to be there is none, which opens the door to nobody.
    assert_eq!(tell(&http.url, "$hooks:token"), Err(WebhookError::Unproved));
    let hooks = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hooks", "namespace": ENGINE},
        "stringData": {"token": "s3cret"}});
    host.stage.apply(hooks).await;
    host.stage.pass(Duration::from_secs(1)).await;
    host.commit("sets/new/README.md", "new\n", &[]);
    host.commit("app/a.yaml", &config_map("a", "2"), &[]);
    let since = tokio::time::Instant::now();
    assert_eq!(tell("https://git.example.com/acme/other", "s3cret"), Ok(0));
    assert_eq!(tell(&http.url, "s3cret"), Ok(3));
    host.stage.until_object(CONFIG_MAP, "web", "a", |a| a["data"]["key"] == "2").await;
    host.stage.until_object(APPLICATION, ENGINE, "new", |_| true).await;
    host.stage.until_object(APPLICATION, ENGINE, "of-new", |_| true).await;
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
}

/// The Secret that says how a repository is read.
fn login(url: &str, password: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop", "namespace": ENGINE,
            "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "stringData": {"type": "git", "url": url, "username": "deployer", "password": password}})
}

#[tokio::test(start_paused = true)]
async fn access_that_was_refused_is_used_as_soon_as_it_is_granted() {
    let host = Host::new().await;
    let right = format!("Basic {}", data_encoding::BASE64.encode(b"deployer:hunter2"));
    let http = host.by_http(server::Mode::Login(right)).await;
    host.web_says("the host wants a login, and none is known for it").await;
    host.stage.apply(login(&http.url, "hunter1")).await;
    host.web_says("the host refuses the login that is known for it").await;
    let app = host.stage.get(APPLICATION, ENGINE, "web").await.unwrap();
    assert!(!app.to_string().contains("hunter"), "{app}");
    host.stage.apply(login(&http.url, "hunter2")).await;
    host.is_well("web").await;
    // The password is changed at the host, and here later.
    http.set(server::Mode::Refuse);
    host.web_says("127.0.0.1").await;
    assert!(host.stage.get(CONFIG_MAP, "web", "a").await.is_some());
    http.set(server::Mode::Serve);
    host.is_well("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_chart_that_git_lfs_keeps_elsewhere_is_told_of_and_nothing_is_pruned() {
    const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    let host = Host::new().await;
    host.commit(".gitattributes", "*.yaml filter=lfs\n*.tgz filter=lfs\n", &[]);
    host.commit("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n", &[]);
    host.git(&["mv", "app/a.yaml", "moved"]);
    host.git(&["commit", "-q", "-m", "moved"]);
    host.commit("app/templates/a.yaml", &config_map("a", "2"), &[]);
    host.stage.until_object(CONFIG_MAP, "app", "a", |a| a["data"]["key"] == "2").await;
    for file in ["app/values.yaml", "app/templates/b.yaml", "app/charts/sub-1.0.0.tgz"] {
        host.commit(file, POINTER, &[]);
        host.is_looked_after("app", "Git LFS").await;
        let app = host.stage.get(APPLICATION, ENGINE, "app").await.unwrap();
        let told = condition(&app, "ComparisonError").unwrap();
        assert!(told.contains(file), "{told}");
        host.git(&["rm", "-q", file]);
        host.git(&["commit", "-q", "-m", "removed"]);
        host.is_well("app").await;
    }
}

/// Puts commits and tags that were signed elsewhere into a repository, a commit as a branch of its number.
fn take_signed(host: &Host) {
    const OBJECTS: &str = include_str!("../../../source/src/signatures/testdata/objects.txt");
    for (number, part) in OBJECTS.split("== ").skip(1).enumerate() {
        let (head, text) = part.split_once('\n').unwrap();
        let (kind, id) = head.split_once(' ').unwrap();
        let file = host.folder.path().join("object");
        fs::write(&file, text).unwrap();
        host.git(&["hash-object", "-t", kind, "-w", file.to_str().unwrap()]);
        let place = if kind == "tag" { "tags" } else { "heads" };
        host.git(&["update-ref", &format!("refs/{place}/signed-{number}"), id]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_project_that_demands_signatures_has_only_signed_commits_synced() {
    const ADA: &str = include_str!("../../../source/src/signatures/testdata/ada.asc");
    const REFUSED: &str = "GIT/GPG: Failed verifying revision c2b7346536e2adfa6352235fb2bdf53a1db328da by 'Ada <ada@example.com>': unsigned (key_id=)";
    let host = Host::new().await;
    take_signed(&host);
    let project = |integrity: Value| {
        let mut spec = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]});
        spec.as_object_mut().unwrap().extend(integrity.as_object().unwrap().clone());
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "signed", "namespace": ENGINE}, "spec": spec})
    };
    let keys = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-gpg-keys-cm", "namespace": ENGINE}, "data": {"B641E4E920CB6A9A": ADA}});
    host.stage.apply(keys).await;
    host.stage.apply(project(json!({"signatureKeys": [{"keyID": "B641E4E920CB6A9A"}]}))).await;
    let app = |revision: &str| {
        let mut app = application("signed", ".");
        app["spec"]["project"] = "signed".into();
        app["spec"]["source"]["repoURL"] = host.path().to_str().unwrap().into();
        app["spec"]["source"]["targetRevision"] = revision.into();
        app
    };
    let refused = async |why: &str| {
        let told = |app: &Value| condition(app, "ComparisonError").is_some_and(|told| told.contains(why));
        host.stage.until_app("signed", told).await;
    };
    host.stage.apply(app("signed-1")).await;
    host.is_well("signed").await;
    host.stage.apply(app("signed-0")).await;
    refused(REFUSED).await;
    host.stage.apply(app("signed-12")).await;
    refused("Failed verifying revision signed-12 by 'Ada <ada@example.com>': unsigned").await;
    host.stage.apply(app("signed-2")).await;
    refused("signed with unallowed key (key_id=518416B36010A32F)").await;

    let strict = |keys: Value| {
        let policy = json!({"repos": [{"url": "*"}], "gpg": {"mode": "strict", "keys": keys}});
        project(json!({"sourceIntegrity": {"git": {"policies": [policy]}}}))
    };
    host.stage.apply(strict(json!(["B641E4E920CB6A9A", "518416B36010A32F"]))).await;
    refused(REFUSED).await;
    // The commit that seals what is before it, and one behind that.
    for number in ["signed-4", "signed-5"] {
        host.stage.apply(app(number)).await;
        host.is_well("signed").await;
    }
    host.stage.delete(CONFIG_MAP, ENGINE, "argocd-gpg-keys-cm").await;
    refused("signed with key not in keyring (key_id=B641E4E920CB6A9A)").await;
}

/// As `argocd repo add` has it tested before it is declared.
#[tokio::test(start_paused = true)]
async fn a_login_is_tried_before_it_is_declared() {
    let host = Host::new().await;
    let right = format!("Basic {}", data_encoding::BASE64.encode(b"deployer:right"));
    let http = host.by_http(server::Mode::Login(right)).await;
    let engine = host.stage.engine.as_ref().unwrap();
    let test = |password: Option<&str>| {
        let fields = password.map(|password| [("username", "deployer"), ("password", password)]);
        let fields = fields.into_iter().flatten().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let (address, fields) = (http.url.clone(), fields.collect());
        engine.test_repository(RepositoryRequest { address, fields, ..RepositoryRequest::default() })
    };
    test(Some("right")).await.unwrap();
    let wrong = test(Some("wrong")).await.unwrap_err().to_string();
    assert!(wrong.contains(&http.url) && !wrong.contains("wrong"), "{wrong}");
    test(None).await.expect_err("what was tried is not declared");
}

/// Neither a commit nor the message of one is a reason to take back what somebody did in the cluster.
#[tokio::test(start_paused = true)]
async fn a_commit_that_leaves_alone_what_was_read_heals_nothing_without_self_heal() {
    let host = Host::new().await;
    let stage = &host.stage;
    let no_heal = json!({"spec": {"syncPolicy": {"automated": {"prune": true, "selfHeal": false}}}});
    stage.patch(APPLICATION, ENGINE, "app", no_heal).await;
    let before = stage.until_green("app").await;
    let revision = |app: &Value| app.pointer("/status/sync/revision").cloned();
    stage.patch(CONFIG_MAP, "app", "a", json!({"data": {"key": "by hand"}})).await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    for (path, text) in [("other/readme.txt", "news"), ("other/deep/new.yaml", "a: 1")] {
        host.commit(path, text, &[]);
        stage.pass(HOUR).await;
        let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
        assert_ne!(revision(&app), revision(&before), "the new commit is seen");
        assert_eq!(app["status"]["sync"]["status"], "OutOfSync", "{path}");
        let kept = stage.get(CONFIG_MAP, "app", "a").await.unwrap();
        assert_eq!(kept["data"]["key"], "by hand", "{path}");
    }
    host.commit("app/b.yaml", &config_map("b", "1"), &[]);
    stage.until_green("app").await;
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "1", "now it is concerned");
}

#[tokio::test(start_paused = true)]
async fn a_sync_of_a_commit_that_does_not_render_fails_with_its_reason() {
    let host = Host::new().await;
    let stage = &host.stage;
    stage.patch(APPLICATION, ENGINE, "app", json!({"spec": {"syncPolicy": {"automated": null}}})).await;
    let before = stage.until_green("app").await;
    host.commit("app/kustomization.yaml", "resources: [none.yaml]\n", &[]);
    stage.pass(HOUR).await;
    let done = |app: &Value| app.get("operation").is_none() && phase(app) == "Error";
    for asked in [json!({"sync": {}}), json!({"sync": {"revision": "main"}})] {
        stage.patch(APPLICATION, ENGINE, "app", json!({"operation": asked})).await;
        let failed = stage.until_app("app", done).await;
        assert!(message(&failed).contains("none.yaml"), "{}", message(&failed));
        assert_eq!(failed["status"]["history"], before["status"]["history"]);
    }
    // The commit before is there for who asks for it by name.
    let revision = before["status"]["sync"]["revision"].clone();
    stage.patch(CONFIG_MAP, "app", "a", json!({"data": {"key": "by hand"}})).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {"revision": revision}}})).await;
    stage.until_app("app", |app| app.get("operation").is_none() && phase(app) == "Succeeded").await;
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "1");
}
