//! Which cluster a command speaks to that was not told: one that this user started, and never one that a
//! working tree names.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use crate::common::{Repo, application, config_map};

fn shop() -> Repo {
    Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))])
}

/// A kubeconfig that runs a program, with an address at which something answers.
fn hostile(folder: &Path, server: &str) -> String {
    format!(
        "current-context: a\nclusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         users: [{{name: a, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, \
         args: [-c, 'touch {}/ran'], interactiveMode: Never}}}}}}]\n",
        folder.display()
    )
}

#[test]
fn a_kubeconfig_in_a_working_tree_is_no_cluster_and_runs_nothing() {
    let repo = shop();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let text = hostile(repo.run_dir(), &server);
    for folder in ["repo/.tiphys", ".tiphys"] {
        let folder = repo.run_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kubeconfig"), &text).unwrap();
        fs::write(folder.join("repository"), format!("{}\nas-it-is\n", repo.path("").display())).unwrap();
    }
    let commands: [&[&str]; 4] = [
        &["app", "list"],
        &["app", "sync", "shop"],
        &["appset", "list"],
        &["render", "helm", "x", "chart", "--dry-run=server"],
    ];
    repo.write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n");
    for args in commands {
        let mut command = repo.command(args);
        // No kubeconfig of the person's own either, so that nothing is left to speak to.
        command.current_dir(repo.path("")).env("HOME", repo.run_dir());
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{args:?}");
        assert!(!repo.run_dir().join("ran").exists(), "{args:?} ran the program of the repository");
    }
}

#[test]
fn a_note_that_was_tampered_with_is_refused_with_the_reason() {
    let repo = shop();
    let mut up = repo.start(&[]);
    up.until_green();
    repo.run(&["app", "list"]).expect(0, &["shop"]);
    let kubeconfig = repo.kubeconfig();
    let text = fs::read_to_string(&kubeconfig).unwrap();
    let server = text.split('"').find(|part| part.starts_with("https://")).unwrap();
    fs::write(&kubeconfig, hostile(repo.run_dir(), server)).unwrap();
    repo.run(&["app", "list"]).expect(2, &["is not used", "\"exec\"", "--kubeconfig"]);
    fs::write(&kubeconfig, text.replace(server, "https://10.0.0.1:443")).unwrap();
    repo.run(&["app", "list"]).expect(2, &["is not used", "10.0.0.1"]);
    assert!(!repo.run_dir().join("ran").exists());
    // A folder that others can write to says nothing at all.
    fs::write(&kubeconfig, &text).unwrap();
    let folder = repo.state_home().join("tiphys/clusters");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    repo.run(&["app", "list"]).expect(1, &["mode 0700"]);
}

#[test]
fn up_writes_nothing_into_the_repository_and_follows_no_link() {
    let repo = shop();
    let victim = repo.run_dir().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(repo.path(".tiphys")).unwrap();
    for name in ["kubeconfig", "repository", ".gitignore"] {
        symlink(&victim, repo.path(".tiphys").join(name)).unwrap();
    }
    let mut command = repo.command(&["up", ".", "--once", "--timeout", "60s"]);
    let output = command.current_dir(repo.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let names = fs::read_dir(repo.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, [".tiphys", "manifests", "root.yaml"]);
    // What was noted is gone with the cluster.
    assert_eq!(fs::read_dir(repo.state_home().join("tiphys/clusters")).unwrap().count(), 0);
}

#[test]
fn a_folder_is_run_once_and_each_environment_has_its_own_kubeconfig() {
    let repo = Repo::with(&[
        ("dev/app.yaml", &application("shop-dev", "dev/manifests")),
        ("dev/manifests/a.yaml", &config_map("a", "dev")),
        ("prod/app.yaml", &application("shop-prod", "prod/manifests")),
        ("prod/manifests/a.yaml", &config_map("a", "prod")),
    ]);
    let mut dev = repo.start(&["--path", "dev"]);
    dev.until_green();
    repo.run(&["app", "list", "-o", "name"]).expect(0, &["argocd/shop-dev"]);
    repo.once(&["--path", "dev"])
        .expect(2, &["a cluster for this folder runs already: process", "kubeconfig"]);
    let mut prod = repo.start(&["--path", "prod"]);
    let started = prod.until(|event| event["event"] == "cluster");
    prod.until_green();
    repo.run(&["app", "list"]).expect(2, &["2 clusters run for", "--kubeconfig"]);
    let kubeconfig = started["kubeconfig"].as_str().unwrap();
    repo.run(&["app", "list", "-o", "name", "--kubeconfig", kubeconfig]).expect(0, &["argocd/shop-prod"]);
    prod.kill();
    // What a killed process left counts no more.
    repo.run(&["app", "list", "-o", "name"]).expect(0, &["argocd/shop-dev"]);
    repo.once(&["--path", "prod"]).expect(0, &["Synced and Healthy"]);
}

#[test]
fn a_kubeconfig_of_somebody_else_is_not_written_over() {
    let repo = shop();
    fs::write(repo.run_dir().join("mine"), "current-context: work\n").unwrap();
    repo.once(&["--kubeconfig", "mine"]).expect(2, &["holds something else"]);
    assert_eq!(fs::read_to_string(repo.run_dir().join("mine")).unwrap(), "current-context: work\n");
}

#[test]
fn a_cluster_that_nobody_named_is_not_changed_without_consent() {
    let repo = shop();
    let mut up = repo.start(&["--kubeconfig", "config"]);
    up.until_green();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join(".kube")).unwrap();
    fs::copy(repo.run_dir().join("config"), elsewhere.path().join(".kube/config")).unwrap();
    let run = |args: &[&str], variable: Option<&Path>| {
        let mut command = repo.command(args);
        command.current_dir(elsewhere.path()).env("HOME", elsewhere.path());
        variable.map(|file| command.env("KUBECONFIG", file));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["app", "pause", "shop"], None);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no cluster was named") && said.contains("--yes"), "{said}");
    // Reading changes nothing, and who names a cluster or agrees is not asked.
    assert_eq!(run(&["app", "list"], None).0, Some(0));
    let (code, said) = run(&["app", "pause", "shop", "--yes"], None);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the cluster at https://127.0.0.1:"), "{said}");
    assert_eq!(run(&["app", "resume", "shop"], Some(&repo.run_dir().join("config"))).0, Some(0));
}
