//! What befalls a Git host under Applications at work. How each failure of a host is told is tested where it is
//! fetched from (`crates/source/tests/git_http`).

use std::{fs, path::Path, process::Command, time::Duration};

use tempfile::TempDir;
use tiphys_value::Value;

use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map};

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
        let output = Command::new("git").args(identity).args(args).current_dir(self.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self, path: &str, text: &str, more: &[&str]) {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().unwrap_or(Path::new(""))).unwrap();
        fs::write(file, text).unwrap();
        self.git(&["add", path]);
        self.git(&[&["commit", "-q", "-m", "change"], more].concat());
    }

    /// Waits until an Application says that it cannot be compared, for a reason; what it has is looked after all
    /// the same.
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
